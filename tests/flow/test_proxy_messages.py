"""An agent on the Messages API behind the proxy: the real SDK, the real planner, a strict stand-in for the API."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from anthropic import APIConnectionError, APIStatusError, AsyncAnthropic

from pegboard.testing import FakeLLM, FakeStore, Fault, Move, Search
from tests.agent_tools import CORE, NAMES, messages_tools
from tests.loops import in_a_loop
from tests.proxied import Proxied

FORECAST = "mcp__weather__forecast"
ISSUE = "mcp__github__create_issue"
MARKER = {"type": "ephemeral", "ttl": "1h"}


class Agent:
    """A client that knows nothing of deferral: it sends all its tools, runs what is called, and replays its history."""

    def __init__(self, proxied: Proxied, *, stream: bool, model: str = "claude-opus-5-5", **settings: Any) -> None:
        self.client = AsyncAnthropic(**proxied.options())
        self.stream = stream
        self.asked: dict[str, Any] = {"model": model, "max_tokens": 1000, "tools": messages_tools(MARKER), **settings}
        self.history: list[dict[str, Any]] = []
        self.ran: list[tuple[str, Any]] = []
        self.usage: list[Any] = []

    async def says(self, text: str) -> str:
        """One prompt of the user's, until the model has no more calls; gives what the model said last."""
        self.history.append({"role": "user", "content": text})
        for _ in range(10):
            message = await self.turn()
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                return "".join(block.text for block in message.content if block.type == "text")
            self.ran += [(block.name, block.input) for block in calls]
            results = [{"type": "tool_result", "tool_use_id": each.id, "content": f"ran {each.name}"} for each in calls]
            self.history.append({"role": "user", "content": results})
        raise AssertionError("it never ended")

    async def turn(self) -> Any:
        asked: Any = {**self.asked, "messages": self.history}
        if self.stream:
            async with self.client.messages.stream(**asked) as stream:
                message: Any = await stream.get_final_message()
        else:
            message = await self.client.messages.create(**asked)
        self.usage.append(message.usage)
        kinds = {block.type for block in message.content}
        assert kinds <= {"text", "tool_use", "thinking"}, kinds
        content = [block.model_dump(mode="json", exclude_none=True) for block in message.content]
        self.history.append({"role": "assistant", "content": content})
        return message


def bridged(*calls: tuple[str, Any]) -> Move:
    return Move(calls=tuple(("call_tool", {"name": name, "arguments": given}) for name, given in calls))


def searches(*queries: str, text: str = "") -> Move:
    return Move(text=text, calls=tuple(("search_tools", {"query": query}) for query in queries))


def grows_only(sent: list[bytes]) -> None:
    """Tools stay the same, and every history begins with all of the one before: nothing that is cached was changed."""
    bodies = [json.loads(body) for body in sent]
    for before, after in pairwise(bodies):
        assert [each for each in after["tools"] if not each.get("defer_loading")] == [
            each for each in before["tools"] if not each.get("defer_loading")
        ]
        assert flat(after["messages"])[: len(flat(before["messages"]))] == flat(before["messages"])


def flat(messages: list[dict[str, Any]]) -> list[Any]:
    """All blocks in order, whoever's message they are cut into."""
    return [
        (message["role"], block)
        for message in messages
        for block in (
            [{"type": "text", "text": message["content"]}]
            if isinstance(message["content"], str)
            else message["content"]
        )
    ]


