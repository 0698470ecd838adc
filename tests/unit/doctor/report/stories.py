"""Sessions and changes made by hand, days told from one moment on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pegboard.doctor.facts import Deferral, Definition, Evidence, Fix, Proof, ServerEntry, Session, Setting, Usage
from pegboard.doctor.report.baseline import baseline_of
from pegboard.doctor.report.change import Change
from pegboard.doctor.report.outcome import Outcome, Report, report_of
from pegboard.doctor.report.samples import DAY
from pegboard.doctor.report.scope import scope_of

NOW = 1_793_793_600.0
USAGE = Usage(input=100, output=900, cache_read=90_000, cache_write=9_900, messages=10)


def at(day: float) -> float:
    """A moment so many days after the one everything is told from."""
    return NOW + day * DAY


def session(day: float, definitions: dict[str, int] | None = None, **about: Any) -> Session:
    """One that began on a day, and paid so much for each server."""
    paid = {"": 5_000, "github": 8_000, "sentry": 2_000} if definitions is None else definitions
    deferred: tuple[str, ...] = about.pop("deferred", ())
    usual: dict[str, Any] = {
        "agent": "claude-code",
        "id": f"s{day}",
        "project": "/home/ada/engine",
        "began_at": at(day),
        "ended_at": at(day) + 600,
        "usage": USAGE,
        "deferral": Deferral.OFF,
        "proof": Proof.REQUESTS,
        "counted": True,
        "definitions": tuple(
            Definition(
                name=f"mcp__{server}__do" if server else "Bash",
                server=server,
                tokens=tokens,
                deferred=server in deferred,
            )
            for server, tokens in paid.items()
        ),
    }
    return Session(**(usual | about))


def sessions(
    count: int, start: float, end: float, definitions: dict[str, int] | None = None, **about: Any
) -> list[Session]:
    """So many of them, evenly over these days."""
    step = (end - start) / count
    return [session(start + step * (number + 0.5), definitions, **about) for number in range(count)]


def server(name: str, *, project: str = "", **about: Any) -> ServerEntry:
    """A server in an agent's settings."""
    usual: dict[str, Any] = {"agent": "claude-code", "file": Path("/home/ada/.claude.json"), "scope": "user"}
    return ServerEntry(name=name, project=project, **(usual | about))


def setting(**about: Any) -> Setting:
    """A setting that turns deferral off."""
    usual: dict[str, Any] = {"value": "false", "file": Path("/home/ada/.claude/settings.json"), "scope": "user"}
    return Setting(name="ENABLE_TOOL_SEARCH", **(usual | about))


ENABLE = Fix(kind="defer-enable", agent="claude-code", settings=(setting(),))
DISABLE = Fix(kind="server-disable", agent="claude-code", servers=(server("github"),))


def change(fix: Fix = ENABLE, day: float = 0.0, *, known: list[Session] | None = None, **about: Any) -> Change:
    """A fix that was applied on a day; with a baseline when sessions are given."""
    moment = at(day)
    baseline = None if known is None else baseline_of(Evidence(sessions=tuple(known)), fix, now=moment)
    usual: dict[str, Any] = {"id": f"{fix.kind}@{day}", "kind": fix.kind, "baseline": baseline}
    return Change(scope=scope_of(fix), applied_at=moment, **(usual | about))


def report(changes: list[Change], known: list[Session], *, day: float = 14.0) -> Report:
    """What is reported so many days after."""
    return report_of(changes, known, now=at(day))


def outcome(one: Change, known: list[Session], *, day: float = 14.0) -> Outcome:
    """What became of the only change."""
    (found,) = report([one], known, day=day).outcomes
    return found


def of(changes: Report, one: Change) -> Outcome:
    """What became of one of several."""
    return next(each for each in changes.outcomes if each.change.id == one.id)
