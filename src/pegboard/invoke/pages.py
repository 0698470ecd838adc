"""What of a long result was not handed on at once, kept in memory for a while and read page by page.

A handle is not a key: it opens only for the identity and conversation that made the call. What is kept is bounded in
all and for each caller, the oldest goes first. Above: `path`, the platform tools. Below: `cut`, `visible`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import msgspec

from pegboard.errors import ArgumentsError, HandleUnknown
from pegboard.invoke.cut import head_end
from pegboard.invoke.visible import shown, visible
from pegboard.types import Caller, Json

TOTAL_BYTES = 64 * 1024 * 1024
CALLER_BYTES = 32 * 1024 * 1024
_SCHEMA: Json = {
    "type": "object",
    "properties": {"handle": {"type": "string"}, "page": {"type": "integer", "minimum": 1}},
    "required": ["handle"],
}

Owner = tuple[str, str]


class _Kept(msgspec.Struct):
    """One text with the stretch that was left out, and where its pages begin as far as they were read."""

    owner: Owner
    text: str
    end: int
    weight: int
    expires: float
    about: int
    """How many pages it will be."""
    starts: list[int]


class Pages:
    """The texts that are kept, oldest first."""

    def __init__(
        self,
        page_bytes: int,
        ttl: float,
        clock: Callable[[], float],
        *,
        total_bytes: int = TOTAL_BYTES,
        caller_bytes: int = CALLER_BYTES,
    ) -> None:
        self._page_bytes, self._ttl, self._clock = page_bytes, ttl, clock
        self._total_bytes, self._caller_bytes = total_bytes, caller_bytes
        self._kept: dict[str, _Kept] = {}
        self._weights: dict[Owner, int] = {}
        self._weight = 0

    @property
    def weight(self) -> int:
        """Bytes of memory that all kept texts take."""
        return self._weight

    def keep(self, caller: Caller, text: str, start: int, end: int, size: int) -> tuple[str, int]:
        """Keeps a stretch of so many bytes: its handle and about how many pages it is; no handle if it is too large."""
        about = -(-size // self._page_bytes)
        weight = text.__sizeof__()
        if weight > min(self._caller_bytes, self._total_bytes):
            return "", about
        owner = (caller.identity, caller.conversation)
        self._make_room(owner, weight)
        handle = "r" + os.urandom(12).hex()
        expires = self._clock() + self._ttl
        self._kept[handle] = _Kept(owner, text, end, weight, expires, about, [start])
        self._weights[owner] = self._weights.get(owner, 0) + weight
        self._weight += weight
        return handle, about

    def read(self, handle: Any, page: Any, caller: Caller) -> Json:
        """One page as a `tools/call` result, and how to go on. Raises HandleUnknown, or ArgumentsError for no page."""
        kept = self._kept.get(handle) if isinstance(handle, str) else None
        if kept is not None and kept.expires <= self._clock():
            self._drop(str(handle))
            kept = None
        if kept is None or kept.owner != (caller.identity, caller.conversation):
            name = shown(handle, 40) if isinstance(handle, str) else "that"
            raise HandleUnknown(
                f"No result is kept under the handle {name!r}.",
                hint="It may have expired, or belong to another conversation. Call the tool again.",
            )
        return self._page(str(handle), kept, _page_number(page))

    def _page(self, handle: str, kept: _Kept, number: int) -> Json:
        while len(kept.starts) <= number and kept.starts[-1] < kept.end:
            kept.starts.append(head_end(kept.text, kept.starts[-1], kept.end, self._page_bytes))
        last = len(kept.starts) - 1
        if number > last:
            raise ArgumentsError(f"There is no page {number}: the last one is {last}.", _SCHEMA)
        text = visible(kept.text, kept.starts[number - 1], kept.starts[number])
        more = kept.starts[number] < kept.end
        about = f"about {max(kept.about, number + 1)}" if more else str(number)
        onward = f'; next: read_result(handle="{handle}", page={number + 1})' if more else ", the last one"
        return {
            "content": [
                {"type": "text", "text": text},
                {"type": "text", "text": f"[page {number} of {about}{onward}]"},
            ],
            "_meta": {"pegboard/page": {"page": number, "next": number + 1 if more else None}},
        }

    def _make_room(self, owner: Owner, weight: int) -> None:
        now = self._clock()
        for handle in [handle for handle, kept in self._kept.items() if kept.expires <= now]:
            self._drop(handle)
        while self._weights.get(owner, 0) + weight > self._caller_bytes:
            self._drop(next(handle for handle, kept in self._kept.items() if kept.owner == owner))
        while self._weight + weight > self._total_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, handle: str) -> None:
        kept = self._kept.pop(handle)
        self._weight -= kept.weight
        self._weights[kept.owner] -= kept.weight
        if not self._weights[kept.owner]:
            del self._weights[kept.owner]


def _page_number(page: Any) -> int:
    """The number, also when it is written as text; models do that."""
    if isinstance(page, str) and page.strip().isdecimal() and len(page) < 10:
        page = int(page)
    if isinstance(page, float) and page.is_integer():
        page = int(page)
    if not isinstance(page, int) or isinstance(page, bool) or page < 1:
        raise ArgumentsError("`page` must be a whole number from 1.", _SCHEMA)
    return page
