"""Which conversation a run of an agent belongs to: one of its own, or the one that its user named.

The framework gives `call_tool` no run, so every tool that is listed carries the token of its run in `_meta`, which
comes back with the call. Above: `server`. Below: the board's chats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple
from uuid import uuid4
from weakref import WeakValueDictionary

import msgspec
from agents import AgentBase, RunContextWrapper
from agents.mcp import MCPServer
from agents.tool_context import ToolContext

from pegboard.board import Chat, Pegboard
from pegboard.board.state import names_of
from pegboard.catalog.naming import split
from pegboard.errors import ToolNotFound
from pegboard.invoke.policy import may_know
from pegboard.invoke.resolve import resolve
from pegboard.types import Reveal, Tool

Context = RunContextWrapper[Any]
Named = str | Callable[[Context], Any] | Any
"""A conversation: its key, a session (what has a `session_id`), or a function of the run that gives one of these."""
Allow = Sequence[str] | Callable[[Context], Sequence[str] | None] | None

TOKEN = "pegboard/run"  # noqa: S105
UNKNOWN = "pegboard/unknown"
"""Set: nobody knew the tool when the framework was told whether to ask about it."""
_KEPT = "_pegboard_runs"

_turns: ContextVar[tuple[Run, ...]] = ContextVar("pegboard_turns", default=())
"""What was listed last in this task, for code that the framework calls without the run: a model, a nested run."""
_bound: ContextVar[tuple[tuple[Runs, str], ...]] = ContextVar("pegboard_bound", default=())


class Run:
    """One server's part in one run."""

    def __init__(self, runs: Runs, chat: Chat, usage: object) -> None:
        self.runs, self.chat, self.usage = runs, chat, usage
        self.token = uuid4().hex
        self.turn: Turn | None = None

    @property
    def mark(self) -> dict[str, str]:
        """What its tools carry, so that their calls come back to it."""
        return {TOKEN: self.token}

    async def meant(self, name: str) -> Tool:
        """The tool that a call takes this name for, spelt as models spell; raises ToolNotFound with what is near."""
        try:
            tool = await resolve(name, self._find)
        except ToolNotFound as error:
            raise ToolNotFound(name, may_know(self.chat.caller, error.nearest)) from None
        if self.chat.knows(tool.public_name) is None:
            raise ToolNotFound(name)
        return tool

    async def _find(self, name: str) -> Tool:
        board = self.runs.board
        prefix, _ = split(name)
        for entry in board.catalog.servers.values():
            if entry.listed is None and entry.usable and prefix in (entry.prefix, entry.name):
                await board.refresh(entry.name)  # as the call itself would: nobody knows its tools yet
        return board.catalog.find(name)

    async def known(self, name: str) -> Tool | None:
        """The same, or nothing."""
        try:
            return await self.meant(name)
        except ToolNotFound:
            return None


class Turn(NamedTuple):
    """For whom tools were listed last."""

    server: MCPServer
    context: Context
    agent: AgentBase[Any]


