"""Tools of the board as LangChain runs them, and LangChain's own tools on the board.

Each call of a board's tool goes through LangChain's own machinery, so callbacks, traces and other middleware see it.
Above: `middleware`. Below: the board, `messages`, `state`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as made_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from pydantic import PrivateAttr

from pegboard.errors import ConfigError, RemoteError
from pegboard.types import CallContext, Json, Listing
from pegboard.wire.messages import INVALID_PARAMS

Answer = ToolMessage | Command[Any]
Handler = Callable[[ToolCallRequest], Any]
"""LangChain's own way to run a tool: gives an answer, or where it is async something to await."""


class Running:
    """A tool call that LangChain has under way: what runs inside it can find it, on whichever loop or thread."""

    def __init__(
        self,
        owner: object,
        key: str,
        kept: Any,
        request: ToolCallRequest,
        handler: Handler,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """`key` and `kept` are the conversation's; the handler is awaited on `loop`, or called where it is None."""
        self.owner, self.key, self.kept, self.request = owner, key, kept, request
        self._handler, self._loop = handler, loop
        self.is_native = False
        """Whether a LangChain tool of the board's was called: LangChain runs that one, and nothing around it."""
        self.answers: list[Answer] = []
        """What LangChain's own tools answered in the course of it."""
        self.raised: Exception | None = None

    async def run(self, tool: BaseTool, arguments: Json) -> Answer:
        """Has LangChain run one of its own tools, with the state, store and configuration of this call."""
        call = ToolCall(name=tool.name, args=arguments, id=self.request.tool_call["id"], type="tool_call")
        try:
            answer = await self._handled(self.request.override(tool=tool, tool_call=call))
        except Exception as error:
            self.raised = error  # the graph's own signals among them: LangChain must get what its tool raised
            raise
        self.raised = None
        self.answers.append(answer)
        return answer

    async def _handled(self, request: ToolCallRequest) -> Answer:
        answer: Answer
        if self._loop is None:
            answer = await asyncio.to_thread(self._handler, request)
        elif self._loop is asyncio.get_running_loop():
            answer = await self._handler(request)
        else:
            answer = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._handler(request), self._loop))
        return answer


NATIVE = "pegboard/langchain"
"""In the `_meta` of a definition: it is LangChain that runs this tool."""
RUNNING: ContextVar[Running | None] = ContextVar("pegboard_langchain_running", default=None)


class BoardTool(BaseTool):
    """One call of one tool of the board. LangChain checks nothing of the arguments: the call's way does."""

    _call: Callable[[Json], Awaitable[Command[Any]]] = PrivateAttr()
    _wait: Callable[[Any], Any] = PrivateAttr()

    def __init__(self, name: str, call: Callable[[Json], Awaitable[Any]], wait: Callable[[Any], Any]) -> None:
        super().__init__(name=name, description=name, args_schema={"type": "object", "properties": {}})
        self._call, self._wait = call, wait

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # As one argument: a tool may well have one that is called `self` or `config`.
        return (tool_input,), {}

    def _run(self, arguments: Json) -> Any:
        return self._wait(self._call(arguments))

    async def _arun(self, arguments: Json) -> Any:
        return await self._call(arguments)


class ToolSource:
    """LangChain tools as a source for a board: `Pegboard(sources=[ToolSource([...])])`.

    An agent with the middleware has LangChain run them, with state, store and configuration injected; called from
    anywhere else they are simply invoked.
    """

    def __init__(self, tools: Sequence[BaseTool | Callable[..., Any]], name: str = "langchain") -> None:
        self._name = name
        self._tools: dict[str, BaseTool] = {}
        for each in tools:
            tool = each if isinstance(each, BaseTool) else made_tool(each)
            if tool.name in self._tools:
                raise ConfigError(f"Two tools are named {tool.name!r}.", hint="Give one of them another name.")
            self._tools[tool.name] = tool

    @property
    def name(self) -> str:
        """The server that the tools belong to."""
        return self._name

    async def list_tools(self) -> Listing:
        """All of them."""
        return Listing(tools=tuple(map(_definition, self._tools.values())), server_name=self._name)

    async def call_tool(self, tool: str, arguments: Json, context: CallContext) -> Json:
        """What the tool answers."""
        known = self._tools.get(tool)
        if known is None:
            raise RemoteError(self._name, INVALID_PARAMS, f"Unknown tool: {tool}")
        running = RUNNING.get()
        try:
            if running is not None:
                return _as_result(await running.run(known, arguments))
            return _as_result(await known.ainvoke({"type": "tool_call", "id": "", "name": tool, "args": arguments}))
        except Exception as error:  # noqa: BLE001 - what a tool raises is its result here; LangChain gets it from `raised`
            return _text(f"{type(error).__name__}: {error}".rstrip(": "), is_error=True)


def _definition(tool: BaseTool) -> Json:
    converted = convert_to_openai_tool(tool)
    function = converted.get("function", converted)
    return {
        "name": function["name"],
        "description": function.get("description", ""),
        "inputSchema": function.get("parameters") or {"type": "object", "properties": {}},
        "_meta": {NATIVE: True},
    }


def _as_result(answer: Any) -> Json:
    """A `tools/call` result out of what LangChain made of a tool's answer."""
    if isinstance(answer, Command):
        update = answer.update if isinstance(answer.update, dict) else {}
        answers = [each for each in update.get("messages", []) if isinstance(each, ToolMessage)]
        return _text("\n".join(each.text for each in answers))
    if isinstance(answer, ToolMessage):
        return _text(answer.text, is_error=answer.status == "error")
    return _text(str(answer))


def _text(text: str, *, is_error: bool = False) -> Json:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def answered(answers: Sequence[Any], message: ToolMessage, update: dict[str, Any], *, is_native: bool) -> Any:
    """What a call gives LangChain: the message and the conversation's state, and what its own tools made of the state.

    A native tool's answer goes out as it is; where it ran inside a call of the board's own, the board's message does.
    """
    for answer in answers:
        if is_native and isinstance(answer, ToolMessage):
            metadata = {**answer.response_metadata, **message.response_metadata}
            # Under the name that was called: there are APIs that go by it.
            message = answer.model_copy(update={"response_metadata": metadata, "name": message.name})
        elif is_native:
            return _with_update(answer, update)
        elif isinstance(answer, Command) and isinstance(answer.update, dict):
            update = {**{key: value for key, value in answer.update.items() if key != "messages"}, **update}
    return Command(update={**update, "messages": [message]})


def _with_update(answer: Any, update: dict[str, Any]) -> Any:
    if isinstance(answer, list):
        return [*answer, Command(update=update)]
    if isinstance(answer, Command) and isinstance(answer.update, dict) and answer.graph is None:
        return replace(answer, update={**answer.update, **update})
    return answer
