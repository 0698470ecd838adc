"""From an intent to scored candidates: words and meaning fused, then re-ranked by what can be seen in the match.

Every stage is bounded: a common word touches many tools only while few have been touched, the dense half reads the
nearest clusters, and re-ranking looks at a hundred candidates. Above: `index`. Below: `parts`, `intent`, `weights`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegboard.index import weights
from pegboard.index.intent import Intent
from pegboard.index.parts import Parts
from pegboard.index.postings import FULL, NAME_BIT, SERVER_BIT, WHOLE_BIT, Postings
from pegboard.index.verbs import NONE

MOST_WORDS = 48
"""Words of a query that count; of more, those that tell most."""
GATHERED_BELOW = 40_000
"""Postings that are looked at all at once."""
ALL_WORDS_BELOW = 250_000
"""Postings that may be added up; further words count only for tools that are candidates already."""
_HEAP = 16
_TINY = 1e-6

Floats = NDArray[np.float32]


class Sought(msgspec.Struct, frozen=True):
    """The words of a query that the index knows, most telling first."""

    words: tuple[str, ...]
    terms: list[int]
    gain: Floats
    """What a full match of each word is worth."""
    asked: NDArray[np.bool_]
    clauses: NDArray[np.int64]
    total: float
    """What a match of all words asked for would be worth, known or not."""

    def spread(self, index: Parts) -> tuple[float, float]:
        """Mean and deviation of the lexical score over all tools, as if words were independent."""
        mass, square = index.statistics.mass[self.terms], index.statistics.square[self.terms]
        variance = float((self.gain * self.gain * np.maximum(square - mass * mass, 0)).sum())
        return float((self.gain * mass).sum()), max(variance, _TINY) ** 0.5


class Meant(msgspec.Struct, frozen=True):
    """What a query means, and how that is brought together with its words: each standardised over all tools."""

    vectors: Floats
    """The whole query's, then each clause's."""
    lexical: np.float32
    dense: np.float32
    middle: np.float32
    """What the average tool would have, which is taken away."""

    def fused(self, lexical: Floats, dense: Floats) -> Floats:
        """Both halves of the scores as one."""
        fused: Floats = lexical * self.lexical + dense * self.dense
        return fused - self.middle


class Gathered(msgspec.Struct, frozen=True):
    """All postings of a query's words, one after the other: for few of them, one look at all beats one for each."""

    tool: NDArray[np.int32]
    impact: NDArray[np.uint8]
    fields: NDArray[np.uint16]
    word: NDArray[np.int64]
    """Which word each posting is of."""


class Candidates(msgspec.Struct, frozen=True):
    """Tools that may be the answer, each with the parts of its score."""

    tools: NDArray[np.int32]
    lexical: Floats
    """Sum of what the matched words are worth."""
    dense: Floats
    """Cosine between query and tool; zeros without vectors."""
    nearest: Floats
    """Cosine with the whole query or with the step of it that is nearest."""
    fused: Floats
    clause: Floats
    name: Floats
    """Share of the tool's own name that the query says."""
    query: Floats
    """Share of the query that the tool says."""
    server: Floats
    verb: Floats
    score: Floats
    matched: NDArray[np.uint16]
    """For each word and tool the fields it was found in."""


def sought(index: Parts, intent: Intent) -> Sought:
    """The query's words as the index has them; a word that no tool has may be one misspelt."""
    numbers = index.vocabulary.numbers([word.term for word in intent.words])
    rarest = float(np.log1p(index.about.tools / 0.5))
    words = zip(intent.words, numbers, strict=True)
    meant = index.vocabulary.meant([word.term for word, number in words if number < 0 and word.asked])
    found: list[tuple[float, int, str, bool, int]] = []
    total = 0.0
    known = len(index.statistics.rarity) > 0
    rarities: list[float] = index.statistics.rarity[numbers].tolist() if known else [0.0] * len(numbers)
    for word, number, rarity in zip(intent.words, numbers, rarities, strict=True):
        weight, term, worth = word.weight, number, word.weight * rarity
        if term < 0:
            term = _commonest(index, meant.get(word.term, []))
            worth = weight * weights.MISSPELT * float(index.statistics.rarity[term]) if term >= 0 else 0.0
        if word.asked:
            total += worth if number >= 0 else word.weight * rarest
        if term >= 0:
            found.append((worth, term, word.term, word.asked, word.clauses))
    found = sorted(found, key=lambda each: (-each[0], each[1]))[:MOST_WORDS]
    return Sought(
        tuple(each[2] for each in found),
        [each[1] for each in found],
        np.array([each[0] for each in found], np.float32),
        np.array([each[3] for each in found], np.bool_),
        np.array([each[4] for each in found], np.int64),
        total,
    )