@pytest.fixture(params=[True, False], ids=["stream", "whole"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=[0, 7], ids=["at once", "in pieces"])
def slice_by(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@in_a_loop
async def test_the_bridge_searches_inside_and_the_client_runs_the_real_tool(stream, slice_by) -> None:
    fake = FakeLLM(
        [
            searches("weather forecast", text="Let me look."),
            bridged((FORECAST, {"title": "Ulm"})),
            Move(text="Rain."),
            Move(calls=(("Read", {"path": "a"}),)),
            Move(text="Done."),
        ]
    )
    proxied = Proxied(fake, executor="bridge", slice_by=slice_by)
    agent = Agent(proxied, stream=stream)
    assert await agent.says("Will it rain in Ulm?") == "Rain."
    assert await agent.says("Read a") == "Done."
    assert agent.ran == [(FORECAST, {"title": "Ulm"}), ("Read", {"path": "a"})]
    assert fake.model.shown[0].names == ("search_tools", "call_tool", *CORE)
    assert len(proxied.sent) == 5
    grows_only(proxied.sent)
    results = [block for role, block in flat(json.loads(proxied.sent[1])["messages"]) if block["type"] == "tool_result"]
    assert FORECAST in results[0]["content"]


@in_a_loop
async def test_the_bridges_calls_come_back_as_the_model_made_them(stream) -> None:
    fake = FakeLLM([bridged((ISSUE, {"title": "x"})), Move(text="ok")])
    proxied = Proxied(fake, executor="bridge")
    agent = Agent(proxied, stream=stream)
    await agent.says("Open an issue")
    called = [block for _, block in flat(json.loads(proxied.sent[1])["messages"]) if block["type"] == "tool_use"]
    assert [(each["name"], each["input"]) for each in called] == [
        ("call_tool", {"name": ISSUE, "arguments": {"title": "x"}})
    ]
    assert agent.ran == [(ISSUE, {"title": "x"})]


@in_a_loop
async def test_a_search_beside_a_call_is_answered_with_the_clients_result(stream) -> None:
    fake = FakeLLM(
        [
            Move(
                calls=(("Read", {"path": "a"}), ("search_tools", {"query": "open an issue"}), ("Grep", {"path": "b"}))
            ),
            bridged((ISSUE, {"title": "x"})),
            Move(text="ok"),
        ]
    )
    proxied = Proxied(fake, executor="bridge")
    agent = Agent(proxied, stream=stream)
    assert await agent.says("Go") == "ok"
    assert [name for name, _ in agent.ran] == ["Read", "Grep", ISSUE]
    grows_only(proxied.sent)


@in_a_loop
async def test_several_searches_in_one_turn_and_a_tool_that_is_not_there_are_answered_inside(stream, slice_by) -> None:
    fake = FakeLLM(
        [
            searches("rain", "calendar event", text="One."),
            searches("mail", text="Two."),
            bridged(("mcp__mail__no_such", {})),
            bridged(("mcp__mail__send_message", {"title": "t"})),
            Move(text="Sent."),
        ]
    )
    proxied = Proxied(fake, executor="bridge", slice_by=slice_by)
    agent = Agent(proxied, stream=stream)
    assert await agent.says("Write a mail") == "Sent."
    assert agent.ran == [("mcp__mail__send_message", {"title": "t"})]
    assert proxied.tally.searches == 3
    grows_only(proxied.sent)
    assert b"There is no tool named 'mcp__mail__no_such'" in proxied.sent[3]


@in_a_loop
async def test_usage_of_inner_rounds_is_added_up(stream) -> None:
    fake = FakeLLM([searches("rain"), searches("rain again"), Move(text="ok")])
    proxied = Proxied(fake, executor="bridge")
    agent = Agent(proxied, stream=stream)
    await agent.says("Go")
    usage = agent.usage[0]
    total = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
    assert total >= sum(len(body) for body in proxied.sent) // 4 * 0.8


@in_a_loop
async def test_the_native_search_is_hidden_and_put_back(stream, slice_by) -> None:
    fake = FakeLLM(
        [
            Move(
                text="Looking.",
                thinking="Which tool?",
                searches=("weather forecast",),
                calls=((FORECAST, {"title": "U"}),),
            ),
            Move(thinking="Now I know.", text="Rain."),
            Move(searches=("open issue",), text="Found."),
            Move(calls=((ISSUE, {"title": "x"}),)),
            Move(text="Done."),
        ]
    )
    proxied = Proxied(fake, executor="native", slice_by=slice_by)
    agent = Agent(proxied, stream=stream, thinking={"type": "enabled", "budget_tokens": 1024})
    assert await agent.says("Rain?") == "Rain."
    await agent.says("Is there a tool for issues?")
    assert await agent.says("Use it") == "Done."
    assert [name for name, _ in agent.ran] == [FORECAST, ISSUE]
    grows_only(proxied.sent)
    body = json.loads(proxied.sent[-1])
    assert body["tools"][0]["type"] == "tool_search_tool_bm25_20251119"
    assert sum(bool(each.get("defer_loading")) for each in body["tools"]) == len(NAMES)
    assert [each.get("cache_control") for each in body["tools"] if each["name"] == CORE[-1]] == [MARKER]


@in_a_loop
async def test_searches_that_the_api_makes_itself_are_counted_too(stream) -> None:
    fake = FakeLLM([Move(searches=("weather forecast", "xyzzy", Search("rain", error="unavailable")), text="Well.")])
    proxied = Proxied(fake, executor="native")
    assert await Agent(proxied, stream=stream).says("Rain?") == "Well."
    assert (proxied.tally.searches, proxied.tally.searches_empty) == (3, 2)


@in_a_loop
async def test_an_unfinished_search_is_finished_by_the_next_reply(stream) -> None:
    fake = FakeLLM(
        [
            Move(calls=(("Read", {"path": "a"}),), unfinished_search="weather forecast"),
            Move(calls=((FORECAST, {"title": "Ulm"}),)),
            Move(text="Rain."),
        ]
    )
    proxied = Proxied(fake, executor="native")
    agent = Agent(proxied, stream=stream)
    assert await agent.says("Rain?") == "Rain."
    assert [name for name, _ in agent.ran] == ["Read", FORECAST]
    grows_only(proxied.sent)


@in_a_loop
async def test_a_search_that_can_never_be_finished_is_left_out(stream) -> None:
    fake = FakeLLM(
        [Move(calls=(("Read", {"path": "a"}),), unfinished_search="rain"), Move(text="ok"), Move(text="yes")]
    )
    proxied = Proxied(fake, executor="native")
    agent = Agent(proxied, stream=stream)
    agent.history.append({"role": "user", "content": "Go"})
    message = await agent.turn()
    [call] = [block for block in message.content if block.type == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "x"}
    agent.history.append({"role": "user", "content": [result, {"type": "text", "text": "and hurry"}]})
    await agent.turn()
    assert await agent.says("More") == "yes"


@in_a_loop
async def test_a_paused_turn_goes_on_inside(stream) -> None:
    fake = FakeLLM(
        [
            Move(text="One.", searches=("weather forecast",), pause=True),
            Move(text="Two.", calls=((FORECAST, {"title": "Ulm"}),)),
            Move(text="Rain."),
        ]
    )
    proxied = Proxied(fake, executor="native")
    agent = Agent(proxied, stream=stream)
    assert await agent.says("Rain?") == "Rain."
    assert len(agent.history) == 4
    assert [name for name, _ in agent.ran] == [FORECAST]


@in_a_loop
async def test_a_side_request_with_other_tools_brings_the_definitions_that_the_history_refers_to(stream) -> None:
    fake = FakeLLM(
        [Move(searches=("forecast",), calls=((FORECAST, {"title": "U"}),)), Move(text="Rain."), Move(text="Fine.")]
    )
    proxied = Proxied(fake, executor="native")
    agent = Agent(proxied, stream=stream)
    await agent.says("Rain?")
    few = [tool for tool in messages_tools() if tool["name"] in ("Read", "Bash")]
    agent.asked["tools"] = few
    assert await agent.says("Was that well done?") == "Fine."
    names = [tool["name"] for tool in json.loads(proxied.sent[-1])["tools"]]
    assert names[:3] == ["tool_search_tool_bm25", "Bash", "Read"]
    assert FORECAST in names


@in_a_loop
async def test_tokens_are_counted_as_they_will_be_paid(stream) -> None:
    fake = FakeLLM([Move(text="ok")])
    direct = AsyncAnthropic(**fake.options())
    asked: Any = {"model": "claude-opus-5-5", "messages": [{"role": "user", "content": "x"}], "tools": messages_tools()}
    before = await direct.messages.count_tokens(**asked)
    proxied = Proxied(fake, executor="native")
    after = await AsyncAnthropic(**proxied.options()).messages.count_tokens(**asked)
    assert after.input_tokens < 0.5 * before.input_tokens
    assert (proxied.tally.counted, proxied.tally.deferred, proxied.tally.passed) == (1, {}, {})


@in_a_loop
async def test_a_conversation_goes_on_after_a_restart_and_passes_through_when_it_is_lost(stream) -> None:
    moves = [searches("forecast"), bridged((FORECAST, {"title": "U"})), Move(text="Rain."), Move(text="Bye.")]
    store = FakeStore()
    proxied = Proxied(FakeLLM(moves), store, executor="bridge")
    agent = Agent(proxied, stream=stream)
    await agent.says("Rain?")
    proxied.restart()
    await agent.says("Thanks")
    grows_only(proxied.sent)
    proxied.store = None
    proxied.restart()
    await agent.says("Still there?")
    assert proxied.passed == ["not seen from its beginning"]
    assert len(json.loads(proxied.sent[-1])["tools"]) == len(CORE) + len(NAMES)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"tools": messages_tools()[:10]}, "few tools"),
        (
            {"tools": [{"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}, *messages_tools()]},
            "the client defers by itself",
        ),
        (
            {"tools": [*messages_tools()[:-1], {**messages_tools()[-1], "defer_loading": True}]},
            "the client defers by itself",
        ),
        ({"model": "gpt-9"}, "not for this model"),
    ],
)
@in_a_loop
async def test_what_is_not_to_be_changed_is_not_changed_by_a_byte(settings, reason) -> None:
    fake = FakeLLM([Move(text="ok")])
    proxied = Proxied(fake, executor="native", deny_models=["gpt-*"])
    agent = Agent(proxied, stream=False)
    agent.asked |= settings
    await agent.says("Hello")
    assert proxied.passed == [reason]
    assert json.loads(proxied.sent[0])["tools"] == agent.asked["tools"]


@in_a_loop
async def test_an_error_of_the_api_reaches_the_client_as_it_is(stream) -> None:
    fake = FakeLLM([Move(text="ok")])
    proxied = Proxied(fake, executor="bridge")
    agent = Agent(proxied, stream=stream)
    agent.history.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "y"}]})
    with pytest.raises(APIStatusError, match="unexpected `tool_use_id`"):
        await agent.turn()


