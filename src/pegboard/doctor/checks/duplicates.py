"""One server that is set up more than once: under two names it is paid for twice, under one it is a trap.

Above: `diagnosis`, and `unused`, which leaves these alone. Below: the entries of servers, and what is paid.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import msgspec

from pegboard.doctor import prices
from pegboard.doctor.checks import paid, sizes, wording
from pegboard.doctor.checks.causes import DUPLICATE
from pegboard.doctor.checks.contexts import Context, contexts, strongest
from pegboard.doctor.checks.entries import effective, name_in_id, shadowed
from pegboard.doctor.facts import Agent, Evidence, Finding, Fix, ServerEntry, Session

_Key = tuple[Path, tuple[str, ...]]


class Twin(msgspec.Struct):
    """An entry that is one too many, and the one that would do."""

    spare: ServerEntry
    kept: ServerEntry
    contexts: list[Context]

    @property
    def is_shadowed(self) -> bool:
        """Whether it does nothing: the other has its name."""
        return self.spare.name == self.kept.name


def check(evidence: Evidence) -> tuple[Finding, ...]:
    """One finding for each entry that is one too many."""
    agents: tuple[Agent, ...] = get_args(Agent)
    return tuple(_finding(twin) for agent in agents for twin in _twins(evidence, agent).values())


def spare(evidence: Evidence, agent: Agent) -> tuple[ServerEntry, ...]:
    """The entries that are one too many."""
    return tuple(twin.spare for twin in _twins(evidence, agent).values())


def _twins(evidence: Evidence, agent: Agent) -> dict[_Key, Twin]:
    found: dict[_Key, Twin] = {}
    for context in contexts(evidence, agent):
        for extra, kept in (*_paid_twice(context), *shadowed(context.state)):
            found.setdefault((extra.file, extra.key), Twin(extra, kept, [])).contexts.append(context)
    return found


def _paid_twice(context: Context) -> list[tuple[ServerEntry, ServerEntry]]:
    """All but the one that is called most, of those that start the same."""
    groups: dict[str, list[ServerEntry]] = {}
    for entry in effective(context.state):
        if entry.launch:
            groups.setdefault(entry.launch, []).append(entry)
    pairs: list[tuple[ServerEntry, ServerEntry]] = []
    for group in groups.values():
        kept = max(group, key=lambda entry: _calls(entry, context.sessions))
        pairs += [(entry, kept) for entry in group if entry is not kept]
    return pairs


def _calls(entry: ServerEntry, sessions: Sequence[Session]) -> int:
    return sum(session.server_calls.get(sizes.wire_name(entry.name), 0) for session in sessions)


def _finding(twin: Twin) -> Finding:
    extra, kept = twin.spare, twin.kept
    sessions = [session for context in twin.contexts for session in context.sessions]
    wire = sizes.wire_name(extra.name)
    tokens = 0 if twin.is_shadowed else paid.mean(sessions, wire, twin.contexts[0].state)
    called = _calls(extra, sessions)
    return Finding(
        id=f"{DUPLICATE}:{extra.agent}:{name_in_id(extra, is_hidden=twin.is_shadowed)}",
        cause=DUPLICATE,
        agent=extra.agent,
        title=f"{extra.name} is set up twice" if twin.is_shadowed else f"{extra.name} and {kept.name} are one server",
        why=_why(twin, called, sessions),
        proof=strongest(sessions),
        confidence="high",
        sessions=len(sessions),
        tokens_per_session={wire: tokens} if tokens else {},
        call_rate=called / len(sessions) if sessions else None,
        saving_per_session=tokens,
        cost_per_session=prices.mean_cost(tokens, sessions),
        fix=_fix(twin),
        by_hand=_by_hand(twin),
        claims=frozenset({(extra.agent, wire)} if tokens else ()),
    )


def _why(twin: Twin, called: int, sessions: Sequence[Session]) -> str:
    extra, kept = twin.spare, twin.kept
    if twin.is_shadowed:
        return (
            f"{wording.entry_place(kept)} and {wording.entry_place(extra)} both have it, and start the same; only the "
            f"first counts. It costs nothing, but what is changed in the second does nothing."
        )
    return (
        f"{wording.entry_place(extra)} has {extra.name} and {wording.entry_place(kept)} has {kept.name}, and both "
        f"start the same: its tools are there twice. {extra.name} was called {wording.count(called, 'time')}. "
        f"{paid.told_by(sessions)}"
    )


def _fix(twin: Twin) -> Fix | None:
    """Turning off works by name, so it would take the one that counts along with the one that does not."""
    if twin.is_shadowed or twin.spare.scope in ("managed", "plugin"):
        return None
    return Fix(kind="server-disable", agent=twin.spare.agent, servers=(twin.spare,))


def _by_hand(twin: Twin) -> str:
    extra = twin.spare
    if twin.is_shadowed:
        if extra.agent == "claude-code" and extra.scope in ("local", "project", "user"):
            return f"`claude mcp remove {extra.name} --scope {extra.scope}` takes away the one that does not count."
        return f"Take {extra.name} out of {extra.file}."
    return f"{extra.name} comes from {extra.file}, which is not edited for you." if not _fix(twin) else ""