def _commonest(index: Parts, near: list[int]) -> int:
    return max(near, key=lambda each: (index.postings.start[each + 1] - index.postings.start[each], -each), default=-1)


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """Who may become a candidate."""

    allowed: NDArray[np.bool_] | None = None
    """Leaves out tools before anything is ranked."""
    limited: tuple[int, ...] = ()
    """Servers that may hold a few places only, and so must not take those of all candidates."""
    always: int = -1
    """A tool that is one in any case."""


def candidates(
    index: Parts, intent: Intent, queries: Floats | None, field: Field = Field()
) -> tuple[Sought, Candidates]:
    """The best tools for the intent and the parts of their scores, in no order.

    `queries` are the vectors of `intent.embedded`.
    """
    found = sought(index, intent)
    gathered = _gathered(index.postings, found)
    meant = _meant(index, found, queries)
    tools = _shortlist(index, found, gathered, meant, field.allowed)
    newest = tools
    for last in (False, True):
        crowds = _crowds(index, newest, field.limited)
        if not crowds:
            break
        # Where one crowd makes way for the next, all make way.
        others = ~np.isin(index.facts.server, field.limited if last else crowds)
        allowed = others if field.allowed is None else others & field.allowed
        newest = _shortlist(index, found, gathered, meant, allowed)
        tools = np.union1d(tools, newest)
    if field.always >= 0:
        tools = np.union1d(tools, np.array([field.always], np.int32))
    matches = _matches(index, found, gathered, tools)
    return found, _scored(index, intent, found, meant, tools, matches)


def _query_vectors(queries: Floats) -> Floats:
    """The whole query, as the middle of what it says with and without its literals, and each clause."""
    whole = queries[0] + queries[1]
    length = float(np.linalg.norm(whole))
    return np.vstack((whole / length if length > _TINY else whole, queries[2:])).astype(np.float32)


def _meant(index: Parts, found: Sought, queries: Floats | None) -> Meant | None:
    if index.vectors is None or queries is None:
        return None
    vectors = _query_vectors(queries)
    low, wide = found.spread(index)
    mean, deviation = index.vectors.spread(vectors[0])
    return Meant(
        vectors,
        np.float32(weights.LEXICAL / wide),
        np.float32(weights.DENSE / deviation),
        np.float32(weights.LEXICAL * low / wide + weights.DENSE * mean / deviation),
    )


def _gathered(postings: Postings, found: Sought) -> Gathered | None:
    if not found.terms:
        return None
    parts = postings.each(found.terms)
    sizes = [part.stop - part.start for part in parts]
    if sum(sizes) > GATHERED_BELOW:
        return None
    return Gathered(
        np.concatenate([postings.tool[part] for part in parts]),
        np.concatenate([postings.impact[part] for part in parts]),
        np.concatenate([postings.fields[part] for part in parts]),
        np.arange(len(parts)).repeat(sizes),
    )


def _crowds(index: Parts, tools: NDArray[np.int32], limited: tuple[int, ...]) -> Sequence[int]:
    """The servers of limited trust that took so many places, alone or together, that others may have been left out."""
    if not limited or len(tools) < weights.CANDIDATES:
        return ()
    servers = index.facts.server[tools]
    held, places = np.unique(servers[np.isin(servers, limited)], return_counts=True)
    crowds: list[int] = held[places > weights.CROWD].tolist()
    return crowds or (limited if int(places.sum()) > weights.CROWD else ())


# ── which tools to look at ───────────────────────────────────────────────────────────────────────────────────────────