@in_a_loop
async def test_a_decision_is_kept_when_tools_go_and_come(stream) -> None:
    fake = FakeLLM([Move(text="a"), Move(text="b"), Move(text="c")])
    proxied = Proxied(fake, executor="bridge")
    agent = Agent(proxied, stream=stream)
    await agent.says("One")
    agent.asked["tools"] = messages_tools()[:6]
    await agent.says("Two")
    agent.asked["tools"] = [*messages_tools(), {"name": "mcp__late__comer", "input_schema": {"type": "object"}}]
    await agent.says("Three")
    assert proxied.passed == []
    assert {shown.names for shown in fake.model.shown} == {("search_tools", "call_tool", *CORE)}


@in_a_loop
async def test_a_tool_that_came_late_is_found_and_called(stream) -> None:
    late = {"name": "mcp__tea__brew", "description": "Brews a cup of tea.", "input_schema": {"type": "object"}}
    fake = FakeLLM([Move(text="a"), searches("brew tea"), bridged(("mcp__tea__brew", {})), Move(text="b")])
    proxied = Proxied(fake, executor="bridge")
    agent = Agent(proxied, stream=stream)
    await agent.says("One")
    agent.asked["tools"] = [*messages_tools(MARKER), late]
    await agent.says("Tea")
    assert agent.ran == [("mcp__tea__brew", {})]
    grows_only(proxied.sent)


