"""What was read before, so that it is not read again: for every file how far it was read, and what it said by then.

It has numbers, names and marks, never a text. It is written whole or not at all; one that is broken is made anew.
Above: the readers, which ask for and put back what they knew. Below: files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

import msgspec

from pegboard.config.places import user_folder
from pegboard.doctor.evidence.lines import Ends, Stamp
from pegboard.doctor.evidence.names import text_of
from pegboard.doctor.evidence.tables import Tables
from pegboard.doctor.facts import Agent, Definition
from pegboard.doctor.settings.machine import Machine
from pegboard.store.files import DiskFiles, replace_file

FORMAT = 3
"""Another number for every change of what a state holds: what older versions kept is read anew."""
_DIGEST = 16
_READ_CAP = 1024 * 1024 * 1024
_TABLE_CAP = 200_000
"""Entries that no session refers to any more stay in the tables until there are this many."""


class Remembered(msgspec.Struct, array_like=True, frozen=True):
    """One file as it was read the last time."""

    stamp: Stamp
    offset: int = 0
    """Where the last whole line ended."""
    ends: Ends = Ends()
    copied: int = 0
    """Records that were another file's: should that one go, they are this one's."""
    marks: bytes = b""
    state: msgspec.Raw = msgspec.Raw(b"\xc0")
    """What it said, as its reader wants it."""


class _Content(msgspec.Struct):
    format: int
    definitions: list[Definition]
    names: list[str]
    files: dict[str, dict[str, Remembered]]


class Kept:
    """All of it; `file` is where it lies between two runs, None for nowhere."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.tables = Tables()
        self._files: dict[str, dict[str, Remembered]] = {}
        self._changed = False

    @classmethod
    def of(cls, machine: Machine) -> Kept:
        """What was kept on this machine; empty when there is nothing, or nothing that can be used."""
        return cls.load(user_folder("state", machine.environ) / "doctor" / "sessions.msgpack")

    @classmethod
    def load(cls, file: Path) -> Kept:
        """From this file."""
        kept = cls(file)
        try:
            whole = DiskFiles(_READ_CAP).read(file)
            if _digest(memoryview(whole)[_DIGEST:]) != whole[:_DIGEST]:
                return kept
            content = msgspec.msgpack.decode(memoryview(whole)[_DIGEST:], type=_Content)
        except (OSError, msgspec.MsgspecError, ValueError):
            return kept
        if content.format == FORMAT and len(content.definitions) + len(content.names) < _TABLE_CAP:
            kept.tables = Tables(content.definitions, content.names)
            kept._files = content.files
        return kept

    def save(self) -> None:
        """Writes it down if anything is new; an error of the disk goes to the caller."""
        if self.file is None or not self._changed:
            return
        content = _Content(FORMAT, self.tables.definitions, self.tables.names, self._files)
        body = msgspec.msgpack.encode(content)
        replace_file(self.file, (_digest(body), body))
        self._changed = False

    def get(self, agent: Agent, path: str) -> Remembered | None:
        """What is known of a file."""
        return self._files.get(agent, {}).get(text_of(path))

    def put(self, agent: Agent, path: str, known: Remembered) -> None:
        """Replaces what is known of a file."""
        self._files.setdefault(agent, {})[text_of(path)] = known
        self._changed = True

    def drop_others(self, agent: Agent, paths: Collection[str]) -> int:
        """Forgets files that are gone; how many they were."""
        mine = self._files.get(agent, {})
        gone = mine.keys() - set(map(text_of, paths))
        for path in gone:
            del mine[path]
        self._changed |= bool(gone)
        return len(gone)


def _digest(content: bytes | memoryview) -> bytes:
    """Bytes that changed on the disk are not believed."""
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()
