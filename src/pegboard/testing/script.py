"""A model that plays a script, the same for every framework and every wire.

Above: tests, and `FakeLLM`, which serves it over HTTP. Below: nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from pegboard.types import Json


class Search(msgspec.Struct, frozen=True):
    """A search that the API makes itself; plain text will do for one with nothing to add."""

    query: str
    """Words, or a pattern where the request has the search by patterns."""
    limit: int = 0
    """How many to find at most; the API's own number when 0."""
    error: str = ""
    """The code with which it fails, such as `unavailable`."""


class Fault(msgspec.Struct, frozen=True):
    """An HTTP error in place of a reply."""

    status: int
    body: Json | str = ""
    """What it says: an object is sent as JSON, text as it is; the API's own form of an error when there is neither."""
    headers: dict[str, str] = {}


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """What a model does in one turn: thinks, searches, says something, calls tools, in that order, or fails."""

    text: str = ""
    calls: tuple[tuple[str, Json], ...] = ()
    """Name and arguments of each."""
    stop: str = ""
    """Why it stopped, in the words of its API, where that is not because it was done or called something."""
    thinking: str = ""
    """What it thinks before all else. Messages only, as are the next four."""
    searches: tuple[Search | str, ...] = ()
    """What the API searches for it among the deferred tools, with results."""
    afterthought: str = ""
    """What it thinks once the searches are back."""
    unfinished_search: str = ""
    """A search beside calls, which is left without its result; the next reply begins with that."""
    pause: bool = False
    """Whether the turn pauses here, to be sent back as it is and gone on with."""
    fault: Fault | None = None
    """The error that comes instead, with nothing of the above."""
    cut_after: int | None = None
    """After how many events (all of a reply that is no stream is one) the connection ends in the middle."""

    @property
    def messages_only(self) -> tuple[str, ...]:
        """What it has that only the Messages API can say."""
        fields = ("thinking", "searches", "afterthought", "unfinished_search", "pause")
        return tuple(field for field in fields if getattr(self, field))


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What a model was sent in one request."""

    tools: tuple[Json, ...] = ()
    """The definitions, as they were sent."""
    messages: tuple[Any, ...] = ()
    system: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """What the tools are called, in the order they were sent."""
        return tuple(str(each.get("name") or each.get("function", {}).get("name", "")) for each in self.tools)


class ScriptedModel:
    """A model that plays the moves it was given, one a turn, and remembers all that it was shown.

    A move may be a function of what is shown. When all are played it says that it is done.
    """

    def __init__(self, moves: Iterable[Move | Callable[[Shown], Move]] = ()) -> None:
        self.moves = list(moves)
        self.shown: list[Shown] = []

    def answer(self, shown: Shown) -> Move:
        """The next move."""
        self.shown.append(shown)
        if not self.moves:
            return Move(text="done")
        move = self.moves.pop(0)
        return move if isinstance(move, Move) else move(shown)
