"""Puts back what the client was not shown, where it stood: the model's API must see the conversation as it was.

Above: the editors of requests. Below: `memory`. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pegboard.proxy.memory import Insert, is_sure, mark
from pegboard.types import Json


class Row(msgspec.Struct):
    """One message, taken apart: who says it, and its blocks."""

    blocks: list[Json]
    is_reply: bool
    """The model's; the rest is the client's."""


class Place(msgspec.Struct, frozen=True, order=True):
    """Before this block of this row."""

    row: int
    block: int


def places(rows: Sequence[Row], inserts: Sequence[Insert]) -> dict[Place, list[Insert]]:
    """Where each insert belongs; those whose surroundings are gone are left out."""
    marks = [[mark(block) for block in row.blocks] if row.is_reply else [] for row in rows]
    found: dict[str, list[Place]] = {}
    for number, row in enumerate(marks):
        for at, known in enumerate(row):
            found.setdefault(known, []).append(Place(number, at))
    taken: dict[Place, list[Insert]] = {}
    for insert in inserts:
        place = _place(insert, found, marks, rows, taken)
        if place is not None:
            taken.setdefault(place, []).append(insert)
    return taken


def _place(
    insert: Insert,
    found: dict[str, list[Place]],
    marks: list[list[str]],
    rows: Sequence[Row],
    taken: dict[Place, list[Insert]],
) -> Place | None:
    if is_sure(insert.after) and insert.after in found:
        place = found[insert.after][-1]
        return Place(place.row, place.block + 1)
    if is_sure(insert.before) and insert.before in found:
        return found[insert.before][-1]
    if is_sure(insert.after) or is_sure(insert.before):
        return None
    fits = [place for place in _between(insert, found, marks) if not _is_another(insert, taken.get(place))]
    if len(fits) > 1:
        fits = [place for place in fits if _prior(rows, place.row) == insert.prior] or fits
    return min(fits, key=lambda place: abs(place.block - insert.shown)) if fits else None


def _between(insert: Insert, found: dict[str, list[Place]], marks: list[list[str]]) -> list[Place]:
    """Everywhere that texts stand on both sides as they stood then."""
    if insert.after:
        after = [Place(place.row, place.block + 1) for place in found.get(insert.after, ())]
        return [place for place in after if _at(marks, place) in ("", insert.before) or not insert.before]
    starts = found.get(insert.before, ()) if insert.before else ()
    return [place for place in starts if place.block == 0 or insert.head]


def _at(marks: list[list[str]], place: Place) -> str:
    row = marks[place.row]
    return row[place.block] if place.block < len(row) else ""


def _is_another(insert: Insert, there: list[Insert] | None) -> bool:
    """Whether this place is taken by an insert of another reply."""
    return bool(there) and there is not None and there[-1].prior != insert.prior


def _prior(rows: Sequence[Row], row: int) -> str:
    return prior_mark(rows[row - 1].blocks) if row else ""


def prior_mark(blocks: Sequence[Json]) -> str:
    """The mark of what a reply answers."""
    return mark(blocks[-1]) if blocks else ""


class Woven(msgspec.Struct):
    """A message as the model's API is to see it: one or several, with answers in between."""

    parts: list[tuple[bool, list[Json]]]
    """Whether it is the model's, and its blocks."""
    later: list[Json]
    """Answers for the client's turn that follows."""


def woven(blocks: Sequence[Json], row: int, at: dict[Place, list[Insert]]) -> Woven:
    """One message of the model's with what belongs into it."""
    done = Woven([], [])
    current: list[Json] = []
    for number in range(len(blocks) + 1):
        for insert in at.get(Place(row, number), ()):
            current += insert.blocks
            done.later += insert.later
            if insert.results is not None:
                done.parts += [(True, current), (False, insert.results)]
                current = []
        if number < len(blocks):
            current.append(blocks[number])
    if current or not done.parts:
        done.parts.append((True, current))
    return done
