"""One home for each cause of definitions that are paid for in vain, and one in which nothing is wrong.

Every home has other agents beside Claude Code in which all is well, and things that look like a cause and are none:
names that are announced whatever becomes of them, sessions that never search, a deferral long ago before an outage.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pegboard.doctor.checks import causes
from tests.homes.builder import DAY, HomeBuilder
from tests.homes.tools import ToolSpec, patch_of, server_tools

LATEST = "2.1.325"
TOOLS: tuple[ToolSpec, ...] = (*server_tools("github", 12), *server_tools("docs", 8, tokens=300))
CALLS = {"mcp__github__tool_3": 2, "mcp__docs__tool_1": 1, "Bash": 4, "Read": 3}
ELSEWHERE = "https://llm.example.com"
Home = Callable[..., HomeBuilder]


def healthy(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """Claude Code defers, Codex knows its model, opencode has but one server, Cursor looks after itself."""
    home = _around(folder, version)
    _sessions(home, 8, version=version)
    return _aged(home)


def off_by_variable(folder: Path, *, version: str = LATEST, place: str = "user") -> HomeBuilder:
    """ENABLE_TOOL_SEARCH=false in one of six places; a month ago it was on for once."""
    home = _around(folder, version)
    if place == "managed":
        home.managed(env={"ENABLE_TOOL_SEARCH": "false"})
    elif place == "shell":
        home.shell('export ENABLE_TOOL_SEARCH="false"  # too slow on the train')
        home.process(SHELL="/bin/zsh")
    elif place == "environment":
        home.process(ENABLE_TOOL_SEARCH="0")
    else:
        home.env(scope=place, ENABLE_TOOL_SEARCH="false")  # type: ignore[arg-type]
    home.claude_session(version=version, tools=TOOLS, calls=CALLS, searches=2, days_ago=29)
    _sessions(home, 6, version=version, deferral=False, announce=True)
    return _aged(home)


def off_by_betas(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """All betas are turned off; `force` in the user's settings does not help."""
    home = _around(folder, version).env(CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS="1", ENABLE_TOOL_SEARCH="force")
    _sessions(home, 6, version=version, deferral=False, announce=False)
    return _aged(home)