def _shortlist(
    index: Parts,
    found: Sought,
    gathered: Gathered | None,
    meant: Meant | None,
    allowed: NDArray[np.bool_] | None,
) -> NDArray[np.int32]:
    added, pool = _added_up(index.postings, found, gathered, index.about.tools)
    if allowed is not None and int(allowed.sum()) <= weights.FEW:
        return np.flatnonzero(allowed).astype(np.int32)
    if index.vectors is None or meant is None or index.vectors.clustered:
        # Most tools have none of the words, and ties are slow to part.
        touched = np.flatnonzero(added).astype(np.int32) if pool is None else pool
        found_by_words = _best(added, touched, allowed, weights.CANDIDATES)
        if index.vectors is None or meant is None:
            return found_by_words
        return np.union1d(found_by_words, index.vectors.nearest(meant.vectors[0], weights.CANDIDATES, allowed))
    fused = meant.fused(added, index.vectors.likenesses(meant.vectors[0]))
    return np.sort(_best(fused, None, allowed, weights.CANDIDATES))


def _added_up(
    postings: Postings, found: Sought, gathered: Gathered | None, total: int
) -> tuple[Floats, NDArray[np.int32] | None]:
    """The lexical score of all tools; and, where not all words were added up, the tools that were touched."""
    if gathered is not None:
        worth = gathered.impact * (found.gain / FULL)[gathered.word]
        return np.bincount(gathered.tool, worth, minlength=total).astype(np.float32), None
    added = np.zeros(total, np.float32)
    touched: list[NDArray[np.int32]] = []
    spent, complete = 0, True
    for term, gain in zip(found.terms, found.gain, strict=True):
        part = postings.of(term)
        size = part.stop - part.start
        if spent and spent + size > ALL_WORDS_BELOW:
            complete = False
            continue
        tools = postings.tool[part]
        added[tools] += postings.impact[part] * np.float32(gain / FULL)
        touched.append(tools)
        spent += size
    if complete and spent <= total:
        return added, None
    return added, np.concatenate(touched) if touched else np.empty(0, np.int32)


def _best(
    scores: Floats, pool: NDArray[np.int32] | None, allowed: NDArray[np.bool_] | None, wanted: int
) -> NDArray[np.int32]:
    """The tools with the highest scores; of the pool only, where one is given."""
    if pool is None:
        values = scores if allowed is None else np.where(allowed, scores, -np.inf)
        if len(values) <= wanted:
            return np.flatnonzero(values > -np.inf).astype(np.int32)
        few = _promising(values, wanted)
        best = few[np.argpartition(values[few], -wanted)[-wanted:]]
        return best[values[best] > -np.inf].astype(np.int32)
    if allowed is not None:
        pool = pool[allowed[pool]]
    values = scores[pool]
    if len(pool) > 4 * wanted:
        # A tool stands in the pool once for each of its words: ask for more, then drop the repetitions.
        pool = pool[values >= np.partition(values, -4 * wanted)[-4 * wanted]]
    pool = np.unique(pool)
    return pool if len(pool) <= wanted else pool[np.argpartition(scores[pool], -wanted)[-wanted:]]


def _promising(values: Floats, wanted: int) -> NDArray[np.int64]:
    """The `wanted` highest and a few more.

    So many heaps reach up to some height at least, so none of the highest lies below it. To look at the tops of heaps
    and then at what is as high takes 20 µs at 10,000 tools; to part them all takes 95.
    """
    heaps = len(values) // _HEAP
    if heaps < wanted:
        return np.arange(len(values))
    heights = values[: heaps * _HEAP].reshape(_HEAP, heaps).max(axis=0)
    return np.flatnonzero(values >= np.partition(heights, -wanted)[-wanted])


# ── what they are worth ──────────────────────────────────────────────────────────────────────────────────────────────


def _scored(
    index: Parts,
    intent: Intent,
    found: Sought,
    meant: Meant | None,
    tools: NDArray[np.int32],
    matches: tuple[Floats, NDArray[np.uint16]],
) -> Candidates:
    impact, matched = matches
    worth = impact * found.gain[:, None]
    lexical = worth.sum(axis=0) if len(worth) else np.zeros(len(tools), np.float32)
    likenesses = None
    if meant is not None and index.vectors is not None:
        rows = index.vectors.of(tools)
        likenesses = np.stack([rows @ vector for vector in meant.vectors])
        fused = meant.fused(lexical, likenesses[0])
        clause = _best_clause(index, found, worth, likenesses, meant.vectors, fused)
    else:
        low, wide = found.spread(index)
        fused = clause = (lexical - np.float32(low)) / np.float32(wide)
    rarity = index.statistics.rarity[found.terms] if found.terms else np.empty(0, np.float32)
    name = _covered(matched, rarity, NAME_BIT, index.facts.name_mass[tools])
    server = _covered(matched, np.where(found.asked, rarity, 0), SERVER_BIT, index.facts.server_mass[tools])
    asked = np.where(found.asked, found.gain, 0)
    plain = (matched & WHOLE_BIT) == 0
    query = ((matched > 0) & plain).T.astype(np.float32) @ asked / np.float32(max(found.total, _TINY))
    verb = _agreement(index.facts.verb[tools], intent.verbs)
    score = (
        (1 - weights.CLAUSE) * fused
        + weights.CLAUSE * clause
        + weights.NAME_COVERED * name
        + weights.QUERY_COVERED * query
        + weights.SERVER_NAMED * server
        + weights.VERB_AGREES * verb
    )
    dense = likenesses[0] if likenesses is not None else np.zeros(len(tools), np.float32)
    nearest = likenesses.max(axis=0) if likenesses is not None else dense
    return Candidates(
        tools, lexical, dense, nearest, fused, clause, name, query, server, verb, score.astype(np.float32), matched
    )


