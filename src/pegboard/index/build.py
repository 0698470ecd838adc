"""Tools into an index. What did not change is copied from the one before; only the rest is read and embedded.

Pure: vectors come from whoever calls the embedder. Above: `keeper`. Below: `documents`, `postings`, `vectors`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegboard.index import postings as inverted
from pegboard.index.documents import content_of, document_of
from pegboard.index.parts import FORMAT, About, Facts, Parts, Statistics
from pegboard.index.postings import FULL, NAME_BIT, SERVER_BIT, WHOLE_BIT, Postings
from pegboard.index.text import spoken, words
from pegboard.index.vectors import vectors_of
from pegboard.index.verbs import kind_of
from pegboard.index.vocabulary import EMPTY, Vocabulary, merged, term_hash
from pegboard.types import Tool

_MIXERS = np.arange(1, 9, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
_LONGEST_GIST = 600
_NO_POSTINGS = Postings(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.uint16))


class Plan(msgspec.Struct, frozen=True):
    """What there is to do: which tools are known from before, and which must be read and embedded."""

    tools: tuple[Tool, ...]
    contents: NDArray[np.uint64]
    previous: Parts | None
    known: NDArray[np.int32]
    """For each tool its place in the previous index; -1 for those that are new."""
    unembedded: tuple[int, ...]
    """Tools whose vectors are not known."""

    @property
    def unread(self) -> list[int]:
        """Tools whose texts must be read."""
        return [int(place) for place in np.flatnonzero(self.known < 0)]


def plan(tools: Iterable[Tool], embedder: str, previous: Parts | None = None) -> Plan:
    """Compares the tools with the index before, by content."""
    every = tuple(tools)
    contents = np.array([content_of(tool) for tool in every], np.uint64)
    if previous is not None and previous.about.format != FORMAT:
        previous = None
    known = np.full(len(every), -1, np.int32)
    if previous is not None:
        places = {int(content): place for place, content in enumerate(previous.facts.content)}
        known = np.array([places.get(int(content), -1) for content in contents], np.int32)
    embedded = previous is not None and previous.vectors is not None and previous.about.embedder == embedder
    missing = (place for place in range(len(every)) if not embedded or known[place] < 0)
    return Plan(every, contents, previous, known, tuple(missing) if embedder else ())


def texts_to_embed(work: Plan) -> list[str]:
    """The texts of `work.unembedded`."""
    return [document_of(work.tools[place]).embedded for place in work.unembedded]


def assemble(work: Plan, *, catalog: str, embedder: str = "", vectors: NDArray[np.float32] | None = None) -> Parts:
    """The new index. `vectors` are those of `work.unembedded`; without them it goes by words alone."""
    vocabulary, postings = _lexical(work)
    servers = tuple(dict.fromkeys(tool.server for tool in work.tools))
    statistics = _statistics(postings, len(work.tools))
    about = About(
        catalog=catalog,
        embedder=embedder if vectors is not None else "",
        tools=len(work.tools),
        servers=servers,
        built_at=time.time(),
    )
    dense = vectors_of(_all_vectors(work, vectors)) if vectors is not None else None
    return Parts(about, _facts(work, servers, postings, statistics), vocabulary, postings, statistics, dense)


def _lexical(work: Plan) -> tuple[Vocabulary, Postings]:
    rows, new_terms = inverted.rows_of((place, document_of(work.tools[place])) for place in work.unread)
    old_words = work.previous.vocabulary if work.previous else EMPTY
    old = work.previous.postings if work.previous else _NO_POSTINGS
    copies = _copies(work)
    used = np.zeros(len(old_words.hashes), np.bool_)
    for moved in copies:
        used |= inverted.in_use(old, moved)
    vocabulary, moved_terms, numbers = merged(old_words, used, new_terms)
    fresh = msgspec.structs.replace(rows, term=numbers[rows.term] if len(rows.term) else rows.term)
    kept = [inverted.rows_kept(old, moved, moved_terms) for moved in copies]
    return vocabulary, inverted.invert([fresh, *kept], len(vocabulary.hashes), len(work.tools))


def _copies(work: Plan) -> list[NDArray[np.int32]]:
    """Maps from old to new places. Several, where equal documents share one old place."""
    if work.previous is None:
        return []
    maps: list[NDArray[np.int32]] = []
    places = [(int(old), new) for new, old in enumerate(work.known) if old >= 0]
    while places:
        moved = np.full(work.previous.about.tools, -1, np.int32)
        rest = []
        for old, new in places:
            if moved[old] < 0:
                moved[old] = new
            else:
                rest.append((old, new))
        maps.append(moved)
        places = rest
    return maps


def _statistics(postings: Postings, total: int) -> Statistics:
    counts = np.diff(postings.start)
    term = np.repeat(np.arange(len(counts)), counts)
    share = postings.impact.astype(np.float32) / FULL
    tools = max(total, 1)
    return Statistics(
        inverted.rarity(counts, total),
        (np.bincount(term, share, minlength=len(counts)) / tools).astype(np.float32),
        (np.bincount(term, share * share, minlength=len(counts)) / tools).astype(np.float32),
    )


def _facts(work: Plan, servers: Sequence[str], postings: Postings, statistics: Statistics) -> Facts:
    names = [tool.public_name.encode("utf-8", "surrogatepass") for tool in work.tools]
    start = np.zeros(len(names) + 1, np.int64)
    np.cumsum([len(name) for name in names], out=start[1:])
    number = {server: place for place, server in enumerate(servers)}
    own = [words(tool.name, keep_stop_words=True) or [tool.name] for tool in work.tools]
    return Facts(
        names=np.frombuffer(b"".join(names), np.uint8),
        name_start=start,
        server=np.array([number[tool.server] for tool in work.tools], np.int32),
        content=work.contents,
        namesake=np.array([term_hash(" ".join(sorted(set(each)))) for each in own], np.uint64),
        spelling=np.array([term_hash(spoken(tool.name).lower() or tool.name) for tool in work.tools], np.uint64),
        gist=_gists(work),
        verb=np.array([kind_of(each) for each in own], np.uint8),
        name_mass=_mass(postings, statistics, NAME_BIT, len(work.tools)),
        server_mass=_mass(postings, statistics, SERVER_BIT, len(work.tools)),
    )


def _gists(work: Plan) -> NDArray[np.uint8]:
    """The sketches of all descriptions; those known from before are taken over."""
    gists = np.zeros((len(work.tools), len(_MIXERS)), np.uint8)
    if work.previous is not None and len(work.previous.facts.gist):
        gists[:] = work.previous.facts.gist[work.known]
    for place in work.unread:
        gists[place] = gist(work.tools[place].description)
    return gists


def gist(text: str) -> NDArray[np.uint8]:
    """Of the words' hashes, mixed in several ways, each time the smallest: alike texts have most of them in common."""
    hashes = [term_hash(term) for term in words(text[:_LONGEST_GIST])]
    if not hashes:
        return np.zeros(len(_MIXERS), np.uint8)
    mixed = np.array(hashes, np.uint64)[:, None] * _MIXERS
    least: NDArray[np.uint8] = (mixed.min(axis=0) >> np.uint64(40)).astype(np.uint8)
    return least


def _mass(postings: Postings, statistics: Statistics, bit: int, total: int) -> NDArray[np.float32]:
    term = np.repeat(np.arange(len(postings.start) - 1), np.diff(postings.start))
    inside = (postings.fields & (bit | WHOLE_BIT)) == bit
    return np.bincount(postings.tool[inside], statistics.rarity[term[inside]], minlength=total).astype(np.float32)


def _all_vectors(work: Plan, fresh: NDArray[np.float32]) -> NDArray[np.float32]:
    rows = np.zeros((len(work.tools), fresh.shape[1]), np.float32)
    missing = np.array(work.unembedded, np.int64)
    rows[missing] = fresh
    kept = np.setdiff1d(np.arange(len(rows)), missing)
    if work.previous is not None and work.previous.vectors is not None and len(kept):
        rows[kept] = work.previous.vectors.of(work.known[kept])
    return rows
