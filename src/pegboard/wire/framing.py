"""Messages on a byte stream, one per line: linear in the bytes, bounded in memory, never stuck on one bad line."""

from __future__ import annotations

import re

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
        self._room = max(limit, EDGE)
        # One buffer, not a list of chunks: a server that writes two bytes at a time must not cost forty for each.
        self._held = bytearray()
        self._size = 0
        self._head: bytes | None = None  # set while the rest of an oversized line is skipped

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """The lines that `data` completes, without their newline; blank ones are left out."""
        end = data.find(b"\n")
        if end < 0:
            self._keep(data)
            return []
        if end == len(data) - 1 and not self._held:  # one whole line, as nearly always
            line = self._whole(data[:end])
            return [line] if isinstance(line, Oversized) or line.strip() else []
        first, *middle, rest = data.split(b"\n")
        lines = [self._finish(first), *(self._whole(line) for line in middle)]
        self._keep(rest)
        return [line for line in lines if isinstance(line, Oversized) or line.strip()]

    def _keep(self, data: bytes) -> None:
        self._held += data
        self._size += len(data)
        if self._size > self._room:
            if self._head is None:
                self._head = bytes(self._held[:EDGE])
            self._held = self._held[-EDGE:]

    def _finish(self, data: bytes) -> bytes | Oversized:
        if not self._held:
            return self._whole(data)
        self._keep(data)
        size, head, line = self._size, self._head, bytes(self._held)
        self._held, self._size, self._head = bytearray(), 0, None
        return self._whole(line) if head is None else Oversized(size, head, line[-EDGE:])

    def _whole(self, line: bytes) -> bytes | Oversized:
        if len(line) <= self._limit:
            return line
        return Oversized(len(line), line[:EDGE], line[-EDGE:])


_VERSION = rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?'
_ANSWER = re.compile(
    rb"\s*\{\s*" + _VERSION + rb'(?:"id"\s*:\s*(\d{1,18})\s*,\s*)?' + _VERSION + rb'"(?:result|error)"\s*:'
)
_LAST_ID = re.compile(rb',\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


def answered_id(line: Oversized) -> int | None:
    """The request that a dropped line answered, when one of its edges tells."""
    opening = _ANSWER.match(line.head)
    if opening is None:
        return None  # a request or a notification of the server's own: its id is none of ours
    found = opening if opening[1] else _LAST_ID.search(line.tail)
    return int(found[1]) if found else None
