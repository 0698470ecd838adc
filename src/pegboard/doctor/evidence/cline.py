"""Cline: one document with all messages of a session, which it writes anew every time.

Above: `gather`. Below: msgspec takes out of it what is counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pegboard.doctor.evidence.folders import files_below
from pegboard.doctor.evidence.kept import Kept, Remembered
from pegboard.doctor.evidence.lines import Stamp, stamp_of
from pegboard.doctor.evidence.names import name_of, path_of, text_of
from pegboard.doctor.evidence.parts import Counts, Part, Verdict, count_of, moment_of, session_of
from pegboard.doctor.evidence.tally import Tally
from pegboard.doctor.facts import Session
from pegboard.doctor.settings.machine import Machine
from pegboard.store.files import open_regular

DOCUMENT_CAP = 64 * 1024 * 1024
"""Bytes of a document that is still read: it has to be in memory whole."""
_ENDING = ".messages.json"
_NOTHING = msgspec.Raw(b"")


class _Model(msgspec.Struct, gc=False):
    id: str | None = None


class _Metrics(msgspec.Struct, gc=False):
    whole: int | float | None = msgspec.field(name="inputTokens", default=0)
    output: int | float | None = msgspec.field(name="outputTokens", default=0)
    read: int | float | None = msgspec.field(name="cacheReadTokens", default=0)
    written: int | float | None = msgspec.field(name="cacheWriteTokens", default=0)


class _Message(msgspec.Struct, gc=False):
    role: str | None = None
    at: int | float | None = msgspec.field(name="ts", default=None)
    content: msgspec.Raw = _NOTHING
    model: _Model | None = msgspec.field(name="modelInfo", default=None)
    metrics: _Metrics | None = None


class _Block(msgspec.Struct, gc=False):
    type: str | None = None
    name: str | None = None


class _Document(msgspec.Struct, gc=False):
    session: str | None = msgspec.field(name="sessionId", default=None)
    messages: list[msgspec.Raw] = []


class _About(msgspec.Struct, gc=False):
    cwd: str | None = None
    version: str | None = msgspec.field(name="cline_version", default=None)


_document = msgspec.json.Decoder(_Document).decode
_message = msgspec.json.Decoder(_Message).decode
_blocks = msgspec.json.Decoder(list[_Block]).decode
_about = msgspec.json.Decoder(_About).decode
_WRONG = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Cline:
    """All sessions of Cline on a machine."""

    def __init__(self, machine: Machine, kept: Kept, tally: Tally) -> None:
        root = machine.from_variable("CLINE_DIR", machine.home / ".cline")
        self._folder = machine.from_variable("CLINE_DATA_DIR", root / "data") / "sessions"
        self._kept = kept
        self._tally = tally
        self._recall = msgspec.msgpack.Decoder(Part)
        self._files: list[tuple[Path, Stamp]] = []

    def plan(self) -> int:
        """How many bytes are to be read."""
        for path in files_below(self._folder, _is_document, self._tally):
            if path.parent.parent != self._folder:
                continue
            try:
                found = os.stat(path)  # noqa: PTH116 - as for transcripts
            except OSError:
                continue
            self._files.append((path, Stamp(found.st_size, found.st_mtime_ns, found.st_ino)))
        self._kept.drop_others("cline", {str(path) for path, _ in self._files})
        return sum(stamp.size for path, stamp in self._files if self._known(path, stamp) is None)

    def sessions(self) -> Iterator[Session]:
        """Every session."""
        for path, stamp in self._files:
            known = self._known(path, stamp)
            try:
                part = self._recall.decode(known.state) if known else self._read(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._tally.cannot_read(path, error)
                continue
            yield session_of("cline", part.session, [part], Verdict())

    def _known(self, path: Path, stamp: Stamp) -> Remembered | None:
        known = self._kept.get("cline", str(path))
        return known if known is not None and known.stamp == stamp else None

    def _read(self, path: Path) -> Part:
        self._tally.begin_file()
        fd = open_regular(path)
        with open(fd, "rb") as file:  # noqa: PTH123 - of a descriptor that is open already
            stamp = stamp_of(fd)
            content = file.read(DOCUMENT_CAP + 1) if stamp.size <= DOCUMENT_CAP else b""
        part = part_of(content, text_of(path.name.removesuffix(_ENDING)))
        _add_about(part, path)
        self._tally.end_file(len(content))
        self._kept.put("cline", str(path), Remembered(stamp, state=msgspec.Raw(msgspec.msgpack.encode(part))))
        return part


def _is_document(name: str) -> bool:
    return name.endswith(_ENDING)


def part_of(content: bytes, identity: str) -> Part:
    """What a document says. One that is broken, or too large to be read, counts as one broken line."""
    part = Part(session=identity)
    try:
        document = _document(content)
    except _WRONG:
        part.broken = 1
        return part
    for raw in document.messages:
        try:
            _add(part, _message(raw))
        except _WRONG:
            part.unknown += 1
    return part


def _add(part: Part, message: _Message) -> None:
    content = bytes(message.content)
    blocks = _blocks(content) if content.startswith(b"[") else []
    part.at(moment_of(message.at))
    if message.role != "assistant":
        part.unknown += message.role != "user"
        return
    part.used(name_of(message.model.id) if message.model else "")
    part.counts.add(_counts(message.metrics))
    for block in blocks:
        if block.type == "tool_use":
            part.called(name_of(block.name))


def _counts(metrics: _Metrics | None) -> Counts:
    """Input has the cached tokens in it."""
    if metrics is None:
        return Counts(messages=1)
    whole, read, written = map(count_of, (metrics.whole, metrics.read, metrics.written))
    return Counts(max(whole - read - written, 0), count_of(metrics.output), read, written, 1)


def _add_about(part: Part, path: Path) -> None:
    """Where it ran and by which version stands in a small file beside it."""
    beside = path.with_name(path.name.removesuffix(_ENDING) + ".json")
    try:
        fd = open_regular(beside)
        with open(fd, "rb") as file:  # noqa: PTH123 - of a descriptor that is open already
            about = _about(file.read(DOCUMENT_CAP))
    except (OSError, *_WRONG):
        return
    part.project, part.version = path_of(about.cwd), name_of(about.version)
