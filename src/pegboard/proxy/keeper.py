"""Conversations that the proxy remembers: the latest in memory, all of them in the store. Losing one is no failure.

Above: `planner`. Below: the `Store`, `memory`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

import msgspec

from pegboard.errors import StoreError
from pegboard.protocols import Store
from pegboard.proxy.memory import Remembered, is_sure
from pegboard.proxy.response_items import NAMED

MOST_LIVE = 500
"""Conversations held in memory; the store has the rest."""
MOST_UNKNOWN = 5_000
"""Keys of which it is known that nothing is remembered: what passes is not to be looked up with every turn."""
MOST_VARIANTS = 4
"""Of conversations that begin with the same words."""
MOST_BYTES = 900_000
"""Of all that is kept under one key; a store takes no more than a mebibyte."""
_BEGINNING = ("executor", "begun", "profile", "keep")
_ENCODER = msgspec.json.Encoder()  # msgpack has no numbers as large as JSON may
_DECODER = msgspec.json.Decoder(list[Remembered])


class Keeper:
    """Gives what is remembered under a key, and keeps what has changed."""

    def __init__(self, store: Store | None, ttl: float, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._ttl = ttl
        self._clock = clock
        self._live: dict[str, list[Remembered]] = {}
        self._unknown: dict[str, None] = {}
        self._pointers: dict[str, str] = {}
        self.warnings: list[str] = []

    async def of(self, key: str) -> list[Remembered]:
        """The conversations that began like this, the latest last."""
        known = self._live.pop(key, None)
        if known is None and key not in self._unknown:
            raw = await self._read(key)
            if raw is None:
                self._unknown[key] = None
            known = self._live.pop(key, None) or (_decoded(raw) if raw else [])
        if known:
            self._live[key] = known
            self._unknown.pop(key, None)
        self._bound()
        return known or []

    def begin(self, key: str, conversation: Remembered) -> Remembered:
        """A conversation begins; one that began in just the same way is gone on with."""
        self._unknown.pop(key, None)
        known = self._live.setdefault(key, [])
        for each in known:
            if _began_as(each, conversation):
                return each
        known.append(conversation)
        del known[:-MOST_VARIANTS]
        self._bound()
        return conversation

    async def keep(self, key: str, conversation: Remembered) -> None:
        """Writes down a conversation with those that began alike; it may have been put aside for others meanwhile."""
        known = await self.of(key)
        if not any(each is conversation for each in known):
            known = [each for each in known if not _began_as(each, conversation)]
            known = self._live[key] = [*known, conversation][-MOST_VARIANTS:]
            self._unknown.pop(key, None)
        await self._write(key, _within(known))

    def _bound(self) -> None:
        for kept, most in ((self._live, MOST_LIVE), (self._unknown, MOST_UNKNOWN)):
            while len(kept) > most:
                del kept[next(iter(kept))]

    async def point(self, reply: str, key: str) -> None:
        """Remembers which conversation a reply belongs to, for clients that name only the reply."""
        self._pointers[reply] = key
        while len(self._pointers) > MOST_LIVE:
            del self._pointers[next(iter(self._pointers))]
        await self._write(f"reply:{reply}", key.encode())

    async def pointed(self, reply: str) -> str:
        """The key of the conversation that a reply belongs to; empty when nobody knows."""
        if reply in self._pointers:
            return self._pointers[reply]
        raw = await self._read(f"reply:{reply}")
        return raw.decode() if raw else ""

    async def _read(self, key: str) -> bytes | None:
        """What the store has; None when it has nothing, and no bytes when it cannot say."""
        try:
            return await self._store.proxied(key) if self._store else None
        except StoreError as error:
            self._warn(error)
            return b""

    async def _write(self, key: str, state: bytes) -> None:
        try:
            if self._store is not None:
                await self._store.keep_proxied(key, state, self._clock() + self._ttl)
        except StoreError as error:
            self._warn(error)

    def _warn(self, error: StoreError) -> None:
        if error.message not in self.warnings:
            self.warnings = [*self.warnings, error.message][-20:]


def chosen(known: Sequence[Remembered], begun: str, said: Collection[str]) -> Remembered | None:
    """Of conversations that began alike, the one that this history is of; None when it is of none of them.

    `begun` is the mark of the request's tools, `said` are the marks of its replies. Of several that fit equally well
    it is the latest.
    """
    likeness = [(_likeness(each, begun, said), number) for number, each in enumerate(known)]
    fits = [each for each in likeness if any(each[0][::2])]
    return known[max(fits)[1]] if fits else None


def _began_as(one: Remembered, other: Remembered) -> bool:
    return all(getattr(one, field) == getattr(other, field) for field in _BEGINNING)


def _likeness(each: Remembered, begun: str, said: Collection[str]) -> tuple[bool, bool, bool]:
    """Whether it has a call or so of the history's, whether it has the same tools, whether it has at least a text.

    The same tools alone are enough where a reply broke off: what clients keep of it has no mark. Calls and thoughts of
    which none is known are another's, though: those of ours were remembered when they were whole.
    """
    seen = [mark for mark in each.seen if mark in said]
    seen += [mark for mark in said if mark.startswith(NAMED) and mark.removeprefix(NAMED) in each.items]
    same = each.begun == begun
    is_rest = same and each.is_torn and not any(map(is_sure, said))
    return any(map(is_sure, seen)), same, bool(seen) or is_rest


def _within(known: list[Remembered]) -> bytes:
    """All of them as they are stored, within bounds: the oldest that was hidden in the largest goes first."""
    state = _ENCODER.encode(known)
    while len(state) > MOST_BYTES:
        largest = max(known, key=lambda each: len(_ENCODER.encode(each)))
        if largest.can_shrink:
            largest.shrink()
        else:
            known.remove(largest)
        state = _ENCODER.encode(known)
    return state


def _decoded(raw: bytes) -> list[Remembered]:
    try:
        return _DECODER.decode(raw)
    except msgspec.MsgspecError:  # of another version: as good as lost
        return []
