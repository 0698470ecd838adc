"""Loops on the `anthropic` and `openai` SDKs: Pegboard's tools, the API's own search over everything, everything bound.

A run is three requests: search, call, answer. The SDKs are the real ones; what they talk to answers at once. Shares are
of the prompt in the order in which the API caches it: deferred tools are no part of it, references are put out in full.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

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
from pegboard.board import Result
from pegboard.integrations.anthropic_sdk import AnthropicTools
from pegboard.integrations.dialects import completions, messages, responses
from pegboard.integrations.openai_sdk import ChatCompletionsTools, ResponsesTools
from pegboard.testing import FakeLLM, FakeSource, Move, text_result
from pegboard.testing.llm import Wire
from pegboard.testing.llm.asked import Asked
from pegboard.testing.llm.cache import Reading
from pegboard.testing.llm.completions import Completions
from pegboard.testing.llm.messages import Messages
from pegboard.testing.llm.responses import Responses
from pegboard.testing.llm.transport import InProcess
from pegboard.types import Json

CALLED = 'pegboard, reveal="called"'
MESSAGES, RESPONSES, CHAT = "anthropic messages", "openai responses", "openai chat"
WIRES: dict[str, Wire] = {MESSAGES: Messages(), RESPONSES: Responses(), CHAT: Completions()}
MODELS = {MESSAGES: "claude-opus-5", RESPONSES: "gpt-5.5", CHAT: "gpt-4.1"}
DIALECTS: dict[str, Any] = {MESSAGES: messages, RESPONSES: responses, CHAT: completions}
LOOPS: dict[str, Any] = {MESSAGES: AnthropicTools, RESPONSES: ResponsesTools, CHAT: ChatCompletionsTools}
OWN: dict[str, Json] = {
    MESSAGES: {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    RESPONSES: {"type": "tool_search"},
}
MOST = {MESSAGES: 10_000, CHAT: 128}
"""Tools that the API takes in one request."""
FOUND = 5
"""Tools that the APIs' own searches load at once."""
QUERY, WANTED, ARGUMENTS = (
    "open an issue in a repository",
    "github__create_issue",
    {"owner": "a", "repo": "b", "title": "c"},
)
SHARE_TOOLS = 100
RESULT = "A line of a result that a model reads, with something in it to look at. " * 15

Arguments = Callable[[], Json]
Answer = Callable[[Any], Awaitable[Any]]


async def steps(wire: str, transport: InProcess, arguments: Arguments, answer: Answer) -> int:
    """A loop as its users write it, to the end; how many requests it made."""
    options: Any = {"api_key": "none", "base_url": "http://llm.test/v1", "max_retries": 0}
    options["http_client"] = httpx2.AsyncClient(transport=transport)
    ask, model = _request(wire, options), MODELS[wire]
    history: list[Any] = [{"role": "user", "content": "Do it."}]
    for step in range(1, TURNS + 2):
        reply = await ask(model, history, arguments())
        results = await answer(reply)
        if not results:
            return step
        if wire == MESSAGES:
            history += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]
        else:
            said = reply.output if wire == RESPONSES else [reply.choices[0].message]
            history += [*said, *results]
    raise AssertionError("it does not end")


def _request(wire: str, options: Any) -> Callable[[str, list[Any], Json], Awaitable[Any]]:
    if wire == MESSAGES:
        client = AsyncAnthropic(**options)
        return lambda model, history, more: client.messages.create(
            model=model, max_tokens=100, messages=history, **more
        )
    openai = AsyncOpenAI(**options)
    if wire == RESPONSES:
        return lambda model, history, more: openai.responses.create(model=model, input=history, **more)
    return lambda model, history, more: openai.chat.completions.create(model=model, messages=history, **more)


