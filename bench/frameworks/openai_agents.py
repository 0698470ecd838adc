"""OpenAI Agents SDK: Pegboard's server, the deferred loading of the Responses API, and every tool of an MCP server.

A run is three requests: search, call, answer. The model answers at once, after its tools were turned into what the
Responses API is sent, so what is measured is what the framework and Pegboard do around a request. The API's own search
happens at OpenAI, out of sight: its rows have what this side pays to send it every definition.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig, Runner, ToolSearchTool, Usage
from agents.mcp import MCPServer
from agents.models.openai_responses import Converter
from mcp.types import CallToolResult, GetPromptResult, ListPromptsResult
from mcp.types import Tool as MCPTool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

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
from pegboard.integrations.openai_agents import PegboardServer
from pegboard.testing import FakeSource, text_result
from pegboard.types import Json

FRAMEWORK = "openai-agents"
QUERY = "open an issue in a repository"
WANTED = "github__create_issue"
ARGUMENTS = {"owner": "a", "repo": "b", "title": "c"}
SHARE_TOOLS = 200
CALLED = 'pegboard, reveal="called"'
RESULT = "A line of a result that a model reads, with something in it to look at. " * 15
QUIET = RunConfig(tracing_disabled=True)
_Calls = list[tuple[str, Json]]


class Everything(MCPServer):
    """All of the catalog, from memory, as a server with a cached list gives it."""

    def __init__(self, definitions: Sequence[Json]) -> None:
        super().__init__()
        self._tools = [MCPTool.model_validate(each) for each in definitions]
        self.listed: frozenset[str] | None = None

    name = "everything"

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[MCPTool]:
        return [tool for tool in self._tools if self.listed is None or tool.name in self.listed]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        return CallToolResult.model_validate(text_result(RESULT))

    async def list_prompts(self) -> ListPromptsResult:
        return ListPromptsResult(prompts=[])

    async def get_prompt(self, name: str, arguments: Any = None) -> GetPromptResult:
        raise NotImplementedError


class Scripted(Model):
    """Makes these calls, one a turn; it keeps what it was sent."""

    def __init__(self, calls: _Calls, *, keep: bool = False, deferred: bool = False) -> None:
        self._calls, self._keep, self._deferred = calls, keep, deferred
        self.turn = 0
        self.tokens = 0
        self.requests: list[bytes] = []

    async def get_response(self, system_instructions: Any, *_: Any, **more: Any) -> ModelResponse:
        given, tools, handoffs = more["input"], more["tools"], more["handoffs"]
        sent: list[Any] = list(Converter.convert_tools(tools, handoffs).tools)
        turn, self.turn = self.turn, self.turn + 1
        if self._keep:
            self.requests.append("\n".join(json.dumps(each) for each in (*sent, system_instructions, *given)).encode())
        elif not self.tokens or turn == len(self._calls):
            self.tokens = max(self.tokens, tokens_of(map(_seen, sent)))
        output = [_call(turn, *self._calls[turn], deferred=self._deferred)] if turn < len(self._calls) else [_message()]
        return ModelResponse(output=[*output], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **more: Any) -> Any:
        raise NotImplementedError


def _seen(tool: Json) -> Json:
    """What a model is shown of a tool: of one that is deferred by itself, its name and description."""
    seen = {"name": tool.get("name", tool["type"]), "description": tool.get("description", "")}
    return seen if tool.get("defer_loading") else {**seen, "inputSchema": tool.get("parameters", {})}


def _call(turn: int, name: str, arguments: Json, *, deferred: bool) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        type="function_call",
        id=f"f{turn}",
        call_id=f"c{turn}",
        name=name,
        arguments=json.dumps(arguments),
        namespace=name if deferred else None,  # as the API calls a tool that was deferred by itself
    )


def _message() -> ResponseOutputMessage:
    text = ResponseOutputText(type="output_text", text="done", annotations=[])
    return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])


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
    """The server, with its paragraph in the instructions."""
    async with board_of(tools) as board:
        server = PegboardServer(board)
        calls: _Calls = [("search_tools", {"query": QUERY}), (f"all__{WANTED}", ARGUMENTS)]
        agent: Agent[Any] = Agent("a", mcp_servers=[server], instructions=server.instructions("Help."))
        return await _row(PEGBOARD, tools, agent, calls)


async def own_search(tools: int) -> Row:
    """Every tool deferred, and the API's search tool."""

    async def invoke(*_: Any) -> str:
        return RESULT

    functions = [
        FunctionTool(
            name=each["name"], description=each["description"], params_json_schema=each["inputSchema"],
            on_invoke_tool=invoke, strict_json_schema=False, defer_loading=True,
        )
        for each in catalog(tools)
    ]  # fmt: skip
    agent: Agent[Any] = Agent("a", tools=[*functions, ToolSearchTool()], instructions="Help.")
    return await _row(OWN_SEARCH, tools, agent, [(WANTED, ARGUMENTS), (WANTED, ARGUMENTS)], deferred=True)


