"""A file of lines, read as a stream from any byte on. A line may be of any length; one that is too long is passed over.

Above: `transcripts`. Below: the operating system.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Protocol

import msgspec

LINE_CAP = 32 * 1024 * 1024
"""Bytes of a line that is still looked at: a picture is smaller, and memory is bounded by it."""
BLOCK = 1024 * 1024
_PROBE = 1024
_END = ord("\n")


class Stamp(msgspec.Struct, frozen=True, array_like=True):
    """What a file looked like from outside when it was read."""

    size: int = 0
    mtime_ns: int = 0
    inode: int = 0


class Ends(msgspec.Struct, frozen=True, array_like=True):
    """Digests of the first and the last bytes that were read: a file that only grew still has them."""

    first: bytes = b""
    last: bytes = b""


class TakesLines(Protocol):
    """Something that learns from lines."""

    def take(self, line: bytes) -> None:
        """One whole line."""
        ...

    def passed_over(self) -> None:
        """A line was too long to be looked at."""
        ...


def stamp_of(fd: int) -> Stamp:
    """Of a file that is open."""
    found = os.fstat(fd)
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ino)


def ends_of(fd: int, offset: int) -> Ends:
    """Of what lies before `offset`."""
    length = min(_PROBE, offset)
    return Ends(_digest(os.pread(fd, length, 0)), _digest(os.pread(fd, length, offset - length)))


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=8).digest()


class Lines:
    """The lines from `offset` on; afterwards `offset` is where the last whole line ended, and `rest` what follows."""

    def __init__(self, fd: int, offset: int = 0, *, cap: int = LINE_CAP) -> None:
        self.offset = offset
        self.rest = b""
        self._cap = cap
        self._file = open(fd, "rb", buffering=BLOCK, closefd=False)  # noqa: SIM115 - the caller closes it
        self._file.seek(offset)

    def feed(self, taker: TakesLines, *, told: Callable[[int], None] | None = None) -> None:
        """Hands every whole line over, and tells now and then how far it is."""
        take, readline, cap = taker.take, self._file.readline, self._cap
        offset, tell_at = self.offset, self.offset + 4 * BLOCK
        while line := readline(cap):
            if line[-1] == _END:
                offset += len(line)
                take(line)
            elif len(line) < cap:
                self.rest = line
                break
            elif beyond := self._skip():
                offset += len(line) + beyond
                taker.passed_over()
            else:
                break
            if offset >= tell_at:
                tell_at = offset + 4 * BLOCK
                if told is not None:
                    told(offset)
        self.offset = offset

    def _skip(self) -> int:
        """The length of what is left of this line; 0 when it has no end yet."""
        length = 0
        while part := self._file.readline(BLOCK):
            length += len(part)
            if part.endswith(b"\n"):
                return length
        return 0
