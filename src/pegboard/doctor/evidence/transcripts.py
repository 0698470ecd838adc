"""Files of lines, each read from where the last reading ended. One that was rewritten or cut is read anew.

Above: `claude_sessions` and `codex`, which say what a line means. Below: `lines`, `kept`, `marks`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from pegboard.doctor.evidence.kept import Kept, Remembered
from pegboard.doctor.evidence.lines import Lines, Stamp, TakesLines, ends_of, stamp_of
from pegboard.doctor.evidence.marks import Marks, Seen
from pegboard.doctor.evidence.tally import Tally
from pegboard.doctor.facts import Agent
from pegboard.store.files import open_regular

_HEAD = 8192


class Source(msgspec.Struct, frozen=True):
    """One file, and what its place tells of it."""

    path: Path
    session: str = ""
    """Whose it is; empty when only its records say so."""
    sub_agent: bool = False


class Learner(TakesLines, Protocol):
    """Learns from the lines of one file."""

    @property
    def state(self) -> Any:
        """What it has learned, so that it can go on later."""
        ...

    @property
    def seen(self) -> Seen:
        """The records it has had."""
        ...


class Kind(Protocol):
    """One agent's way of writing transcripts."""

    def begin(self, source: Source, others: Marks, known: Remembered | None) -> Learner:
        """A learner for a file, with the marks of all other files, and what is known of this one."""
        ...

    def recall(self, known: Remembered) -> Any:
        """The state that was kept."""
        ...


class _Task(msgspec.Struct):
    source: Source
    stamp: Stamp
    known: Remembered | None
    own: bool = True
    """Whether its first record says that it is this session's own."""

    @property
    def order(self) -> tuple[bool, bool, int, str]:
        """The original before its copy: a session before its sub-agents, what is its own first, then by age."""
        return (self.source.sub_agent, not self.own, self.stamp.mtime_ns, str(self.source.path))


class Transcripts:
    """The files of one agent."""

    def __init__(self, agent: Agent, sources: Sequence[Source], kind: Kind, kept: Kept, tally: Tally) -> None:
        self._agent = agent
        self._sources = sources
        self._kind = kind
        self._kept = kept
        self._tally = tally
        self._unchanged: list[tuple[Source, Remembered]] = []
        self._tasks: list[_Task] = []
        self._others = Marks()

    def plan(self) -> int:
        """Looks which files have changed; gives how many bytes are to be read."""
        lost = self._kept.drop_others(self._agent, {str(source.path) for source in self._sources}) > 0
        tasks = [task for source in self._sources if (task := self._look(source)) is not None]
        lost |= any(task.known is None and self._kept.get(self._agent, str(task.source.path)) for task in tasks)
        for task in tasks:
            if lost and task.known is not None and task.known.copied:
                # What it had copied may be nobody else's any more.
                task.known = None
            if task.known is not None and task.known.stamp == task.stamp and task.known.offset == task.stamp.size:
                self._unchanged.append((task.source, task.known))
            else:
                self._tasks.append(task)
        return sum(task.stamp.size - (task.known.offset if task.known else 0) for task in self._tasks)

    def read(self) -> Iterator[tuple[Source, Any]]:
        """What every file says, as its learner has it."""
        if self._tasks:
            known = [task.known for task in self._tasks] + [known for _, known in self._unchanged]
            self._others = Marks(each.marks for each in known if each is not None)
        for source, remembered in self._unchanged:
            yield source, self._kind.recall(remembered)
        for task in sorted(self._tasks, key=lambda each: each.order):
            try:
                state = self._learn(task)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._tally.cannot_read(task.source.path, error)
                continue
            yield task.source, state

    def _look(self, source: Source) -> _Task | None:
        path = str(source.path)
        known = self._kept.get(self._agent, path)
        try:
            found = os.stat(path)  # noqa: PTH116 - thousands of files are looked at
            stamp = Stamp(found.st_size, found.st_mtime_ns, found.st_ino)
            if known is not None and known.stamp == stamp:
                return _Task(source, stamp, known)
            fd = open_regular(source.path)
            try:
                if known is not None and not _only_grew(known, stamp, fd):
                    known = None
                own = not source.session or os.fsencode(source.session) in os.pread(fd, _HEAD, 0)
            finally:
                os.close(fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._tally.cannot_read(source.path, error)
            return None
        return _Task(source, stamp, known, own)

    def _learn(self, task: _Task) -> Any:
        fd = open_regular(task.source.path)
        try:
            stamp, known = stamp_of(fd), task.known
            learner = self._kind.begin(task.source, self._others, known)
            begun = known.offset if known else 0
            lines = Lines(fd, begun)
            self._tally.begin_file()
            lines.feed(learner, told=lambda offset: self._tally.reached(offset - begun))
            self._remember(task, stamp, lines.offset, fd, learner)
        finally:
            os.close(fd)
        if _is_whole(lines.rest):
            # The last line has no end yet but is all there. It counts now, and is read again the next time.
            learner.take(lines.rest)
        self._others.update(learner.seen.fresh)
        self._tally.end_file(lines.offset + len(lines.rest) - begun)
        return learner.state

    def _remember(self, task: _Task, stamp: Stamp, offset: int, fd: int, learner: Learner) -> None:
        seen = learner.seen
        remembered = Remembered(
            stamp,
            offset,
            ends_of(fd, offset),
            seen.copied + (task.known.copied if task.known else 0),
            seen.dump(),
            msgspec.Raw(msgspec.msgpack.encode(learner.state)),
        )
        self._kept.put(self._agent, str(task.source.path), remembered)


def _only_grew(known: Remembered, stamp: Stamp, fd: int) -> bool:
    same_file = known.stamp.inode == stamp.inode and known.offset <= stamp.size
    return same_file and ends_of(fd, known.offset) == known.ends


def _is_whole(rest: bytes) -> bool:
    if not rest.strip():
        return False
    try:
        msgspec.json.decode(rest, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
