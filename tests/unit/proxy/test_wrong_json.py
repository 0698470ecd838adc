"""Requests and replies that are JSON and yet wrong, on every wire: nothing is raised but that a reply was cut."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pegboard.config.model import ProxyConfig
from pegboard.proxy.declared import Family
from pegboard.proxy.events import encoded
from pegboard.proxy.keeper import Keeper
from pegboard.proxy.planner import DeferringPlanner
from pegboard.proxy.seam import Asked, Exchange, Passed, ReplyCut, Wire
from pegboard.proxy.searching import Searching
from pegboard.proxy.tally import Tally
from pegboard.testing import FakeLLM, FakeStore, Move
from tests.unit.proxy.rounds import (
    FORECAST,
    PATHS,
    TOOLS,
    begun,
    bridged,
    by,
    driven,
    remembered,
    saying,
    searches,
    sliced,
)

READ = ("Read", {"path": "a"})
WAYS: list[tuple[Family, str]] = [
    ("messages", "native"),
    ("messages", "bridge"),
    ("completions", "bridge"),
    ("responses", "bridge"),
]
SPICES: list[Any] = [
    None, True, 0, -1, 1.5, 10**30, "", "x", "ü\u2028", [], {}, [None], [[]], {"": None}, {"type": None},
    {"type": "tool_use"}, {"type": "text"}, {"type": "thinking"}, {"type": "tool_use", "id": [], "name": {}},
    {"type": "server_tool_use", "name": "tool_search_tool_bm25"}, {"type": "tool_search_tool_result", "content": 1},
    {"type": "function_call", "name": "call_tool"}, {"type": "item_reference"}, {"role": "assistant"},
    "search_tools", "call_tool", {"name": "call_tool", "arguments": 1}, '{"name": 1, "arguments": [}', "toolu_0001_0",
]  # fmt: skip


def moves(executor: str) -> list[Move]:
    if executor == "native":
        return [
            Move(text="Look.", searches=("forecast",), calls=((FORECAST, {"title": "U"}), READ)),
            Move(calls=(READ,), unfinished_search="rain"),
            Move(text="Wait.", searches=("rain",), pause=True),
            Move(text="Done."),
        ]
    both = (READ, ("search_tools", {"query": "mail"}), ("call_tool", {"arguments": {"a": 'q"{'}, "name": FORECAST}))
    return [
        searches("rain", text="Look."),
        bridged(FORECAST, {"title": "U"}, text="Found."),
        Move(text="Both.", calls=both),
        bridged("nobody", {}),
        Move(text="Done."),
    ]


def mutated(value: Any, dice: random.Random) -> Any:
    """With something in it replaced, left out, doubled or put in the place of something else."""
    for _ in range(dice.choice([1, 1, 2, 5])):
        places = list(_places(value))
        if not places:
            return dice.choice(SPICES)
        holder, key = dice.choice(places)
        other, at = dice.choice(places)
        match dice.randrange(4):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.insert(key, _copy(holder[key]))
            case 2:
                holder[key] = _copy(other[at])
            case _:
                holder[key] = _copy(dice.choice(SPICES))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(inner):
        yield value, key
        yield from _places(each)


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def events(data: bytes, dice: random.Random) -> bytes:
    """A reply with some of its events, or all of it, mutated."""
    if not data.startswith((b"event:", b"data:")):
        return json.dumps(mutated(json.loads(data), dice)).encode()
    out = []
    for event in data.split(b"\n\n")[:-1]:
        head, _, said = event.rpartition(b"data: ")
        if dice.random() < 0.15 and said != b"[DONE]":
            said = json.dumps(mutated(json.loads(said), dice)).encode()
        out += [head + b"data: " + said] * dice.choice([1] * 20 + [0, 2])
    return b"".join(event + b"\n\n" for event in out)


class Life:
    """A conversation in which one thing after the other is wrong."""

    def __init__(self, family: Family, executor: Any, dice: random.Random) -> None:
        self.family, self.dice = family, dice
        config = ProxyConfig(min_tokens=500, executor=executor, max_rounds=4)
        keeper = Keeper(FakeStore(), config.conversation_ttl)
        self.planner = DeferringPlanner(config, {"api": ""}, keeper, lambda: Searching(None, 5), Tally())
        self.fake = FakeLLM(moves(executor))
        self.field = "input" if family == "responses" else "messages"
        self.history: list[Any] = [{"role": "user", "content": "Go"}]
        self.stream = dice.random() < 0.5
        self.edited = 0

    def body(self) -> dict[str, Any]:
        more = {"max_tokens": 9} if self.family == "messages" else {}
        said = {
            "model": "claude-opus-5-5",
            "stream": self.stream,
            "tools": TOOLS[self.family],
            self.field: self.history,
        }
        return {**said, **more}

    async def live(self, *, wrong_requests: float, wrong_replies: float) -> None:
        for _ in range(5):
            if not self.fake.model.moves:
                return
            body = self.body()
            if self.dice.random() < wrong_requests:
                body = mutated(_copy(body), self.dice)
            if self.family == "messages":
                await self.count(body)
            plan = await self.planner.plan(self.asked(body, self.family))
            if isinstance(plan, Passed):
                continue
            self.edited += 1
            await self.drive(plan, wrong_replies)

    def asked(self, body: Any, wire: Wire) -> Asked:
        return Asked(wire=wire, upstream="api", headers={}, body=json.dumps(body).encode())

    async def count(self, body: Any) -> None:
        plan = await self.planner.plan(self.asked(body, "count_tokens"))
        if not isinstance(plan, Passed):
            status, _, pieces = self.fake.answer("/v1/messages/count_tokens", {}, plan.body)
            assert status in (200, 400)
            assert plan.feed(b"".join(pieces)) + plan.finish() == b"".join(pieces)

    async def drive(self, plan: Exchange, wrong_replies: float) -> None:
        shown = b""
        try:
            while True:
                assert isinstance(json.loads(plan.body), dict)
                reply = self.answer(plan.body)
                if reply is None:
                    plan.failed(400, b"{}")
                    break
                wrong = self.dice.random() < wrong_replies
                reply = events(reply, self.dice) if wrong else reply
                for piece in sliced(reply, [self.dice.randrange(len(reply) + 1) for _ in range(3)]):
                    shown += plan.feed(piece)
                shown += plan.finish()
                if not await plan.again():
                    break
        except ReplyCut:
            pass
        finally:
            await plan.close()
        self.hear(shown)

    def answer(self, body: bytes) -> bytes | None:
        status, _, pieces = self.fake.answer(PATHS[self.family], {}, body)
        return b"".join(pieces) if status == 200 else None

    def hear(self, shown: bytes) -> None:
        """Goes on with whatever the model's last reply was, as a client would that got it unhidden or not at all."""
        reply = self.fake.requests[-1].reply or {}
        if self.family == "messages":
            said = [block for block in reply.get("content", []) if "search" not in json.dumps(block)]
            calls = [block for block in said if block["type"] == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": each["id"], "content": "ran"} for each in calls]
            self.history += [
                {"role": "assistant", "content": said or "."},
                {"role": "user", "content": results or "More"},
            ]
        elif self.family == "completions":
            message = reply.get("choices", [{"message": {"role": "assistant", "content": "."}}])[0]["message"]
            called = message.get("tool_calls") or []
            self.history.append(message)
            self.history += [{"role": "tool", "tool_call_id": each["id"], "content": "ran"} for each in called]
            self.history.append({"role": "user", "content": "More"})
        else:
            items = reply.get("output", [])
            called = [each for each in items if each["type"] == "function_call"]
            self.history += items
            self.history += [
                {"type": "function_call_output", "call_id": each["call_id"], "output": "ran"} for each in called
            ]
            self.history.append({"role": "user", "content": "More"})


def lives(family: Family, executor: str, count: int, **wrong: float) -> int:
    async def run() -> int:
        edited = 0
        for number in range(count):
            life = Life(family, executor, random.Random(number))
            try:
                await life.live(**wrong)
            except Exception as error:
                error.add_note(f"life {number} on {family}, {executor}")
                raise
            edited += life.edited
        return edited

    return asyncio.run(run())


def asked_by_hand(family: Family, executor: str, **changes: Any) -> Exchange | Passed:
    """What becomes of a first request with these fields."""
    life = Life(family, executor, random.Random(0))
    return asyncio.run(life.planner.plan(life.asked({**life.body(), **changes}, family)))


@pytest.mark.parametrize(
    "wrong",
    [{}, {"name": ""}, {"name": 5}, {"name": ["a"]}, {"name": "t", "description": 1}, {"name": "t", "schema": 1}],
)
@pytest.mark.parametrize(("family", "executor"), WAYS)
def test_a_tool_that_is_no_tool_is_for_its_api_to_refuse(family, executor, wrong) -> None:
    schema = "input_schema" if family == "messages" else "parameters"
    tool: Any = {schema if key == "schema" else key: value for key, value in wrong.items()}
    if family != "messages":
        tool = {"type": "function", **({"function": tool} if family == "completions" else tool)}
    plan = asked_by_hand(family, executor, tools=[*TOOLS[family], tool])
    assert plan == Passed("not understood")


def test_a_call_that_ends_without_its_item_is_passed_on() -> None:
    made = bridged(FORECAST, {"title": "U"})
    fake = FakeLLM([made, made])
    memory = remembered()
    body = {"model": "m", "input": "hi", "tools": TOOLS["responses"], "stream": True}
    right = by(fake, "responses")(begun("responses", memory, body).body)
    head, kind, rest = right.partition(b'"type":"response.output_item.done"')
    wrong = head + kind + re.sub(rb'"item":.*', b'"item":7}', rest, count=1)
    done = driven(begun("responses", memory, body), saying(wrong))
    [ended] = [each for each in done.events if each["type"] == "response.output_item.done"]
    assert ended["item"] == 7


@pytest.mark.parametrize("wrong", [7, 1.5, True, "x", {}])
def test_calls_that_are_no_list_are_passed_on_as_they_are(wrong) -> None:
    memory = remembered()
    said: Any = {"role": "user", "content": "hi"}
    body = {"model": "m", "messages": [said], "tools": TOOLS["completions"], "stream": True}
    made = bridged(FORECAST, {"title": "U"})
    right = by(FakeLLM([made]), "completions")(begun("completions", memory, body).body)
    end = b'"delta":{"tool_calls":%s},"finish_reason":"' % json.dumps(wrong).encode()
    odd = right.replace(b'"delta":{},"finish_reason":"', end)
    assert odd != right
    done = driven(begun("completions", memory, body), saying(odd))
    assert FORECAST in done.out.decode()
    later = [said, {"role": "assistant", "content": "x", "tool_calls": wrong}, said]
    assert json.loads(begun("completions", memory, {**body, "messages": later}).body)["messages"] == later


@pytest.mark.parametrize("wrong", [None, "x", 1.5, [], {}])
def test_an_event_without_its_place_is_passed_on(wrong) -> None:
    memory = remembered("native")
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": TOOLS["messages"], "stream": True}
    kinds = ("content_block_start", "content_block_delta", "content_block_stop")
    events = [encoded({"type": kind, "index": wrong, "delta": {}, "content_block": {}}, kind) for kind in kinds]
    end = encoded({"type": "message_stop"}, "message_stop")
    done = driven(begun("messages", memory, body), saying(b"".join([*events, end])))
    assert done.out == b"".join([*events, end])


@pytest.mark.parametrize(("family", "executor"), WAYS)
def test_a_wrong_request_passes_or_is_changed_and_raises_nothing(family, executor) -> None:
    assert lives(family, executor, 60, wrong_requests=0.7, wrong_replies=0.0) > 60


@pytest.mark.parametrize(("family", "executor"), WAYS)
def test_a_wrong_reply_is_passed_on_or_a_cut_and_raises_nothing_else(family, executor) -> None:
    assert lives(family, executor, 60, wrong_requests=0.2, wrong_replies=0.7) > 60


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("family", "executor"), WAYS)
def test_ten_thousand_wrong_messages_raise_nothing(family, executor) -> None:
    assert lives(family, executor, 2500, wrong_requests=0.5, wrong_replies=0.5) > 2500
