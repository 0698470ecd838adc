"""Which tools have which terms, how strongly and in which fields: an inverted file of plain arrays.

What a posting holds is a function of its tool alone, so that tools which did not change are copied over when others
do. Above: `build`, `rank`. Below: `vocabulary`, `text`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegboard.index import weights
from pegboard.index.documents import FIELDS, NAME, SERVER, Document
from pegboard.index.text import WHOLE, brand_parts, terms

NAME_BIT, SERVER_BIT = 1 << NAME, 1 << SERVER
WHOLE_BIT = 1 << len(FIELDS)
"""Set when the term is a whole identifier: it counts for the match, not for how much of a name is covered."""
FULL = 255
"""The impact of a term that a tool could not have more of."""

_KEEPS_STOP_WORDS = frozenset((NAME, FIELDS.index("title"), FIELDS.index("aliases")))


class Postings(msgspec.Struct, frozen=True):
    """For each term the tools that have it, in their order."""

    start: NDArray[np.int64]
    """Where each term's postings begin; one more at the end."""
    tool: NDArray[np.int32]
    impact: NDArray[np.uint8]
    """How much the tool is about the term, saturated, in parts of FULL."""
    fields: NDArray[np.uint16]
    """Bits of documents.FIELDS, and WHOLE_BIT."""

    def of(self, term: int) -> slice:
        """Where the postings of a term lie."""
        return slice(int(self.start[term]), int(self.start[term + 1]))

    def each(self, terms: list[int]) -> list[slice]:
        """Where the postings of each of these terms lie."""
        numbers = np.array(terms)
        return list(map(slice, self.start[numbers].tolist(), self.start[numbers + 1].tolist()))


class Rows(msgspec.Struct, frozen=True):
    """Postings before they are inverted: one row for each term of each tool."""

    tool: NDArray[np.int32]
    term: NDArray[np.int32]
    impact: NDArray[np.uint8]
    fields: NDArray[np.uint16]


def rows_of(documents: Iterable[tuple[int, Document]]) -> tuple[Rows, list[str]]:
    """The rows of these tools, with terms numbered in the order they were met, and those terms."""
    numbers: dict[str, int] = {}
    tool, term, impact, fields = array("i"), array("i"), array("B"), array("H")
    for place, document in documents:
        for each, (strength, where) in _strengths(document).items():
            tool.append(place)
            term.append(numbers.setdefault(each, len(numbers)))
            impact.append(max(1, round(FULL * strength / (weights.SATURATION + strength))))
            fields.append(where | WHOLE_BIT if each.startswith(WHOLE) else where)
    return Rows(
        np.frombuffer(tool, np.int32) if tool else np.empty(0, np.int32),
        np.frombuffer(term, np.int32) if term else np.empty(0, np.int32),
        np.frombuffer(impact, np.uint8) if impact else np.empty(0, np.uint8),
        np.frombuffer(fields, np.uint16) if fields else np.empty(0, np.uint16),
    ), list(numbers)


def _strengths(document: Document) -> dict[str, tuple[float, int]]:
    """How strongly the tool has each of its terms, and in which fields."""
    found: dict[str, tuple[float, int]] = {}
    for field, text in enumerate(document.texts):
        if not text:
            continue
        every = _terms_in(field, text)
        length = 1 - weights.LENGTH_PULL + weights.LENGTH_PULL * len(every) / weights.FIELD_LENGTH[field]
        unit = weights.FIELD_WEIGHT[field] / length
        counts: dict[str, int] = {}
        for each in every:
            counts[each] = counts.get(each, 0) + 1
        for each, count in counts.items():
            strength, where = found.get(each, (0.0, 0))
            found[each] = (strength + unit * min(count, weights.MOST_REPEATS), where | 1 << field)
    return found


def _terms_in(field: int, text: str) -> list[str]:
    every = terms(text, keep_stop_words=field in _KEEPS_STOP_WORDS, brands=field != NAME)
    if field != SERVER:
        return every
    # Who says `GitHub` names the server `GitHub`, `git` does not name a part of it.
    parts = brand_parts(text)
    return [term for term in every if term not in parts] if parts else every


def invert(parts: Sequence[Rows], terms_total: int, tools_total: int) -> Postings:
    """One inverted file out of all rows."""
    term = np.concatenate([part.term for part in parts])
    tool = np.concatenate([part.tool for part in parts])
    order = np.argsort(term.astype(np.int64) * max(tools_total, 1) + tool, kind="stable")
    start = np.zeros(terms_total + 1, np.int64)
    np.cumsum(np.bincount(term, minlength=terms_total), out=start[1:])
    return Postings(
        start,
        tool[order],
        np.concatenate([part.impact for part in parts])[order],
        np.concatenate([part.fields for part in parts])[order],
    )


def rows_kept(old: Postings, moved_tools: NDArray[np.int32], moved_terms: NDArray[np.int32]) -> Rows:
    """The rows of tools that stay, under their new numbers; -1 in a map means gone."""
    term = np.repeat(np.arange(len(old.start) - 1, dtype=np.int32), np.diff(old.start))
    stays = moved_tools[old.tool] >= 0
    return Rows(
        moved_tools[old.tool[stays]],
        moved_terms[term[stays]],
        np.ascontiguousarray(old.impact[stays]),
        np.ascontiguousarray(old.fields[stays]),
    )


def in_use(old: Postings, moved_tools: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which terms some tool that stays has."""
    term = np.repeat(np.arange(len(old.start) - 1), np.diff(old.start))
    return np.bincount(term[moved_tools[old.tool] >= 0], minlength=len(old.start) - 1) > 0


def rarity(tools_with: NDArray[np.int64], tools_total: int) -> NDArray[np.float32]:
    """How much a term tells, by how many tools have it."""
    return np.log1p((tools_total - tools_with + 0.5) / (tools_with + 0.5)).astype(np.float32)
