"""Random lives of agents behind the proxy: the API refuses nothing, no prefix is rewritten, every call arrives."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.testing import FakeLLM, FakeStore, Move
from tests.agent_tools import NAMES, messages_tools
from tests.flow.test_proxy_messages import Agent, bridged, grows_only, searches
from tests.often import often
from tests.proxied import Proxied

QUERIES = st.sampled_from(
    ["forecast", "open an issue", "calendar", "nothing like that at all", "select:Read", "x" * 300]
)
TEXTS = st.sampled_from(["", "Ok.", "Let me see.", "ü✓ 語", "Done."])
ARGUMENTS = st.dictionaries(st.sampled_from(["title", "body", 'q"uo\\te']), st.text(max_size=8), max_size=2)
DEFERRED = st.sampled_from(NAMES)
READ = ("Read", {"path": "a"})

BRIDGE = st.one_of(
    st.builds(lambda queries, text: searches(*queries, text=text), st.lists(QUERIES, min_size=1, max_size=2), TEXTS),
    st.builds(lambda name, given: bridged((name, given)), DEFERRED, ARGUMENTS),
    st.builds(lambda name, given: bridged((name, given), ("mcp__no__such", {})), DEFERRED, ARGUMENTS),
    st.builds(lambda query, text: Move(text=text, calls=(READ, ("search_tools", {"query": query}))), QUERIES, TEXTS),
    st.builds(
        lambda name, given: Move(calls=(("call_tool", {"arguments": given, "name": name}),)), DEFERRED, ARGUMENTS
    ),
    st.builds(lambda name: Move(calls=(("call_tool", {"name": name}), READ)), DEFERRED),
    st.builds(lambda thought, text: Move(thinking=thought or "Hm.", text=text or "Yes."), TEXTS, TEXTS),
    st.just(Move(thinking="Read it.", calls=(READ,))),
)
NATIVE = st.one_of(
    st.builds(lambda query, name: Move(searches=(query,), calls=((name, {}),)), QUERIES, DEFERRED),
    st.builds(lambda query, text: Move(thinking="Hm.", searches=(query,), text=text or "So."), QUERIES, TEXTS),
    st.builds(lambda query: Move(calls=(READ,), unfinished_search=query), QUERIES),
    st.builds(lambda query, text: Move(text=text or "Wait.", searches=(query,), pause=True), QUERIES, TEXTS),
    st.builds(lambda text: Move(thinking="Hm.", text=text or "Yes."), TEXTS),
    st.just(Move(thinking="Read it.", calls=(READ,))),
)


async def lived(executor: str, moves: list[Move], *, stream: bool, slice_by: int, restarts: bool) -> None:
    fake = FakeLLM(moves)
    proxied = Proxied(fake, FakeStore(), executor=executor, slice_by=slice_by)
    agent = Agent(proxied, stream=stream, thinking={"type": "enabled", "budget_tokens": 1024})
    for number in range(4):
        if not fake.model.moves:
            break
        await agent.says(f"Go {number}")
        if restarts:
            proxied.restart()
    assert proxied.passed == []
    grows_only(proxied.sent)
    assert all(name in {tool["name"] for tool in messages_tools()} for name, _ in agent.ran)


def expected(moves: list[Move]) -> list[str]:
    """The calls that a client is to run, in order."""
    calls = [call for move in moves for call in move.calls]
    real = [(name, given) for name, given in calls if name not in ("search_tools", "call_tool")]
    through = [(given["name"], given.get("arguments", {})) for name, given in calls if name == "call_tool"]
    every: list[Any] = [*real, *((name, given) for name, given in through if name in NAMES)]
    return sorted(repr(each) for each in every)


@settings(deadline=None, max_examples=often(40))
@given(st.lists(BRIDGE, max_size=6), st.booleans(), st.sampled_from([0, 5]), st.booleans())
def test_no_bridged_life_breaks_a_rule_or_a_prefix(moves, stream, slice_by, restarts) -> None:
    asyncio.run(lived("bridge", moves, stream=stream, slice_by=slice_by, restarts=restarts))


@settings(deadline=None, max_examples=often(40))
@given(st.lists(NATIVE, max_size=6), st.booleans(), st.sampled_from([0, 5]), st.booleans())
def test_no_native_life_breaks_a_rule_or_a_prefix(moves, stream, slice_by, restarts) -> None:
    asyncio.run(lived("native", moves, stream=stream, slice_by=slice_by, restarts=restarts))


@settings(deadline=None, max_examples=often(30))
@given(st.lists(BRIDGE, max_size=5), st.booleans())
def test_every_call_that_a_model_makes_is_run_by_the_client_once(moves, stream) -> None:
    async def run() -> None:
        fake = FakeLLM(moves)
        agent = Agent(Proxied(fake, executor="bridge"), stream=stream)
        while fake.model.moves:
            await agent.says("Go")
        assert sorted(repr(each) for each in agent.ran) == expected(moves)

    asyncio.run(run())


def without_thinking(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As clients replay that do not know thinking, and say their text in one block."""
    out = []
    for message in history:
        blocks = message["content"]
        if message["role"] == "assistant":
            blocks = [block for block in blocks if block["type"] != "thinking"]
        out.append({**message, "content": blocks})
    return out


@settings(deadline=None, max_examples=often(30))
@given(st.lists(st.one_of(BRIDGE), max_size=5), st.sampled_from(["bridge", "native"]))
def test_a_client_that_forgets_thinking_is_still_understood(moves, executor) -> None:
    async def run() -> None:
        given = (
            moves if executor == "bridge" else [Move(searches=("forecast",), text="a", thinking="b"), Move(text="c")]
        )
        fake = FakeLLM(given)
        agent = Agent(Proxied(fake, executor=executor), stream=True)
        while fake.model.moves:
            await agent.says("Go")
            agent.history = without_thinking(agent.history)

    asyncio.run(run())


def test_the_same_request_is_always_changed_in_the_same_way() -> None:
    async def once() -> bytes:
        proxied = Proxied(FakeLLM([Move(text="ok")]), executor="bridge")
        await Agent(proxied, stream=False).says("Go")
        return proxied.sent[0]

    first, second = asyncio.run(once()), asyncio.run(once())
    assert first == second
    assert json.loads(first)["model"] == "claude-opus-5-5"
