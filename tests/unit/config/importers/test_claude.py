"""Claude Code in its three scopes, and Claude Desktop."""

from __future__ import annotations

import pytest

from pegboard.config.model import ServerConfig
from tests.unit.config.importers.machine import WINDOWS_LINES, WITH_MARK, Machine


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_the_users_servers_come_with_command_arguments_and_variables(machine):
    machine.put_golden(".claude.json", "claude.json")

    github = machine.found("claude-code:user")["github"]

    assert github.config == ServerConfig(
        command="npx",
        args=("-y", "@modelcontextprotocol/server-github"),
        env={"GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_not-a-real-token"},
    )
    assert github.notes == ()
    assert github.file == machine.home / ".claude.json"


def test_references_stay_because_both_programs_write_them_alike(machine):
    machine.put_golden(".claude.json", "claude.json")

    notion = machine.found("claude-code:user")["Notion Search"]

    assert notion.key == "Notion-Search"
    assert notion.config == ServerConfig(
        url="https://mcp.notion.example/mcp",
        headers={"Authorization": "Bearer ${NOTION_TOKEN}", "X-Region": "${REGION:-eu}"},
        lazy=False,
    )


def test_a_server_switched_off_for_the_project_is_imported_switched_off(machine):
    machine.put_golden(".claude.json", "claude.json")

    tickets = machine.found("claude-code:user")["tickets"]

    assert tickets.config == ServerConfig(url="https://tickets.example/sse", transport="sse", enabled=False)
    assert any("Switched off in Claude Code" in note for note in tickets.notes)
    assert any("headersHelper" in note for note in tickets.notes)


def test_the_same_server_is_on_where_it_was_not_switched_off(machine):
    machine.put_golden(".claude.json", "claude.json")
    machine.cwd = machine.home

    assert machine.found("claude-code:user")["tickets"].config.enabled


@pytest.mark.parametrize("below", ["", "src/deep"])
def test_local_servers_are_those_of_the_working_folder_or_a_folder_above(machine, below):
    machine.put_golden(".claude.json", "claude.json")
    machine.cwd = machine.project / below

    local = machine.found("claude-code:local")

    assert list(local) == ["scratch-db"]
    # `./scratch.db` only means something in the project.
    assert local["scratch-db"].config == ServerConfig(
        command="uvx",
        args=("mcp-server-sqlite", "--db-path", "./scratch.db"),
        cwd=str(machine.project),
    )


def test_no_other_projects_local_servers_are_found(machine):
    machine.put_golden(".claude.json", "claude.json")
    machine.cwd = machine.home

    assert machine.found("claude-code:local") == {}


def test_the_nearest_of_two_local_servers_of_one_name_counts(machine):
    outer = machine.project.parent
    projects = {str(folder): {"mcpServers": {"it": {"command": folder.name}}} for folder in (outer, machine.project)}
    import json

    machine.put(".claude.json", json.dumps({"projects": projects}))

    assert machine.found("claude-code:local")["it"].config.command == "my project"


def test_a_projects_servers_get_absolute_paths_and_seconds(machine):
    machine.put_golden(machine.project / ".mcp.json", "project.mcp.json")

    docs = machine.found("claude-code:project")["docs"]

    assert docs.config == ServerConfig(
        command=str(machine.project / "tools" / "docs-server"),
        args=("--root", "./docs"),
        cwd=str(machine.project),
        call_timeout=90.0,
    )


def test_servers_rejected_in_any_settings_file_are_imported_switched_off(machine):
    machine.put_golden(".claude.json", "claude.json")
    machine.put_golden(machine.project / ".mcp.json", "project.mcp.json")
    machine.put(machine.project / ".claude" / "settings.local.json", '{"disabledMcpjsonServers": ["denied"]}')

    project = machine.found("claude-code:project")

    assert {name: item.config.enabled for name, item in project.items() if item.config} == {
        "docs": True,
        "legacy": False,
        "denied": False,
    }


def test_what_pegboard_cannot_speak_or_is_itself_is_named_with_its_line(machine):
    machine.put_golden(machine.project / ".mcp.json", "project.mcp.json")

    project = machine.found("claude-code:project")

    assert "'ws'" in project["stream"].problem
    assert project["stream"].line == 10
    assert project["pegboard"].problem == "It is Pegboard itself."
    assert project["stream"].config is project["pegboard"].config is None


@pytest.mark.parametrize(
    ("command", "args", "itself"),
    [
        ("/opt/bin/pegboard", [], True),
        ("C:\\Tools\\Pegboard.exe", ["serve"], True),
        ("uvx", ["pegboard@latest", "serve"], True),
        ("python3.12", ["-m", "pegboard", "serve"], True),
        ("npx", ["-y", "server-filesystem", "/home/me/pegboard"], False),
        ("git-server", ["--repository", "pegboard"], False),
    ],
)
def test_pegboard_is_recognised_by_its_program_and_not_by_a_folder_of_that_name(machine, command, args, itself):
    import json

    machine.put(".claude.json", json.dumps({"mcpServers": {"it": {"command": command, "args": args}}}))

    assert (machine.found("claude-code:user")["it"].config is None) is itself


def test_the_config_folder_variable_moves_the_users_file(machine, tmp_path):
    machine.environ["CLAUDE_CONFIG_DIR"] = str(tmp_path / "elsewhere")
    machine.put_golden(".claude.json", "claude.json")
    machine.put(tmp_path / "elsewhere" / ".claude.json", '{"mcpServers": {"moved": {"command": "x"}}}')

    assert list(machine.found("claude-code:user")) == ["moved"]


def test_desktop_keeps_spaces_and_letters_of_every_language(machine):
    place = ".config/Claude/claude_desktop_config.json"
    machine.put_golden(place, "claude_desktop_config.json", WINDOWS_LINES, WITH_MARK)

    filesystem = machine.found("claude-desktop")["filesystem"]

    assert filesystem.config == ServerConfig(
        command="/Applications/My Tools/fs server",
        args=("/Users/zoë/Documents and more", "--read-only"),
        env={"LOG_LEVEL": "debug"},
    )


def test_desktop_expands_nothing_so_a_reference_reaches_the_server_untouched(machine):
    machine.put_golden(".config/Claude/claude_desktop_config.json", "claude_desktop_config.json")

    cafe = machine.found("claude-desktop")["Café menü ☕"]

    assert cafe.key == "Cafe-menu"
    assert cafe.config.args[-1] == "Authorization:$${AUTH_HEADER}"


def test_a_malformed_reference_becomes_literal_text_with_a_note(machine):
    machine.put(".claude.json", '{"mcpServers": {"it": {"command": "x", "args": ["${not a name}", "${", "a${B}"]}}}')

    it = machine.found("claude-code:user")["it"]

    assert it.config.args == ("$${not a name}", "$${", "a${B}")
    assert len(it.notes) == 1
    assert "`${not a name}`" in it.notes[0]
