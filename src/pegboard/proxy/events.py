"""A stream of server-sent events, taken apart so that each can be passed on as the very bytes it came in.

Above: the editors of replies. Below: nothing. Pure; any split of the bytes gives the same events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from pegboard.proxy.seam import ReplyCut
from pegboard.types import Json

LIMIT = 16 * 1024 * 1024
"""Bytes of one event."""
_END = re.compile(rb"\r?\n\r?\n")
_DATA = re.compile(rb"^data:[ ]?(.*?)\r?$", re.MULTILINE)
_NAME = re.compile(rb"^event:[ ]?(.*?)\r?$", re.MULTILINE)


class Event(msgspec.Struct, frozen=True):
    """One event, as it came."""

    raw: bytes

    @property
    def name(self) -> str:
        """What it is called; empty when it says nothing."""
        found = _NAME.search(self.raw)
        return found[1].decode("utf-8", "replace") if found else ""

    @property
    def data(self) -> bytes:
        """What it says."""
        return b"\n".join(_DATA.findall(self.raw))

    @property
    def is_torn(self) -> bool:
        """Whether, of what has no end, more is missing than the empty line: it says something, but nothing whole."""
        says_nothing = all(not line.strip() or line.startswith(b":") for line in self.raw.splitlines())
        return not says_nothing and self.data.strip() != b"[DONE]" and not self.parsed()

    def parsed(self) -> Json:
        """What it says, as JSON; empty when that is no object."""
        try:
            value: Any = msgspec.json.decode(self.data)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def saying(self, data: Json) -> bytes:
        """The same event with other words."""
        return encoded(data, self.name)


class Splitter:
    """Bytes in, events out; what is no whole event yet waits."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._pending = bytearray()
        self._seen = 0
        self._limit = limit

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that these bytes complete."""
        self._pending += data
        while found := _END.search(self._pending, max(self._seen - 3, 0)):
            raw = bytes(self._pending[: found.end()])
            del self._pending[: found.end()]
            self._seen = 0
            yield Event(raw)
        self._seen = len(self._pending)
        if self._seen > self._limit:
            raise ReplyCut(f"an event has more than {self._limit} bytes")

    def rest(self) -> bytes:
        """What came after the last whole event."""
        return bytes(self._pending)


def encoded(data: Json, name: str = "") -> bytes:
    """An event with this name, if any, that says this."""
    head = f"event: {name}\n".encode() if name else b""
    return b"%sdata: %s\n\n" % (head, msgspec.json.encode(data))
