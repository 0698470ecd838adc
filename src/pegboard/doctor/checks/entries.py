"""Servers as files have them, each with the sessions in which it was set up.

Above: the checks of servers. Below: contexts, sizes, and what is paid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path, PurePath

import msgspec

from pegboard.doctor.checks import paid, sizes
from pegboard.doctor.checks.contexts import Context, contexts
from pegboard.doctor.facts import Agent, AgentState, Evidence, ServerEntry, Session

ENOUGH = 5
"""Sessions before anything is said of how often a server is called."""
_PRECEDENCE = ("managed", "local", "project", "user", "plugin")


class Used(msgspec.Struct, frozen=True):
    """One entry, and the contexts in which it is the one that counts."""

    entry: ServerEntry
    contexts: tuple[Context, ...]
    sessions: tuple[Session, ...]
    """In which it was set up, as far as anybody can tell, the oldest first."""

    @property
    def wire(self) -> str:
        """Its name as part of its tools' names."""
        return sizes.wire_name(self.entry.name)

    @property
    def calls(self) -> int:
        """Of its tools in these sessions."""
        return sum(session.server_calls.get(self.wire, 0) for session in self.sessions)

    @property
    def rate(self) -> float:
        """Calls in the average session."""
        return self.calls / len(self.sessions) if self.sessions else 0.0


def used(evidence: Evidence, agent: Agent) -> tuple[Used, ...]:
    """Every entry that is started somewhere, Pegboard itself aside."""
    found: dict[tuple[Path, tuple[str, ...]], tuple[ServerEntry, list[Context]]] = {}
    for context in contexts(evidence, agent):
        for entry in effective(context.state):
            found.setdefault((entry.file, entry.key), (entry, []))[1].append(context)
    return tuple(Used(entry, tuple(places), _sessions(entry, places)) for entry, places in found.values())


def may_be_in(session: Session, entry: ServerEntry) -> bool:
    """Whether a session has a tool of it, or does not tell."""
    return paid.may_be_there(session, sizes.wire_name(entry.name), is_pinned=bool(entry.always_load))


def _sessions(entry: ServerEntry, places: Sequence[Context]) -> tuple[Session, ...]:
    """Those since its file was written; where nobody knows when that was, one without it may be from before it came."""
    since = entry.changed_at
    found = (session for context in places for session in context.sessions if session.began_at >= since)
    there = (session for session in found if since or may_be_in(session, entry))
    return tuple(sorted(there, key=lambda session: session.began_at))


def name_in_id(entry: ServerEntry, *, is_hidden: bool = False) -> str:
    """What tells an entry from all others in the id of a finding: a project's own may be in many projects."""
    if entry.scope in ("user", "managed") and not is_hidden:
        return entry.name
    folder = PurePath(entry.project).name or entry.file.parent.name
    mark = hashlib.sha256("\0".join((str(entry.file), *entry.key)).encode()).hexdigest()[:4]
    return f"{entry.name}@{folder}-{mark}"


def effective(state: AgentState) -> tuple[ServerEntry, ...]:
    """Of those with one name the strongest, as it is the only one that is started.

    One that waits for approval, or that Claude Code was told to leave alone, is not there for the others either.
    """
    by_name: dict[str, ServerEntry] = {}
    for entry in sorted(state.servers, key=lambda each: _PRECEDENCE.index(each.scope)):
        if not entry.pending and (entry.enabled or entry.agent != "claude-code"):
            by_name.setdefault(entry.name, entry)
    return tuple(entry for entry in by_name.values() if sizes.is_active(entry))


def shadowed(state: AgentState) -> tuple[tuple[ServerEntry, ServerEntry], ...]:
    """Entries that do nothing as a stronger one has their name, each with that one, where both start the same."""
    strongest = {entry.name: entry for entry in effective(state)}
    pairs = ((entry, strongest.get(entry.name)) for entry in state.servers if entry.enabled and not entry.pending)
    return tuple(
        (entry, other) for entry, other in pairs if other and other is not entry and entry.launch == other.launch != ""
    )