def _matches(
    index: Parts, found: Sought, gathered: Gathered | None, tools: NDArray[np.int32]
) -> tuple[Floats, NDArray[np.uint16]]:
    """For each word and tool how strong the match is, and in which fields."""
    impact = np.zeros((len(found.terms), len(tools)), np.float32)
    matched = np.zeros((len(found.terms), len(tools)), np.uint16)
    if gathered is not None:
        column = np.full(index.about.tools, -1, np.int32)
        column[tools] = np.arange(len(tools), dtype=np.int32)
        columns = column[gathered.tool]
        hit = (columns >= 0).nonzero()[0]
        word, columns = gathered.word[hit], columns[hit]
        impact[word, columns] = gathered.impact[hit]
        matched[word, columns] = gathered.fields[hit]
    else:
        for row, term in enumerate(found.terms):
            _match(index.postings, term, tools, impact[row], matched[row])
    impact *= np.float32(1 / FULL)
    return impact, matched


def _match(
    postings: Postings, term: int, tools: NDArray[np.int32], impact: Floats, matched: NDArray[np.uint16]
) -> None:
    """One word's part of that."""
    part = postings.of(term)
    having = postings.tool[part]
    places = having.searchsorted(tools)
    places[places == len(having)] = 0
    hit = (having[places] == tools).nonzero()[0]
    places = places[hit] + part.start
    impact[hit] = postings.impact[places]
    matched[hit] = postings.fields[places]


def _covered(matched: NDArray[np.uint16], rarity: Floats, bit: int, mass: Floats) -> Floats:
    inside = (matched & (bit | WHOLE_BIT)) == bit
    covered: Floats = inside.T.astype(np.float32) @ rarity / np.maximum(mass, np.float32(_TINY))
    return np.minimum(covered, np.float32(1))


def _agreement(verbs: NDArray[np.uint8], asked: frozenset[int]) -> Floats:
    if not asked:
        return np.zeros(len(verbs), np.float32)
    says = np.full(NONE + 1, -1, np.float32)
    says[[*asked]] = 1
    says[NONE] = 0
    return says[verbs]


def _best_clause(
    index: Parts, found: Sought, worth: Floats, likenesses: Floats, vectors: Floats, fused: Floats
) -> Floats:
    """The score of the step of a task that each tool serves best, on the scale of the whole query's."""
    if len(likenesses) < 2 or not len(fused):
        return fused
    assert index.vectors is not None
    inside = ((found.clauses >> np.arange(len(likenesses) - 1)[:, None]) & 1).astype(np.float32)
    mass, square = index.statistics.mass[found.terms], index.statistics.square[found.terms]
    gain = inside * found.gain
    variance = gain**2 @ np.maximum(square - mass * mass, 0)
    lexical = (inside @ worth - (gain @ mass)[:, None]) / np.sqrt(np.maximum(variance, _TINY))[:, None]
    steps = vectors[1:]
    spread = np.sqrt(np.maximum(((steps @ index.vectors.covariance) * steps).sum(axis=1), _TINY))
    dense = (likenesses[1:] - (steps @ index.vectors.mean)[:, None]) / spread[:, None]
    scores = weights.LEXICAL * lexical + weights.DENSE * dense
    scores /= np.maximum(scores.max(axis=1), _TINY)[:, None]
    best: Floats = (scores.max(axis=0) * fused.max()).astype(np.float32)
    return best
