"""LangChain: Pegboard's middleware, the provider's own tool search over deferred tools, and every tool bound.

A run is search, call, answer. The model is a script that answers at once, and binds tools as the chat models of OpenAI
and Anthropic do, so what is measured is what the framework and Pegboard do around it.

LangChain has no search of its own: `ProviderToolSearchMiddleware` marks tools as deferred and leaves the search to
Anthropic or OpenAI. Its row is what that costs here; all definitions still go over the wire, and `tokens` counts those
that are not deferred. `LLMToolSelectorMiddleware` needs a model call for each step: without a model there is no figure.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ProviderToolSearchMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from bench.frameworks.rows import (
    EVERYTHING,
    NAIVE,
    OWN_SEARCH,
    PEGBOARD,
    TURNS,
    Row,
    Share,
    apart,
    catalog,
    per_step,
    prefix_share,
    settled,
    tokens_of,
)
from pegboard import Pegboard
from pegboard.integrations.langchain import PegboardMiddleware
from pegboard.testing import FakeSource, text_result
from pegboard.types import Json

FRAMEWORK = "langchain"
QUERY = "open an issue in a repository"
WANTED = "github__create_issue"
ARGUMENTS = {"owner": "a", "repo": "b", "title": "c"}
SHARE_TOOLS = 200
INLINE, BRIDGE = "pegboard, tools in messages", 'pegboard, reveal="bridge"'
RESULT = "A line of a result that a model reads, with something in it to look at. " * 15
GO: Any = {"messages": [("user", "Do it.")]}
_Calls = list[tuple[str, Json]]


class Script:
    """The calls a model makes, one a turn, and what it was sent."""

    def __init__(self, calls: _Calls, *, keep: bool = False) -> None:
        self.calls, self.keep = calls, keep
        self.turn = self.tokens = 0
        self.requests: list[bytes] = []

    def answer(self, tools: Sequence[Json], messages: list[BaseMessage]) -> AIMessage:
        """The next call, or the end."""
        turn, self.turn = self.turn, self.turn + 1
        if self.keep:
            self.requests.append(_sent(tools, messages))
        elif not self.tokens or turn == len(self.calls):
            self.tokens = max(self.tokens, tokens_of(_mcp(each) for each in tools if "defer_loading" not in each))
        if turn >= len(self.calls):
            return AIMessage("done")
        name, arguments = self.calls[turn]
        return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{turn}"}])


class ScriptedChat(BaseChatModel):
    """A chat model that plays a script. What it is asked to bind it converts, every time, as the real ones do."""

    script: Any
    speaks: str = "scripted"

    @property
    def _llm_type(self) -> str:
        return self.speaks

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return {"ls_provider": self.speaks, "ls_model_type": "chat"}

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=[_converted(each) for each in tools])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        message = self.script.answer(kwargs.get("tools", ()), messages)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages, *args, **kwargs)


def _converted(tool: Any) -> Json:
    deferred = isinstance(tool, BaseTool) and (tool.extras or {}).get("defer_loading")
    converted = convert_to_openai_tool(tool) if isinstance(tool, BaseTool) or "function" in tool else tool
    return {**converted, "defer_loading": True} if deferred else converted


def _mcp(tool: Json) -> Json:
    function = tool.get("function", tool)
    about = {"name": function.get("name", ""), "description": function.get("description", "")}
    return {**about, "inputSchema": function.get("parameters", {})}


def _sent(tools: Sequence[Json], messages: list[BaseMessage]) -> bytes:
    """The request in the order in which providers cache it: tools, system prompt, messages with what they add."""
    lines = [json.dumps(_mcp(each)) for each in tools]
    for each in messages:
        said = {"type": each.type, "content": each.content}
        lines.append(json.dumps({**said, "tool_calls": each.tool_calls} if isinstance(each, AIMessage) else said))
    return "\n".join(lines).encode()


def langchain_tools(definitions: Sequence[Json]) -> list[BaseTool]:
    """The catalog as an MCP adapter gives it to LangChain."""

    async def run(**_: Any) -> str:
        return RESULT

    return [
        StructuredTool(
            name=each["name"], description=each["description"], args_schema=each["inputSchema"], coroutine=run
        )
        for each in definitions
    ]


@asynccontextmanager
async def board_of(tools: int) -> AsyncIterator[Pegboard]:
    """A board with so many tools of one source, its index warm."""
    known = catalog(tools)
    source = FakeSource("all", known, results=dict.fromkeys((each["name"] for each in known), text_result(RESULT)))
    with tempfile.TemporaryDirectory() as folder:
        settings = {"surface": {"mode": "on"}, "store": {"cache_dir": folder, "state_dir": folder}}
        async with Pegboard(sources=[source], settings=settings) as board:
            await settled(board)
            yield board


async def pegboard(tools: int) -> Row:
    """The middleware."""
    async with board_of(tools) as board:
        calls: _Calls = [("search_tools", {"query": QUERY}), (f"all__{WANTED}", ARGUMENTS)]
        return await _row(PEGBOARD, tools, calls, middleware=[PegboardMiddleware(board)])


async def own_search(tools: int) -> Row:
    """Every tool deferred; the provider searches while it answers, so the model just calls."""
    known = langchain_tools(catalog(tools))
    middleware = ProviderToolSearchMiddleware(searchable_tools=list(known))
    calls: _Calls = [(WANTED, ARGUMENTS), (WANTED, ARGUMENTS)]
    return await _row(OWN_SEARCH, tools, calls, known, middleware=[middleware], speaks="anthropic")


async def everything_bound(tools: int) -> Row:
    """Every tool in every request."""
    known = langchain_tools(catalog(tools))
    return await _row(EVERYTHING, tools, [(WANTED, ARGUMENTS), (WANTED, ARGUMENTS)], known)


async def _row(
    way: str,
    tools: int,
    calls: _Calls,
    bound: Sequence[BaseTool] = (),
    *,
    middleware: Sequence[AgentMiddleware[Any, Any]] = (),
    speaks: str = "scripted",
) -> Row:
    chat = ScriptedChat(script=None, speaks=speaks)
    agent = create_agent(chat, list(bound), middleware=list(middleware))
    tokens = 0

    async def run() -> int:
        nonlocal tokens
        script = chat.script = Script(calls)
        await agent.ainvoke(GO)
        assert script.turn == len(calls) + 1, f"{way}: {script.turn} requests"
        tokens = script.tokens
        return script.turn

    cpu, wall = await per_step(run, rounds=3 if tools > 1000 else 7)
    return Row(FRAMEWORK, way, tools, cpu, wall, tokens)


async def rows(sizes: Sequence[int]) -> list[Row]:
    """The cost of a step, each in a process of its own."""
    ways = (pegboard, own_search, everything_bound)
    found = [apart(way, size) for size in sizes for way in ways]
    return [row for row in found if row is not None]


async def shares() -> list[Share]:
    """The prefix over a session that needs another tool every other turn."""
    return [apart(share, way) for way in (PEGBOARD, INLINE, BRIDGE, EVERYTHING, NAIVE)]


class Naive(AgentMiddleware[Any, Any]):
    """Shows just the tool that this turn needs, and one that is always there."""

    def __init__(self, script: Script, wanted: Sequence[str]) -> None:
        super().__init__()
        self._script, self._wanted = script, wanted

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Anew every turn."""
        shown = (self._wanted[min(self._script.turn, TURNS - 2) // 2], self._wanted[-1])
        return await handler(request.override(tools=[each for each in request.tools if each.name in shown]))


def _fitting(schema: Json) -> Json:
    """Arguments that a schema takes."""
    values: Json = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}
    fields = schema.get("properties", {})
    wanted = {name: fields.get(name, {}) for name in schema.get("required", ())}
    return {name: values.get(each.get("type"), (each.get("enum") or ["x"])[0]) for name, each in wanted.items()}


async def share(way: str) -> Share:
    """One session of so many requests."""
    used = catalog(SHARE_TOOLS)[:: SHARE_TOOLS // TURNS]
    wanted = [str(each["name"]) for each in used]
    calls: _Calls = [(wanted[turn // 2], _fitting(used[turn // 2]["inputSchema"])) for turn in range(TURNS - 1)]
    if way in (PEGBOARD, INLINE):
        calls = [(f"all__{name}", arguments) for name, arguments in calls]
    elif way == BRIDGE:
        calls = [("call_tool", {"name": f"all__{name}", "arguments": arguments}) for name, arguments in calls]
    script = Script(calls, keep=True)
    profile: Any = {"mid_conversation_tools": way == INLINE}
    chat = ScriptedChat(script=script, speaks="openai", profile=profile)
    prompt = SystemMessage("You are a careful assistant.")
    if way in (EVERYTHING, NAIVE):
        naive = [Naive(script, wanted)] if way == NAIVE else []
        agent = create_agent(chat, langchain_tools(catalog(SHARE_TOOLS)), system_prompt=prompt, middleware=naive)
        await agent.ainvoke(GO)
    else:
        async with board_of(SHARE_TOOLS) as board:
            middleware = PegboardMiddleware(board, reveal="bridge" if way == BRIDGE else "auto")
            agent = create_agent(chat, system_prompt=prompt, middleware=[middleware])
            await agent.ainvoke(GO)
    assert len(script.requests) == TURNS, f"{way}: {len(script.requests)} requests"
    assert script.requests[-1].count(RESULT.encode()) == TURNS - 1, f"{way}: some calls failed"
    return Share(FRAMEWORK, way, prefix_share(script.requests))
