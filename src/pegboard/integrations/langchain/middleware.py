"""The middleware: trims what the model sees, runs what was never bound, keeps what is loaded in the agent's state.

It translates and decides nothing: what is shown and what a call comes to is the board's business. Above:
`create_agent`. Below: the board, `reveal`, `tools`, `state`.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec
from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import SystemMessage
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime

from pegboard.board import Chat, Pegboard, Result
from pegboard.board.state import names_of
from pegboard.errors import ConfigError, PegboardError
from pegboard.integrations.langchain.messages import tool_message
from pegboard.integrations.langchain.reveal import (
    Provider,
    on_list,
    provider_of,
    takes_tools_in_messages,
    with_tools,
)
from pegboard.integrations.langchain.state import KEY, Kept, PegboardState, kept, loaded
from pegboard.integrations.langchain.tools import NATIVE, RUNNING, Answer, BoardTool, Handler, Running, answered
from pegboard.platform_tools.definitions import SEARCH
from pegboard.surface.compose import Reason, Surface
from pegboard.types import Caller, Json

Reveal = Literal["auto", "append", "inline", "bridge"]
log = logging.getLogger(__name__)


class PegboardMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gives an agent a board's tools: `create_agent(model, tools, middleware=[PegboardMiddleware(board)])`.

    The agent's own tools stay as they are. What the conversation has loaded is in the agent's state, so checkpoints
    carry it, trimming and summarising leave it alone, and an older checkpoint brings back what was loaded then.
    """

    state_schema = PegboardState
    tools: Sequence[BaseTool] = ()

    def __init__(
        self,
        board: Pegboard,
        *,
        conversation: str | None = None,
        allow: Sequence[str] | None = None,
        hide: Sequence[str] = (),
        reveal: Reveal = "auto",
        search: bool = True,
        guidance: bool = True,
    ) -> None:
        """`conversation` is the key the board knows the agent by, else the thread's id.

        `allow` names what of the board it may use, `hide` which of its own tools the model is not to see; both take
        globs. `reveal` says where loaded tools go: at the end of the list (`append`), into a message where they were
        loaded (`inline`), nowhere, to be called by `call_tool` (`bridge`); `auto` is inline where the model can.
        Without `search` nothing is deferred. `guidance` adds a paragraph to the system prompt while something is.
        """
        super().__init__()
        self._board, self._conversation = board, conversation
        self._hide, self._reveal, self._search, self._guides = tuple(hide), reveal, search, guidance
        self._may = Caller(allow=None if allow is None else tuple(allow))
        self._parent: PegboardMiddleware | None = None
        self._name, self._inherits = "", False
        self._told: set[str] = set()

    def fork(
        self,
        name: str,
        *,
        inherit: bool = True,
        allow: Sequence[str] | None = None,
        **options: Any,
    ) -> PegboardMiddleware:
        """The middleware of a sub-agent that a tool of this agent runs: a snapshot of what is loaded when it starts.

        `allow` narrows what the sub-agent may use, and can never widen it; `inherit=False` begins with nothing
        loaded. Other options are those of the middleware, by default this one's.
        """
        chosen: dict[str, Any] = {
            "hide": self._hide,
            "reveal": self._reveal,
            "search": self._search,
            "guidance": self._guides,
        }
        child = PegboardMiddleware(self._board, allow=allow, **{**chosen, **options})
        child._may = msgspec.structs.replace(child._may, within=self._may.lists)
        child._parent, child._name, child._inherits = self, name, inherit
        return child

    # ── the conversation ─────────────────────────────────────────────────────────────────────────────────────────

    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Begins the conversation where the agent's state has none."""
        if self._board.home.is_here:
            raise PegboardError(
                "The agent was invoked without await, on the event loop that the board lives on.",
                hint="Await `agent.ainvoke(...)`, or open the board with a plain `with`.",
            )
        return self._begun(state)

    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The same, and may be on any loop."""
        return self._begun(state)

    def _begun(self, state: Any) -> dict[str, Any] | None:
        known, above = _kept(state), self._chat_above()
        if above is not None:
            stem = f"{above.key}/{self._name}/"
            if known.get("conversation", "").startswith(stem):
                return None
            # Each run has a conversation of its own: several may go on at once.
            child = above.fork(self._name, inherit=self._inherits, allow=self._may.allow)
            return {KEY: kept(f"{stem}{uuid.uuid4().hex[:12]}", child.state())}
        if known.get("conversation"):
            return None
        key = self._key(known)
        # Under a key of its own it goes on from what the board remembers: there are agents that keep no state.
        chat = self._chat(key, None if self._conversation else b"")
        if not self._board.home.look(lambda: self._board.desk.remembers(chat.caller)):
            self._board.remember(chat.caller)
        return {KEY: kept(key, chat.state())}

    def _chat_above(self) -> Chat | None:
        """The conversation of the agent one of whose tools runs this one now."""
        running, parent = RUNNING.get(), self._parent
        if running is None or parent is None or running.owner is not parent:
            return None
        return parent._chat(running.key, loaded(running.kept))

    def _key(self, known: Kept) -> str:
        """The conversation's key; a checkpoint from before this middleware was there has none yet."""
        if key := known.get("conversation"):
            return key
        key = self._conversation or _thread() or f"chat-{uuid.uuid4().hex}"
        return f"{key}/{self._name}" if self._name else key

    def _chat(self, key: str, state: bytes | None, *, searches: bool = True) -> Chat:
        shown: Any = "called" if self._reveal == "bridge" else "listed"
        reveal = shown if self._search and searches else "all"
        return Chat(self._board, msgspec.structs.replace(self._may, conversation=key, reveal=reveal), state)

    # ── what the model sees ──────────────────────────────────────────────────────────────────────────────────────

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Shows the model its own tools, the base and what is loaded."""
        return handler(self._trimmed(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """The same."""
        return await handler(self._trimmed(request))

    def _trimmed(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        known = _kept(request.state)
        taken = {_name(tool) for tool in request.tools}

        def looked() -> tuple[Surface, str]:
            # Without a search nothing may be hidden: an agent's own tool of that name wins.
            chat = self._chat(self._key(known), loaded(known), searches=SEARCH not in taken)
            return chat.surface(), chat.guidance() if self._guides else ""

        surface, words = self._board.home.look(looked)
        self._tell(taken.intersection(surface.names))
        changes = self._shown(request, surface, taken)
        if words:
            changes["system_message"] = _with_words(request.system_message, words)
        return request.override(**changes)

    def _shown(self, request: ModelRequest[Any], surface: Surface, taken: set[str]) -> dict[str, Any]:
        """The tools, and the messages where tools are put into them."""
        provider = provider_of(request.model)
        inline = self._is_inline(request.model, provider)
        listed = [each for each in surface.definitions if each["name"] not in taken]
        changes: dict[str, Any] = {}
        if inline:
            active = [each["name"] for each in listed if surface.reasons[each["name"]] is Reason.ACTIVE]
            listed = [each for each in listed if each["name"] not in active]
            elsewhere = taken.union(each["name"] for each in listed)

            def definition_of(name: str) -> Json | None:
                tool = None if name in elsewhere else surface.permitted.get(name)
                return None if tool is None else {**tool.parsed(), "name": name}

            messages, left = with_tools(request.messages, active, definition_of, provider)
            listed += left
            changes["messages"] = messages
        theirs = [tool for tool in request.tools if not self._hides(_name(tool))]
        return {**changes, "tools": [*theirs, *(on_list(each, provider) for each in listed)]}

    def _is_inline(self, model: object, provider: Provider) -> bool:
        if self._reveal == "auto":
            return bool(provider) and takes_tools_in_messages(model)
        if self._reveal == "inline" and not provider:
            raise ConfigError(
                f"{type(model).__name__} cannot be given tools in a message, as far as Pegboard knows.",
                hint='Leave `reveal` at "auto", or say "append".',
            )
        return self._reveal == "inline"

    def _hides(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self._hide)

    def _tell(self, clashes: set[str]) -> None:
        for name in sorted(clashes - self._told):
            log.warning("The agent has a tool of its own named %s: the board's is not shown.", name)
        self._told |= clashes

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        """Runs what the agent has no tool for on the board; all else is LangChain's."""
        running = self._running(request, handler)
        token = RUNNING.set(running)
        try:
            if request.tool is not None:
                return handler(request)
            if running.is_native:
                return self._board.wait(self._called(running, request.tool_call["args"]))
            return handler(request.override(tool=self._tool(running)))
        finally:
            RUNNING.reset(token)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """The same."""
        running = self._running(request, handler, asyncio.get_running_loop())
        token = RUNNING.set(running)
        try:
            if request.tool is not None:
                return await handler(request)
            if running.is_native:
                return await self._called(running, request.tool_call["args"])
            return await handler(request.override(tool=self._tool(running)))
        finally:
            RUNNING.reset(token)

    def _running(
        self, request: ToolCallRequest, handler: Handler, loop: asyncio.AbstractEventLoop | None = None
    ) -> Running:
        known, name = _kept(request.state), request.tool_call["name"]
        running = Running(self, self._key(known), known, request, handler, loop)
        chat = self._chat(running.key, None)
        if request.tool is None and not chat.is_own(name):
            tool = chat.knows(name)
            running.is_native = tool is not None and tool.meta.get(NATIVE) is True
        return running

    def _tool(self, running: Running) -> BoardTool:
        return BoardTool(
            running.request.tool_call["name"], lambda arguments: self._called(running, arguments), self._board.wait
        )

    async def _called(self, running: Running, arguments: Json) -> Answer:
        call = running.request.tool_call

        async def here() -> tuple[Result, bytes, tuple[str, ...]]:
            # All on the board's loop, so that no other call of this conversation gets in between.
            chat = self._chat(running.key, loaded(running.kept))
            before = names_of(chat.state())
            result = await chat.call(call["name"], arguments)
            state = chat.state()
            return result, state, tuple(name for name in names_of(state) if name not in before)

        result, state, fresh = await self._board.home.run(here)
        if running.raised is not None:
            raise running.raised
        message = tool_message(result, call["name"], call["id"] or "", fresh)
        update = {KEY: kept(running.key, state)}
        answer: Answer = answered(running.answers, message, update, is_native=running.is_native)
        return answer


def _kept(state: Any) -> Kept:
    found = state.get(KEY) if isinstance(state, dict) else None
    return found if isinstance(found, dict) else Kept()  # type: ignore[return-value]


def _thread() -> str:
    """The thread's id, where the graph runs in one."""
    try:
        return str(get_config().get("configurable", {}).get("thread_id") or "")
    except RuntimeError:
        return ""


def _name(tool: BaseTool | dict[str, Any]) -> str:
    if isinstance(tool, BaseTool):
        return tool.name
    function = tool.get("function")
    return str(tool.get("name") or (function.get("name") if isinstance(function, dict) else "") or "")


def _with_words(message: SystemMessage | None, words: str) -> SystemMessage:
    """The system message with our paragraph after its own, which stays as it is."""
    if message is None or not message.content:
        return SystemMessage(content=words)
    if isinstance(message.content, str):
        return message.model_copy(update={"content": f"{message.content}\n\n{words}"})
    return message.model_copy(update={"content": [*message.content, {"type": "text", "text": words}]})
