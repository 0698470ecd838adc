"""A board as a toolset: each run lists what its conversation has loaded, and every call takes Pegboard's own path.

A call that fails comes back as a failed result with words a model can act on; it spends no retries, so a wrong
guess never ends a run. Above: `capability`. Below: the board, `approval`, `history`, `returned`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from difflib import get_close_matches
from typing import Any, Literal, Self, TypedDict

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed, UserError
from pydantic_ai.messages import InstructionPart, ModelMessage, ToolReturn
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from pegboard.board import Chat, Pegboard
from pegboard.integrations.pydantic_ai.approval import deferred, of_run
from pegboard.integrations.pydantic_ai.history import metadata, spellings, state_in, unanswered
from pegboard.integrations.pydantic_ai.returned import returned
from pegboard.types import Json

_ANYTHING = SchemaValidator(core_schema.any_schema())
"""Pegboard mends and checks arguments itself, and says what is wrong with them in one place for all frameworks."""
_NOTHING: Json = {"type": "object", "properties": {}}

Context = RunContext[Any]
Key = str | Callable[[Context], str] | None
Allow = Sequence[str] | Callable[[Context], Sequence[str] | None] | None


class Options(TypedDict, total=False):
    """How a board is used by an agent; the same for the toolset and the capability."""

    conversation: Key
    allow: Allow
    reveal: Literal["listed", "called"] | None
    search: bool
    state: Literal["store", "messages"]
    instructions: bool


class PegboardToolset(AbstractToolset[Any]):
    """The tools of a board, for an agent: Pegboard's own, those always shown, and those the conversation has loaded."""

    def __init__(
        self,
        board: Pegboard,
        *,
        conversation: Key = None,
        allow: Allow = None,
        reveal: Literal["listed", "called"] | None = "listed",
        search: bool = True,
        state: Literal["store", "messages"] = "store",
        instructions: bool = True,
        id: str = "pegboard",  # noqa: A002  what the framework calls it
    ) -> None:
        """`conversation` is the key under which loaded tools are kept: a text, or one worked out from the run.

        Without it the run's own conversation is meant: runs that go on from each other's messages share what is
        loaded, others do not. `allow` names what may be used at all. `state` says where what is loaded is kept: in the
        board's store under the key, or with the messages, so that a history that is cut back or branched, or goes on
        somewhere else, brings its tools along. `reveal` and `search` are those of `Pegboard.conversation`.
        """
        self._board, self._id = board, id
        self._conversation, self._allow = conversation, allow
        self._reveal, self._search = reveal, search
        self._in_messages = state == "messages"
        self._instructions = instructions
        self._root = object()
        """The same in all the copies that runs are given."""
        self._chat: Chat | None = None
        self._asked: tuple[str, ...] = ()
        self._shown: tuple[object, dict[str, ToolsetTool[Any]]] | None = None

    @property
    def id(self) -> str:
        """What durable execution names its steps after."""
        return self._id

    async def for_run(self, ctx: Context) -> Self:
        """A toolset of its own for each run: runs that go on at once share nothing."""
        if self._chat is not None:
            return self._within(self._chat)
        # Here the store can be waited for; a list that is asked for later would have to block the loop.
        kept, board = self._conversed(self._key(ctx), ctx), self._board
        await board.home.run(lambda: board.desk.recall(kept.caller))
        return self._within(self._opened(ctx))

    def chat(self, ctx: Context) -> Chat:
        """The conversation that this run is in."""
        if self._chat is not None:
            return self._chat
        running = [each._chat for each in toolsets_of(ctx) if each._root is self._root and each._chat is not None]
        return running[0] if running else self._opened(ctx)

    def fork(
        self, ctx: Context, name: str, *, inherit: bool = True, allow: Sequence[str] | None = None
    ) -> PegboardToolset:
        """A toolset for a sub-agent of this run: it begins with what is loaded here, and then goes its own way.

        `inherit=False` begins with nothing. `allow` narrows what the sub-agent may use; it never widens it.
        """
        # A model may delegate twice at once: each of these calls is a conversation of its own.
        own = f"{name}:{ctx.tool_call_id}" if ctx.tool_call_id else name
        child = self._within(self.chat(ctx).fork(own, inherit=inherit, allow=allow))
        child._in_messages = False  # what a sub-agent loads must not be kept as its parent's
        return child

    # ── what the framework asks ──────────────────────────────────────────────────────────────────────────────────

    async def get_instructions(self, ctx: Context) -> InstructionPart | None:
        """That there is more than is listed; nothing where there is not. It does not change with what is loaded."""
        text = self.chat(ctx).guidance() if self._instructions else ""
        return InstructionPart(content=text) if text else None

    async def get_tools(self, ctx: Context) -> dict[str, ToolsetTool[Any]]:
        """What is listed now, and what the model has called by name and is still to run."""
        chat = self.chat(ctx)
        surface = chat.surface()
        if self._shown is None or self._shown[0] is not surface:
            self._shown = surface, {str(each["name"]): self._tool(each, ctx) for each in surface.definitions}
        tools = dict(self._shown[1])
        pending = [name for name in unanswered(messages_of(ctx)) if _is_public(chat, name)]
        for name in (*self._asked, *pending):
            tools.setdefault(name, self._tool(_definition(chat, name), ctx))
        return tools

    async def get_tool_for_tool_def(self, tool_def: ToolDefinition, ctx: Context) -> ToolsetTool[Any]:
        """The tool of a definition that was listed once: for a call it does not matter whether it still is."""
        return ToolsetTool(toolset=self, tool_def=tool_def, max_retries=ctx.max_retries, args_validator=_ANYTHING)

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Context, tool: ToolsetTool[Any]) -> Any:
        """Runs it; a failure is told to the model as a failed result."""
        chat = self.chat(ctx)
        with of_run(approved=ctx.tool_call_approved) as asked:
            result = await chat.call(name, tool_args)
        deferred(asked, name, is_own=chat.is_own(name))
        if result.is_error:
            raise ToolFailed(result.text + _also_listed(chat, name, ctx))
        state = self._kept(chat, ctx) if self._in_messages else None
        return ToolReturn(returned(result), metadata=metadata(self._id, state, result.structured))

    def knows(self, name: str, ctx: Context) -> bool:
        """Whether a tool of the board can be meant by this name, whatever wrappers have made of it."""
        return any(self.chat(ctx).knows(each) is not None for each in spellings(name))

    async def offered(self, name: str, ctx: Context) -> ToolsetTool[Any] | None:
        """The tool that a model means by a name that was not listed, through all that is wrapped around this toolset.

        Wrappers may have changed names on the way out, and cannot be asked for the way back: the spellings that are
        possible are listed one after the other, until one comes out as the name that was called.
        """
        manager = ctx.tool_manager
        if manager is None:
            return None
        for spelling in spellings(name):
            self._asked = (spelling,)
            try:
                listed = await manager.toolset.get_tools(manager.ctx or ctx)
            except UserError:
                continue  # a name that some other toolset has
            finally:
                self._asked = ()
            if name in listed:
                return listed[name]
        return None

    # ── how it is done ───────────────────────────────────────────────────────────────────────────────────────────

    def _opened(self, ctx: Context) -> Chat:
        kept = self._conversed(self._key(ctx), ctx)
        if not self._in_messages:
            return kept
        state = state_in(messages_of(ctx), self._id)
        if state is None:  # a history that was summarised tells no more: then what was last kept counts
            kept.surface()
            state = kept.state()
        # A key of its own: of two runs that go on from the same messages neither may change the other's list.
        return self._conversed(f"{kept.key}/{ctx.run_id}", ctx, state)

    def _conversed(self, key: str, ctx: Context, state: bytes | None = None) -> Chat:
        allow = self._allow(ctx) if callable(self._allow) else self._allow
        return self._board.conversation(key, allow=allow, state=state, reveal=self._reveal, search=self._search)

    def _key(self, ctx: Context) -> str:
        key = self._conversation(ctx) if callable(self._conversation) else self._conversation
        return key or ctx.conversation_id or ctx.run_id or ""

    def _kept(self, chat: Chat, ctx: Context) -> bytes:
        """What is loaded, for the messages; and under the conversation's key, for when these are summarised."""
        state = chat.state()
        self._conversed(self._key(ctx), ctx, state)
        return state

    def _within(self, chat: Chat) -> Self:
        mine = copy(self)
        mine._chat, mine._asked, mine._shown = chat, (), None
        return mine

    def _tool(self, definition: Json, ctx: Context) -> ToolsetTool[Any]:
        tool_def = ToolDefinition(
            name=str(definition["name"]),
            description=definition.get("description"),
            parameters_json_schema=definition.get("inputSchema") or _NOTHING,
            return_schema=definition.get("outputSchema"),
            metadata={"meta": definition.get("_meta"), "annotations": definition.get("annotations")},
        )
        return ToolsetTool(toolset=self, tool_def=tool_def, max_retries=ctx.max_retries, args_validator=_ANYTHING)