@in_a_loop
async def test_two_conversations_with_the_same_first_words_do_not_mix(stream) -> None:
    fake = FakeLLM(
        [
            searches("forecast"),
            bridged((FORECAST, {"title": "U"})),
            Move(text="Rain."),
            Move(text="Hello."),
            Move(text="more"),
            Move(text="more"),
        ]
    )
    proxied = Proxied(fake, executor="bridge")
    first, second = Agent(proxied, stream=stream), Agent(proxied, stream=stream)
    second.asked["tools"] = messages_tools(MARKER)[:-1]
    await first.says("Go")
    await second.says("Go")
    sent_before = len(proxied.sent)
    await first.says("More")
    await second.says("More")
    ours, theirs = map(json.loads, proxied.sent[sent_before:])
    assert len(flat(ours["messages"])) == 7
    assert [block for _, block in flat(theirs["messages"])] == [
        {"type": "text", "text": "Go"},
        {"type": "text", "text": "Hello."},
        {"type": "text", "text": "More"},
    ]


@in_a_loop
async def test_a_tool_that_the_client_forces_stays_in_sight(stream) -> None:
    fake = FakeLLM([Move(calls=((ISSUE, {"title": "x"}),)), Move(text="ok")])
    proxied = Proxied(fake, executor="bridge")
    agent = Agent(proxied, stream=stream, model="claude-opus-5", tool_choice={"type": "tool", "name": ISSUE})
    agent.history.append({"role": "user", "content": "Go"})
    await agent.turn()
    assert ISSUE in fake.model.shown[0].names
    assert json.loads(proxied.sent[0])["tool_choice"] == {"type": "tool", "name": ISSUE}


