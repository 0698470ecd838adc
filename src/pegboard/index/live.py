"""The index that serves now: opened when first asked for, built anew behind the scenes, swapped in when ready.

Above: the engine, which owns its lifetime. Below: `keeper`, `finder`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from pegboard.catalog.catalog import Catalog
from pegboard.index.finder import Finder, Terms
from pegboard.index.index import Index
from pegboard.index.keeper import Built, IndexKeeper, words_only
from pegboard.index.narrow import Narrow
from pegboard.types import Answer, Priors

REBUILDING = "the index is being rebuilt; tools that came or changed just now may be missing"


class LiveIndex:
    """Answers searches over a catalog that may change at any time."""

    def __init__(self, keeper: IndexKeeper, *, limited: Sequence[str] = (), max_share: float = 1.0) -> None:
        self._keeper = keeper
        self._new_finder = partial(Finder, embedder=keeper.embedder, limited=limited, max_share=max_share)
        self.priors: Mapping[str, Priors] = {}
        self.warnings: list[str] = []
        self._index: Index | None = None
        self._opened = False
        self._serving: tuple[tuple[str, int, int], Finder] | None = None
        self._building: tuple[str, asyncio.Task[Built]] | None = None

    async def search(self, catalog: Catalog, query: str, terms: Terms = Terms()) -> Answer:
        """The tools that can do what the query says."""
        finder, current = await self._finder(catalog)
        answer = await finder.search(query, terms)
        return answer if current else msgspec.structs.replace(answer, notes=(*answer.notes, REBUILDING))

    async def servers(self, catalog: Catalog, query: str, limit: int = 3, narrow: Narrow = Narrow()) -> tuple[str, ...]:
        """The servers that can best do it."""
        finder, _ = await self._finder(catalog)
        return await finder.servers(query, limit, narrow)

    async def ready(self, catalog: Catalog) -> Built | None:
        """Waits until the index is that of the catalog; None when it was already."""
        await self._open()
        if self._keeper.current(self._index, catalog.version):
            return None
        return await self._build(catalog)

    async def close(self) -> None:
        """Stops building; what is in the file stays."""
        if self._building is not None:
            self._building[1].cancel()
            await asyncio.gather(self._building[1], return_exceptions=True)

    async def _open(self) -> None:
        if not self._opened:
            self._index, warning = await asyncio.to_thread(self._keeper.open)
            self._opened = True
            if warning:
                self.warnings.append(warning)

    async def _finder(self, catalog: Catalog) -> tuple[Finder, bool]:
        await self._open()
        current = self._keeper.current(self._index, catalog.version)
        if not current:
            self._build(catalog)
            if self._index is None:
                self._index = await asyncio.to_thread(words_only, catalog.tools, catalog.version)
        key = (catalog.version, id(self._index), id(self.priors))
        if self._serving is None or self._serving[0] != key:
            assert self._index is not None
            self._serving = (key, self._new_finder(catalog.tools, self._index, priors=self.priors))
        return self._serving[1], current

    def _build(self, catalog: Catalog) -> asyncio.Task[Built]:
        if self._building is not None and self._building[0] == catalog.version and not self._failed:
            return self._building[1]
        if self._building is not None:
            self._building[1].cancel()
        task = asyncio.create_task(self._swap_in(catalog), name="pegboard index")
        self._building = (catalog.version, task)
        return task

    @property
    def _failed(self) -> bool:
        task = self._building[1] if self._building else None
        return task is not None and task.done() and (task.cancelled() or task.exception() is not None)

    async def _swap_in(self, catalog: Catalog) -> Built:
        built = await self._keeper.build(catalog.tools, catalog.version, self._index)
        self._index = built.index
        self.warnings += built.warnings
        return built