class Canned:
    """Answers with these replies, one a request, and looks at none of them; keeps the last body."""

    def __init__(self, wire: str, moves: Sequence[Move], searched: Sequence[Json] = ()) -> None:
        """The first reply begins with what the API itself searched, where it did."""
        asked = Asked({"model": MODELS[wire], "tools": [{"type": "tool_search", "execution": "client"}]})
        replies = [WIRES[wire].reply(move, asked, at, Reading(0, 0, 0, 0)) for at, move in enumerate(moves)]
        where = "content" if wire == MESSAGES else "output"
        if searched:
            replies[0][where] = [*searched, *replies[0][where]]
        self._replies = [msgspec.json.encode(reply) for reply in replies]
        self.last = b""

    def answer(self, path: str, headers: Any, raw: bytes) -> tuple[int, str, list[bytes]]:
        self.last = raw
        return 200, "application/json", [self._replies.pop(0)]


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


def loop_on(wire: str, board: Pegboard, reveal: Any = None) -> tuple[Arguments, Answer]:
    """Pegboard's tools on this wire, in a new conversation: native where it can be."""
    loop = LOOPS[wire](board.conversation(reveal=reveal or ("called" if wire == CHAT else "listed")))
    return (loop.tools if wire == CHAT else lambda: loop.tools(MODELS[wire])), loop.results


def bound(wire: str, definitions: Sequence[Json], *, deferred: bool = False) -> tuple[Arguments, Answer]:
    """These tools in every request; deferred, with the API's own search before them."""
    dialect = DIALECTS[wire]
    made = [dialect.tool(each, deferred=True) if deferred else dialect.tool(each) for each in definitions]
    tools = [OWN[wire], *made] if deferred else made
    return (lambda: {"tools": tools}), _answering(wire)


def _answering(wire: str) -> Answer:
    async def answer(reply: Any) -> list[Json]:
        return [DIALECTS[wire].result(call, Result(text_result(RESULT))) for call in DIALECTS[wire].calls(reply)]

    return answer


async def pegboard(wire: str, tools: int) -> Row:
    """Search, call, answer."""
    wanted = f"all__{WANTED}"
    name, given = ("call_tool", {"name": wanted, "arguments": ARGUMENTS}) if wire == CHAT else (wanted, ARGUMENTS)
    moves = [Move(calls=(("search_tools", {"query": QUERY}),)), Move(calls=((name, given),)), Move(text="done")]
    async with board_of(tools) as board:
        return await _row(wire, PEGBOARD, tools, lambda: loop_on(wire, board), moves)


async def own_search(wire: str, tools: int) -> Row:
    """Every tool in every request, deferred; what the API itself searches takes no request of its own."""
    known = catalog(tools)
    made = bound(wire, known, deferred=True)
    issue = next(each for each in known if each["name"] == WANTED)
    found = [issue, *(each for each in known if each is not issue)][:FOUND]
    return await _row(wire, OWN_SEARCH, tools, lambda: made, _CALLS, _searched(wire, found))


