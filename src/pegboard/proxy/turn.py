"""One reply as the client sees it, over all its rounds: what was shown, what was hidden, and where that stood.

Above: the editors of replies, `exchange`. Below: `memory`. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import Protocol

import msgspec

from pegboard.proxy.declared import Declared
from pegboard.proxy.events import Event
from pegboard.proxy.memory import Insert, Remembered, is_thought, mark, text_of
from pegboard.types import Json

MOST_KEPT = 1024 * 1024
"""Characters of a streamed reply that are kept, should another round have to begin with it. No model says as much."""


class Room(msgspec.Struct):
    """How much more of one reply is kept."""

    left: int = MOST_KEPT
    is_full: bool = False
    """Whether something was not kept: then the reply cannot be sent back."""


class Pieces:
    """A text that comes in pieces, put together once: to add to a string is to copy it each time."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._text = StringIO()

    def add(self, piece: str) -> None:
        """One more piece, if there is room."""
        if len(piece) > self._room.left:
            self._room.is_full = True
            return
        self._room.left -= len(piece)
        self._text.write(piece)

    def whole(self) -> str:
        """All of it."""
        return self._text.getvalue()


class Ask(msgspec.Struct, frozen=True):
    """A call that the proxy answers itself."""

    id: str
    input: Json
    block: Json
    """The call as the model made it."""
    problem: str = ""
    """Why it cannot be passed on, for a call that is no search."""


class Turn:
    """Keeps account of one reply."""

    def __init__(self, memory: Remembered, prior: str, known: Mapping[str, Declared], row: int = 0) -> None:
        """`row` is which message of the client's history the reply will be, where that is known."""
        self.memory = memory
        self.known = known
        """All tools of the request, by name."""
        self.shows_calls = False
        """Whether the client was shown a call that it has to run."""
        self.produced: list[Json] = []
        """The visible blocks of this round, as the model produced them."""
        self.asks: list[Ask] = []
        """What this round asks of the proxy."""
        self.text_length = 0
        """Of all visible text so far."""
        self.is_kept = False
        """Whether what was hidden is remembered already."""
        self.room = Room()
        """For what its rounds say."""
        self.found: list[int] = []
        """How many tools each search of the API's own found."""
        self._prior = prior
        self._row = row
        self._last = ""
        self._spoken = ""
        self._length = 0
        self._shown = 0
        self._seen: list[str] = []
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._waiting: list[Insert] = []
        self._unspoken: list[Insert] = []
        self._inserts: list[Insert] = []
        self._of_round: list[Insert] = []
        self._everything: list[Json] = []

    @property
    def is_for_us(self) -> bool:
        """Whether the model waits for nobody but the proxy."""
        return bool(self.asks) and not self.shows_calls

    def show(self, block: Json, *, shown: Json | None = None, calls: bool = False) -> None:
        """A block that the client has been shown, as the model produced it."""
        known = mark(shown or block)
        self._shown += 1
        self.shows_calls = self.shows_calls or calls
        if not known and block.get("type") == "text":  # the API does not take it back, nor do clients send it
            return
        self.produced.append(block)
        self._everything.append(block)
        if known:
            self._passed_by(known, text_of(shown or block) if known.startswith("text:") else "")

    def _passed_by(self, known: str, text: str) -> None:
        """A block that clients send back: what was hidden stands before and after it."""
        for insert in self._waiting:
            insert.before = known
        self._waiting = []
        self._last = known
        if is_thought(known):
            self._thoughts.append(known)
            return
        for insert in self._unspoken:
            insert.spoken = (insert.spoken[0], known)
        self._unspoken = []
        self._spoken, self._length = known, len(text)
        self._seen.append(known)
        self._texts += [text] if text else []

    def hide(self, block: Json, ask: Ask | None = None) -> None:
        """A block that the client has not been shown."""
        self._everything.append(block)
        if ask is not None:
            self.asks.append(ask)
        if self._waiting and ask is None and not self._waiting[-1].asked:
            self._waiting[-1].blocks.append(block)
            return
        insert = self._insert([block])
        if ask is not None:
            insert.asked = [{"id": ask.id, "input": ask.input, "problem": ask.problem}]
        self._wait(insert)
        self._of_round.append(insert)

    def answered(self, results: list[Json]) -> tuple[list[Json], list[Json]]:
        """The round was for us: its calls are put together at its end. Gives what the model said, and what it got."""
        calls = [ask.block for ask in self.asks]
        gone = [each for each in self._of_round if each.asked]
        for kept in (self._inserts, self._waiting, self._unspoken):
            kept[:] = [each for each in kept if not any(each is one for one in gone)]
        self._wait(self._insert(calls, results))
        said = [*self.produced, *calls]
        self.begin_round()
        return said, results

    def _insert(self, blocks: list[Json], results: list[Json] | None = None) -> Insert:
        return Insert(
            after=self._last,
            spoken=(self._spoken, ""),
            length=self._length,
            prior=self._prior,
            row=self._row,
            shown=self._shown,
            blocks=blocks,
            results=results,
            head=self.text_length,
        )

    def _wait(self, insert: Insert) -> None:
        """What comes next is what it stands before."""
        for kept in (self._inserts, self._waiting, self._unspoken):
            kept.append(insert)

    def all_produced(self) -> list[Json]:
        """Every block of the reply so far, shown or not, in order."""
        return list(self._everything)

    def begin_round(self) -> None:
        """Another round of the same reply begins."""
        self.produced, self.asks, self._of_round = [], [], []

    def commit(self) -> None:
        """The reply is over: what was hidden is remembered, before the client can say anything more."""
        self.is_kept = True
        inserts, self._inserts = self._inserts, []
        if inserts:
            self.memory.add(inserts)
        # Some clients put all texts of a reply together.
        joined = [mark({"type": "text", "text": "".join(self._texts)})] if len(self._texts) > 1 else []
        calls = [each for each in self._seen if not each.startswith("text:")]
        self.memory.see([*self._seen[:1], *calls[:1], *self._seen[-1:], *joined])
        self.memory.is_torn = not self._seen

    def tear(self) -> None:
        """The reply broke off: a client may keep what it got of it."""
        self.commit()
        self.memory.see(self._thoughts[:1])
        self.memory.is_torn = True


