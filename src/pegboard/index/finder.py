"""Answers a query over a catalog: exact names without the engine, everything else through the index.

Above: `keeper`, the engine. Below: `index`, `narrow`, `priors`. The embedder is the only thing that is waited for.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegboard.errors import EmbedderError
from pegboard.index.embedders.static import pieces
from pegboard.index.index import Index, Mask, Wanted, slots_of
from pegboard.index.intent import LONGEST, Intent, understand
from pegboard.index.narrow import Narrow
from pegboard.index.priors import lift
from pegboard.index.spelling import mended
from pegboard.index.text import stem
from pegboard.protocols import Embedder
from pegboard.types import Answer, Hit, Match, Priors, Tool

DEFAULT_LIMIT = 5
MOST_SURFACED = 20
BY_WORDS = "searched by words alone"
OTHER_MODEL = "the embedder's vectors are not as long as the index's; `pegboard index build --anew` makes it anew"
_MASKS_KEPT = 16


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms on which one search is answered."""

    limit: int = DEFAULT_LIMIT
    narrow: Narrow = Narrow()
    always: bool = False
    """Give the best there is, even if nothing fits."""


class Finder:
    """One catalog and its index. Replaced as a whole when either changes."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        index: Index,
        embedder: Embedder | None,
        *,
        priors: Mapping[str, Priors] | None = None,
        limited: Sequence[str] = (),
        max_share: float = 1.0,
    ) -> None:
        """`limited` are the servers that may hold no more than `max_share` of the places."""
        self.tools = tools
        self.index = index
        self._embedder = embedder if embedder and index.parts.about.embedder == embedder.identity else None
        self._priors = priors or {}
        self._limited = tuple(index.server_number(server) for server in limited)
        self._max_share = max_share
        self._masks: dict[Narrow, Mask | None] = {}

    async def search(self, query: str, terms: Terms = Terms()) -> Answer:
        """The tools that can do what the query says, best first."""
        terms = msgspec.structs.replace(terms, limit=min(max(terms.limit, 1), MOST_SURFACED))
        intent = understand(query)
        if intent.selected:
            return self._selected(intent.selected, terms.narrow)
        exact = self._exact(query.strip(), terms.narrow)
        if exact is not None and exact.public_name == query.strip():
            return Answer(hits=(_exact_hit(exact),), nearest_servers=(exact.server,))
        intent = self._well_spelt(query, intent)
        vectors, notes = await self._vectors(intent)
        answer = self.index.search(intent, vectors, self._wanted(terms))
        answer = self._still_there(answer, terms)
        if exact is not None:
            rest = tuple(hit for hit in answer.hits if hit.name != exact.public_name)
            answer = msgspec.structs.replace(answer, hits=(_exact_hit(exact), *rest)[: terms.limit])
        return msgspec.structs.replace(answer, notes=notes)

    async def servers(self, query: str, limit: int = 3, narrow: Narrow = Narrow()) -> tuple[str, ...]:
        """The servers that can best do it."""
        intent = self._well_spelt(query, understand(query))
        vectors, _ = await self._vectors(intent)
        return self.index.route(intent, vectors, limit, self._mask(narrow))

    # ── exact names ──────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _by_bare_name(self) -> dict[str, list[Tool]]:
        bearers: dict[str, list[Tool]] = {}
        for tool in self.tools.values():
            bearers.setdefault(tool.name, []).append(tool)
        return bearers

    def _exact(self, name: str, narrow: Narrow) -> Tool | None:
        """The tool of this public name, or of this bare name if only one has it."""
        tool = self.tools.get(name)
        if tool is None:
            bearers = [each for each in self._by_bare_name.get(name, ()) if self._admits(each, narrow)]
            return bearers[0] if len(bearers) == 1 else None
        return tool if self._admits(tool, narrow) else None

    def _selected(self, names: Sequence[str], narrow: Narrow) -> Answer:
        found = {name: self._exact(name, narrow) for name in names}
        hits = tuple(_exact_hit(tool) for tool in dict.fromkeys(each for each in found.values() if each is not None))
        return Answer(hits=hits, unknown=tuple(name for name, tool in found.items() if tool is None))

    # ── what the index is asked ──────────────────────────────────────────────────────────────────────────────────────

    def _well_spelt(self, query: str, intent: Intent) -> Intent:
        """The intent, understood again where words that no tool has turn out to be misspelt."""
        words = [word.term for word in intent.words if word.asked]
        numbers = self.index.parts.vocabulary.numbers(words)
        unknown = {word for word, number in zip(words, numbers, strict=True) if number < 0}
        if not unknown:
            return intent
        better = mended(query[:LONGEST], lambda word: stem(word) not in unknown, pieces().get)
        return understand(better) if better != query else intent

    async def _vectors(self, intent: Intent) -> tuple[NDArray[np.float32] | None, tuple[str, ...]]:
        if self.index.parts.vectors is None or not intent.words:
            return None, ()
        if self._embedder is None:
            return None, (f"{BY_WORDS}: the index was made with another embedder",)
        try:
            vectors = await self._embedder.embed(intent.embedded, query=True)
        except EmbedderError as error:
            return None, (f"{BY_WORDS}: {error.message}",)
        if vectors.shape[1] != self.index.parts.vectors.rows.shape[1]:
            return None, (f"{BY_WORDS}: {OTHER_MODEL}",)
        return vectors, ()

    def _wanted(self, terms: Terms) -> Wanted:
        slots = dict.fromkeys(self._limited, slots_of(self._max_share, terms.limit)) if self._limited else None
        return Wanted(
            limit=terms.limit,
            allowed=self._mask(terms.narrow),
            slots=slots,
            lift=self._lift if self._knows_costs else None,
            always=terms.always,
        )

    @cached_property
    def _knows_costs(self) -> bool:
        return bool(self._priors) or any(tool.cost_usd for tool in self.tools.values())

    def _lift(self, name: str) -> float:
        tool = self.tools.get(name)
        return lift(self._priors.get(name), tool.cost_usd if tool else None, time.time())

    def _admits(self, tool: Tool, narrow: Narrow) -> bool:
        return narrow.admits(tool, self._priors.get(tool.public_name))

    def _mask(self, narrow: Narrow) -> Mask | None:
        if narrow.everything:
            return None
        if narrow not in self._masks:
            if len(self._masks) >= _MASKS_KEPT:
                self._masks.clear()
            self._masks[narrow] = self._new_mask(narrow)
        return self._masks[narrow]

    def _new_mask(self, narrow: Narrow) -> Mask:
        if narrow == Narrow(servers=narrow.servers):
            numbers = [self.index.server_number(server) for server in narrow.servers]
            return np.isin(self.index.parts.facts.server, numbers)

        def admits(name: str) -> bool:
            tool = self.tools.get(name)
            return tool is not None and self._admits(tool, narrow)

        return self.index.mask(admits)

    def _still_there(self, answer: Answer, terms: Terms) -> Answer:
        """Without tools that left the catalog since the index was made."""
        hits = tuple(
            hit if all(name in self.tools for name in hit.also) else _without_gone(hit, self.tools)
            for hit in answer.hits
            if hit.name in self.tools and self._admits(self.tools[hit.name], terms.narrow)
        )
        return msgspec.structs.replace(answer, hits=hits)


def _without_gone(hit: Hit, tools: Mapping[str, Tool]) -> Hit:
    return msgspec.structs.replace(hit, also=tuple(name for name in hit.also if name in tools))


def _exact_hit(tool: Tool) -> Hit:
    return Hit(
        name=tool.public_name,
        server=tool.server,
        confidence=1.0,
        match=Match(words={tool.name: ("name",)}, name_covered=1.0, query_covered=1.0),
    )
