"""opencode and Kilo: sessions, messages and parts of messages in an SQLite database that the agent may be writing.

It is opened for reading only, and in such a way that nothing is created beside it. SQLite itself takes the few numbers
out of each row, so that no text is handed over. Above: `gather`. Below: SQLite.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from pegboard.doctor.evidence.kept import Kept, Remembered
from pegboard.doctor.evidence.lines import Stamp
from pegboard.doctor.evidence.names import name_of, path_of
from pegboard.doctor.evidence.parts import Counts, Part, count_of, moment_of
from pegboard.doctor.evidence.tally import Tally
from pegboard.doctor.evidence.threads import sessions_of
from pegboard.doctor.facts import Session
from pegboard.doctor.settings.machine import Machine

_PLACES: dict[Literal["opencode", "kilo"], str] = {"opencode": "opencode/opencode.db", "kilo": "kilo/kilo.db"}
_WAL = 2
"""In the header of a database whose latest changes lie in a file beside it."""
_WAIT = 2.0
_SESSIONS = "SELECT id, parent_id, directory, version, time_created, time_updated FROM session"
_CHANGES = "SELECT session_id, count(*), max(time_updated) FROM message GROUP BY session_id"
# `json_valid` first: one broken row must not end the reading of all others.
_MESSAGES = """
SELECT json_valid(data), CASE WHEN json_valid(data) THEN json_array(
    json_extract(data, '$.role'), json_extract(data, '$.modelID'),
    json_extract(data, '$.tokens.input'), json_extract(data, '$.tokens.output'),
    json_extract(data, '$.tokens.reasoning'), json_extract(data, '$.tokens.cache.read'),
    json_extract(data, '$.tokens.cache.write'), json_extract(data, '$.summary')) END, time_created, time_updated
FROM message WHERE session_id = ?"""
_PARTS = """
SELECT CASE WHEN json_valid(data) THEN json_extract(data, '$.type') END,
    CASE WHEN json_valid(data) AND json_extract(data, '$.type') = 'tool' THEN json_extract(data, '$.tool') END, count(*)
