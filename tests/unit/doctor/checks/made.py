"""Sessions, settings and servers made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pegboard.doctor.diagnosis import diagnose
from pegboard.doctor.facts import (
    Agent,
    AgentState,
    Deferral,
    Definition,
    Evidence,
    Finding,
    Proof,
    ServerEntry,
    Session,
    Setting,
    Usage,
)

NOW = 1_794_960_000.0
DAY = 86_400.0
USER_FILE = Path("/home/ada/.claude/settings.json")
USAGE = Usage(input=100, cache_read=20_000, cache_write=4_000, messages=10)


def definitions(server: str, count: int = 10, *, tokens: int = 500, deferred: bool = False) -> tuple[Definition, ...]:
    """The tools of one server."""
    names = (f"mcp__{server}__tool_{number}" for number in range(count))
    return tuple(Definition(name=name, server=server, tokens=tokens, deferred=deferred) for name in names)


def session(number: int, *, days_ago: float = 0.0, **about: Any) -> Session:
    """One of Claude Code's with github in full, a day after the one with the number before."""
    usual: dict[str, Any] = {
        "agent": "claude-code",
        "id": f"s{number}",
        "project": "/home/ada/engine",
        "version": "2.1.325",
        "models": ("claude-sonnet-5",),
        "began_at": NOW - days_ago * DAY if days_ago else NOW - (30 - number) * DAY,
        "usage": USAGE,
        "deferral": Deferral.OFF,
        "proof": Proof.REQUESTS,
        "definitions": definitions("github"),
        "counted": True,
        "server_calls": {"github": 1},
    }
    return Session(**{**usual, **about})


def sessions(count: int, **about: Any) -> tuple[Session, ...]:
    """As many, one a day."""
    return tuple(session(number, **about) for number in range(count))


def deferred(number: int, **about: Any) -> Session:
    """One in which deferral is on."""
    return session(
        number,
        **{"deferral": Deferral.ON, "definitions": definitions("github", 2, deferred=True), "searches": 1, **about},
    )


def setting(name: str, value: str, **about: Any) -> Setting:
    """One in the user's settings."""
    return Setting(**{"name": name, "value": value, "file": USER_FILE, "line": 3, "key": ("env", name), **about})


def server(name: str, **about: Any) -> ServerEntry:
    """One in the user's settings."""
    usual: dict[str, Any] = {
        "agent": "claude-code",
        "name": name,
        "file": Path("/home/ada/.claude.json"),
        "scope": "user",
        "key": ("mcpServers", name),
        "launch": name,
    }
    return ServerEntry(**{**usual, **about})


def state(*settings: Setting, agent: Agent = "claude-code", **about: Any) -> AgentState:
    """As an agent would start anywhere."""
    usual: dict[str, Any] = {"installed": True, "version": "2.1.325", "servers": (server("github"),)}
    return AgentState(agent=agent, settings=settings, **{**usual, **about})


def findings(*parts: AgentState | Session) -> tuple[Finding, ...]:
    """What is found in all this."""
    states = tuple(part for part in parts if isinstance(part, AgentState))
    ran = tuple(part for part in parts if isinstance(part, Session))
    return diagnose(Evidence(sessions=ran, states=states), now=NOW).findings


def causes(*parts: AgentState | Session) -> list[str]:
    """Only what it is."""
    return [finding.cause for finding in findings(*parts)]
