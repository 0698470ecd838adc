"""Messages on a byte stream, one per line: linear in the bytes, bounded in memory, never stuck on one bad line."""

from __future__ import annotations

import msgspec

EDGE = 512
"""How much is kept of either end of a line that is too long, to tell which request it answered."""


class Oversized(msgspec.Struct, frozen=True):
    """A line over the limit: dropped, but for its edges."""

    size: int
    head: bytes
    tail: bytes


class LineDecoder:
    """Cuts a stream into lines; a line over `limit` bytes is skipped to its end and reported."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None  # set while the rest of an oversized line is skipped

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """The lines that `data` completes, without their newline; blank ones are left out."""
        if b"\n" not in data:
            self._keep(data)
            return []
        first, *middle, rest = data.split(b"\n")
        lines = [self._finish(first), *(self._whole(line) for line in middle)]
        self._keep(rest)
        return [line for line in lines if isinstance(line, Oversized) or line.strip()]

    def _keep(self, data: bytes) -> None:
        if not data:
            return
        self._parts.append(data)
        self._size += len(data)
        if self._size > self._limit:
            self._skip()

    def _skip(self) -> None:
        joined = b"".join(self._parts)
        if self._head is None:
            self._head = joined[:EDGE]
        self._parts = [joined[-EDGE:]]

    def _finish(self, data: bytes) -> bytes | Oversized:
        if not self._parts:
            return self._whole(data)
        self._keep(data)
        size, head, line = self._size, self._head, b"".join(self._parts)
        self._parts, self._size, self._head = [], 0, None
        return line if head is None else Oversized(size, head, line[-EDGE:])

    def _whole(self, line: bytes) -> bytes | Oversized:
        if len(line) <= self._limit:
            return line
        return Oversized(len(line), line[:EDGE], line[-EDGE:])