def off_by_permission(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """A project denies ToolSearch among other things."""
    home = _around(folder, version)
    home.settings(scope="project", permissions={"deny": ["Bash(rm:*)", "ToolSearch"], "allow": ["Read"]})
    _sessions(home, 6, version=version, deferral=False, announce=False)
    return _aged(home)


def off_by_version(folder: Path, *, version: str = "2.1.290") -> HomeBuilder:
    """Another base URL, and a version that does not defer behind one."""
    home = _around(folder, version).env(ANTHROPIC_BASE_URL=ELSEWHERE)
    _sessions(home, 6, version=version, deferral=not 70 <= patch_of(version) <= 303)
    return _aged(home)


def off_on_vertex(folder: Path, *, version: str = "2.1.200") -> HomeBuilder:
    """Vertex AI, and a version that does not defer there."""
    home = _around(folder, version).env(CLAUDE_CODE_USE_VERTEX="1", CLOUD_ML_REGION="europe-west1")
    _sessions(home, 6, version=version, deferral=not 119 <= patch_of(version) <= 220, vertex=True)
    return _aged(home)


def off_by_model_on_vertex(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """Vertex AI, a version that defers there, and a model that is too old for it."""
    home = _around(folder, version).env(CLAUDE_CODE_USE_VERTEX="1")
    _sessions(home, 6, version=version, deferral=False, vertex=True, models=("claude-sonnet-4@20250514",))
    return _aged(home)


def off_by_model(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """Half of the sessions run with a model that is too old."""
    home = _around(folder, version)
    _sessions(home, 4, version=version)
    _sessions(home, 4, version=version, deferral=False, models=("claude-3-7-sonnet-20250219",), first_day=4)
    return _aged(home)


def refused(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """The endpoint does not take deferral."""
    home = _around(folder, version).env(ANTHROPIC_BASE_URL=ELSEWHERE)
    home.claude_session(version=version, tools=TOOLS, calls=CALLS, searches=1, days_ago=27)
    _sessions(home, 6, version=version, refused=True)
    return _aged(home)


def held_off(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """A conversation from before the update goes on behind another base URL; new ones defer."""
    home = _around(folder, version).env(ANTHROPIC_BASE_URL=ELSEWHERE)
    _sessions(home, 5, version=version)
    _sessions(home, 2, version=version, deferral=False, resumed=True, first_day=2)
    _sessions(home, 1, version=version, first_day=1)
    return _aged(home)


def below_auto(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """`auto` waits for a tenth of the window, which is large."""
    home = _around(folder, version).env(ENABLE_TOOL_SEARCH="auto")
    _sessions(home, 6, version=version, deferral=False, announce=True)
    return _aged(home)


def below_number(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """Somebody chose a percentage, and chose too high."""
    home = _around(folder, version).env(ENABLE_TOOL_SEARCH="auto:40")
    _sessions(home, 6, version=version, deferral=False, announce=True, models=("claude-haiku-4-5",))
    return _aged(home)


def unexplained(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """`claude --disallowedTools ToolSearch`, of which no file knows."""
    home = _around(folder, version)
    _sessions(home, 6, version=version, deferral=False, announce=False)
    return _aged(home)


def pinned_server(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """A pinned server is called once in eight sessions."""
    home = _around(folder, version).server("wiki", always_load=True)
    tools = (*TOOLS, *server_tools("wiki", 15))
    _sessions(home, 7, version=version, tools=tools, pinned={"wiki"}, first_day=20)
    _sessions(home, 1, version=version, tools=tools, pinned={"wiki"}, calls={**CALLS, "mcp__wiki__tool_2": 1})
    return _aged(home)


def pinned_tools(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """A server marks two tools as always needed, and they are not."""
    home = _around(folder, version).server("wiki")
    pinned = {"mcp__wiki__tool_0", "mcp__wiki__tool_1"}
    _sessions(home, 7, version=version, tools=(*TOOLS, *server_tools("wiki", 15)), pinned=pinned, searches=1,
              calls={**CALLS, "mcp__wiki__tool_7": 1})  # fmt: skip
    return _aged(home)


def never_called(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """A server is there, and nobody calls it."""
    home = _around(folder, version).server("wiki")
    _sessions(home, 8, version=version, tools=(*TOOLS, *server_tools("wiki", 15)))
    return _aged(home)


def duplicate(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """The project brings along a server that the user has under another name."""
    home = _around(folder, version).server("gh", scope="project", command="github-mcp")
    home.settings(scope="local", enableAllProjectMcpServers=True)
    _sessions(home, 8, version=version, tools=(*TOOLS, *server_tools("gh", 12)))
    return _aged(home)


def without_deferral(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """Kilo has four servers, and sends all of them whole."""
    home = _around(folder, version)
    for name in ("github", "docs", "wiki", "mail"):
        home.server(name, agent="kilo")
    for number in range(6):
        calls = {f"{name}_tool_{number}": 1 for name in ("github", "docs", "wiki", "mail")}
        home.kilo_session(calls={**calls, "bash": 3}, days_ago=12 - number)
    _sessions(home, 6, version=version)
    return _aged(home)


def unknown_model(folder: Path, *, version: str = LATEST) -> HomeBuilder:
    """Codex runs with a model of somebody's own by now."""
    home = _around(folder, version)
    settings = home.codex_folder / "config.toml"
    home.file(settings, 'model = "house-coder-70b"\n\n' + settings.read_text("utf-8"))
    for number in range(4):
        home.codex_session(model="house-coder-70b", calls={"mcp__github__tool_1": 2, "shell": 3}, days_ago=5 - number)
    _sessions(home, 6, version=version)
    return _aged(home)


HOMES: dict[str, Home] = {
    causes.ENV: off_by_variable,
    causes.BETAS: off_by_betas,
    causes.DENIED: off_by_permission,
    causes.OLD_VERSION: off_by_version,
    causes.VERTEX: off_on_vertex,
    causes.OLD_MODEL: off_by_model,
    causes.REFUSED: refused,
    causes.HELD_OFF: held_off,
    causes.AUTO: below_auto,
    causes.UNEXPLAINED: unexplained,
    causes.PINNED_SERVER: pinned_server,
    causes.PINNED_TOOLS: pinned_tools,
    causes.THRESHOLD: below_number,
    causes.NEVER_CALLED: never_called,
    causes.DUPLICATE: duplicate,
    causes.NO_DEFERRAL: without_deferral,
    causes.CODEX_MODEL: unknown_model,
}
"""Each makes a home in a folder: one with this cause, and no other."""


def _around(folder: Path, version: str) -> HomeBuilder:
    """What all of them have."""
    home = HomeBuilder(folder)
    home.settings(permissions={"allow": ["Bash(git status)", "WebFetch"]}, model="sonnet", cleanupPeriodDays=30)
    home.installed("claude-code", version)
    home.server("github").server("docs")
    home.server("github", agent="codex").server("github", agent="opencode")
    home.server("github", agent="cursor").server("docs", agent="cursor").server("mail", agent="cursor")
    for number in range(3):
        home.codex_session(calls={"mcp__github__tool_1": 1, "shell": 2}, searches=1, days_ago=20 - number)
        home.opencode_session(calls={"github_tool_1": 1, "bash": 2}, days_ago=20 - number)
    return home


def _sessions(home: HomeBuilder, count: int, *, first_day: int = 0, **about: Any) -> None:
    """One a day up to yesterday; every other searches, where it can."""
    last = first_day or 1 + count
    for number in range(count):
        can_search = about.get("deferral", True) and not about.get("refused")
        usual = {"tools": TOOLS, "calls": CALLS, "searches": number % 2 if can_search else 0}
        home.claude_session(**{**usual, **about}, days_ago=max(last - number, 0.5))


def _aged(home: HomeBuilder, days: float = 60) -> HomeBuilder:
    """Settings were written long before the sessions; transcripts were not."""
    long_ago = home.now - days * DAY
    left = {".jsonl", ".db", ".db-wal", ".db-shm"}
    for file in home.root.rglob("*"):
        if file.is_file() and file.suffix not in left and not file.name.endswith(".messages.json"):
            os.utime(file, (long_ago, long_ago))
    return home