def toolsets_of(ctx: Context) -> list[PegboardToolset]:
    """Pegboard's toolsets in this run."""
    found: list[AbstractToolset[Any]] = []
    try:
        if ctx.tool_manager is not None:
            ctx.tool_manager.toolset.apply(found.append)
    except UserError:
        return []  # a durable step in another process has no such thing
    return [each for each in found if isinstance(each, PegboardToolset)]


def messages_of(ctx: Context) -> Sequence[ModelMessage]:
    """The conversation so far, as far as it is at hand: a durable step in another process has none."""
    try:
        return ctx.messages
    except UserError:
        return ()


def _is_public(chat: Chat, name: str) -> bool:
    tool = chat.knows(name)
    return tool is not None and tool.public_name == name


def _definition(chat: Chat, name: str) -> Json:
    """Of a tool that is not listed; of one that does not exist too, so that its call is answered with what is near."""
    tool = chat.knows(name)
    return {"inputSchema": _NOTHING, **(tool.parsed() if tool is not None else {}), "name": name}


def _also_listed(chat: Chat, name: str, ctx: Context) -> str:
    """Pegboard says which of its tools are near a name; the agent's own ones it does not know."""
    if chat.is_own(name) or chat.knows(name) is not None or ctx.tool_manager is None:
        return ""
    others = [each for each in ctx.tool_manager.tools or () if chat.knows(each) is None and each != ctx.tool_name]
    near = get_close_matches(name, others)
    return f"\nListed, with a name like it: {', '.join(near)}." if near else ""
