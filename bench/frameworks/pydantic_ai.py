"""Pydantic AI: Pegboard's capability, the framework's own tool search over deferred tools, and every tool bound.

A run is three requests: search, call, answer. The model is a function that answers at once, so what is measured is what
the framework and Pegboard do around it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolAvailabilityDeltaPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

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
from pegboard.integrations.pydantic_ai import PegboardCapability
from pegboard.testing import FakeSource, text_result
from pegboard.types import Json

FRAMEWORK = "pydantic-ai"
QUERY = "open an issue in a repository"
WANTED = "github__create_issue"
ARGUMENTS = {"owner": "a", "repo": "b", "title": "c"}
SHARE_TOOLS = 200
NATIVE, CALLED = "pegboard, tools added in the conversation", 'pegboard, reveal="called"'
RESULT = "A line of a result that a model reads, with something in it to look at. " * 15
_ANYTHING = SchemaValidator(core_schema.any_schema())
_Calls = list[tuple[str, Json]]


class Everything(AbstractToolset[Any]):
    """All of the catalog, as an MCP toolset would list it from its cache; deferred where that is asked for."""

    def __init__(self, definitions: Sequence[Json], *, defer: bool = False) -> None:
        self._tools = {str(each["name"]): self._tool(each, defer) for each in definitions}
        self.listed: Callable[[str], bool] = lambda _: True

    def _tool(self, definition: Json, defer: bool) -> ToolsetTool[Any]:
        tool_def = ToolDefinition(
            name=str(definition["name"]),
            description=definition["description"],
            parameters_json_schema=definition["inputSchema"],
            defer_loading=defer,
        )
        return ToolsetTool(toolset=self, tool_def=tool_def, max_retries=1, args_validator=_ANYTHING)

    @property
    def id(self) -> str:
        return "everything"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {name: tool for name, tool in self._tools.items() if self.listed(name)}

    async def call_tool(self, name: str, tool_args: Json, ctx: RunContext[Any], tool: ToolsetTool[Any]) -> Any:
        return RESULT


class Scripted:
    """A model that makes these calls, one a turn; it keeps what it was sent."""

    def __init__(self, calls: _Calls, *, keep: bool = False, profile: Any = None) -> None:
        self._calls, self._keep = calls, keep
        self.turn = 0
        self.most: Sequence[ToolDefinition] = ()
        """The longest list that it was sent."""
        self.requests: list[bytes] = []
        self.model = FunctionModel(self._answer, profile=profile)

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn, self.turn = self.turn, self.turn + 1
        if self._keep:
            self.requests.append(_sent(messages, info))
        self.most = max(self.most, info.function_tools, key=len)
        if turn >= len(self._calls):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(*self._calls[turn], tool_call_id=f"call-{turn}")])


def _mcp(tool: ToolDefinition) -> Json:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters_json_schema}


def _sent(messages: list[ModelMessage], info: AgentInfo) -> bytes:
    """The request in the order in which providers cache it: tools, instructions, messages with what they add."""
    known = info.model_request_parameters.tool_defs
    lines = [json.dumps(_mcp(tool)) for tool in info.function_tools] + [json.dumps(info.instructions)]
    for message in messages:
        for part, plain in zip(message.parts, _plain(message), strict=True):
            added = part.tools_added if isinstance(part, ToolAvailabilityDeltaPart) else ()
            lines += [json.dumps(plain), *(json.dumps(_mcp(known[name])) for name in added if name in known)]
    return "\n".join(lines).encode()


def _plain(message: ModelMessage) -> list[Json]:
    [dumped] = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    dropped = ("timestamp", "metadata")
    return [{key: value for key, value in part.items() if key not in dropped} for part in dumped["parts"]]


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
    """The capability."""
    async with board_of(tools) as board:
        agent = Agent(capabilities=[PegboardCapability(board)])
        calls: _Calls = [("search_tools", {"query": QUERY}), (f"all__{WANTED}", ARGUMENTS)]
        return await _row(PEGBOARD, tools, agent, calls)


async def own_search(tools: int) -> Row:
    """Every tool deferred, the framework's own keyword search over them."""
    # The model searches with the framework's function, as most do, and not with something of its provider's.
    agent = Agent(toolsets=[Everything(catalog(tools), defer=True)])
    calls: _Calls = [("search_tools", {"queries": [QUERY]}), (WANTED, ARGUMENTS)]
    return await _row(OWN_SEARCH, tools, agent, calls, profile={"supported_native_tools": frozenset()})


async def everything_bound(tools: int) -> Row:
    """Every tool in every request."""
    agent = Agent(toolsets=[Everything(catalog(tools))])
    return await _row(EVERYTHING, tools, agent, [(WANTED, ARGUMENTS), (WANTED, ARGUMENTS)])


async def _row(way: str, tools: int, agent: Agent[Any, Any], calls: _Calls, profile: Any = None) -> Row:
    scripts: list[Scripted] = []

    async def run() -> int:
        scripts[:] = [script := Scripted(calls, profile=profile)]
        await agent.run("Do it.", model=script.model)
        assert script.turn == len(calls) + 1, f"{way}: {script.turn} requests"
        return script.turn

    cpu, wall = await per_step(run, rounds=3 if tools > 1000 else 7)
    return Row(FRAMEWORK, way, tools, cpu, wall, tokens_of(map(_mcp, scripts[0].most)))


async def rows(sizes: Sequence[int]) -> list[Row]:
    """The cost of a step, each in a process of its own."""
    ways = (pegboard, own_search, everything_bound)
    found = [apart(way, size) for size in sizes for way in ways]
    return [row for row in found if row is not None]


async def shares() -> list[Share]:
    """The prefix over a session that needs another tool every other turn."""
    return [apart(share, way) for way in (PEGBOARD, NATIVE, CALLED, EVERYTHING, NAIVE)]


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
    if way in (PEGBOARD, NATIVE):
        calls = [(f"all__{name}", arguments) for name, arguments in calls]
    elif way == CALLED:
        calls = [("call_tool", {"name": f"all__{name}", "arguments": arguments}) for name, arguments in calls]
    profile = {"tool_addition_mode": "with_definitions"} if way == NATIVE else None
    script = Scripted(calls, keep=True, profile=profile)
    if way in (EVERYTHING, NAIVE):
        toolset = Everything(catalog(SHARE_TOOLS))
        if way == NAIVE:  # just what this turn needs, and one that is always there
            toolset.listed = lambda name: name in (wanted[min(script.turn, TURNS - 2) // 2], wanted[-1])
        await Agent(toolsets=[toolset]).run("Do it.", model=script.model)
    else:
        async with board_of(SHARE_TOOLS) as board:
            tools = PegboardCapability(board, reveal="called" if way == CALLED else "listed")
            await Agent(capabilities=[tools]).run("Do it.", model=script.model)
    assert len(script.requests) == TURNS, f"{way}: {len(script.requests)} requests"
    assert script.requests[-1].count(RESULT.encode()) == TURNS - 1, f"{way}: some calls failed"
    return Share(FRAMEWORK, way, prefix_share(script.requests))
