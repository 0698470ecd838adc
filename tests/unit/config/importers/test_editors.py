"""Cursor, VS Code, Cline, Windsurf and Zed."""

from __future__ import annotations

import pytest

from pegboard.config.model import ServerConfig
from tests.unit.config.importers.machine import WINDOWS_LINES, Machine

EXTENSION = "User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_cursors_references_to_variables_and_folders_become_ours(machine):
    machine.put_golden(".cursor/mcp.json", "cursor.json")

    cursor = machine.found("cursor:user")

    assert cursor["github"].config.env == {"GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_TOKEN}"}
    assert cursor["notes"].config.args == (f"{machine.home}/notes/server.py", "/tmp")


def test_cursors_addresses_need_no_type(machine):
    machine.put_golden(".cursor/mcp.json", "cursor.json")

    cursor = machine.found("cursor:user")

    assert cursor["linear"].config == ServerConfig(url="https://mcp.linear.example/sse", transport="sse")
    assert cursor["figma"].config == ServerConfig(
        url="http://127.0.0.1:3845/mcp", headers={"X-Figma-Token": "${FIGMA_TOKEN}"}
    )
    assert cursor["figma"].notes == ("Not carried over: auth.",)


def test_cursors_project_knows_its_folder_and_a_file_of_variables_is_noted(machine):
    machine.put_golden(machine.project / ".cursor" / "mcp.json", "cursor-project.json")

    db = machine.found("cursor:project")["db"]

    assert db.config.args == (f"{machine.project}/mcp/db.js", "--name", "my project")
    assert len(db.notes) == 1
    assert f"{machine.project}/.env" in db.notes[0]


def test_the_home_folders_own_file_is_not_taken_for_a_projects(machine):
    machine.put_golden(".cursor/mcp.json", "cursor.json")
    machine.cwd = machine.home

    assert machine.found("cursor:project") == {}
    assert "linear" in machine.found("cursor:user")


def test_vscodes_inputs_become_variables_to_set(machine):
    machine.put_golden(".config/Code/User/mcp.json", "vscode.json", WINDOWS_LINES)

    perplexity = machine.found("vscode:user")["perplexity"]

    assert perplexity.config.env == {
        "PERPLEXITY_API_KEY": "${PERPLEXITY_KEY}",
        "ZONE": "${ZONE:-eu}",
        "PORT": "8080",
    }
    assert any("PERPLEXITY_KEY (Perplexity API Key)" in note and "set it" in note for note in perplexity.notes)
    assert any("takes 'eu' unless" in note for note in perplexity.notes)
    assert not any("pplx-default" in note for note in perplexity.notes)
    assert any("takes away PROXY" in note for note in perplexity.notes)


def test_vscodes_gallery_servers_get_a_legal_key_and_no_notes(machine):
    machine.put_golden(".config/Code/User/mcp.json", "vscode.json")

    github = machine.found("vscode:user")["io.github.github/github-mcp-server"]

    assert github.key == "github-mcp-server"
    assert github.notes == ()


def test_a_workspace_that_is_not_known_becomes_the_folder_pegboard_runs_in(machine):
    machine.put_golden(".config/Code/User/mcp.json", "vscode.json")

    here = machine.found("vscode:user")["here"]

    assert here.config.args == ("run", "--directory", ".", "serve")
    assert any("${workspaceFolder}" in note for note in here.notes)


def test_an_address_that_is_no_http_is_refused(machine):
    machine.put_golden(".config/Code/User/mcp.json", "vscode.json")

    assert "unix:///tmp/server.sock" in machine.found("vscode:user")["socket"].problem


def test_vscodes_project_file_may_have_comments_and_trailing_commas(machine):
    machine.put_golden(machine.project / ".vscode" / "mcp.json", "vscode-project.json")

    playwright = machine.found("vscode:project")["playwright"]

    assert playwright.config == ServerConfig(
        command="npx",
        args=("-y", "@playwright/mcp@latest", f"--output-dir={machine.project}/out"),
        cwd=f"{machine.project}/web",
    )
    assert playwright.notes == ("Not carried over: dev.",)


def test_what_only_vscode_can_ask_for_stays_as_text_and_is_noted(machine):
    machine.put_golden(machine.project / ".vscode" / "mcp.json", "vscode-project.json")

    odd = machine.found("vscode:project")["odd"]

    assert odd.config.command == "$${command:odd.path}"
    assert odd.config.args == ("$${config:odd.mode}",)
    assert len(odd.notes) == 2


