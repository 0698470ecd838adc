"""What happened, on its way to the store: a bounded queue that a call never waits for.

`record` appends to a list in memory. A moment later a task hands what has gathered to the store, in batches. A store
that fails hurts no call: what it did not take is tried again, later and later, while there is room, and counted when
there is none. Above: the call path and the gateway record. Below: the `Store` seam.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from pegboard.errors import PegboardError
from pegboard.types import Lookup, Record

if TYPE_CHECKING:
    import asyncio

    from pegboard.protocols import Store

CAPACITY = 10_000
"""Records that may wait."""
BATCH = 500
LINGER = 1.0
"""Seconds that records gather before they are written: once a second, rather than at each call."""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
CLOSING = 5.0
"""Seconds that closing may take."""


class Recorder:
    """Takes records at any time, from any thread, and sees that they reach the store."""

    def __init__(
        self,
        store: Store,
        *,
        keep_queries: bool = True,
        on_warning: Callable[[str], None] | None = None,
        capacity: int = CAPACITY,
        linger: float = LINGER,
    ) -> None:
        """`keep_queries` false: the words of searches are left out."""
        self._store = store
        self._keep_queries = keep_queries
        self._on_warning = on_warning
        self._capacity = capacity
        self._linger = linger
        self._waiting: deque[Record] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._pause = 0.0
        self._planned = False
        self._closed = False
        self._warned = False
        self.written = 0
        """Records that the store took."""
        self.dropped = 0
        """Records that were lost: there was no room, or the store never took them."""

    def record(self, record: Record) -> None:
        """Takes note. Never waits and never fails."""
        if self._closed or len(self._waiting) >= self._capacity:
            self.dropped += 1
            return
        self._waiting.append(record)
        if not self._planned:
            self._plan(self._linger)

    async def flush(self) -> None:
        """Hands over everything that waits now; returns when the store has it, or would not take it."""
        import asyncio

        self._start()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Hands over what still waits, within a few seconds, and takes no more. The store stays open."""
        import asyncio

        self._closed = True
        try:
            async with asyncio.timeout(CLOSING):
                await self.flush()
                if self._waiting:
                    await self.flush()  # what came while the first was under way, or a second try
        except TimeoutError:
            self._warn(f"The store took longer than {CLOSING:.0f} s to close.")
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=1.0)
        if self._waiting:
            self.dropped += len(self._waiting)
            self._waiting.clear()
        if self.dropped:
            self._warned = False
            self._warn(f"{self.dropped} records of calls and searches were lost; statistics and priors lack them.")

    # ── in the background ────────────────────────────────────────────────────────────────────────────────────────

    def _plan(self, delay: float) -> None:
        import asyncio

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # another thread: the next record of the loop's own, or closing, takes this one along
        self._planned = True
        self._timer = loop.call_later(delay, self._start)

    def _start(self) -> None:
        import asyncio

        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is None and self._waiting:
            self._planned = True
            self._task = asyncio.get_running_loop().create_task(self._hand_over(), name="pegboard recorder")
            self._task.add_done_callback(self._done)

    async def _hand_over(self) -> None:
        """Until nothing waits, or the store fails."""
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            try:
                await self._store.append([self._kept(record) for record in batch])
            except PegboardError as error:
                self._put_back(batch)
                self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
                self._warn(f"Calls are not recorded for now: {error.message} {error.hint}".rstrip())
                return
            except BaseException:
                self.dropped += len(batch)  # a defect of the store, or the end: trying the same again would not help
                raise
            self.written += len(batch)
            self._pause, self._warned = 0.0, False

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task, self._planned = None, False
        if not task.cancelled() and (error := task.exception()) is not None:
            self._warn(f"Calls are not recorded: the store failed with {error!r}.")
        if self._waiting and not self._closed:
            self._plan(self._pause or self._linger)

    def _put_back(self, batch: list[Record]) -> None:
        room = max(self._capacity - len(self._waiting), 0)
        self.dropped += max(len(batch) - room, 0)
        self._waiting.extendleft(reversed(batch[:room]))

    def _kept(self, record: Record) -> Record:
        if self._keep_queries or not isinstance(record, Lookup):
            return record
        return msgspec.structs.replace(record, query="")

    def _warn(self, message: str) -> None:
        """Once, until the store works again: a full disk is no reason to fill the log as well."""
        if not self._warned and self._on_warning is not None:
            self._on_warning(message)
        self._warned = True
