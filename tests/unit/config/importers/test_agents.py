"""Codex, Gemini CLI and opencode."""

from __future__ import annotations

import pytest

from pegboard.config.model import ServerConfig
from tests.unit.config.importers.machine import WITH_MARK, Machine


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_codex_servers_come_with_limits_forwarded_variables_and_tool_lists(machine):
    machine.put_golden(".codex/config.toml", "codex.toml", WITH_MARK)

    context7 = machine.found("codex:user")["context7"]

    # Codex lets a disabled tool lose even when it is enabled; in Pegboard `include` would win.
    assert context7.config == ServerConfig(
        command="npx",
        args=("-y", "@upstash/context7-mcp"),
        env={"MODE": "$${literal}"},
        inherit_env=("CONTEXT7_API_KEY", "HTTPS_PROXY"),
        start_timeout=20,
        call_timeout=45.5,
        include=("resolve", "docs"),
    )


def test_codex_headers_that_come_from_variables_become_references(machine):
    machine.put_golden(".codex/config.toml", "codex.toml")

    figma = machine.found("codex:user")["figma remote"]

    assert figma.config == ServerConfig(
        url="https://mcp.figma.example/mcp",
        headers={
            "X-Figma-Region": "us-east-1",
            "X-Team": "${FIGMA_TEAM}",
            "Authorization": "Bearer ${FIGMA_OAUTH_TOKEN}",
        },
        start_timeout=1.5,
        enabled=False,
    )
    assert figma.notes == ("Not carried over: required.",)


def test_a_tool_name_is_not_read_as_a_pattern(machine):
    machine.put_golden(".codex/config.toml", "codex.toml")

    assert machine.found("codex:user")["muted"].config.exclude == ("delete_[*]",)


def test_codex_home_moves_the_users_file_and_projects_have_their_own(machine):
    machine.environ["CODEX_HOME"] = str(machine.home / "moved")
    machine.put("moved/config.toml", '[mcp_servers.user]\ncommand = "x"\n')
    machine.put(machine.project / ".codex" / "config.toml", '[mcp_servers.own]\ncommand = "bin/x"\n')

    assert list(machine.found("codex:user")) == ["user"]
    assert machine.found("codex:project")["own"].config.command == str(machine.project / "bin" / "x")


@pytest.mark.parametrize(
    "wrong", ['bearer_token_env_var = "not a name"', 'env_http_headers = {X = "a-b"}', 'http_headers = {X = "a\\nb"}']
)
def test_codex_headers_that_no_request_could_have_are_refused(machine, wrong):
    machine.put(".codex/config.toml", f'[mcp_servers.it]\nurl = "https://x.example"\n{wrong}\n')

    it = machine.found("codex:user")["it"]

    assert it.config is None
    assert it.line == 1


def test_geminis_dollar_variables_become_references(machine):
    machine.put_golden(".gemini/settings.json", "gemini.json")

    py = machine.found("gemini:user")["py"]

    assert py.config == ServerConfig(
        command="python",
        args=("-m", "my_server"),
        env={"DATABASE_URL": "${DB_CONNECTION}", "API_KEY": "${EXTERNAL_API_KEY}", "PRICE": "$5"},
        call_timeout=15.0,
    )
    assert py.notes == ("Not carried over: trust.",)


def test_geminis_two_kinds_of_address_are_told_apart(machine):
    machine.put_golden(".gemini/settings.json", "gemini.json")

    gemini = machine.found("gemini:user")

    assert gemini["web"].config.url == "http://localhost:3000/mcp"
    assert gemini["web"].config.transport is None
    assert gemini["old"].config.transport == "sse"


def test_gemini_servers_that_are_excluded_or_not_among_the_allowed_are_switched_off(machine):
    machine.put_golden(".gemini/settings.json", "gemini.json")
    machine.put_golden(machine.project / ".gemini" / "settings.json", "gemini-project.json")

    assert not machine.found("gemini:user")["slow"].config.enabled
    assert machine.found("gemini:user")["py"].config.enabled
    assert machine.found("gemini:project")["build"].config.enabled
    assert not machine.found("gemini:project")["other"].config.enabled


