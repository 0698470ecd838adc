"""Agents on OpenAI's two wires behind the proxy: the real SDK, the real planner, a strict stand-in for the API."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import APIConnectionError, APIStatusError, AsyncOpenAI

from pegboard.proxy.seam import ReplyCut
from pegboard.testing import FakeLLM, FakeStore, Fault, Move
from tests.agent_tools import CORE, NAMES, completions_tools, responses_tools
from tests.flow.test_proxy_messages import FORECAST, ISSUE, bridged, searches
from tests.loops import in_a_loop
from tests.often import often
from tests.proxied import Proxied


class OnCompletions:
    """A client of Chat Completions that knows nothing of deferral."""

    def __init__(self, proxied: Proxied, *, stream: bool, model: str = "gpt-5.5") -> None:
        self.client = AsyncOpenAI(**{**proxied.options(), "base_url": "http://llm.test/v1"})
        self.stream, self.model = stream, model
        self.tools: Any = completions_tools()
        self.history: list[Any] = []
        self.ran: list[tuple[str, Any]] = []
        self.usage: list[Any] = []

    async def says(self, text: str) -> str:
        self.history.append({"role": "user", "content": text})
        for _ in range(10):
            message = await self.turn()
            calls = message.get("tool_calls") or []
            if not calls:
                return str(message["content"])
            for call in calls:
                self.ran.append((call["function"]["name"], json.loads(call["function"]["arguments"] or "{}")))
                self.history.append({"role": "tool", "tool_call_id": call["id"], "content": "ran"})
        raise AssertionError("it never ended")

    async def turn(self) -> dict[str, Any]:
        asked: Any = {"model": self.model, "messages": self.history, "tools": self.tools}
        if self.stream:
            async with self.client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
                final: Any = await stream.get_final_completion()
        else:
            final = await self.client.chat.completions.create(**asked)
        self.usage.append(final.usage)
        message: dict[str, Any] = final.choices[0].message.model_dump(mode="json", exclude_none=True)
        for call in message.get("tool_calls") or []:
            call["function"].pop("parsed_arguments", None)
            call.pop("index", None)
        kept = {key: value for key, value in message.items() if key in ("role", "content", "tool_calls") and value}
        self.history.append({"content": None, **kept})
        return message


class OnResponses:
    """A client of Responses: it sends all items back, or names the reply that it goes on from."""

    def __init__(self, proxied: Proxied, *, stream: bool, model: str = "gpt-5.5", chained: bool = False) -> None:
        self.client = AsyncOpenAI(**{**proxied.options(), "base_url": "http://llm.test/v1"})
        self.stream, self.model, self.chained = stream, model, chained
        self.tools: Any = responses_tools()
        self.history: list[Any] = []
        self.previous = ""
        self.ran: list[tuple[str, Any]] = []
        self.usage: list[Any] = []

    async def says(self, text: str) -> str:
        self.history.append({"role": "user", "content": text})
        for _ in range(10):
            final = await self.turn()
            calls = [item for item in final.output if item.type == "function_call"]
            if not calls:
                return str(final.output_text)
            for call in calls:
                self.ran.append((call.name, json.loads(call.arguments or "{}")))
                self.history.append({"type": "function_call_output", "call_id": call.call_id, "output": "ran"})
        raise AssertionError("it never ended")

    async def turn(self) -> Any:
        asked: Any = {"model": self.model, "input": self.history, "tools": self.tools}
        if self.chained and self.previous:
            asked["previous_response_id"] = self.previous
        if self.stream:
            async with self.client.responses.stream(**asked) as stream:
                final: Any = await stream.get_final_response()
        else:
            final = await self.client.responses.create(**asked)
        self.usage.append(final.usage)
        self.previous = final.id
        items = [item.model_dump(mode="json", exclude_none=True) for item in final.output]
        for item in items:
            item.pop("parsed_arguments", None)
            for part in item.get("content") or []:
                part.pop("parsed", None)
        self.history = [] if self.chained else [*self.history, *items]
        return final


WIRES: dict[str, Any] = {
    "completions": OnCompletions,
    "responses": OnResponses,
    "chained responses": lambda proxied, stream: OnResponses(proxied, stream=stream, chained=True),
}


@pytest.fixture(params=WIRES)
def agent_on(request: pytest.FixtureRequest) -> Any:
    return WIRES[request.param]


@pytest.fixture(params=[True, False], ids=["stream", "whole"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=[0, 7], ids=["at once", "in pieces"])
def slice_by(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def grows_only(sent: list[bytes]) -> None:
    """Tools stay the same, and every history that is sent whole begins with the one before."""
    bodies = [json.loads(body) for body in sent]
    for before, after in pairwise(bodies):
        assert after["tools"] == before["tools"]
        said = [body.get("messages") or body["input"] for body in (before, after)]
        if before.get("previous_response_id") == after.get("previous_response_id"):
            assert said[1][: len(said[0])] == said[0]


@in_a_loop
async def test_the_bridge_searches_inside_and_the_client_runs_the_real_tool(agent_on, stream, slice_by) -> None:
    fake = FakeLLM(
        [
            searches("weather forecast", text="Let me look."),
            searches("rain", text="Again."),
            bridged((FORECAST, {"title": "Ulm"})),
            Move(text="Rain."),
            Move(calls=(("Read", {"path": "a"}),)),
            Move(text="Done."),
        ]
    )
    proxied = Proxied(fake, slice_by=slice_by)
    agent = agent_on(proxied, stream=stream)
    assert await agent.says("Will it rain in Ulm?") == "Rain."
    assert await agent.says("Read a") == "Done."
    assert agent.ran == [(FORECAST, {"title": "Ulm"}), ("Read", {"path": "a"})]
    assert fake.model.shown[0].names == ("search_tools", "call_tool", *CORE)
    assert len(proxied.sent) == 6
    assert proxied.passed == []
    grows_only(proxied.sent)
    assert FORECAST.encode() in proxied.sent[1]


@in_a_loop
async def test_a_search_beside_calls_is_answered_with_the_clients_results(agent_on, stream) -> None:
    fake = FakeLLM(
        [
            Move(calls=(("Read", {"path": "a"}), ("search_tools", {"query": "issues"}), ("Grep", {"path": "b"}))),
            bridged((ISSUE, {"title": "x"}), ("mcp__no__such", {})),
            Move(text="ok"),
            Move(text="more"),
        ]
    )
    proxied = Proxied(fake)
    agent = agent_on(proxied, stream=stream)
    assert await agent.says("Go") == "ok"
    assert await agent.says("On") == "more"
    assert [name for name, _ in agent.ran] == ["Read", "Grep", ISSUE]
    assert proxied.tally.searches == 1
    grows_only(proxied.sent)


@in_a_loop
async def test_usage_of_inner_rounds_is_added_up(agent_on, stream) -> None:
    fake = FakeLLM([searches("rain"), searches("rain again"), Move(text="ok")])
    proxied = Proxied(fake)
    agent = agent_on(proxied, stream=stream)
    await agent.says("Go")
    usage = agent.usage[0].model_dump()
    assert (usage.get("prompt_tokens") or usage.get("input_tokens")) >= sum(map(len, proxied.sent)) // 4 * 0.6


@in_a_loop
async def test_a_conversation_goes_on_after_a_restart(agent_on, stream) -> None:
    moves = [searches("forecast"), bridged((FORECAST, {"title": "U"})), Move(text="Rain."), Move(text="Bye.")]
    proxied = Proxied(FakeLLM(moves), FakeStore())
    agent = agent_on(proxied, stream=stream)
    await agent.says("Rain?")
    proxied.restart()
    assert await agent.says("Thanks") == "Bye."
    assert proxied.passed == []
    grows_only(proxied.sent)


@in_a_loop
async def test_a_conversation_that_was_lost_passes_through(stream) -> None:
    moves = [searches("forecast"), bridged((FORECAST, {"title": "U"})), Move(text="Rain."), Move(text="Bye.")]
    for wire in (OnCompletions, OnResponses):
        proxied = Proxied(FakeLLM(list(moves)))
        agent = wire(proxied, stream=stream)
        await agent.says("Rain?")
        proxied.restart()
        assert await agent.says("Thanks") == "Bye."
        assert proxied.passed == ["not seen from its beginning"]
        assert len(json.loads(proxied.sent[-1])["tools"]) == len(CORE) + len(NAMES)


@in_a_loop
async def test_a_cut_stream_never_ends_as_whole(agent_on) -> None:
    for after in range(1, 8):
        move = bridged((ISSUE, {"title": "a long title", "body": "words " * 20}))
        agent = agent_on(Proxied(FakeLLM([Move(calls=move.calls, cut_after=after)])), stream=True)
        with pytest.raises((APIConnectionError, ReplyCut)):
            await agent.says("Go")


@in_a_loop
async def test_an_error_of_the_api_reaches_the_client_as_it_is(agent_on, stream) -> None:
    fault = Fault(429, {"error": {"message": "Slow down", "type": "rate_limit", "param": None, "code": "x"}})
    agent = agent_on(Proxied(FakeLLM([Move(fault=fault)])), stream=stream)
    with pytest.raises(APIStatusError, match="Slow down"):
        await agent.says("Go")


QUERIES = st.sampled_from(["forecast", "open an issue", "nothing like that", "x" * 300])
MOVES = st.one_of(
    st.builds(lambda query, text: searches(query, text=text), QUERIES, st.sampled_from(["", "Hm.", "ü✓ 語"])),
    st.builds(lambda name: bridged((name, {"title": "x"})), st.sampled_from(NAMES)),
    st.builds(lambda name: bridged((name, {}), ("mcp__no__such", {})), st.sampled_from(NAMES)),
    st.builds(
        lambda query: Move(text="So.", calls=(("Read", {"path": "a"}), ("search_tools", {"query": query}))), QUERIES
    ),
    st.just(Move(calls=(("Read", {"path": "a"}),))),
    st.just(Move(text="Yes.")),
)


@settings(deadline=None, max_examples=often(40))
@given(st.lists(MOVES, max_size=6), st.sampled_from(list(WIRES)), st.booleans(), st.booleans())
def test_no_life_breaks_a_rule_or_a_prefix(moves, wire, stream, restarts) -> None:
    async def run() -> None:
        fake = FakeLLM(moves)
        proxied = Proxied(fake, FakeStore(), slice_by=5)
        agent = WIRES[wire](proxied, stream=stream)
        for number in range(5):
            if not fake.model.moves:
                break
            await agent.says(f"Go {number}")
            if restarts:
                proxied.restart()
        assert proxied.passed == []
        grows_only(proxied.sent)
        assert all(name in (*CORE, *NAMES) for name, _ in agent.ran)

    asyncio.run(run())
