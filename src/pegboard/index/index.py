"""The index as a value: an intent and its vectors in, an answer out. Immutable; a new one is swapped in.

Above: `finder`, `keeper`. Below: `rank`, `diversify`, `confidence`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegboard.index.confidence import CONSIDERED, FITS, HOPELESS, confidences
from pegboard.index.diversify import Shown, pick
from pegboard.index.documents import FIELDS
from pegboard.index.intent import Intent
from pegboard.index.parts import Parts
from pegboard.index.rank import Candidates, Field, Sought, candidates
from pegboard.types import Answer, Hit, Match

Mask = NDArray[np.bool_]

NEAREST_SERVERS = 3
_ROUTED = (1.0, 0.3, 0.1)
"""What a server's best, second and third tool count when servers are compared."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """How the answer should look."""

    limit: int = 5
    allowed: Mask | None = None
    """Which tools may be found; None means all."""
    slots: dict[int, int] | None = None
    """How many places a server may hold at most, by its number; those not named, all."""
    lift: Callable[[str], float] | None = None
    """What a tool's record adds to its score, by public name."""
    first: str = ""
    """Public name of a tool that stands first, whatever its score."""
    always: bool = False
    """Give the best there is, even if nothing fits."""


class Index:
    """Ranked answers over one set of tools."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def search(self, intent: Intent, vectors: NDArray[np.float32] | None, wanted: Wanted) -> Answer:
        """The best tools for the intent. `vectors` are those of `intent.embedded`; None searches by words alone."""
        if not self.parts.about.tools:
            return Answer()
        allowed = self._with_demanded(intent, wanted.allowed)
        first = self._number(wanted.first)
        field = Field(allowed=allowed, limited=tuple(wanted.slots or ()), always=first)
        found, ranked = candidates(self.parts, intent, vectors, field)
        if not len(ranked.tools):
            return Answer(nearest_servers=self._any_servers(allowed))
        order, lifts = self._order(ranked, wanted.lift)
        sure = confidences(ranked, self.parts.about.embedder if vectors is not None else "")
        if first >= 0:
            sure[ranked.tools == first] = 1.0
            order = np.concatenate((order[ranked.tools[order] == first], order[ranked.tools[order] != first]))
        if not wanted.always and float(sure[order[:CONSIDERED]].max()) < FITS and not intent.demanded:
            return Answer(nearest_servers=self._servers(ranked.tools[order], ranked.score[order], NEAREST_SERVERS))
        if not wanted.always and not intent.demanded:
            order = order[sure[order] >= HOPELESS]
        shown = pick(self.parts, ranked.tools[order], wanted.limit, wanted.slots, first_stays=first >= 0)
        hits = tuple(self._hit(each, order, ranked, found, sure, lifts) for each in shown)
        return Answer(hits=hits, nearest_servers=servers_of(hits))

    def route(
        self, intent: Intent, vectors: NDArray[np.float32] | None, limit: int, allowed: Mask | None = None
    ) -> tuple[str, ...]:
        """The servers that can best do it."""
        if not self.parts.about.tools:
            return ()
        _, ranked = candidates(self.parts, intent, vectors, Field(allowed=self._with_demanded(intent, allowed)))
        order, _ = self._order(ranked, None)
        return self._servers(ranked.tools[order], ranked.score[order], limit)

    def mask(self, admits: Callable[[str], bool]) -> Mask:
        """Which tools' public names are admitted."""
        facts = self.parts.facts
        names = (facts.name(tool) for tool in range(self.parts.about.tools))
        return np.fromiter((admits(name) for name in names), np.bool_, self.parts.about.tools)

    def server_number(self, name: str) -> int:
        """The server's place in this index; -1 when it has no tools in it."""
        servers = self.parts.about.servers
        return servers.index(name) if name in servers else -1

    def _with_demanded(self, intent: Intent, allowed: Mask | None) -> Mask | None:
        if not intent.demanded:
            return allowed
        mask = np.ones(self.parts.about.tools, np.bool_) if allowed is None else allowed.copy()
        for demand in intent.demanded:
            if not demand.is_common:  # texts are not indexed by those: whoever has the texts looks for them
                mask &= np.logical_or.reduce([self._having(terms) for terms in demand.ways] or [np.zeros_like(mask)])
        return mask

    def _having(self, terms: tuple[str, ...]) -> Mask:
        """Which tools have all of these terms."""
        mask = np.ones(self.parts.about.tools, np.bool_)
        for number in self.parts.vocabulary.numbers(terms):
            having = np.zeros_like(mask)
            if number >= 0:
                having[self.parts.postings.tool[self.parts.postings.of(number)]] = True
            mask &= having
        return mask

    def _number(self, name: str) -> int:
        """The place of the tool of this public name; -1 when it is not in this index."""
        if not name:
            return -1
        wanted, facts = name.encode("utf-8", "surrogatepass"), self.parts.facts
        for tool in np.flatnonzero(np.diff(facts.name_start) == len(wanted)).tolist():
            start = int(facts.name_start[tool])
            if facts.names[start : start + len(wanted)].tobytes() == wanted:
                return int(tool)
        return -1

    def _order(
        self, ranked: Candidates, lift: Callable[[str], float] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Best first; what is equal stays in the order of the catalog."""
        lifts = np.zeros(len(ranked.tools), np.float32)
        if lift is not None:
            lifts = np.array([lift(self.parts.facts.name(int(tool))) for tool in ranked.tools], np.float32)
        return np.lexsort((ranked.tools, -(ranked.score + lifts))), lifts

    def _servers(self, tools: NDArray[np.int32], scores: NDArray[np.float32], limit: int) -> tuple[str, ...]:
        worth: dict[int, list[float]] = {}
        for server, score in zip(self.parts.facts.server[tools].tolist(), scores.tolist(), strict=True):
            worth.setdefault(server, []).append(max(score, 0.0))
        total = {server: sum(a * b for a, b in zip(_ROUTED, best, strict=False)) for server, best in worth.items()}
        best = sorted(total, key=lambda server: (-total[server], server))[:limit]
        return tuple(self.parts.about.servers[server] for server in best)

    def _any_servers(self, allowed: Mask | None) -> tuple[str, ...]:
        """The first servers that may be named, for want of any that come near."""
        server = self.parts.facts.server
        numbers = np.unique(server if allowed is None else server[allowed])[:NEAREST_SERVERS]
        return tuple(self.parts.about.servers[number] for number in numbers)

    def _hit(
        self,
        shown: Shown,
        order: NDArray[np.int64],
        ranked: Candidates,
        found: Sought,
        sure: NDArray[np.float32],
        lifts: NDArray[np.float32],
    ) -> Hit:
        at = int(order[shown.place])
        facts, tool = self.parts.facts, int(ranked.tools[at])
        return Hit(
            name=facts.name(tool),
            exact=bool(sure[at] == 1.0),
            server=self.parts.about.servers[int(facts.server[tool])],
            confidence=round(float(sure[at]), 3),
            also=tuple(facts.name(int(ranked.tools[order[copy]])) for copy in shown.copies),
            match=Match(
                words={
                    word: _fields(bits)
                    for word, bits in zip(found.words, ranked.matched[:, at].tolist(), strict=True)
                    if bits
                },
                lexical=float(ranked.lexical[at]),
                dense=float(ranked.dense[at]),
                fused=float(ranked.fused[at]),
                name_covered=float(ranked.name[at]),
                query_covered=float(ranked.query[at]),
                server_named=float(ranked.server[at]),
                verb_agrees=float(ranked.verb[at]),
                clause=float(ranked.clause[at]),
                prior=float(lifts[at]),
                score=float(ranked.score[at] + lifts[at]),
            ),
        )


@lru_cache(maxsize=1024)
def _fields(bits: int) -> tuple[str, ...]:
    return tuple(field for number, field in enumerate(FIELDS) if bits & 1 << number)


def servers_of(hits: Sequence[Hit]) -> tuple[str, ...]:
    """The servers of the first hits, each once."""
    return tuple(dict.fromkeys(hit.server for hit in hits))[:NEAREST_SERVERS]


def slots_of(share: float, limit: int) -> int:
    """How many of `limit` places a share is; never less than one."""
    return max(1, int(share * limit))
