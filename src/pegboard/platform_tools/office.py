"""What stands behind the desk: the call path, the store, the recorder, and the schedule on which priors are learnt.

Each is made when it is first needed, so that a list of tools pays for none of them. Above: the engine owns it.
Below: `desk`, the call path, the store.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from pegboard.catalog.catalog import Catalog
from pegboard.config.model import Config
from pegboard.errors import PegboardError
from pegboard.types import Answer, CallContext, Json, Priors, Record, Tool, Unlisted

if TYPE_CHECKING:
    import asyncio

    from pegboard.index.finder import Terms
    from pegboard.invoke.path import Invoker
    from pegboard.invoke.policy import Approve
    from pegboard.platform_tools.desk import FrontDesk
    from pegboard.platform_tools.library import Library
    from pegboard.store.sqlite import SqliteStore
    from pegboard.telemetry.recorder import Recorder

FIRST_PRIORS_SECONDS = 5.0


class House(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine lends to it."""

    config: Config
    catalog: Callable[[], Catalog]
    find: Callable[[str], Awaitable[Tool]]
    prepare: Callable[[Tool], Awaitable[None]]
    execute: Callable[[Tool, Json, CallContext], Awaitable[Json]]
    search: Callable[[str, Terms], Awaitable[Answer]]
    unlisted: Callable[[str], Unlisted]
    learn: Callable[[Mapping[str, Priors]], None]
    library: Library | None = None
    approve: Approve | None = None
    warn: Callable[[str], None] | None = None


class Office:
    """The desk and all that works for it."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._desk: FrontDesk | None = None
        self._invoker: Invoker | None = None
        self._store: SqliteStore | None = None
        self._recorder: Recorder | None = None
        self._learning: asyncio.Task[None] | None = None

    def desk(self) -> FrontDesk:
        """Where every edge lists and calls tools."""
        if self._desk is None:
            from pegboard.platform_tools.conversations import Conversations
            from pegboard.platform_tools.desk import FrontDesk, Parts

            config = self._house.config
            conversations = Conversations(
                self.store,
                cap=config.surface.max_active,
                ttl=config.surface.activation_ttl,
                now=time.time,
                on_warning=self._house.warn,
            )
            self._desk = FrontDesk(
                Parts(
                    catalog=self._house.catalog,
                    search=self._house.search,
                    unlisted=self._house.unlisted,
                    invoker=self.invoker,
                    conversations=conversations,
                    record=self.record,
                    surface=config.surface,
                    calls=config.calls,
                    library=self._house.library,
                )
            )
            self._learn_on_schedule()
        return self._desk

    def invoker(self) -> Invoker:
        """The one path that every call takes."""
        if self._invoker is None:
            from pegboard.invoke.path import Invoker
            from pegboard.surface.tokens import WORD_PIECES

            config = self._house.config
            self._invoker = Invoker(
                self._house.find,
                self._house.execute,
                calls=config.calls,
                deny=config.tools.deny,
                approve=self._house.approve,
                prepare=self._house.prepare,
                look=lambda name: self._house.catalog().find(name),
                record=self.record,
                activate=lambda caller, tool: self.desk().activate(caller, tool),
                count_tokens=WORD_PIECES.count,
            )
        return self._invoker

    def store(self) -> SqliteStore | None:
        """What outlives this process; None where nothing is to be recorded."""
        if self._store is None and self._house.config.record.enabled:
            from pegboard.store.sqlite import open_store

            self._store = open_store(self._house.config, on_warning=self._house.warn)
        return self._store

    def record(self, record: Record) -> None:
        """Takes note of what happened. Never waits and never fails."""
        if self._recorder is None:
            store = self.store()
            if store is None:
                return
            from pegboard.telemetry.recorder import Recorder

            queries = self._house.config.record.queries
            self._recorder = Recorder(store, keep_queries=queries, on_warning=self._house.warn)
        self._recorder.record(record)

    async def recall(self) -> None:
        """Takes the priors that some process worked out, without working any out; nothing is made for it."""
        from pegboard.store.sqlite import store_path

        store = self.store() if store_path(self._house.config).exists() else None
        if store is None:
            return
        try:
            self._house.learn((await store.priors())[0])
        except PegboardError as error:
            if self._house.warn is not None:
                self._house.warn(f"priors not used: {error.message}")

    async def close(self) -> None:
        """Keeps what is to be kept, in the order in which one leaves work for the next."""
        import asyncio

        if self._learning is not None:
            self._learning.cancel()
            await asyncio.gather(self._learning, return_exceptions=True)
        if self._desk is not None:
            await self._desk.close()
        if self._recorder is not None:
            await self._recorder.close()
        if self._store is not None:
            await self._store.close()

    def _learn_on_schedule(self) -> None:
        import asyncio

        if self._house.config.record.enabled and self._learning is None:
            self._learning = asyncio.create_task(self._keep_learning(), name="pegboard priors")

    async def _keep_learning(self) -> None:
        """Works out the priors now and then. Not at once: whoever starts us wants the tools first."""
        import asyncio

        config = self._house.config.record
        pause = FIRST_PRIORS_SECONDS
        while True:
            await asyncio.sleep(pause)
            pause = config.priors_every
            if (store := self.store()) is None:
                return
            from pegboard.telemetry.upkeep import refresh_priors

            try:
                now = time.time()
                learnt = await refresh_priors(store, now, unless_younger=pause, keep_days=config.keep_days)
                self._house.learn(learnt)
            except PegboardError as error:
                if self._house.warn is not None:
                    self._house.warn(f"priors not refreshed: {error.message}")
