"""Each agent's settings, as people have them, are read exactly: what counts, where it stands, and no secret."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from pegboard.doctor.facts import Agent, AgentState, ServerEntry, Setting
from pegboard.doctor.settings.read import read_states
from tests.homes import HomeBuilder
from tests.homes.golden_homes import AGENTS, FOLDER, expected, golden

_SECRETS = re.compile(
    r"ghp_\w+|sk-[\w-]+|ctx7sk-\w+|hunter22secret|s3cr3t|lin_\w+|AIza\w+|\bpass\b|token:abc|key=|ada:"
)


@pytest.mark.parametrize("agent", AGENTS)
def test_the_settings_of_an_agent_are_read_exactly(agent: str, tmp_path: Path) -> None:
    home = golden(agent, tmp_path)

    states = [state for state in read_states(home.machine, [home.project]) if state.agent == agent]

    assert [shown(state, home) for state in states] == expected(agent)


@pytest.mark.parametrize("agent", AGENTS)
def test_no_secret_of_the_files_is_kept(agent: str, tmp_path: Path) -> None:
    home = golden(agent, tmp_path)

    kept = msgspec.json.encode(read_states(home.machine, [home.project]), enc_hook=str).decode()

    written = "".join(file.read_text("utf-8") for file in (FOLDER / agent).rglob("*") if file.is_file())
    assert _SECRETS.search(written) or agent in ("opencode", "kilo", "cursor", "vscode")
    assert not _SECRETS.search(kept)


@pytest.mark.parametrize("agent", AGENTS)
def test_other_agents_take_nothing_from_it(agent: str, tmp_path: Path) -> None:
    home = golden(agent, tmp_path)

    # Kilo reads opencode's files in a project too.
    kin = {agent, "kilo"} if agent == "opencode" else {agent}
    others = [state for state in read_states(home.machine, [home.project]) if state.agent not in kin]

    assert all(not state.servers and not state.project for state in others)


def test_every_agent_has_its_golden_home() -> None:
    assert set(AGENTS) == set(get_args(Agent))


def shown(state: AgentState, home: HomeBuilder) -> dict[str, Any]:
    """A state as `states.json` has it: files by their place, no digests and no times."""
    return {
        "project": _place(state.project, home) if state.project else "",
        "installed": state.installed,
        "version": state.version,
        "settings": [_setting(each, home) for each in state.settings],
        "overridden": [_setting(each, home) for each in state.overridden],
        "servers": [_server(each, home) for each in state.servers],
        "problems": list(state.problems),
    }


def _setting(each: Setting, home: HomeBuilder) -> str:
    where = f"{_place(str(each.file), home)}:{each.line}" if each.file else "process"
    return f"{each.name} = {each.value} [{each.scope}, {where}, {'/'.join(each.key)}]"


def _server(each: ServerEntry, home: HomeBuilder) -> str:
    marks = [each.scope, _place(str(each.file), home), "/".join(each.key).replace(str(home.project), "@PROJECT@")]
    marks += [f"for {_place(each.project, home)}"] if each.project else []
    marks += [f"alwaysLoad {each.always_load}"] if each.always_load is not None else []
    marks += ["off"] if not each.enabled else []
    marks += ["pending"] if each.pending else []
    return f"{each.name} [{', '.join(marks)}]"


def _place(path: str, home: HomeBuilder) -> str:
    for folder, mark in ((home.project, "@PROJECT@"), (home.folder, "@HOME@"), (home.root, "@ROOT@")):
        path = path.replace(str(folder), mark)
    return path