async def everything_bound(tools: int) -> Row:
    """Every tool in every request."""
    agent: Agent[Any] = Agent("a", mcp_servers=[Everything(catalog(tools))], instructions="Help.")
    return await _row(EVERYTHING, tools, agent, [(WANTED, ARGUMENTS), (WANTED, ARGUMENTS)])


async def _row(way: str, tools: int, agent: Agent[Any], calls: _Calls, *, deferred: bool = False) -> Row:
    tokens = 0

    async def run() -> int:
        nonlocal tokens
        script = Scripted(calls, deferred=deferred)
        await Runner.run(agent.clone(model=script), "Do it.", run_config=QUIET)
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
    return [apart(share, way) for way in (PEGBOARD, CALLED, EVERYTHING, NAIVE)]


def _fitting(schema: Json) -> Json:
    """Arguments that a schema takes."""
    values: Json = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}
    fields = schema.get("properties", {})
    wanted = {name: fields.get(name, {}) for name in schema.get("required", ())}
    return {name: values.get(each.get("type"), (each.get("enum") or ["x"])[0]) for name, each in wanted.items()}


class Narrow(Everything):
    """Just what this turn needs, and one that is always there."""

    def __init__(self, definitions: Sequence[Json], wanted: Sequence[str]) -> None:
        super().__init__(definitions)
        self._wanted, self._turn = wanted, 0

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[MCPTool]:
        self.listed = frozenset((self._wanted[min(self._turn, TURNS - 2) // 2], self._wanted[-1]))
        self._turn += 1
        return await super().list_tools(run_context, agent)


async def share(way: str) -> Share:
    """One session of so many requests."""
    used = catalog(SHARE_TOOLS)[:: SHARE_TOOLS // TURNS]
    wanted = [str(each["name"]) for each in used]
    calls: _Calls = [(wanted[turn // 2], _fitting(used[turn // 2]["inputSchema"])) for turn in range(TURNS - 1)]
    if way == PEGBOARD:
        calls = [(f"all__{name}", arguments) for name, arguments in calls]
    elif way == CALLED:
        calls = [("call_tool", {"name": f"all__{name}", "arguments": arguments}) for name, arguments in calls]
    script = Scripted(calls, keep=True)
    if way in (EVERYTHING, NAIVE):
        known = catalog(SHARE_TOOLS)
        server: MCPServer = Everything(known) if way == EVERYTHING else Narrow(known, wanted)
        await _session(Agent("a", model=script, mcp_servers=[server], instructions="Help."))
    else:
        async with board_of(SHARE_TOOLS) as board:
            ours = PegboardServer(board, reveal="called" if way == CALLED else "listed")
            model, told = ours.model(script), ours.instructions("Help.")
            await _session(Agent("a", model=model, mcp_servers=[ours], instructions=told))
    assert len(script.requests) == TURNS, f"{way}: {len(script.requests)} requests"
    assert script.requests[-1].count(RESULT.encode()) == TURNS - 1, f"{way}: some calls failed"
    return Share(FRAMEWORK, way, prefix_share(script.requests))


async def _session(agent: Agent[Any]) -> None:
    await Runner.run(agent, "Do it.", run_config=QUIET, max_turns=TURNS)
