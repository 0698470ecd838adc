"""The index that serves now: opened when first asked for, built anew behind the scenes, swapped in when ready.

Above: the engine, which owns its lifetime. Below: `keeper`, `finder`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from time import monotonic

import msgspec

from pegboard.catalog.catalog import Catalog
from pegboard.index.finder import Finder, Terms
from pegboard.index.index import Index
from pegboard.index.keeper import Built, IndexKeeper, words_only
from pegboard.index.narrow import Narrow
from pegboard.protocols import Embedder
from pegboard.types import Answer, Priors

REBUILDING = "the index is being rebuilt; tools that came or changed just now may be missing"
MOST_WARNINGS = 20
REST_SECONDS = 300.0
"""How long after its embedder failed a build is not tried again."""


class LiveIndex:
    """Answers searches over a catalog that may change at any time."""

    def __init__(
        self,
        keeper: IndexKeeper,
        *,
        limited: Sequence[str] = (),
        max_share: float = 1.0,
        rest_seconds: float = REST_SECONDS,
    ) -> None:
        self._keeper = keeper
        self._rest_seconds = rest_seconds
        self._new_finder = partial(Finder, embedder=keeper.embedder, limited=limited, max_share=max_share)
        self.priors: Mapping[str, Priors] = {}
        self.warnings: list[str] = []
        self._index: Index | None = None
        self._opened = False
        self._closed = False
        self._serving: tuple[str, Index, Mapping[str, Priors], Finder] | None = None
        self._building: tuple[str, asyncio.Task[Built]] | None = None
        """The newest catalog that is built or to be built, and who does it."""
        self._running: asyncio.Task[Built] | None = None
        self._tasks: set[asyncio.Task[Built]] = set()
        self._by_words: tuple[str, float] | None = None
        """Why the latest build had to do without its embedder, and when that was."""

    @property
    def embedder(self) -> Embedder | None:
        """What its vectors are made with; None where searches go by words alone."""
        return self._keeper.embedder

    async def search(self, catalog: Catalog, query: str, terms: Terms = Terms()) -> Answer:
        """The tools that can do what the query says."""
        finder = await self._finder(catalog)
        note = self._note(catalog, finder.index)
        answer = await finder.search(query, terms)
        return msgspec.structs.replace(answer, notes=(*answer.notes, note)) if note else answer

    async def servers(self, catalog: Catalog, query: str, limit: int = 3, narrow: Narrow = Narrow()) -> tuple[str, ...]:
        """The servers that can best do it."""
        finder = await self._finder(catalog)
        return await finder.servers(query, limit, narrow)

    async def ready(self, catalog: Catalog) -> Built | None:
        """Waits until the index is that of the catalog; None when it was already."""
        await self._open()
        if self._keeper.current(self._index, catalog.version):
            return None
        # Shielded: whoever stops waiting does not stop what others wait for.
        return await asyncio.shield(self._build(catalog))

    async def close(self) -> None:
        """Stops building; what is in the file stays."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _open(self) -> None:
        if self._opened:
            return
        index, warning = await asyncio.to_thread(self._keeper.open)
        if not self._opened:  # of several who ask at once, the first
            self._opened, self._index = True, index
            self._warn(*([warning] if warning else []))

    async def _finder(self, catalog: Catalog) -> Finder:
        await self._open()
        index = self._index
        if not self._keeper.current(index, catalog.version):
            self._build(catalog)
            if index is None:
                words = await asyncio.to_thread(words_only, catalog.tools, catalog.version)
                index = self._index = self._index or words  # the build may have been quicker
        assert index is not None
        known = self._serving
        if known and known[0] == catalog.version and known[1] is index and known[2] is self.priors:
            return known[3]
        current = index.parts.about.catalog == catalog.version
        make = partial(self._new_finder, catalog.tools, index, priors=self.priors, current=current)
        # Of an older index every name is looked up: for a large one that takes its time.
        finder = make() if current else await asyncio.to_thread(make)
        self._serving = (catalog.version, index, self.priors, finder)
        return finder

    def _note(self, catalog: Catalog, index: Index) -> str:
        """What there is to say of the index that serves."""
        if self._keeper.current(index, catalog.version):
            return ""
        same = index.parts.about.catalog == catalog.version
        return self._by_words[0] if same and self._by_words is not None else REBUILDING

    def _build(self, catalog: Catalog) -> asyncio.Task[Built]:
        """The build that serves this catalog: under way, or next. One is never cut short by the next:
        a catalog that changes often would else never be indexed."""
        if self._building is not None and self._building[0] == catalog.version and not self._is_to_try_again:
            return self._building[1]
        task = asyncio.create_task(self._swap_in(catalog, self._running), name="pegboard index")
        self._building = (catalog.version, task)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        if self._closed:
            task.cancel()  # whoever was still asking then is told like those who waited
        return task

    def _ended(self, task: asyncio.Task[Built]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._warn(f"the index could not be built: {type(error).__name__}: {error}")

    def _warn(self, *warnings: str) -> None:
        """Once each: what fails every five minutes is no news after the first time."""
        self.warnings += [each for each in dict.fromkeys(warnings) if each not in self.warnings][:MOST_WARNINGS]
        del self.warnings[:-MOST_WARNINGS]

    @property
    def _is_to_try_again(self) -> bool:
        if self._building is None or not self._building[1].done():
            return False
        return self._failed or (self._by_words is not None and monotonic() - self._by_words[1] >= self._rest_seconds)

    @property
    def _failed(self) -> bool:
        task = self._building[1] if self._building else None
        return task is not None and task.done() and (task.cancelled() or task.exception() is not None)

    async def _swap_in(self, catalog: Catalog, running: asyncio.Task[Built] | None) -> Built:
        if running is not None and not running.done():
            await asyncio.wait([running])
        this, newest = asyncio.current_task(), self._building
        if newest is not None and newest[1] is not this:
            return await asyncio.shield(newest[1])  # the catalog changed again meanwhile, if only there and back
        self._running = this
        built = await self._keeper.build(catalog.tools, catalog.version, self._index)
        self._index = built.index
        self._by_words = (built.by_words, monotonic()) if built.by_words else None
        self._warn(*built.warnings)
        return built
