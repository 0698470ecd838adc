"""What is peculiar to each of the other agents: which files count, which of them is stronger, what is switched off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pegboard.doctor.facts import AgentState, ServerEntry
from pegboard.doctor.settings.read import read_states
from tests.homes import HomeBuilder

LOCAL = {"type": "local", "command": ["a-mcp"]}
MODEL_FILES = {
    "opencode": [
        "code/engine/.opencode/opencode.jsonc",
        "code/engine/.opencode/opencode.json",
        "code/engine/opencode.jsonc",
        "code/engine/opencode.json",
        "code/opencode.json",
        ".opencode/opencode.json",
        "named.json",
        ".config/opencode/opencode.jsonc",
        ".config/opencode/opencode.json",
        ".config/opencode/config.json",
    ],
    "kilo": [
        "code/engine/.kilo/kilo.jsonc",
        "code/engine/.kilocode/kilo.json",
        "code/engine/kilo.json",
        "code/engine/opencode.json",
        ".kilo/kilo.json",
        "named.json",
        ".config/kilo/kilo.jsonc",
        ".config/kilo/kilo.json",
        ".config/kilo/opencode.json",
    ],
}


def state_of(home: HomeBuilder, agent: str, *, project: bool = True) -> AgentState:
    states = [each for each in read_states(home.machine, [home.project]) if each.agent == agent]
    return states[-1] if project else states[0]


def servers_of(home: HomeBuilder, agent: str) -> dict[str, ServerEntry]:
    return {each.name: each for each in state_of(home, agent).servers}


def value_of(home: HomeBuilder, agent: str, name: str) -> str | None:
    setting = state_of(home, agent).setting(name)
    return setting.value if setting else None


# ── opencode and Kilo ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("agent", MODEL_FILES)
def test_every_file_of_opencode_and_its_kin_overrides_those_below_it(agent: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    home.process(OPENCODE_CONFIG=str(home.folder / "named.json"), KILO_CONFIG=str(home.folder / "named.json"))

    for file in reversed(MODEL_FILES[agent]):
        home.json(file, {"model": file})

        assert value_of(home, agent, "model") == file

    weaker = [each.value for each in state_of(home, agent).overridden]
    assert weaker == MODEL_FILES[agent][1:]


@pytest.mark.parametrize("switch", [True, False])
def test_a_project_switches_a_users_server_without_defining_it(switch: bool, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    home.json(".config/opencode/opencode.json", {"mcp": {"a": {**LOCAL, "enabled": not switch}}})
    home.json(home.project / "opencode.json", {"mcp": {"a": {"enabled": switch}}})

    assert state_of(home, "opencode", project=False).servers[0].enabled is not switch
    assert servers_of(home, "opencode")["a"].enabled is switch
    assert state_of(home, "opencode").problems == ()


def test_servers_of_opencodes_second_version_are_found_where_it_has_them(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).json(".config/opencode/opencode.json", {"mcp": {"servers": {"a": LOCAL}}})

    assert servers_of(home, "opencode")["a"].key == ("mcp", "servers", "a")


@pytest.mark.parametrize("where", ["environ", "shell"])
def test_code_mode_is_found_in_the_environment(where: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    if where == "environ":
        home.process(OPENCODE_EXPERIMENTAL_CODE_MODE="1")
    else:
        home.shell("export OPENCODE_EXPERIMENTAL_CODE_MODE=1")

    assert value_of(home, "opencode", "OPENCODE_EXPERIMENTAL_CODE_MODE") == "1"
    assert value_of(home, "kilo", "OPENCODE_EXPERIMENTAL_CODE_MODE") is None


def test_an_administrators_file_is_the_strongest(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).json(".config/opencode/opencode.json", {"model": "mine"})
    home.json(home.root / "etc/opencode/opencode.json", {"model": "theirs"})

    assert value_of(home, "opencode", "model") == "theirs"


# ── Codex ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("level", ["trusted", "untrusted", None])
def test_a_project_of_codex_counts_only_when_it_is_trusted(level: str | None, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    trust = f'[projects."{home.project}"]\ntrust_level = "{level}"\n' if level else ""
    home.file(".codex/config.toml", f'model = "gpt-5.5"\n{trust}')
    home.file(home.project / ".codex/config.toml", 'model = "own"\n[mcp_servers.a]\ncommand = "a"\n')

    is_trusted = level == "trusted"

    assert value_of(home, "codex", "model") == ("own" if is_trusted else "gpt-5.5")
    assert servers_of(home, "codex")["a"].pending is not is_trusted


def test_only_the_chosen_provider_of_codex_has_a_say(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    home.file(
        ".codex/config.toml",
        'model_provider = "b"\nopenai_base_url = "http://127.0.0.1:1/v1"\n'
        '[model_providers.a]\nbase_url = "http://a"\n[model_providers.b]\nbase_url = "http://u:p@b"\n',
    )

    assert {each.name: each.value for each in state_of(home, "codex").settings} == {
        "model_provider": "b",
        "openai_base_url": "http://127.0.0.1:1/v1",
        "model_providers.b.base_url": "http://b",
    }


def test_codex_home_moves_its_file(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).server("old", agent="codex")
    home.process(CODEX_HOME=str(home.folder / "moved")).server("new", agent="codex")

    assert list(servers_of(home, "codex")) == ["new"]


def test_the_machines_file_of_codex_is_the_weakest(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).file(".codex/config.toml", 'model = "mine"\n')
    home.file(home.root / "etc/codex/config.toml", 'model = "theirs"\nmodel_provider = "openai"\n')

    assert value_of(home, "codex", "model") == "mine"
    assert value_of(home, "codex", "model_provider") == "openai"


def test_broken_toml_is_a_problem(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).file(".codex/config.toml", "model = \n")

    assert "not valid TOML" in state_of(home, "codex").problems[0]


# ── the rest ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_geminis_nearest_file_of_variables_is_the_only_one(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).file(".gemini/.env", "GOOGLE_GEMINI_BASE_URL=http://user\nGEMINI_MODEL=a\n")
    home.file(home.project / ".gemini/.env", "export GOOGLE_GEMINI_BASE_URL='http://u:p@project' # mine\n")

    state = state_of(home, "gemini")

    assert [(each.name, each.value, each.scope) for each in state.settings] == [
        ("GOOGLE_GEMINI_BASE_URL", "http://project", "project")
    ]


def test_a_variable_of_the_process_comes_before_geminis_files(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).file(".gemini/.env", "GOOGLE_GEMINI_BASE_URL=http://file\n")
    home.process(GOOGLE_GEMINI_BASE_URL="http://process")

    assert value_of(home, "gemini", "GOOGLE_GEMINI_BASE_URL") == "http://process"


@pytest.mark.parametrize(("file", "wins"), [("settings.json", True), ("system-defaults.json", False)])
def test_geminis_machine_files_are_the_strongest_and_the_weakest(file: str, wins: bool, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).json(".gemini/settings.json", {"model": {"name": "mine"}})
    home.json(home.root / "etc/gemini-cli" / file, {"model": {"name": "theirs"}})

    assert value_of(home, "gemini", "model.name") == ("theirs" if wins else "mine")


@pytest.mark.parametrize("switches", [{"excluded": ["a"]}, {"allowed": ["b"]}])
def test_geminis_switches_turn_servers_off(switches: dict[str, Any], tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).server("a", agent="gemini").server("b", agent="gemini")
    home.json(".gemini/settings.json", {"mcp": switches})

    assert {name: each.enabled for name, each in servers_of(home, "gemini").items()} == {"a": False, "b": True}


@pytest.mark.parametrize("agent", ["cursor", "vscode", "zed", "gemini"])
def test_a_projects_servers_come_before_the_users(agent: str, tmp_path: Path) -> None:
    places = {
        "cursor": (".cursor/mcp.json", "mcpServers"),
        "vscode": (".vscode/mcp.json", "servers"),
        "zed": (".zed/settings.json", "context_servers"),
        "gemini": (".gemini/settings.json", "mcpServers"),
    }
    home = HomeBuilder(tmp_path).server("a", agent=agent)
    file, key = places[agent]
    home.json(home.project / file, {key: {"a": {"command": "a-mcp", "args": []}}})

    entries = state_of(home, agent).servers

    assert [(each.scope, each.project) for each in entries] == [("project", str(home.project)), ("user", "")]
    assert entries[0].launch == entries[1].launch


def test_one_server_has_one_digest_in_all_agents(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    agents = ("claude-code", "codex", "opencode", "kilo", "cline", "gemini", "zed", "cursor", "vscode")
    for agent in agents:
        home.server(f"{agent}-name", agent=agent, command="github-mcp")

    states = read_states(home.machine)

    assert [state.agent for state in states] == list(agents)
    assert len({server.launch for state in states for server in state.servers}) == 1


def test_a_folder_of_settings_that_cannot_be_looked_into_stops_no_other_agent(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).server("github", agent="gemini").process(XDG_CONFIG_HOME="/" + "x" * 300)
    states = {each.agent: each for each in read_states(home.machine)}
    assert [each.name for each in states["gemini"].servers] == ["github"]
    assert "File name too long" in states["vscode"].problems[0]