def _searched(wire: str, found: Sequence[Json]) -> list[Json]:
    """A search that the API made, as a reply has it."""
    if wire == MESSAGES:
        names = [{"type": "tool_reference", "tool_name": each["name"]} for each in found]
        use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": OWN[wire]["name"], "input": {"query": QUERY}}
        content = {"type": "tool_search_tool_search_result", "tool_references": names}
        return [use, {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": content}]
    about = {"execution": "server", "call_id": None, "status": "completed"}
    call = {"id": "tsc_1", "type": "tool_search_call", "arguments": {"paths": [WANTED]}, **about}
    tools = [responses.tool(each, deferred=True) for each in found]
    return [call, {"id": "tso_1", "type": "tool_search_output", "tools": tools, **about}]


async def everything_bound(wire: str, tools: int) -> Row:
    """Every tool in every request."""
    made = bound(wire, catalog(tools))
    return await _row(wire, EVERYTHING, tools, lambda: made, _CALLS)


_CALLS = [Move(calls=((WANTED, ARGUMENTS),)), Move(calls=((WANTED, ARGUMENTS),)), Move(text="done")]


async def _row(
    wire: str,
    way: str,
    tools: int,
    begin: Callable[[], tuple[Arguments, Answer]],
    moves: Sequence[Move],
    searched: Sequence[Json] = (),
) -> Row:
    last = b""

    async def run() -> int:
        nonlocal last
        canned = Canned(wire, moves, searched)
        made = await steps(wire, InProcess(canned.answer), *begin())
        assert made == len(moves), f"{wire}, {way}: {made} requests"
        last = canned.last
        return made

    cpu, wall = await per_step(run, rounds=3 if tools > 1000 else 7)
    shown = WIRES[wire].shown(Asked(msgspec.json.decode(last)))
    return Row(wire, way, tools, cpu, wall, tokens_of(map(_mcp, shown.tools)))


def _mcp(tool: Json) -> Json:
    """A definition as MCP has it."""
    about = tool.get("function") or tool
    schema = about.get("input_schema") or about.get("parameters") or {}
    return {"name": about.get("name", ""), "description": about.get("description", ""), "inputSchema": schema}


async def rows(sizes: Sequence[int]) -> list[Row]:
    """The cost of a step, each in a process of its own; what an API does not take is left out."""
    found = []
    for wire in WIRES:
        for size in sizes:
            found.append(apart(pegboard, wire, size))
            if wire in OWN and size <= MOST.get(wire, size):
                found.append(apart(own_search, wire, size))
            found.append(apart(everything_bound, wire, size))
    return [row for row in found if row is not None]


async def shares() -> list[Share]:
    """The prefix over a session that needs another tool every other turn."""
    ways = [
        (wire, way) for wire in WIRES for way in (PEGBOARD, CALLED, EVERYTHING, NAIVE) if (wire, way) != (CHAT, CALLED)
    ]
    return [apart(share, wire, way) for wire, way in ways]


async def share(wire: str, way: str) -> Share:
    """One session of so many requests: search, call what was found, search again."""
    used = catalog(SHARE_TOOLS)[:: SHARE_TOOLS // TURNS]
    wanted = [(str(each["name"]), _fitting(each["inputSchema"])) for each in used]
    turns = [wanted[turn // 2] for turn in range(TURNS - 1)]
    if way in (EVERYTHING, NAIVE):
        fake = FakeLLM([*(Move(calls=(call,)) for call in turns), Move(text="done")])
        arguments, answer = bound(wire, catalog(SHARE_TOOLS))
        if way == NAIVE:  # just what this turn needs, and one that is always there
            needed = [bound(wire, [used[-1], used[turn // 2]])[0] for turn in range(TURNS)]
            arguments = lambda: needed[len(fake.requests)]()  # noqa: E731
        await steps(wire, fake.transport(), arguments, answer)
    else:
        bridge = wire == CHAT
        fake = FakeLLM([*(_found(turn, *call, bridge=bridge) for turn, call in enumerate(turns)), Move(text="done")])
        async with board_of(SHARE_TOOLS) as board:
            await steps(wire, fake.transport(), *loop_on(wire, board, "called" if way == CALLED else None))
    assert len(fake.requests) == TURNS, f"{wire}, {way}: {len(fake.requests)} requests"
    prompts = [WIRES[wire].prompt(Asked(seen.body)) for seen in fake.requests]
    return Share(wire, way, prefix_share([b"".join(piece.data for piece in prompt) for prompt in prompts]))


def _found(turn: int, name: str, arguments: Json, *, bridge: bool) -> Move:
    """Every other turn finds a tool, the next one calls it."""
    public = f"all__{name}"
    if turn % 2 == 0:
        return Move(calls=(("search_tools", {"query": f"select:{public}"}),))
    call = ("call_tool", {"name": public, "arguments": arguments}) if bridge else (public, arguments)
    return Move(calls=(call,))


def _fitting(schema: Json) -> Json:
    """Arguments that a schema takes."""
    values: Json = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}
    fields = schema.get("properties", {})
    wanted = {name: fields.get(name, {}) for name in schema.get("required", ())}
    return {name: values.get(each.get("type"), (each.get("enum") or ["x"])[0]) for name, each in wanted.items()}
