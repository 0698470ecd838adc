"""Results that may be used again for a while, when configured: of tools that say they read, or may be repeated.

Each belongs to one identity, tool and set of arguments. A call that may change things forgets what its server said
before, so that what is read after a write is never older than the write. Above: `path`. Below: nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec

from pegboard.types import Caller, Json, Tool

TOTAL_BYTES = 16 * 1024 * 1024
ENTRY_BYTES = 1024 * 1024

Key = tuple[str, str, str, str, bytes]


class _Entry(msgspec.Struct, frozen=True):
    result: bytes
    expires: float
    weight: int


class ResultCache:
    """The results, those used longest ago first."""

    def __init__(self, seconds: float, clock: Callable[[], float], *, total_bytes: int = TOTAL_BYTES) -> None:
        self._seconds, self._clock, self._total_bytes = seconds, clock, total_bytes
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._weight = 0
        self._writes: dict[str, int] = {}

    @property
    def weight(self) -> int:
        """Bytes that all entries take."""
        return self._weight

    @property
    def is_on(self) -> bool:
        """Whether anything is kept at all."""
        return self._seconds > 0

    def key(self, tool: Tool, arguments: Json, caller: Caller) -> Key:
        """Under which the result of this call is kept: two servers may have tools of the very same definition."""
        canonical = msgspec.json.encode(arguments, order="sorted")
        return caller.identity, tool.server, tool.public_name, tool.fingerprint, canonical

    def get(self, key: Key) -> Any:
        """A result of its own for whoever asks; None when there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.expires <= self._clock():
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return msgspec.json.decode(entry.result)

    def moment(self, server: str) -> int:
        """How often the server was written to so far; a result is kept only if that is still so when it comes."""
        return self._writes.get(server, 0)

    def put(self, key: Key, raw: bytes, moment: int) -> None:
        """Keeps a result, unless its server was written to since the call began."""
        weight = len(raw) + len(key[-1]) + 512
        if weight > ENTRY_BYTES or self.moment(key[1]) != moment:
            return
        if key in self._entries:
            self._drop(key)
        while self._entries and self._weight + weight > self._total_bytes:
            self._drop(next(iter(self._entries)))
        self._entries[key] = _Entry(raw, self._clock() + self._seconds, weight)
        self._weight += weight

    def forget(self, server: str) -> None:
        """Something may have changed there: nothing that it said before holds."""
        self._writes[server] = self.moment(server) + 1
        for key in [key for key in self._entries if key[1] == server]:
            self._drop(key)

    def _drop(self, key: Key) -> None:
        self._weight -= self._entries.pop(key).weight