class Runs:
    """The runs that one server has a part in. A run's conversation lives as long as the run's own context."""

    def __init__(
        self,
        board: Pegboard,
        conversation: Named = None,
        *,
        allow: Allow = None,
        reveal: Reveal | None = None,
        search: bool = True,
    ) -> None:
        self.board, self._conversation, self._allow = board, conversation, allow
        self._reveal, self._search = reveal, search
        self._by_token: WeakValueDictionary[str, Run] = WeakValueDictionary()
        self._alone: Run | None = None

    def of(self, context: Context | None) -> Run:
        """This run's part, begun now if this is the first that is asked for it."""
        if context is None:
            self._alone = self._alone or self._noted(Run(self, self._begun(None), None))
            return self._alone
        if (run := self.begun(context)) is None:
            run = self._noted(Run(self, self._begun(context), context.usage))
            # On the context itself: the framework copies it, with all it carries, when it takes up a paused run again.
            vars(context).setdefault(_KEPT, {})[id(self)] = run
        return run

    def begun(self, context: Context | None) -> Run | None:
        """This run's part, if it has begun."""
        kept: dict[int, Run] = vars(context).get(_KEPT, {}) if context is not None else {}
        return kept.get(id(self))

    def called(self, meta: dict[str, Any] | None) -> Run:
        """The run from which this call comes."""
        return self._by_token.get(str((meta or {}).get(TOKEN))) or self.of(None)

    def around(self, context: Context | None) -> Run | None:
        """The run inside which this one was started, by a tool that is an agent."""
        if not isinstance(context, ToolContext):
            return None
        # A nested run counts its tokens with the run around it; what another run left in this task does not.
        return next((run for run in _turns.get() if run.runs is self and run.usage is context.usage), None)

    @contextmanager
    def bound(self, conversation: Any) -> Iterator[None]:
        """Runs that start in here belong to this conversation."""
        token = _bound.set(((self, key_of(conversation)), *_bound.get()))
        try:
            yield
        finally:
            _bound.reset(token)

    def _begun(self, context: Context | None) -> Chat:
        if (outer := self.around(context)) is not None:
            return outer.chat.fork(_nested("run", context))
        return self.board.conversation(
            self._key(context), allow=self._allowed(context), reveal=self._reveal, search=self._search
        )

    def _allowed(self, context: Context | None) -> Sequence[str] | None:
        if not callable(self._allow):
            return self._allow
        return self._allow(context) if context is not None else ()  # whose call it is decides, and nobody's it is

    def _key(self, context: Context | None) -> str:
        named = next((key for runs, key in _bound.get() if runs is self), self._conversation)
        if callable(named) and not hasattr(named, "session_id"):
            named = named(context) if context is not None else None
        return uuid4().hex if named is None else key_of(named)

    def _noted(self, run: Run) -> Run:
        self._by_token[run.token] = run
        return run


class ForkedRuns(Runs):
    """Those of a sub-agent's server: each begins with a snapshot of what the parent's run has loaded by then."""

    def __init__(self, parent: Runs, name: str, *, inherit: bool, allow: Sequence[str] | None, board: Pegboard) -> None:
        super().__init__(board)
        self._parent, self._name, self._inherit, self._only = parent, name, inherit, allow

    def _begun(self, context: Context | None) -> Chat:
        if (outer := self.around(context)) is not None:
            return outer.chat.fork(_nested(self._name, context))
        name = _nested(self._name, context)
        parent = self._parent.around(context) or self._parent.begun(context)
        if parent is None:
            # Nobody handed over in this run: it begins with the sub-agent, or was taken up in another process.
            parent = self._parent.of(context)
            if (before := self._before(parent.chat, name)) is not None:
                return before
        return parent.chat.fork(name, inherit=self._inherit, allow=self._only)

    def _before(self, parent: Chat, name: str) -> Chat | None:
        """The sub-agent's conversation as it was left, if it had loaded anything."""
        fork = msgspec.structs.replace(
            parent.caller,
            conversation=f"{parent.key}/{name}",
            within=parent.caller.lists,
            allow=None if self._only is None else tuple(self._only),
        )
        chat = Chat(self.board, fork)
        chat.surface()  # fetches what the store has
        return chat if names_of(chat.state()) else None


def _nested(name: str, context: Context | None) -> str:
    """The name of a fork; one of several nested runs that go on at once has a name of its own."""
    return f"{name}:{context.tool_call_id}" if isinstance(context, ToolContext) else name


def key_of(conversation: Any) -> str:
    """The key of a conversation that was given as such, or as the session that keeps its history."""
    return str(getattr(conversation, "session_id", conversation))


def enter(run: Run, turn: Turn) -> None:
    """It is this agent's turn in this run."""
    run.turn = turn
    run.usage = turn.context.usage  # another one when a paused run goes on
    same = (each for each in _turns.get() if each.usage is run.usage and each.runs is not run.runs)
    _turns.set((run, *same))


def turns() -> tuple[Run, ...]:
    """The runs, one for each server, whose tools were listed last in this task."""
    return _turns.get()