FROM part WHERE session_id = ? GROUP BY 1, 2"""


class _Row(msgspec.Struct, array_like=True):
    """One session, and what it looked like when it was read."""

    looks: tuple[int, int, int]
    part: Part


class _State(msgspec.Struct, array_like=True):
    """A whole database."""

    beside: Stamp
    """Of the file with the latest changes."""
    rows: dict[str, _Row] = {}


class Database:
    """All sessions of opencode or of Kilo on a machine."""

    def __init__(self, agent: Literal["opencode", "kilo"], machine: Machine, kept: Kept, tally: Tally) -> None:
        data = machine.from_variable("XDG_DATA_HOME", machine.home / ".local" / "share")
        self._agent: Literal["opencode", "kilo"] = agent
        self._file = data / _PLACES[agent]
        self._kept = kept
        self._tally = tally

    def plan(self) -> int:
        """How large the database is, unless nothing happened to it."""
        stamp, beside = self._stamps()
        if stamp is None:
            self._kept.drop_others(self._agent, ())
            self._note_if_closed()
            return 0
        known = self._known()
        return 0 if known is not None and known == (stamp, beside) else stamp.size + beside.size

    def sessions(self) -> Iterator[Session]:
        """Every session, those it has started put to it."""
        rows = self._rows()
        return sessions_of(self._agent, [row.part for row in rows.values()])

    def _rows(self) -> dict[str, _Row]:
        stamp, beside = self._stamps()
        if stamp is None:
            return {}
        kept = self._kept.get(self._agent, str(self._file))
        state = msgspec.msgpack.decode(kept.state, type=_State) if kept else _State(Stamp())
        if kept and (kept.stamp, state.beside) == (stamp, beside):
            return state.rows
        self._tally.begin_file()
        rows = self._read(state.rows)
        if rows is None:
            return state.rows
        self._tally.end_file(stamp.size + beside.size)
        state = _State(beside, rows)
        known = Remembered(stamp, state=msgspec.Raw(msgspec.msgpack.encode(state)))
        self._kept.put(self._agent, str(self._file), known)
        return rows

    def _read(self, before: dict[str, _Row]) -> dict[str, _Row] | None:
        """What it holds now; None when it cannot be read."""
        try:
            with closing(self._open()) as connection:
                connection.execute("BEGIN")  # one view of it all, whatever is written meanwhile
                return dict(_all_rows(connection, before))
        except (sqlite3.Error, OSError) as error:
            self._tally.note(f"{self._file} cannot be read: {error}")
            return None

    def _open(self) -> sqlite3.Connection:
        mode = "mode=ro"
        if _is_wal(self._file):
            wal, shared = (Path(f"{self._file}{ending}") for ending in ("-wal", "-shm"))
            if not _size(wal):
                mode = "mode=ro&immutable=1"  # else SQLite would create what is not there
            elif not shared.exists():
                self._tally.note(f"{self._file}: the latest changes cannot be read until {self._agent} runs again")
                mode = "mode=ro&immutable=1"
        address = f"file:{quote(str(self._file))}?{mode}"
        connection = sqlite3.connect(address, uri=True, timeout=_WAIT, isolation_level=None)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        return connection

    def _stamps(self) -> tuple[Stamp | None, Stamp]:
        return _stamp(self._file), _stamp(Path(f"{self._file}-wal")) or Stamp()

    def _note_if_closed(self) -> None:
        """A database that is not there is nothing to tell of; one that may not be looked at is."""
        try:
            os.stat(self._file)  # noqa: PTH116 - as for transcripts
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            self._tally.cannot_read(self._file, error)

    def _known(self) -> tuple[Stamp, Stamp] | None:
        kept = self._kept.get(self._agent, str(self._file))
        return (kept.stamp, msgspec.msgpack.decode(kept.state, type=_State).beside) if kept else None


def _all_rows(connection: sqlite3.Connection, before: dict[str, _Row]) -> Iterator[tuple[str, _Row]]:
    changes = {session: (count_of(count), count_of(latest)) for session, count, latest in connection.execute(_CHANGES)}
    for identity, parent, folder, version, created, updated in connection.execute(_SESSIONS).fetchall():
        looks = (count_of(updated), *changes.get(identity, (0, 0)))
        if (known := before.get(str(identity))) is not None and known.looks == looks:
            yield str(identity), known
            continue
        part = Part(
            session=name_of(identity), parent=name_of(parent), project=path_of(folder), version=name_of(version)
        )
        part.at(moment_of(created))
        _messages(connection, identity, part)
        _calls(connection, identity, part)
        yield str(identity), _Row(looks, part)


def _messages(connection: sqlite3.Connection, identity: Any, part: Part) -> None:
    for valid, found, created, updated in connection.execute(_MESSAGES, (identity,)):
        if not valid:
            part.broken += 1
            continue
        try:
            role, model, given, written, thought, read, stored, summary = msgspec.json.decode(found)
        except msgspec.DecodeError:
            # SQLite takes a number of any size for valid, and writes one that is too large as `Inf`.
            part.unknown += 1
            continue
        part.at(moment_of(created))
        part.at(moment_of(updated))
        if role != "assistant":
            part.unknown += role != "user"
            continue
        part.used(name_of(model))
        part.compactions += summary is True or summary == 1
        part.counts.add(
            Counts(count_of(given), count_of(written) + count_of(thought), count_of(read), count_of(stored), 1)
        )


def _calls(connection: sqlite3.Connection, identity: Any, part: Part) -> None:
    for kind, tool, count in connection.execute(_PARTS, (identity,)):
        if kind is None:
            part.broken += count
        elif kind == "tool":
            part.called(name_of(tool), count)


def _is_wal(file: Path) -> bool:
    with file.open("rb") as opened:
        header = opened.read(20)
    return len(header) == 20 and header[18] == _WAL


def _size(file: Path) -> int:
    return (_stamp(file) or Stamp()).size


def _stamp(file: Path) -> Stamp | None:
    try:
        found = os.stat(file)  # noqa: PTH116 - as for transcripts
    except OSError:
        return None
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ino)
