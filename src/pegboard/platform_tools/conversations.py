"""What each conversation has loaded: in memory while it is talked in, in the store so that it outlives us.

A conversation is a key that its caller gave, never a connection. Above: `desk`. Below: `surface.activation`, the
`Store` seam. Losing the store loses what was loaded, never a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from pegboard.errors import PegboardError
from pegboard.surface.activation import Activation, restored
from pegboard.surface.compose import Surface
from pegboard.types import Caller, Tool

if TYPE_CHECKING:
    import asyncio

    from pegboard.protocols import Store

MOST_IN_MEMORY = 4096
LINGER = 0.5
"""Seconds that changes gather before they are kept."""


class Conversation(msgspec.Struct, kw_only=True):
    """One conversation as far as tools go."""

    key: str
    activation: Activation
    is_loaded: bool = False
    """Whether what the store has of it is in here."""
    is_dirty: bool = False
    is_replaced: bool = False
    """Whether what the store has of it is to be forgotten."""
    seen: Mapping[str, Tool] | None = None
    """The tools there were when it was last told of them."""
    shown: tuple[object, Caller, Surface] | None = None
    """What it was last shown, for whom, and of which view; good as long as none of these is another."""


class Conversations:
    """All of them, the ones used last in memory."""

    def __init__(
        self,
        store: Callable[[], Store | None],
        *,
        cap: int,
        ttl: float,
        now: Callable[[], float],
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        """`store` gives the store when it is first needed, or None where nothing is to be kept."""
        self._store, self._cap, self._ttl, self._now = store, cap, ttl, now
        self._on_warning = on_warning
        self._known: dict[str, Conversation] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._saving: asyncio.Task[None] | None = None
        self._warned = False

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> Conversation:
        """The conversation as memory has it; a new one when it has none. Nothing is waited for."""
        known = self._known.pop(key, None)
        if known is None:
            known = Conversation(key=key, activation=Activation(cap=self._cap), is_loaded=not key)
            self._make_room()
        if key:
            self._known[key] = known  # the one used last stands last
        known.activation = known.activation.expired(self._now(), self._ttl)
        return known

    async def load(self, key: str) -> Conversation:
        """The conversation, with what the store has of it."""
        known = self.get(key)
        if known.is_loaded:
            return known
        store = self._store()
        kept = None
        if store is not None:
            try:
                kept = await store.activation(key)
            except PegboardError as error:
                self._warn(error)
        if not known.is_loaded:  # of several who ask at once, the first
            known.is_loaded = True
            known.activation = self._with(known, kept)
        return known

    def change(self, conversation: Conversation, activation: Activation) -> None:
        """Puts what is loaded now in the place of what was; it is kept a moment later."""
        if activation != conversation.activation:
            self._put(conversation, activation)

    def replace(self, conversation: Conversation, activation: Activation) -> None:
        """The same, whatever the store has: its caller goes on from a state that it kept itself."""
        if not conversation.is_loaded or activation != conversation.activation:
            conversation.is_loaded = conversation.is_replaced = True
            self._put(conversation, activation)

    async def keep(self) -> None:
        """Keeps what has not been kept yet."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._saving is not None:
            await self._saving
        await self._save()

    def _put(self, conversation: Conversation, activation: Activation) -> None:
        conversation.activation = activation
        if conversation.key:
            conversation.is_dirty = True
            self._plan()

    def _with(self, known: Conversation, kept: bytes | None) -> Activation:
        """What it has loaded together with what the store has: a list or another process may have come before us."""
        return known.activation.merged(restored(kept, self._cap).expired(self._now(), self._ttl))

    def _make_room(self) -> None:
        while len(self._known) >= MOST_IN_MEMORY:
            clean = next((key for key, each in self._known.items() if not each.is_dirty), next(iter(self._known)))
            del self._known[clean]

    def _plan(self) -> None:
        import asyncio

        if self._timer is None and self._saving is None:
            try:
                self._timer = asyncio.get_running_loop().call_later(LINGER, self._start)
            except RuntimeError:
                return  # no loop: `keep` keeps it

    def _start(self) -> None:
        import asyncio

        self._timer = None
        self._saving = asyncio.create_task(self._save(), name="pegboard conversations")
        self._saving.add_done_callback(self._saved)

    def _saved(self, _: asyncio.Task[None]) -> None:
        self._saving = None
        if any(each.is_dirty for each in self._known.values()) and not self._warned:
            self._plan()

    async def _save(self) -> None:
        store = self._store()
        for each in [each for each in self._known.values() if each.is_dirty]:
            each.is_dirty = False
            if store is None:
                continue
            replaced, each.is_replaced = each.is_replaced, False
            try:
                # Another process may be in the same conversation: what it loaded is not forgotten for it.
                state = self._with(each, None if replaced else await store.activation(each.key))
                await store.keep_activation(each.key, state.to_bytes(), self._now() + self._ttl)
            except PegboardError as error:
                each.is_dirty, each.is_replaced = True, replaced or each.is_replaced
                self._warn(error)
                return

    def _warn(self, error: PegboardError) -> None:
        if not self._warned and self._on_warning is not None:
            self._on_warning(f"what conversations have loaded is not kept: {error.message}")
        self._warned = True
