"""Servers that are never called at all, of every agent whose sessions can be read.

Above: `diagnosis`. Below: the entries of servers, duplicates, and what is paid.
"""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.doctor import prices
from pegboard.doctor.checks import paid, wording
from pegboard.doctor.checks.causes import NEVER_CALLED
from pegboard.doctor.checks.contexts import strongest
from pegboard.doctor.checks.duplicates import spare
from pegboard.doctor.checks.entries import ENOUGH, Used, may_be_in, name_in_id, used
from pegboard.doctor.facts import Agent, Evidence, Finding, Fix

WITH_SESSIONS: tuple[Agent, ...] = ("claude-code", "codex", "opencode", "kilo", "cline")
GRACE = 86_400.0
"""Seconds in which a new server may be tried."""


def check(evidence: Evidence, *, now: float) -> tuple[Finding, ...]:
    """One finding for each server."""
    return tuple(finding for agent in WITH_SESSIONS for finding in _of_agent(evidence, agent, now))


def _of_agent(evidence: Evidence, agent: Agent, now: float) -> Iterable[Finding]:
    twice = {(entry.file, entry.key) for entry in spare(evidence, agent)}
    for each in used(evidence, agent):
        if (each.entry.file, each.entry.key) in twice or now - each.entry.changed_at < GRACE:
            continue
        if len(each.sessions) >= ENOUGH and not each.calls:
            yield _finding(each)


def _finding(each: Used) -> Finding:
    entry, sessions = each.entry, each.sessions
    tokens = paid.mean(sessions, each.wire, each.contexts[0].state)
    is_absent = not any(may_be_in(session, entry) for session in sessions)
    return Finding(
        id=f"{NEVER_CALLED}:{entry.agent}:{name_in_id(entry)}",
        cause=NEVER_CALLED,
        agent=entry.agent,
        title=f"{entry.name} is never called",
        why=(
            f"{wording.entry_place(entry)} sets it up; none of {wording.count(len(sessions), 'session')} called a tool "
            f"of it. {'None was ever there to call: it may not even start.' if is_absent else paid.told_by(sessions)}"
        ),
        proof=strongest(sessions),
        confidence="high" if len(sessions) >= 4 * ENOUGH else "medium",
        sessions=len(sessions),
        tokens_per_session={each.wire: tokens},
        call_rate=0.0,
        saving_per_session=tokens,
        cost_per_session=prices.mean_cost(tokens, sessions),
        fix=_fix(each),
        by_hand=_by_hand(each),
        claims=frozenset({(entry.agent, each.wire)}),
    )


def _fix(each: Used) -> Fix | None:
    if each.entry.scope in ("managed", "plugin"):
        return None
    return Fix(kind="server-disable", agent=each.entry.agent, servers=(each.entry,))


def _by_hand(each: Used) -> str:
    if each.entry.scope == "managed":
        return f"{each.entry.file} is a policy: ask whoever manages this machine to take it out."
    return (
        "It comes with a plugin: disable the plugin if you need nothing of it." if each.entry.scope == "plugin" else ""
    )
