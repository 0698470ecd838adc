"""One conversation of an agent: what it is shown this turn, its calls, its sub-agents.

Above: agents' code and the plug-ins. Below: the desk, where every edge lists and calls.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pegboard.board.result import Result
from pegboard.board.state import activation_of
from pegboard.catalog.permit import permit_of
from pegboard.errors import RemoteError
from pegboard.invoke.words import ending_of, failure, told
from pegboard.platform_tools.definitions import ALL
from pegboard.surface.compose import Surface
from pegboard.types import CallContext, Caller, Json, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pegboard.board.board import Pegboard
    from pegboard.surface.activation import Activation

_Seen = TypeVar("_Seen")


class Chat:
    """A conversation with a board. Cheap: make one whenever you need it, under the same key."""

    def __init__(self, board: Pegboard, caller: Caller, state: bytes | None = None) -> None:
        """`board.conversation` makes it. With a `state` it goes on from exactly that, else from what the store has."""
        self._board, self._caller = board, caller
        if state is not None:
            self._adopt(activation_of(state, board.config.surface.max_active))

    @property
    def key(self) -> str:
        """The conversation's key."""
        return self._caller.conversation

    @property
    def caller(self) -> Caller:
        """Who calls, as the call path and the record know it."""
        return self._caller

    def surface(self) -> Surface:
        """What to send to the model this turn, and why. Counts as sent; nothing is started, nothing is waited for."""
        desk = self._board.desk

        def shown() -> Surface:
            desk.tools(self._caller)
            return desk.surface(self._caller)

        return self._looked(shown)

    def guidance(self) -> str:
        """A paragraph for the prompt while something is deferred, else nothing; the same while nothing changes."""
        return self._looked(lambda: self._board.desk.instructions(self._caller))

    async def call(self, name: str, arguments: Any = None, context: CallContext | None = None) -> Result:
        """Calls any tool by its name, shown or not, Pegboard's own among them. What fails is a result that says so."""
        given = {} if arguments is None else arguments
        desk = self._board.desk
        try:
            result = await self._board.home.run(
                lambda: desk.call_tool(name, given, self._caller, context or CallContext(), via="framework")
            )
        except RemoteError as error:  # where nothing is deferred, what a server refuses is passed on as it is
            result = failure(told(error), ending_of(error))
        return Result(result)

    async def search(self, query: str, **filters: Any) -> Result:
        """Finds tools and loads them; `filters` are those of the search tool: limit, server, tags, detail, …"""
        return await self.call("search_tools", {"query": query, **filters})

    def state(self) -> bytes:
        """What it has loaded, as a few bytes: `board.conversation(key, state=…)` goes on from exactly there."""
        return self._known().activation.to_bytes()

    def load(self, names: Sequence[str]) -> tuple[str, ...]:
        """Makes these what it has loaded, the last one used last; says what is loaded then, that one first."""
        surface = self._known()
        empty = msgspec.structs.replace(surface.activation, uses=())
        wanted = [name for name in reversed(names) if name in surface.permitted]
        change = empty.activated(wanted, time.time(), surface.pinned)
        self._adopt(change.activation)
        return change.activation.names

    def fork(self, name: str, *, inherit: bool = True, allow: Sequence[str] | None = None) -> Chat:
        """The conversation of a sub-agent: a snapshot of this one or empty, and from here on independent of it.

        `allow` names what it may use at all, of what this one may; it cannot be widened, by searching or by forking.
        The name is part of its key: give sub-agents that work at the same time different ones.
        """
        parent = self._known()
        caller = msgspec.structs.replace(
            self._caller,
            conversation=f"{self.key}/{name}",
            within=self._caller.lists,
            allow=None if allow is None else tuple(allow),
        )
        child = Chat(self._board, caller)
        child._adopt(parent.fork(inherit=inherit, allow=allow).activation)
        return child

    def knows(self, name: str) -> Tool | None:
        """The tool of this public or unambiguous bare name, if this conversation may use it."""
        tool = self._board.catalog.get(name)
        return tool if tool and permit_of(self._caller.lists, self._caller.scopes).admits(tool) else None

    def is_own(self, name: str) -> bool:
        """Whether it is one of Pegboard's own tools."""
        return name in ALL

    def definition(self, name: str) -> Json | None:
        """The definition of a tool that this conversation may use, listed or not, under its public name."""
        tool = self.knows(name)
        return {**tool.parsed(), "name": tool.public_name} if tool is not None else None

    def _known(self) -> Surface:
        """The surface with all that is loaded, also where that is on no list; it does not count as sent."""
        return self._looked(lambda: self._board.desk.surface(self._caller), unlisted=True)

    def _looked(self, look: Callable[[], _Seen], *, unlisted: bool = False) -> _Seen:
        """What there is to see once it is known what the store has of the conversation."""
        desk = self._board.desk
        if not self._board.home.look(lambda: desk.remembers(self._caller, unlisted=unlisted)):
            self._board.remember(self._caller)
        return self._board.home.look(look)

    def _adopt(self, activation: Activation) -> None:
        self._board.home.look(lambda: self._board.desk.adopt(self._caller, activation))
