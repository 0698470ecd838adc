"""Puts back what the client was not shown, where it stood: the model's API must see the conversation as it was.

Above: the editors of requests. Below: `memory`. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from pegboard.proxy.memory import Insert, is_sure, is_thought, mark
from pegboard.types import Json

MOST_STRIPPED = 4
"""Blanks at the beginning of a text that a client may have stripped."""
_CALLS = ("tool_use", "call")
"""Kinds of blocks that the client has to answer."""


class NotUnderstood(Exception):
    """Something would have to be put into a message that is not what the wire says it is: nothing is changed then."""


class Row:
    """One message, taken apart: who says it, and its blocks."""

    def __init__(
        self, blocks: list[Json] | Callable[[], list[Json]], is_reply: bool, given: Sequence[str] = ()
    ) -> None:
        """`blocks` may be read when somebody looks at them; `given` is what they are known by, if that is known."""
        self.is_reply = is_reply
        """The model's; the rest is the client's."""
        self.given = list(given)
        self._blocks = blocks

    @property
    def blocks(self) -> list[Json]:
        """What it says. Most of a long history is never looked at."""
        if not isinstance(self._blocks, list):
            self._blocks = self._blocks()
        return self._blocks

    def marks(self) -> list[str]:
        """What its blocks are known by."""
        return self.given or [mark(block) for block in self.blocks]

    def last(self) -> str:
        """What the last of them is known by: it is what the next message answers."""
        if self.given:
            return self.given[-1]
        return mark(self.blocks[-1]) if self.blocks else ""


class _Said(msgspec.Struct):
    """Who says a message."""

    role: Any = None


_ROLE = msgspec.json.Decoder(_Said)


def rows_of(messages: Sequence[msgspec.Raw], blocks_of: Callable[[Json], list[Json]]) -> list[Row]:
    """Messages with roles, taken apart by `blocks_of` where somebody looks at them."""

    def read(raw: msgspec.Raw) -> list[Json]:
        return blocks_of(msgspec.json.decode(raw))

    return [Row(partial(read, each), _ROLE.decode(each).role == "assistant") for each in messages]


class Place(msgspec.Struct, frozen=True, order=True):
    """Before this block of this row."""

    row: int
    block: int


class _History(msgspec.Struct):
    """The client's history, and where what is in it."""

    rows: Sequence[Row]
    marks: list[list[str]]
    found: dict[str, list[Place]]


def places(rows: Sequence[Row], inserts: Sequence[Insert]) -> dict[Place, list[Insert]]:
    """Where each insert belongs; those whose surroundings are gone are left out."""
    history = _read(rows)
    taken: dict[Place, dict[int, Insert]] = {}
    unsure = []
    for number, insert in enumerate(inserts):
        place = _beside(insert, history)
        if place is None:
            unsure.append(number)
        elif _fits_in(insert, rows[place.row], place):
            taken.setdefault(place, {})[number] = insert
    for number in unsure:
        insert = inserts[number]
        place = _between(insert, history, taken)
        if place is None or not _fits_in(insert, rows[place.row], place):
            continue
        if _is_anothers(insert, taken.get(place)):
            taken[place] = {}
        taken.setdefault(place, {})[number] = insert
    return {place: [there[number] for number in sorted(there)] for place, there in taken.items()}


def placed(at: Mapping[Place, list[Insert]]) -> list[Insert]:
    """All that has a place."""
    return [insert for there in at.values() for insert in there]


def _read(rows: Sequence[Row]) -> _History:
    marks = [row.marks() if row.is_reply else [] for row in rows]
    found: dict[str, list[Place]] = {}
    for number, row in enumerate(marks):
        for at, known in enumerate(row):
            if known:
                found.setdefault(known, []).append(Place(number, at))
    return _History(rows, marks, found)


def _beside(insert: Insert, history: _History) -> Place | None:
    """Its place by what should be in one place only."""
    for after, before in ((insert.after, insert.before), insert.spoken):
        if is_sure(after) and (there := history.found.get(after)):
            place = _likeliest(insert, history, there)
            return Place(place.row, place.block + 1)
        if is_sure(before) and (there := history.found.get(before)):
            return _likeliest(insert, history, there)
    return None


