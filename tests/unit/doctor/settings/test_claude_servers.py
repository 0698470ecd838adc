"""Servers of Claude Code: which of them are started, in which folder, and who says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pegboard.doctor.facts import AgentState, ServerEntry
from pegboard.doctor.settings.read import read_states
from tests.homes import HomeBuilder


def states_of(home: HomeBuilder) -> list[AgentState]:
    return [each for each in read_states(home.machine, [home.project]) if each.agent == "claude-code"]


def own(home: HomeBuilder) -> dict[tuple[str, str], ServerEntry]:
    return {(each.scope, each.name): each for each in states_of(home)[-1].servers}


def about(home: HomeBuilder, **values: Any) -> HomeBuilder:
    """What the state file says of the project."""
    return home.json(".claude.json", {"projects": {str(home.project): values}})


def test_all_scopes_are_there_the_strongest_first(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).server("a").server("a", scope="project").server("a", scope="local")

    plain, inside = states_of(home)

    assert [each.scope for each in plain.servers] == ["user"]
    assert [each.scope for each in inside.servers] == ["local", "project", "user"]
    assert len({each.launch for each in inside.servers}) == 1


@pytest.mark.parametrize("pin", [True, False, None])
def test_pins_are_read_as_they_are_written(pin: bool | None, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).server("a", always_load=pin)

    assert states_of(home)[0].servers[0].always_load is pin


def test_a_projects_server_waits_until_it_is_approved(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    home.json(home.project / ".mcp.json", {"mcpServers": {"a": {"command": "a"}}})

    assert own(home)["project", "a"].pending


@pytest.mark.parametrize("scope", ["user", "project", "local"])
@pytest.mark.parametrize("approval", [{"enabledMcpjsonServers": ["a"]}, {"enableAllProjectMcpServers": True}])
def test_settings_approve_servers(scope: str, approval: dict[str, Any], tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    home.json(home.project / ".mcp.json", {"mcpServers": {"a": {"command": "a"}}})
    home.settings(scope=scope, **approval)  # type: ignore[arg-type]

    assert not own(home)["project", "a"].pending


def test_of_two_files_that_approve_all_or_not_the_stronger_counts(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).settings(enableAllProjectMcpServers=True)
    home.json(home.project / ".mcp.json", {"mcpServers": {"a": {"command": "a"}}})
    home.settings(scope="local", enableAllProjectMcpServers=False)

    assert own(home)["project", "a"].pending


def test_a_rejected_server_is_off_and_does_not_wait(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).settings(disabledMcpjsonServers=["a"])
    home.json(home.project / ".mcp.json", {"mcpServers": {"a": {"command": "a"}}})

    server = own(home)["project", "a"]

    assert (server.enabled, server.pending) == (False, False)


def test_a_server_is_switched_off_in_one_project_only(tmp_path: Path) -> None:
    home = about(HomeBuilder(tmp_path).server("a").server("b"), disabledMcpServers=["a"])

    plain, inside = states_of(home)

    assert [each.enabled for each in plain.servers] == [True, True]
    assert {each.name: each.enabled for each in inside.servers} == {"a": False, "b": True}


@pytest.mark.parametrize("listed", [{}, {"corp": {"type": "http", "url": "https://corp.example/mcp"}}])
def test_an_administrators_list_leaves_no_other_server_on(listed: dict[str, Any], tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).server("a").server("b", scope="project").server("c", scope="local")
    home.json(home.root / "etc/claude-code/managed-mcp.json", {"mcpServers": listed})

    found = own(home)

    assert {key for key, server in found.items() if server.enabled} == {("managed", name) for name in listed}
    assert len(found) == 3 + len(listed)
    assert not any(server.pending for server in found.values())


def test_what_pegboard_cannot_import_is_a_server_all_the_same(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    servers = {
        "pegboard": {"command": "pegboard", "args": ["serve"]},
        "socket": {"type": "ws", "url": "wss://a.example/mcp"},
        "odd": {"command": "x", "alwaysLoad": "yes"},
        "none": {"note": "mine"},
        "text": "what",
    }
    home.json(".claude.json", {"mcpServers": servers})

    state = states_of(home)[0]

    assert [(each.name, bool(each.launch)) for each in state.servers] == [
        ("pegboard", True),
        ("socket", True),
        ("odd", True),
    ]
    file = home.folder / ".claude.json"
    assert state.problems == tuple(
        f"{file}: {name} says nothing of what to start or reach" for name in ("none", "text")
    )


def test_a_table_of_servers_that_is_none_is_a_problem(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).json(".claude.json", {"mcpServers": ["a"]})

    assert "should be a table of servers" in states_of(home)[0].problems[0]


def plugin(home: HomeBuilder, name: str, files: dict[str, Any], **record: Any) -> HomeBuilder:
    """Installs a plugin as Claude Code does."""
    root = home.claude_folder / "plugins" / "cache" / "market" / name / "1.0.0"
    for file, content in files.items():
        home.json(root / file, content)
    about = {"scope": "user", "installPath": str(root), "version": "1.0.0", **record}
    return home.json(home.claude_folder / "plugins/installed_plugins.json", {"plugins": {f"{name}@market": [about]}})


DB = {"command": "${CLAUDE_PLUGIN_ROOT}/db", "args": []}


@pytest.mark.parametrize(
    ("files", "key"),
    [
        ({".mcp.json": {"mcpServers": {"db": DB}}}, ("mcpServers", "db")),
        ({".mcp.json": {"db": DB}}, ("db",)),
        ({".claude-plugin/plugin.json": {"name": "tools", "mcpServers": {"db": DB}}}, ("mcpServers", "db")),
        (
            {
                ".claude-plugin/plugin.json": {"name": "tools", "mcpServers": "./servers.json"},
                "servers.json": {"mcpServers": {"db": DB}},
            },
            ("mcpServers", "db"),
        ),
    ],
)
def test_servers_of_a_plugin_are_called_by_its_name_too(
    files: dict[str, Any], key: tuple[str, ...], tmp_path: Path
) -> None:
    home = plugin(HomeBuilder(tmp_path).settings(enabledPlugins={"tools@market": True}), "tools", files)

    [server] = states_of(home)[0].servers

    assert (server.name, server.scope, server.key, server.enabled) == ("plugin:tools:db", "plugin", key, True)
    assert not server.pending


def test_a_plugins_servers_are_off_where_the_plugin_is(tmp_path: Path) -> None:
    home = plugin(HomeBuilder(tmp_path), "tools", {".mcp.json": {"db": DB}})
    home.settings(scope="project", enabledPlugins={"tools@market": True})

    plain, inside = states_of(home)

    assert [plain.servers[0].enabled, inside.servers[0].enabled] == [False, True]


def test_a_plugins_server_can_be_switched_off_by_itself(tmp_path: Path) -> None:
    home = plugin(
        HomeBuilder(tmp_path).settings(enabledPlugins={"tools@market": True}), "tools", {".mcp.json": {"db": DB}}
    )
    about(home, disabledMcpServers=["plugin:tools:db"])

    assert not own(home)["plugin", "plugin:tools:db"].enabled


def test_a_plugin_of_one_project_has_no_say_elsewhere(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).settings(enabledPlugins={"tools@market": True})
    plugin(home, "tools", {".mcp.json": {"db": DB}}, scope="project", projectPath=str(home.project))

    plain, inside = states_of(home)

    assert [len(plain.servers), len(inside.servers)] == [0, 1]


def test_a_plugin_cannot_send_the_reader_out_of_its_folder(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).settings(enabledPlugins={"tools@market": True})
    plugin(home, "tools", {".claude-plugin/plugin.json": {"mcpServers": "../../../../../../x.json"}})
    home.json("x.json", {"mcpServers": {"db": DB}})

    state = states_of(home)[0]

    assert state.servers == ()
    assert home.folder / "x.json" not in state.looked_at