class ReplyEditor(Protocol):
    """Edits the replies of one wire, for one turn."""

    turn: Turn
    is_over: bool
    """Whether the round has come to its end."""

    @property
    def goes_on(self) -> bool:
        """Whether the API itself wants the turn to be sent again."""
        ...

    @property
    def waits(self) -> bool:
        """Whether the model waits for answers of the proxy's, and for nothing else."""
        ...

    def event(self, event: Event) -> bytes:
        """What the client gets for this event of a stream."""
        ...

    def whole(self, reply: Json) -> Json:
        """A reply that is not a stream: what the client gets, if this was the last round."""
        ...

    def begin_round(self) -> None:
        """Another round begins."""
        ...

    def error(self, status: int, body: bytes) -> bytes:
        """The end of a stream after a later round was refused."""
        ...


class RequestEditor(Protocol):
    """Edits the requests of one wire."""

    put_back: list[Insert]
    """What the client was not shown and this request has again."""

    def body(self, rounds: list[tuple[list[Json], list[Json]]]) -> bytes:
        """The request as it is sent, after these inner rounds: what the model said in each, and what it got."""
        ...

    @staticmethod
    def result(ask: Ask, text: str) -> Json:
        """The answer to a call."""
        ...


def summed(totals: Json, more: Json) -> Json:
    """Usage of rounds, added up: numbers add, tables are gone into, and of the rest the latest counts."""
    out = dict(totals)
    for key, value in more.items():
        before = out.get(key)
        if isinstance(value, dict):
            out[key] = summed(before if isinstance(before, dict) else {}, value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            out[key] = value + (before if isinstance(before, int | float) else 0)
        elif value is not None or key not in out:
            out[key] = value
    return out
