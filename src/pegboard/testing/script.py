"""A model that plays a script, the same for every framework and every wire.

Above: tests, and `FakeLLM`, which serves it over HTTP. Below: nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from pegboard.types import Json


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """What a model does in one turn: says something, calls tools, or both."""

    text: str = ""
    calls: tuple[tuple[str, Json], ...] = ()
    """Name and arguments of each."""
    stop: str = ""
    """Why it stopped, in the words of its API, where that is not because it was done or called something."""


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