def _likeliest(insert: Insert, history: _History, there: list[Place]) -> Place:
    """Of several places with one mark, as some servers begin to count their calls anew with every reply."""
    if len(there) == 1:
        return there[0]
    return min(reversed(there), key=lambda place: _rank(insert, history, place))


def _between(insert: Insert, history: _History, taken: dict[Place, dict[int, Insert]]) -> Place | None:
    """Its place by the texts around it, and by what the reply answered or where it stood: texts alone say little."""
    thought = is_thought(insert.after) or is_thought(insert.before)
    after, before = insert.spoken if thought else (insert.after, insert.before)
    if is_sure(after) or is_sure(before):
        return None
    fits = [
        (_rank(insert, history, place), _is_anothers(insert, taken.get(place)), abs(place.block - insert.shown), place)
        for place in _where(after, before, history, inside=bool(insert.head))
        if not (thought and any(map(is_thought, history.marks[place.row])))
    ]
    fits = [each for each in fits if min(each[0]) == 0]
    if not fits:
        return None
    rank, is_anothers, _, place = min(fits)
    if not is_anothers:
        return place
    theirs = [_rank(each, history, place) for each in taken[place].values() if not _is_surely_there(each, history)]
    return place if theirs and len(theirs) == len(taken[place]) and rank <= min(theirs) else None


def _where(after: str, before: str, history: _History, *, inside: bool) -> Iterator[Place]:
    """Everywhere that texts stand on both sides as they stood then."""
    if after:
        for place in history.found.get(after, ()):
            following = _next(history.marks[place.row], place.block + 1)
            if not before or following in ("", before):
                yield Place(place.row, place.block + 1)
        return
    for place in history.found.get(before, ()) if before else ():
        if inside or not any(history.marks[place.row][: place.block]):
            yield place


def _next(marks: list[str], at: int) -> str:
    """The next block that has a mark; empty at the end."""
    return next((known for known in marks[at:] if known), "")


def _rank(insert: Insert, history: _History, place: Place) -> tuple[int, int]:
    """How far a place is from what is known of the insert's: by what was answered, and by where the reply stood."""
    prior = _prior(history.rows, place.row)
    answers = insert.prior == prior and bool(prior or not insert.row)
    return (0 if answers else 1, abs(place.row - insert.row) if insert.row else 0)


def _is_anothers(insert: Insert, there: dict[int, Insert] | None) -> bool:
    """Whether this place is taken by inserts of another reply."""
    return any((each.turn, each.prior) != (insert.turn, insert.prior) for each in (there or {}).values())


def _is_surely_there(insert: Insert, history: _History) -> bool:
    return _beside(insert, history) is not None


def _fits_in(insert: Insert, row: Row, place: Place) -> bool:
    """Whether answers can stand here: not where calls before them would be left without theirs."""
    return insert.results is None or not any(block.get("type") in _CALLS for block in row.blocks[: place.block])


def _prior(rows: Sequence[Row], row: int) -> str:
    return rows[row - 1].last() if row else ""


def parted(rows: Sequence[Row], inserts: Sequence[Insert]) -> None:
    """Takes texts apart that a client has put together, where something stood between them."""
    wanted = [each for each in inserts if each.length and each.row < len(rows) and rows[each.row].is_reply]
    whole = {each.row: rows[each.row].marks() for each in wanted}
    for insert in wanted:
        if insert.spoken[0] not in whole[insert.row]:
            _part(rows[insert.row].blocks, insert)


def _part(blocks: list[Json], insert: Insert) -> None:
    for at, block in enumerate(blocks):
        text: Any = block.get("text") if block.get("type") == "text" else None
        if not isinstance(text, str):
            continue
        if length := cut(text, insert):
            kept = {key: value for key, value in block.items() if key != "cache_control"}
            blocks[at : at + 1] = [{**kept, "text": text[:length]}, {**block, "text": text[length:]}]
            return


def cut(text: str, insert: Insert) -> int:
    """How much of a text stood before this; 0 when it is another text, or all of it did."""
    # A client that puts texts together may strip them, too: then the first is a little shorter than it was.
    for length in range(min(insert.length, len(text) - 1), max(insert.length - MOST_STRIPPED, 1) - 1, -1):
        if mark({"text": text[:length]}) == insert.spoken[0]:
            return length
    return 0


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