def test_a_server_whose_every_tool_is_excluded_offers_none(machine):
    machine.put_golden(".gemini/settings.json", "gemini.json")

    slow = machine.found("gemini:user")["slow"].config

    assert (slow.include, slow.exclude) == ((), ("*",))


def test_a_relative_folder_of_a_project_becomes_absolute(machine):
    machine.put_golden(machine.project / ".gemini" / "settings.json", "gemini-project.json")

    build = machine.found("gemini:project")["build"].config

    assert build.cwd == str(machine.project / "tools")
    assert build.exclude == ("rm",)


def test_a_relative_folder_outside_any_project_is_noted(machine):
    machine.put(".gemini/settings.json", '{"mcpServers": {"it": {"command": "x", "cwd": "sub"}}}')

    it = machine.found("gemini:user")["it"]

    assert it.config.cwd == "sub"
    assert any("relative" in note for note in it.notes)


def test_opencodes_command_list_is_split_and_its_references_become_ours(machine):
    machine.put_golden(".config/opencode/opencode.jsonc", "opencode.jsonc")

    everything = machine.found("opencode:user")["everything"]

    assert everything.config == ServerConfig(
        command="npx",
        args=("-y", "@modelcontextprotocol/server-everything"),
        env={"TOKEN": "${EVERYTHING_TOKEN}", "TEMPLATE": "{{x}} $${y}"},
        enabled=False,
        start_timeout=8.0,
    )


def test_opencodes_remote_servers_and_what_is_lost_of_them(machine):
    machine.put_golden(".config/opencode/opencode.jsonc", "opencode.jsonc")

    opencode = machine.found("opencode:user")

    assert opencode["sentry"].config == ServerConfig(url="https://mcp.sentry.example/mcp")
    assert opencode["sentry"].notes == ("Not carried over: oauth.",)
    assert opencode["keyed"].config.headers == {"X-Key": "{file:~/.key}"}
    assert any("{file:~/.key}" in note for note in opencode["keyed"].notes)


def test_an_entry_that_only_switches_another_files_server_is_no_server(machine):
    machine.put_golden(".config/opencode/opencode.jsonc", "opencode.jsonc")

    jira = machine.found("opencode:user")["jira"]

    assert jira.config is None
    assert "defined elsewhere" in jira.problem


def test_opencodes_second_version_is_understood(machine):
    machine.put_golden(machine.project / ".opencode" / "opencode.json", "opencode-project.json")

    lint = machine.found("opencode:project")["lint"].config

    assert lint == ServerConfig(
        command=str(machine.project / "bin" / "lint"),
        args=("--mcp",),
        cwd=str(machine.project),
        start_timeout=3.0,
        call_timeout=60.0,
        enabled=False,
    )


def test_a_server_of_opencodes_first_version_may_be_called_servers(machine):
    entry = '{"mcp": {"servers": {"type": "local", "command": ["x"], "environment": {"A": "b"}}}}'
    machine.put(machine.project / "opencode.json", entry)

    assert machine.found("opencode:project")["servers"].config == ServerConfig(command="x", env={"A": "b"})


def test_opencodes_variable_names_another_file(machine):
    machine.environ["OPENCODE_CONFIG"] = str(machine.home / "mine.json")
    machine.put("mine.json", '{"mcp": {"mine": {"type": "remote", "url": "https://x.example/mcp"}}}')

    assert list(machine.found("opencode:user")) == ["mine"]


@pytest.mark.parametrize("limit", ["0", "-3", "inf", "nan"])
def test_a_limit_that_is_none_leaves_pegboards_own(machine, limit):
    machine.put(".codex/config.toml", f'[mcp_servers.it]\ncommand = "x"\ntool_timeout_sec = {limit}\n')

    assert machine.found("codex:user")["it"].config == ServerConfig(command="x")