def test_every_vscode_profile_and_edition_is_read(machine):
    for folder in ("Code/User", "Code/User/profiles/ab12", "Code - Insiders/User", "VSCodium/User"):
        machine.put(f".config/{folder}/mcp.json", f'{{"servers": {{"{folder}": {{"command": "{folder}"}}}}}}')
    machine.put(".vscode-server/data/User/mcp.json", '{"servers": {"remote": {"command": "remote"}}}')

    assert set(machine.found("vscode:user")) == {
        "Code/User",
        "Code/User/profiles/ab12",
        "Code - Insiders/User",
        "VSCodium/User",
        "remote",
    }


def test_clines_nested_transport_is_understood(machine):
    machine.put_golden(".cline/data/settings/cline_mcp_settings.json", "cline.json")

    cline = machine.found("cline:cli")

    assert cline["memory"].config == ServerConfig(
        command="npx", args=("-y", "@modelcontextprotocol/server-memory"), start_timeout=20.0
    )
    assert cline["search"].config == ServerConfig(url="https://search.example/mcp", enabled=False)


@pytest.mark.parametrize("editor", ["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"])
def test_clines_extension_is_found_in_every_editor_it_runs_in(machine, editor):
    machine.put_golden(f".config/{editor}/{EXTENSION}", "cline-extension.json")

    cline = machine.found("cline:extension")

    assert cline["weather"].config.env == {"WEATHER_KEY": "${WEATHER_KEY}"}
    assert cline["weather"].config.call_timeout == 120
    assert cline["weather"].notes == ("Not carried over: autoApprove.",)


def test_an_address_without_a_type_means_sse_to_cline(machine):
    machine.put_golden(f".config/Code/{EXTENSION}", "cline-extension.json")

    cline = machine.found("cline:extension")

    assert cline["events"].config.transport == "sse"
    assert cline["modern"].config.transport is None


@pytest.mark.parametrize(
    ("variable", "value", "place"),
    [
        ("CLINE_MCP_SETTINGS_PATH", "x/mine.json", "x/mine.json"),
        ("CLINE_DATA_DIR", "data", "data/settings/cline_mcp_settings.json"),
        ("CLINE_DIR", "cline", "cline/data/settings/cline_mcp_settings.json"),
    ],
)
def test_clines_variables_move_its_file(machine, variable, value, place):
    machine.environ[variable] = str(machine.home / value)
    machine.put(place, '{"mcpServers": {"moved": {"command": "x"}}}')

    assert list(machine.found("cline:cli")) == ["moved"]


def test_windsurfs_addresses_tools_and_switches_are_understood(machine):
    machine.put_golden(".codeium/windsurf/mcp_config.json", "windsurf.json")

    windsurf = machine.found("windsurf")

    assert windsurf["remote"].config == ServerConfig(
        url="https://remote.example/mcp",
        headers={"Authorization": "Bearer ${REMOTE_TOKEN}"},
        exclude=("drop_table",),
    )
    assert windsurf["filed"].config == ServerConfig(command="filed", args=("$${file:~/secret.txt}",), enabled=False)
    assert any("${file:~/secret.txt}" in note for note in windsurf["filed"].notes)


def test_zeds_settings_have_three_forms_of_a_server(machine):
    machine.put_golden(".config/zed/settings.json", "zed.json")

    zed = machine.found("zed:user")

    assert zed["local"].config == ServerConfig(command="some-command", args=("arg-1", "arg 2"), call_timeout=30)
    assert zed["remote"].config == ServerConfig(
        url="https://zed.example/mcp", headers={"Authorization": "Bearer abcdefghijkl"}
    )
    assert zed["older"].config == ServerConfig(command="/opt/older", args=("--stdio",), env={"A": "1"})


def test_a_zed_extension_cannot_be_imported_and_its_line_is_named(machine):
    machine.put_golden(".config/zed/settings.json", "zed.json")

    github = machine.found("zed:user")["mcp-server-github"]

    assert github.config is None
    assert "extension" in github.problem
    assert github.line == 15


def test_zeds_project_settings_know_their_folder(machine):
    machine.put_golden(machine.project / ".zed" / "settings.json", "zed-project.json")

    helper = machine.found("zed:project")["helper"]

    assert helper.config == ServerConfig(
        command="helper", args=("--config", "../helper.toml"), cwd=str(machine.project), enabled=False
    )


def test_a_folder_whose_name_looks_like_a_reference_is_still_that_folder(machine):
    machine.project = machine.cwd = machine.home / "odd ${HOME}"
    machine.put_golden(machine.project / ".cursor" / "mcp.json", "cursor-project.json")
    machine.put_golden(machine.project / ".zed" / "settings.json", "zed-project.json")

    db, helper = machine.found("cursor:project")["db"], machine.found("zed:project")["helper"]

    assert db.config.args == (f"{machine.home}/odd $${{HOME}}/mcp/db.js", "--name", "odd $${HOME}")
    assert helper.config.cwd == f"{machine.home}/odd $${{HOME}}"