@in_a_loop
async def test_a_model_that_only_searches_is_stopped_and_the_client_sees_that(stream) -> None:
    proxied = Proxied(FakeLLM([searches("forecast")] * 20), executor="bridge", max_rounds=3)
    agent = Agent(proxied, stream=stream)
    with pytest.raises(APIConnectionError):
        await agent.says("Go")
    assert len(proxied.sent) == 4


@in_a_loop
async def test_a_stream_that_is_cut_in_a_call_never_ends_as_whole() -> None:
    for after in range(2, 9):
        move = bridged((ISSUE, {"title": "a long title", "body": "words " * 20}))
        fake = FakeLLM([Move(calls=move.calls, cut_after=after)])
        agent = Agent(Proxied(fake, executor="bridge"), stream=True)
        with pytest.raises(APIConnectionError):
            await agent.says("Go")


@in_a_loop
async def test_a_refused_inner_round_reaches_the_client_as_the_api_said_it(stream) -> None:
    fault = Fault(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    proxied = Proxied(FakeLLM([searches("forecast", text="Hm."), Move(fault=fault)]), executor="bridge")
    agent = Agent(proxied, stream=stream)
    with pytest.raises(APIStatusError, match="Overloaded"):
        await agent.says("Go")


@in_a_loop
async def test_another_model_in_the_middle_gets_what_it_can_take(stream) -> None:
    fake = FakeLLM([Move(searches=("forecast",), text="a"), Move(text="b"), Move(text="c")])
    proxied = Proxied(fake, executor="native")
    agent = Agent(proxied, stream=stream)
    await agent.says("One")
    agent.asked["model"] = "claude-3-mini"
    await agent.says("Two")
    assert proxied.passed == ["the model was changed to one that cannot search"]
    agent.asked["model"] = "claude-opus-5-5"
    assert await agent.says("Three") == "c"
