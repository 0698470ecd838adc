"""The tools that one conversation has loaded: an immutable value, least recently used out first.

It also remembers in which order the last list was, whether deferral was decided, and what a sub-agent may use:
all that must outlive compaction, reconnects and restarts. Above: `compose`, the engine, the store (as bytes).
Below: `mode`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import msgspec

from pegboard.surface.mode import Verdict

DEFAULT_CAP = 24
MOST_BYTES = 1024 * 1024
MOST_LISTED = 4096
"""Names of a list that are remembered; one that is longer keeps its order up to there."""
_LONGEST_NAME = 256
_VERSION = 1


class Use(msgspec.Struct, frozen=True, array_like=True):
    """One loaded tool, and when it was last searched for or called."""

    name: str
    at: float


class Activation(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversation has loaded. Every change gives a new value."""

    cap: int = DEFAULT_CAP
    uses: tuple[Use, ...] = ()
    """Most recently used first; never more than `cap`."""
    listed: tuple[str, ...] = ()
    """The names on the last list, in its order: the next one begins with those that are still shown."""
    verdict: Verdict | None = None
    allow: tuple[tuple[str, ...], ...] = ()
    """Allowlists of a sub-agent and of those it descends from: a tool must be on all of them."""

    @property
    def names(self) -> tuple[str, ...]:
        """The loaded tools, most recently used first."""
        return tuple(use.name for use in self.uses)

    def activated(self, names: Iterable[str], now: float, pinned: Collection[str] = ()) -> Change:
        """Loads these, best first: when not all fit the best stay, and older ones make room.

        Pinned tools are shown anyway, and take no place.
        """
        wanted = [name for name in dict.fromkeys(names) if name not in pinned and _fit(name)]
        kept = tuple(Use(name, now) for name in wanted[: self.cap])
        fresh = {use.name for use in kept}
        older = [use for use in self.uses if use.name not in fresh and use.name not in pinned]
        room = self.cap - len(kept)
        gone = tuple(use.name for use in older[room:])
        return Change(
            activation=msgspec.structs.replace(self, uses=(*kept, *older[:room])),
            activated=tuple(use.name for use in kept),
            evicted=gone,
            left_out=tuple(name for name in wanted[self.cap :] if name not in gone),
        )

    def used(self, name: str, now: float, pinned: Collection[str] = ()) -> Change:
        """A call of this tool went well: it is loaded now, and the last to go."""
        return self.activated((name,), now, pinned)

    def without(self, gone: Collection[str]) -> Activation:
        """The same less these, which are no more or may not be used."""
        left = tuple(use for use in self.uses if use.name not in gone)
        return self if len(left) == len(self.uses) else msgspec.structs.replace(self, uses=left)

    def expired(self, now: float, ttl: float) -> Activation:
        """The same less what nobody used for so many seconds."""
        # A use that is far in the future means that a clock was set back: it must not stay for ever.
        gone = [use.name for use in self.uses if abs(now - use.at) > ttl]
        return self.without(gone) if gone else self

    def merged(self, other: Activation) -> Activation:
        """The same with what was loaded elsewhere in this conversation: the last use of each tool counts."""
        uses: dict[str, Use] = {}
        for use in sorted((*self.uses, *other.uses), key=lambda use: -use.at):
            uses.setdefault(use.name, use)
        both = msgspec.structs.replace(
            self,
            uses=tuple(uses.values())[: self.cap],
            listed=self.listed or other.listed,
            verdict=self.verdict or other.verdict,
            allow=self.allow or other.allow,
        )
        return self if both == self else both

    def capped(self, cap: int) -> Activation:
        """The same under another cap: over it, the least recently used go."""
        cap = max(cap, 0)
        return self if cap == self.cap else msgspec.structs.replace(self, cap=cap, uses=self.uses[:cap])

    def after(self, names: Sequence[str], verdict: Verdict | None) -> Activation:
        """What to keep once these were listed; the very same value when it says so already."""
        listed = tuple(names[:MOST_LISTED])
        if listed == self.listed and verdict == self.verdict:
            return self
        return msgspec.structs.replace(self, listed=listed, verdict=verdict)

    def fork(self, *, inherit: bool = True, allow: Sequence[str] | None = None) -> Activation:
        """What a sub-agent begins with: a copy or nothing, and never more than its parent may use."""
        narrowed = self.allow if allow is None else (*self.allow, tuple(allow))
        # A narrower choice is weighed anew: few tools may need no deferral.
        verdict = self.verdict if allow is None else None
        if not inherit:
            return Activation(cap=self.cap, allow=narrowed, verdict=verdict)
        return msgspec.structs.replace(self, allow=narrowed, verdict=verdict)

    def to_bytes(self) -> bytes:
        """For the store."""
        return msgspec.json.encode(_Kept(version=_VERSION, state=self))


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What a search or a call did to a conversation's tools; each name is in at most one of the lists."""

    activation: Activation
    activated: tuple[str, ...] = ()
    """Loaded now, best first; some may have been before."""
    evicted: tuple[str, ...] = ()
    """No longer loaded; still callable."""
    left_out: tuple[str, ...] = ()
    """Asked for, but there is no room; still callable."""


class _Kept(msgspec.Struct, frozen=True):
    version: int
    state: Activation


def restored(kept: bytes | None, cap: int | None = DEFAULT_CAP) -> Activation:
    """What the store has, under the present cap, or with None its own; nothing where that cannot be made sense of.

    An allowlist may be lost with the rest, so the one that binds is the caller's, which comes with every request.
    """
    empty = Activation(cap=DEFAULT_CAP if cap is None else max(cap, 0))
    if not kept or len(kept) > MOST_BYTES:
        return empty
    try:
        found = msgspec.json.decode(kept, type=_Kept)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return empty
    if found.version != _VERSION:
        return empty
    uses: dict[str, Use] = {}
    for use in found.state.uses:
        if _fit(use.name) and math.isfinite(use.at):
            uses.setdefault(use.name, use)
    listed = tuple(dict.fromkeys(filter(_fit, found.state.listed)))
    room = max(found.state.cap, 0) if cap is None else empty.cap
    return msgspec.structs.replace(found.state, uses=tuple(uses.values())[:room], listed=listed, cap=room)


def _fit(name: str) -> bool:
    """Whether it can be a tool's name at all: the store must be able to keep it."""
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable()
