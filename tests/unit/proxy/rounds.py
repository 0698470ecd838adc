"""Drives one exchange by hand, on any wire: a strict stand-in or plain bytes answer it, in any slices."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterable, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from pegboard.proxy.completions_reply import CompletionsReply
from pegboard.proxy.completions_request import CompletionsRequest
from pegboard.proxy.declared import Declarations, Family
from pegboard.proxy.exchange import Edited
from pegboard.proxy.memory import Executor, Remembered
from pegboard.proxy.messages_reply import MessagesReply
from pegboard.proxy.messages_request import MessagesRequest
from pegboard.proxy.opening import opening
from pegboard.proxy.responses_reply import ResponsesReply
from pegboard.proxy.responses_request import ResponsesRequest
from pegboard.proxy.searching import definitions
from pegboard.proxy.toolset import Offer
from pegboard.proxy.turn import Ask, Turn
from pegboard.testing import FakeLLM, Move
from tests.agent_tools import completions_tools, messages_tools, responses_tools

FORECAST = "mcp__weather__forecast"
ISSUE = "mcp__github__create_issue"
PATHS = {"messages": "/v1/messages", "completions": "/v1/chat/completions", "responses": "/v1/responses"}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "messages": messages_tools(),
    "completions": completions_tools(),
    "responses": responses_tools(),
}


def remembered(executor: Executor = "bridge") -> Remembered:
    if executor == "native":
        return Remembered(executor="native")
    return Remembered(executor="bridge", search="search_tools", call="call_tool")


def searches(*queries: str, text: str = "") -> Move:
    return Move(text=text, calls=tuple(("search_tools", {"query": query}) for query in queries))


def bridged(name: str, arguments: Any, text: str = "") -> Move:
    return Move(text=text, calls=(("call_tool", {"name": name, "arguments": arguments}),))


def now(work: Coroutine[Any, Any, Any]) -> Any:
    """What comes of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


async def found(ask: Ask) -> str:
    return f"found for {ask.input.get('query')}"


async def kept() -> None:
    return None


def begun(family: Family, memory: Remembered, body: dict[str, Any] | bytes, *, most_rounds: int = 8) -> Edited:
    """The exchange that a request leads to, as the planner makes it."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    tools = Declarations().read(family, map(bytes, msgspec.json.decode(fields["tools"], type=list[msgspec.Raw])))
    where = opening(family, fields)
    assert tools is not None
    assert where is not None
    answer_rest(family, memory)
    offer = Offer(tools, [tool for tool in tools if tool.name.startswith("mcp__")])
    turn = Turn(memory, where.prior, {tool.name: tool for tool in tools}, where.row)
    own = definitions(memory.search, memory.call, "- weather") if memory.executor == "bridge" else ()
    streamed = bool(json.loads(raw).get("stream"))
    if family == "messages":
        request: Any = MessagesRequest(fields, offer, memory, own)
        reply: Any = MessagesReply(turn)
    elif family == "completions":
        request = CompletionsRequest(fields, offer, memory, own)
        reply = CompletionsReply(turn)
    else:
        request = ResponsesRequest(fields, offer, memory, own)
        stored = json.loads(raw).get("store") is not False
        reply = ResponsesReply(turn, fields["tools"], stored=stored, previous=where.previous)
    return Edited(request, reply, streamed=streamed, answer=found, keep=kept, most_rounds=most_rounds)


def answer_rest(family: Family, memory: Remembered) -> None:
    """What the planner does before it weaves: searches beside calls get their answers."""
    editors: dict[Family, Any] = {
        "messages": MessagesRequest,
        "completions": CompletionsRequest,
        "responses": ResponsesRequest,
    }
    editor = editors[family]
    for insert in memory.inserts:
        for each in insert.asked:
            ask = Ask(each["id"], each["input"], {}, each["problem"])
            insert.later = [*insert.later, editor.result(ask, ask.problem or now(found(ask)))]
        insert.asked = []
    for waiting in memory.pending.values():
        for each in waiting:
            each["text"] = each["problem"] or f"found for {each['input'].get('query')}"


class Driven(msgspec.Struct):
    """What the client got, and what the API got."""

    out: bytes
    sent: list[bytes]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.sent]

    @property
    def whole(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.out)
        return value

    @property
    def events(self) -> list[dict[str, Any]]:
        lines = [line.removeprefix("data: ") for line in self.out.decode().splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines if line != "[DONE]"]


def sliced(data: bytes, cuts: Iterable[int] = ()) -> list[bytes]:
    at = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(at)]


def driven(exchange: Edited, answer: Callable[[bytes], bytes], cuts: Sequence[int] = ()) -> Driven:
    """Round after round, until no other follows."""
    done = Driven(b"", [])
    while True:
        done.sent.append(exchange.body)
        for piece in sliced(answer(exchange.body), cuts):
            done.out += exchange.feed(piece)
        done.out += exchange.finish()
        if not now(exchange.again()):
            now(exchange.close())
            return done


def by(fake: FakeLLM, family: Family) -> Callable[[bytes], bytes]:
    """Answers as the stand-in does, which refuses nothing of what is sent."""

    def answer(body: bytes) -> bytes:
        status, _, pieces = fake.answer(PATHS[family], {}, body)
        assert status == 200, (fake.requests[-1].refused, body)
        return b"".join(pieces)

    return answer


def saying(*streams: bytes) -> Callable[[bytes], bytes]:
    """Answers with these, one after the other."""
    left = list(streams)
    return lambda _: left.pop(0)
