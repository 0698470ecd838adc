"""Reads what every agent left of its sessions. Each agent's logs tell of that agent alone.

Above: the command, which runs it in a thread. Below: one reader for each agent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

import msgspec

from pegboard.doctor.evidence.claude_sessions import ClaudeCode
from pegboard.doctor.evidence.cline import Cline
from pegboard.doctor.evidence.codex import Codex
from pegboard.doctor.evidence.databases import Database
from pegboard.doctor.evidence.kept import Kept
from pegboard.doctor.evidence.parts import calls_by_server
from pegboard.doctor.evidence.tally import Progress, Tally
from pegboard.doctor.facts import Agent, Session
from pegboard.doctor.settings.machine import Machine


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """All sessions, and what it took to read them."""

    sessions: tuple[Session, ...] = ()
    """Those in which a model answered, the oldest first."""
    read_bytes: int = 0
    """Now; what was read before is not read again."""
    read_files: int = 0
    broken_lines: int = 0
    """In all that is there, read now or before."""
    unknown_records: int = 0
    notes: tuple[str, ...] = ()
    """What could not be read, and why."""


class Reader(Protocol):
    """One agent's sessions."""

    def plan(self) -> int:
        """Looks what is new; gives how many bytes that are."""
        ...

    def sessions(self) -> Iterator[Session]:
        """Reads what is new, and tells all."""
        ...


def read_sessions(
    machine: Machine,
    *,
    kept: Kept | None = None,
    since: float = 0.0,
    progress: Progress | None = None,
) -> Gathered:
    """Every session that ended after `since`.

    With `kept`, only what is new is read, and what was learned is kept for the next time. All files are read whatever
    `since` says: a session of today may have records of one of last month, and they are to be counted once.
    """
    kept = Kept() if kept is None else kept
    tally = Tally(progress)
    readers = _readers(machine, kept, tally)
    tally.total = sum([reader.plan() for reader in readers])
    found = [session for reader in readers for session in reader.sessions()]
    try:
        kept.save()
    except OSError as error:
        tally.note(f"What was read could not be kept in {kept.file}: {error.strerror or error}")
    sessions = [each for each in found if each.ended_at >= since and (each.usage.messages or each.calls)]
    return Gathered(
        sessions=tuple(sorted(sessions, key=lambda each: (each.began_at, each.agent, each.id))),
        read_bytes=tally.read_bytes,
        read_files=tally.read_files,
        broken_lines=sum(each.broken_lines for each in found),
        unknown_records=sum(each.unknown_records for each in found),
        notes=tuple(tally.notes),
    )


def with_servers(sessions: Iterable[Session], names: Mapping[Agent, Collection[str]]) -> tuple[Session, ...]:
    """The same, with calls counted for the servers that each agent has by these names, in whichever folder.

    A tool `my_files_read` may be of `my_files` or of `my`: where names are joined so, only settings can tell.
    """
    return tuple(
        msgspec.structs.replace(each, server_calls=calls_by_server(each.agent, each.calls, names[each.agent]))
        if names.get(each.agent)
        else each
        for each in sessions
    )


def _readers(machine: Machine, kept: Kept, tally: Tally) -> list[Reader]:
    return [
        ClaudeCode(machine, kept, tally),
        Codex(machine, kept, tally),
        Database("opencode", machine, kept, tally),
        Database("kilo", machine, kept, tally),
        Cline(machine, kept, tally),
    ]
