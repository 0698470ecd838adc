"""Answers a query over a catalog: exact names without the engine, everything else through the index.

Above: `keeper`, the engine. Below: `index`, `narrow`, `priors`. The embedder is the only thing that is waited for.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegboard.catalog.naming import by_bare_name
from pegboard.errors import EmbedderError
from pegboard.index.embedders.static import pieces
from pegboard.index.index import Index, Mask, Wanted, servers_of, slots_of
from pegboard.index.intent import LONGEST, Intent, understand
from pegboard.index.narrow import Narrow
from pegboard.index.priors import lift
from pegboard.index.spelling import mended
from pegboard.index.text import spoken, stem
from pegboard.protocols import Embedder
from pegboard.types import Answer, Hit, Match, Priors, Tool

DEFAULT_LIMIT = 5
MOST_SURFACED = 20
BY_WORDS = "searched by words alone"
OTHER_MODEL = "the embedder's vectors are not as long as the index's; `pegboard index build --anew` makes it anew"
_QUOTES = "\"'`[] "
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
        current: bool = True,
    ) -> None:
        """`limited` are the servers that may hold no more than `max_share` of the places.

        `current` says whether the index was made from just these tools; if not, those that left are not found.
        """
        self.tools = tools
        self.index = index
        self._embedder = embedder if embedder and index.parts.about.embedder == embedder.identity else None
        self._priors = priors or {}
        self._limited = tuple(number for server in limited if (number := index.server_number(server)) >= 0)
        self._max_share = max_share
        self._masks: dict[Narrow, Mask | None] = {}
        self._common: dict[str, Mask] = {}
        self._there = None if current else index.mask(tools.__contains__)

    async def search(self, query: str, terms: Terms = Terms()) -> Answer:
        """The tools that can do what the query says, best first."""
        terms = msgspec.structs.replace(terms, limit=min(max(terms.limit, 1), MOST_SURFACED))
        intent = understand(query)
        if intent.selected:
            return self._selected(intent.selected, terms.narrow)
        exact = self._exact(query.strip(), terms.narrow)
        if exact is not None and (exact.public_name == query.strip() or not intent.words):
            return Answer(hits=(_exact_hit(exact),), nearest_servers=(exact.server,))
        if not intent.words and not intent.demanded:
            return Answer()
        intent = self._well_spelt(query, intent)
        vectors, notes = await self._vectors(intent)
        answer = self.index.search(intent, vectors, self._wanted(terms, intent, exact))
        if exact is not None and not (answer.hits and answer.hits[0].exact):
            # It came since the index was made.
            hits = (_exact_hit(exact), *answer.hits)[: terms.limit]
            answer = msgspec.structs.replace(answer, hits=hits, nearest_servers=servers_of(hits))
        return msgspec.structs.replace(answer, notes=notes)

    async def servers(self, query: str, limit: int = 3, narrow: Narrow = Narrow()) -> tuple[str, ...]:
        """The servers that can best do it."""
        intent = self._well_spelt(query, understand(query))
        if not intent.words:
            return ()
        vectors, _ = await self._vectors(intent)
        return self.index.route(intent, vectors, limit, self._allowed(narrow, intent))

    # ── exact names ──────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _by_bare_name(self) -> dict[str, list[Tool]]:
        return by_bare_name(self.tools.values())

    def _exact(self, name: str, narrow: Narrow) -> Tool | None:
        """The tool of this public name, or of this bare name if only one has it."""
        tool = self.tools.get(name)
        if tool is None:
            bearers = [each for each in self._by_bare_name.get(name, ()) if self._admits(each, narrow)]
            return bearers[0] if len(bearers) == 1 else None
        return tool if self._admits(tool, narrow) else None

    def _named(self, name: str, narrow: Narrow) -> Tool | None:
        """The same, also for one in quotes, as models copy it from a text."""
        return self._exact(name, narrow) or self._exact(name.strip(_QUOTES), narrow)

    def _selected(self, names: Sequence[str], narrow: Narrow) -> Answer:
        found = {name: self._named(name, narrow) for name in names[:MOST_SURFACED]}
        hits = tuple(_exact_hit(tool) for tool in dict.fromkeys(each for each in found.values() if each is not None))
        left = len(names) - len(found)
        return Answer(
            hits=hits,
            unknown=tuple(name for name, tool in found.items() if tool is None),
            notes=(f"only the first {MOST_SURFACED} names were looked up; {left} were not",) if left else (),
        )

    # ── what the index is asked ──────────────────────────────────────────────────────────────────────────────────────

    def _well_spelt(self, query: str, intent: Intent) -> Intent:
        """The intent, understood again where words that no tool has turn out to be misspelt."""
        words = [word.term for word in intent.words if word.asked]
        numbers = self.index.parts.vocabulary.numbers(words)
        if min(numbers, default=0) >= 0:
            return intent
        vocabulary = self.index.parts.vocabulary
        text = query[:LONGEST]
        better = mended(text, lambda word: vocabulary.numbers([stem(word)])[0] >= 0, pieces().get)
        return understand(better) if better != text else intent

    async def _vectors(self, intent: Intent) -> tuple[NDArray[np.float32] | None, tuple[str, ...]]:
        if self.index.parts.vectors is None or not self.index.parts.about.tools or not intent.words:
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

    def _wanted(self, terms: Terms, intent: Intent, exact: Tool | None) -> Wanted:
        slots = dict.fromkeys(self._limited, slots_of(self._max_share, terms.limit)) if self._limited else None
        return Wanted(
            limit=terms.limit,
            allowed=self._allowed(terms.narrow, intent),
            slots=slots,
            lift=self._lift if self._knows_costs else None,
            first=exact.public_name if exact is not None else "",
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

    def _allowed(self, narrow: Narrow, intent: Intent) -> Mask | None:
        """Which tools may be found: still there, inside the filters, with the common words that are demanded."""
        mask = self._mask(narrow)
        for demand in intent.demanded:
            if demand.is_common:
                saying = self._saying(demand.word)
                mask = saying if mask is None else saying & mask
        return mask

    def _saying(self, word: str) -> Mask:
        """Which tools' texts have this common word; kept, for every text must be read to know."""
        if word not in self._common:
            pattern = re.compile(rf"\b{re.escape(word)}\b")
            self._common[word] = self.index.mask(
                lambda name: (tool := self.tools.get(name)) is not None and _says(tool, pattern)
            )
        return self._common[word]

    def _mask(self, narrow: Narrow) -> Mask | None:
        if narrow.everything:
            return self._there
        if narrow not in self._masks:
            if len(self._masks) >= _MASKS_KEPT:
                self._masks.clear()
            self._masks[narrow] = self._new_mask(narrow)
        return self._masks[narrow]

    def _new_mask(self, narrow: Narrow) -> Mask:
        if narrow == Narrow(servers=narrow.servers):
            numbers = [self.index.server_number(server) for server in narrow.servers]
            mask = np.isin(self.index.parts.facts.server, numbers)
            return mask if self._there is None else mask & self._there

        def admits(name: str) -> bool:
            tool = self.tools.get(name)
            return tool is not None and self._admits(tool, narrow)

        return self.index.mask(admits)


def _says(tool: Tool, word: re.Pattern[str]) -> bool:
    """Whether one of the tool's texts has the word."""
    texts = (tool.description, tool.title, *tool.tags, *tool.aliases)
    return any(word.search(text.lower()) for text in texts) or word.search(spoken(tool.name).lower()) is not None


def _exact_hit(tool: Tool) -> Hit:
    return Hit(
        name=tool.public_name,
        server=tool.server,
        exact=True,
        confidence=1.0,
        match=Match(words={tool.name: ("name",)}, name_covered=1.0, query_covered=1.0),
    )
