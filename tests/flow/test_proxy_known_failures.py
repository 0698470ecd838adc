"""What has gone wrong in other proxies and other systems that defer tools, each as it would show here."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import msgspec
import pytest

from pegboard.proxy.seam import Asked, Passed, Wire
from pegboard.surface.tokens import definition_tokens
from pegboard.testing import FakeLLM, FakeStore, Move
from tests.agent_tools import CORE, NAMES, completions_tools, messages_tools, responses_tools
from tests.flow.test_proxy_messages import FORECAST, ISSUE, Agent, bridged, searches
from tests.flow.test_proxy_openai import OnCompletions, OnResponses
from tests.loops import in_a_loop
from tests.proxied import Proxied

HOUR = {"type": "ephemeral", "ttl": "1h"}
READ = ("Read", {"path": "a"})
TOOLS: dict[str, Any] = {
    "messages": messages_tools,
    "completions": completions_tools,
    "responses": responses_tools,
}
EXECUTORS = ["native", "bridge"]
AGENTS: dict[str, Any] = {"messages": Agent, "completions": OnCompletions, "responses": OnResponses}
SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}


class Watched(Proxied):
    """With every byte that the client was given."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.shown: list[bytes] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        stream: Any = response.stream
        self.shown.append(b"".join([piece async for piece in stream]))
        return response


async def planned(wire: Wire, body: Any, **settings: Any) -> Any:
    """What becomes of a first request."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    planner = Proxied(FakeLLM([]), **settings).planner
    return await planner.plan(Asked(wire=wire, upstream="api", headers={}, body=raw))


def names(body: bytes, *, deferred: bool | None = None) -> list[str]:
    tools = [each.get("function", each) for each in json.loads(body)["tools"]]
    return [each["name"] for each in tools if deferred is None or bool(each.get("defer_loading")) == deferred]


# ── which tools, and their cache marker ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("spelled", [str.lower, str.upper, str.title])
@in_a_loop
async def test_core_tools_in_any_case_stay_and_the_marker_of_an_hour_with_the_last_of_them(executor, spelled) -> None:
    tools = [{**each, "name": spelled(each["name"])} for each in messages_tools(HOUR)]
    for each in tools[len(CORE) :]:
        each["name"] = each["name"].lower()
    proxied = Proxied(FakeLLM([Move(text="ok")]), executor=executor)
    agent = Agent(proxied, stream=False, tools=tools)
    assert await agent.says("Hi") == "ok"
    sent = json.loads(proxied.sent[0])["tools"]
    seen = [each for each in sent if not each.get("defer_loading")]
    assert [each["name"] for each in seen][-len(CORE) :] == [spelled(name) for name in CORE]
    assert [each.get("cache_control") for each in sent if "cache_control" in each] == [HOUR]
    assert seen[-1]["cache_control"] == HOUR


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("own", ["ToolSearch", "tool_search", "search_tools", "mcp__hub__find_tool", "load_skill"])
@in_a_loop
async def test_a_clients_own_search_for_tools_is_never_deferred(executor, own) -> None:
    body = {
        "model": "claude-opus-5-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [*messages_tools(), {**messages_tools()[0], "name": own}],
    }
    plan = await planned("messages", body, executor=executor)
    assert own in names(plan.body, deferred=False)


@pytest.mark.parametrize("wire", AGENTS)
@pytest.mark.parametrize("own", ["search_tools", "call_tool", "Search_Tools"])
@in_a_loop
async def test_a_tool_that_is_named_like_ours_is_called_as_what_it_is(wire, own) -> None:
    fake = FakeLLM([Move(calls=((own, {"query": "x"}),)), Move(text="ok")])
    proxied = Proxied(fake, executor="bridge")
    agent = AGENTS[wire](proxied, stream=True)
    tools = TOOLS[wire]()
    tools[-1].get("function", tools[-1])["name"] = own
    give(agent, tools)
    assert await agent.says("Go") == "ok"
    assert agent.ran == [(own, {"query": "x"})]
    assert {"pegboard_search_tools", "pegboard_call_tool"} <= set(names(proxied.sent[0]))


@pytest.mark.parametrize("wire", AGENTS)
@in_a_loop
async def test_a_tool_that_takes_our_name_in_the_middle_is_not_shadowed(wire) -> None:
    fake = FakeLLM([Move(text="a"), Move(calls=(("search_tools", {"query": "x"}),)), Move(text="b")])
    proxied = Proxied(fake, executor="bridge")
    agent = AGENTS[wire](proxied, stream=True)
    await agent.says("One")
    tools = TOOLS[wire]()
    tools[-1].get("function", tools[-1])["name"] = "search_tools"
    give(agent, tools)
    assert await agent.says("Two") == "b"
    assert agent.ran == [("search_tools", {"query": "x"})]
    assert proxied.passed == ["a tool has taken the name of a search"] * 2


@pytest.mark.parametrize("stream", [True, False])
@in_a_loop
async def test_a_tool_that_is_named_like_the_apis_own_search_is_called_as_what_it_is(stream) -> None:
    own = {**messages_tools()[0], "name": SEARCH["name"]}
    fake = FakeLLM([Move(calls=((SEARCH["name"], {"path": "x"}),)), Move(text="ok")])
    proxied = Proxied(fake, executor="native")
    agent = Agent(proxied, stream=stream, tools=[*messages_tools(), own])
    assert await agent.says("Go") == "ok"
    assert agent.ran == [(SEARCH["name"], {"path": "x"})]
    assert proxied.tally.deferred == {"bridge": 2}


@in_a_loop
async def test_a_tool_that_takes_the_name_of_the_apis_own_search_in_the_middle_is_not_refused() -> None:
    proxied = Proxied(FakeLLM([Move(text="a"), Move(text="b"), Move(text="c")]), executor="native")
    agent = Agent(proxied, stream=True)
    await agent.says("One")
    give(agent, [*messages_tools(), {**messages_tools()[0], "name": SEARCH["name"]}])
    assert await agent.says("Two") == "b"
    give(agent, messages_tools())
    assert await agent.says("Three") == "c"
    assert proxied.passed == ["a tool has taken the name of a search"]


def give(agent: Any, tools: list[Any]) -> None:
    """Other tools from now on."""
    if isinstance(agent, Agent):
        agent.asked["tools"] = tools
    else:
        agent.tools = tools


# ── what a client sees ───────────────────────────────────────────────────────────────────────────────────────────────


def moves(executor: str) -> list[Move]:
    if executor == "native":
        return [
            Move(text="Look.", searches=("forecast",), calls=((FORECAST, {"title": "U"}), READ)),
            Move(calls=(READ,), unfinished_search="rain"),
            Move(text="Wait.", searches=("rain",), pause=True),
            Move(text="Done."),
        ]
    return [
        searches("rain", text="Look."),
        bridged((FORECAST, {"title": "U"})),
        Move(text="Both.", calls=(READ, ("search_tools", {"query": "mail"}))),
        bridged(("mcp__nobody__at_all", {}), (ISSUE, {"title": "t"})),
        bridged(("mcp__nobody__at_all", {})),
        Move(text="Done."),
    ]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("wire", "executor"),
    [("messages", "native"), ("messages", "bridge"), ("completions", "bridge"), ("responses", "bridge")],
)
@in_a_loop
async def test_no_client_is_ever_shown_a_tool_that_it_did_not_send(wire, executor, stream) -> None:
    proxied = Watched(FakeLLM(moves(executor)), executor=executor)
    agent = AGENTS[wire](proxied, stream=stream)
    assert (await agent.says("Go")).endswith("Done.")
    assert {name for name, _ in agent.ran} <= {*CORE, *NAMES}
    assert len(proxied.sent) > len(proxied.shown) > 1
    for word in (b"search_tools", b"call_tool", b"tool_search", b"server_tool_use", b"pegboard", b"nobody"):
        assert word not in b"".join(proxied.shown), word


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", AGENTS)
@in_a_loop
async def test_what_a_search_found_can_be_called_in_the_same_turn(wire, stream) -> None:
    proxied = Proxied(FakeLLM([searches("rain"), bridged((FORECAST, {"title": "U"})), Move(text="ok")]))
    proxied.settings["executor"] = "bridge"
    proxied.restart()
    agent = AGENTS[wire](proxied, stream=stream)
    assert await agent.says("Go") == "ok"
    assert agent.ran == [(FORECAST, {"title": "U"})]
    asked = [json.loads(body).get("messages") or json.loads(body)["input"] for body in proxied.sent]
    assert [sum(each.get("content") == "Go" for each in said) for said in asked] == [1, 1, 1]


# ── clients that defer, limit or forbid by themselves ────────────────────────────────────────────────────────────────


def later(wire: str) -> dict[str, Any]:
    tool: dict[str, Any] = TOOLS[wire]()[-1]
    return {**tool, "defer_loading": True}


def said(*content: Any) -> list[Any]:
    return [{"role": "user", "content": [*content]}]


TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "x"}
DEFERS = {"defer_loading": True}
DEFERRING: dict[str, tuple[Wire, dict[str, Any]]] = {
    "a deferred tool": ("messages", {"tools": [*messages_tools()[:-1], later("messages")]}),
    "a search of the API's": ("messages", {"tools": [SEARCH, *messages_tools()]}),
    "one by patterns, without a date": (
        "messages",
        {"tools": [*messages_tools(), {"type": "tool_search_tool_regex", "name": "tool_search_tool_regex"}]},
    ),
    "a deferred server": ("messages", {"tools": [*messages_tools(), {**TOOLSET, "default_config": DEFERS}]}),
    "a deferred tool of a server's": (
        "messages",
        {"tools": [*messages_tools(), {**TOOLSET, "configs": {"search": DEFERS}}]},
    ),
    "deferred members of a toolset": (
        "messages",
        {"tools": [*messages_tools(), {"type": "computer_toolset_20260801", "configs": {"click": DEFERS}}]},
    ),
    "a reference": ("messages", {"messages": said({"type": "tool_reference", "tool_name": "Read"})}),
    "an addition": ("messages", {"messages": said({"type": "tool_addition", "tool": {}})}),
    "a deferred function": ("responses", {"tools": [*responses_tools()[:-1], later("responses")]}),
    "OpenAI's search": ("responses", {"tools": [{"type": "tool_search"}, *responses_tools()]}),
    "a namespace": ("responses", {"tools": [{"type": "namespace", "name": "n", "tools": []}, *responses_tools()]}),
    "a search in the input": ("responses", {"input": [{"type": "tool_search_call", "arguments": {}}]}),
    "added tools": ("responses", {"input": [{"type": "additional_tools", "role": "developer", "tools": []}]}),
}


@pytest.mark.parametrize("way", DEFERRING)
@in_a_loop
async def test_a_client_that_defers_by_itself_is_never_deferred_twice(way) -> None:
    wire, changes = DEFERRING[way]
    field = "input" if wire == "responses" else "messages"
    body = {"model": "claude-opus-5-5", "tools": TOOLS[wire](), field: [{"role": "user", "content": "hi"}], **changes}
    assert await planned(wire, body) == Passed("the client defers by itself")


@pytest.mark.parametrize(
    ("wire", "more"),
    [
        ("messages", {"thread": {"type": "continue", "id": "thr_1"}}),
        ("completions", {"n": 2}),
        ("completions", {"functions": [{"name": "old", "parameters": {}}]}),
        ("responses", {"conversation": "conv_1"}),
        ("responses", {"background": True}),
        ("responses", {"prompt": {"id": "pmpt_1"}}),
    ],
    ids=lambda given: given if isinstance(given, str) else next(iter(given)),
)
@in_a_loop
async def test_where_the_history_or_the_tools_are_elsewhere_nothing_is_changed(wire, more) -> None:
    field = "input" if wire == "responses" else "messages"
    body = {"model": "claude-opus-5-5", "tools": TOOLS[wire](), field: [{"role": "user", "content": "hi"}]}
    assert not isinstance(await planned(wire, body), Passed)
    assert await planned(wire, {**body, **more}) == Passed("not understood")


@in_a_loop
async def test_tools_of_one_name_are_for_the_api_to_refuse() -> None:
    said = [{"role": "user", "content": "hi"}]
    body = {"model": "claude-opus-5-5", "tools": [*messages_tools(), messages_tools()[-1]], "messages": said}
    assert await planned("messages", body) == Passed("not understood")


@in_a_loop
async def test_more_tools_than_the_api_defers_are_searched_by_us_or_pass() -> None:
    many = [{"name": f"t{number}", "input_schema": {"type": "object"}} for number in range(10_001)]
    proxied = Proxied(FakeLLM([Move(text="a"), Move(text="b"), Move(text="c")]), executor="native")
    agent = Agent(proxied, stream=False)
    await agent.says("One")
    give(agent, many)
    assert await Agent(proxied, stream=False, tools=many).says("Another") == "b"
    assert proxied.tally.deferred == {"native": 1, "bridge": 1}
    await agent.says("Two")
    assert proxied.passed == ["more tools than the API defers"]


@in_a_loop
async def test_the_way_claude_code_defers_passes_to_the_byte_in_every_turn() -> None:
    own = {"name": "ToolSearch", "description": "Finds tools.", "input_schema": {"type": "object", "properties": {}}}
    tools = [*messages_tools()[: len(CORE)], own, *({**each, "defer_loading": True} for each in messages_tools()[5:])]
    found = {"type": "tool_reference", "tool_name": FORECAST}
    history: list[Any] = [
        {"role": "user", "content": "Rain?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [found]}]},
    ]
    proxied = Proxied(FakeLLM([Move(text="ok"), Move(text="ok")]))
    for turn in (history[:1], history):
        raw = json.dumps({"model": "claude-opus-5-5", "max_tokens": 9, "tools": tools, "messages": turn}).encode()
        async with httpx2.AsyncClient(transport=proxied) as client:
            assert (await client.post("http://llm.test/v1/messages", content=raw)).status_code == 200
        assert proxied.sent[-1] == raw
    assert proxied.passed == ["the client defers by itself"] * 2


@pytest.mark.parametrize(
    ("wire", "choice"),
    [
        ("completions", {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}),
        ("responses", {"type": "allowed_tools", "mode": "auto", "tools": []}),
    ],
)
@in_a_loop
async def test_where_a_client_says_which_tools_may_run_ours_are_not_put_among_them(wire, choice) -> None:
    field = "input" if wire == "responses" else "messages"
    body = {"model": "gpt-9", "tools": TOOLS[wire](), field: [{"role": "user", "content": "hi"}]}
    assert isinstance(await planned(wire, {**body, "tool_choice": choice}), Passed)
    assert not isinstance(await planned(wire, {**body, "tool_choice": "auto"}), Passed)


@pytest.mark.parametrize("wire", AGENTS)
@in_a_loop
async def test_a_model_that_never_searches_can_be_left_alone(wire) -> None:
    proxied = Proxied(FakeLLM([Move(text="ok")]), executor="bridge", deny_models=("shy-*",))
    agent = AGENTS[wire](proxied, stream=True, model="shy-7b")
    assert await agent.says("Hi") == "ok"
    assert proxied.passed == ["not for this model"]
    assert names(proxied.sent[0]) == [*CORE, *NAMES]


# ── what may be found and called ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wire", AGENTS)
@in_a_loop
async def test_a_sub_agent_finds_and_calls_only_what_it_was_given(wire) -> None:
    fake = FakeLLM([searches("rain forecast"), Move(text="a"), searches("rain forecast"), bridged((FORECAST, {}))])
    proxied = Proxied(fake, FakeStore(), executor="bridge")
    await AGENTS[wire](proxied, stream=True).says("Go")
    assert FORECAST in proxied.sent[1].decode()
    below = AGENTS[wire](proxied, stream=True)
    given = [each for each in TOOLS[wire]() if "weather" not in json.dumps(each)]
    give(below, given)
    assert await below.says("You are a helper. Go") == "done"
    assert below.ran == []
    assert proxied.passed == []
    assert f"{FORECAST}(" not in proxied.sent[-2].decode()
    assert f"There is no tool named '{FORECAST}'" in proxied.sent[-1].decode()


@pytest.mark.parametrize("wire", AGENTS)
@in_a_loop
async def test_a_tool_that_was_taken_away_in_the_middle_can_no_longer_be_called(wire) -> None:
    fake = FakeLLM([bridged((FORECAST, {"title": "U"})), Move(text="a"), bridged((FORECAST, {"title": "V"}))])
    proxied = Proxied(fake, executor="bridge")
    agent = AGENTS[wire](proxied, stream=True)
    await agent.says("One")
    give(agent, [each for each in TOOLS[wire]() if "weather" not in json.dumps(each)])
    assert await agent.says("Plan only") == "done"
    assert agent.ran == [(FORECAST, {"title": "U"})]
    assert f"There is no tool named '{FORECAST}'" in proxied.sent[-1].decode()


@pytest.mark.parametrize(
    "query",
    [f"select:{FORECAST},{ISSUE}", f"select: {FORECAST} , {ISSUE} ,", f"select:\"{FORECAST}\", '{ISSUE}'"],
)
@in_a_loop
async def test_tools_that_are_asked_for_by_name_are_found_however_the_names_are_put(query) -> None:
    proxied = Proxied(FakeLLM([searches(query), Move(text="ok")]), executor="bridge")
    await Agent(proxied, stream=True).says("Go")
    answer = json.loads(proxied.sent[1])["messages"][-1]["content"][0]["content"]
    assert f"{FORECAST}(" in answer
    assert f"{ISSUE}(" in answer
    assert "No tool is called" not in answer


@pytest.mark.parametrize("query", ["Read", f"select:Read,{FORECAST}"])
@pytest.mark.parametrize("wire", AGENTS)
@in_a_loop
async def test_a_model_that_searches_for_a_tool_it_sees_is_told_so(wire, query) -> None:
    proxied = Proxied(FakeLLM([searches(query), Move(text="ok")]), executor="bridge")
    await AGENTS[wire](proxied, stream=True).says("Go")
    assert "You see Read already: call directly." in proxied.sent[1].decode()


# ── searches of the past ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("left", [2, len(CORE), len(CORE) + 3])
@in_a_loop
async def test_side_requests_with_fewer_tools_are_not_poisoned_by_searches_of_the_past(executor, left) -> None:
    first = [Move(thinking="Hm.", searches=("forecast",), calls=((FORECAST, {"title": "U"}),))]
    if executor == "bridge":
        first = [Move(thinking="Hm.", calls=searches("forecast").calls), bridged((FORECAST, {"title": "U"}))]
    rest = [Move(text="Rain."), Move(text="Stop."), Move(text="Short."), Move(text="Yes.")]
    proxied = Proxied(FakeLLM([*first, *rest]), FakeStore(), executor=executor)
    agent = Agent(proxied, stream=True, model="claude-sonnet-5")
    await agent.says("Rain?")
    history, tools = list(agent.history), agent.asked["tools"]
    for words, answer in (("Well done?", "Stop."), ("Sum up.", "Short.")):
        agent.asked["tools"], agent.history = tools[:left], list(history)
        assert await agent.says(words) == answer
        proxied.restart()
    agent.asked["tools"], agent.history = tools, history
    assert await agent.says("Sure?") == "Yes."
    assert proxied.passed == []
    # Signed thinking and all that was said before and after it stands where it stood.
    told = [json.loads(body)["messages"] for body in proxied.sent[-3:]]
    assert told[0][:-1] == told[1][:-1] == told[2][:-1]


# ── what was saved ───────────────────────────────────────────────────────────────────────────────────────────────────


def tokens(tools: list[Any]) -> int:
    return sum(
        definition_tokens(
            {
                "name": each["name"],
                "description": each.get("description", ""),
                "inputSchema": each.get("input_schema", {}),
            }
        )
        for each in tools
        if not each.get("defer_loading") and not each.get("type")
    )


@pytest.mark.parametrize("executor", EXECUTORS)
@in_a_loop
async def test_what_was_saved_is_neither_understated_nor_overstated(executor) -> None:
    proxied = Proxied(FakeLLM(moves(executor)), executor=executor)
    agent = Agent(proxied, stream=True)
    await agent.says("Go")
    asked = len(agent.usage)
    assert len(proxied.sent) > asked  # there were inner rounds, in which definitions were shown as well
    assert proxied.tally.definition_tokens_before == asked * tokens(messages_tools())
    shown = sum(tokens(json.loads(body)["tools"]) for body in proxied.sent)
    assert shown <= proxied.tally.definition_tokens_after < 2 * shown
    # What the API reported is another layer, and no part of this.
    assert msgspec.to_builtins(proxied.tally.deferred_tokens) == msgspec.to_builtins(proxied.tally.direct_tokens)


@pytest.mark.parametrize("executor", EXECUTORS)
@in_a_loop
async def test_what_others_that_began_alike_have_found_is_not_counted_again(executor) -> None:
    """The same job every morning: what is saved of it stays the same."""
    proxied = Proxied(FakeLLM(moves(executor) * 3), FakeStore(), executor=executor)
    shown = [0]
    for _ in range(3):
        await Agent(proxied, stream=True).says("Go")
        shown.append(proxied.tally.definition_tokens_after)
    assert proxied.passed == []
    assert shown[1] == shown[2] - shown[1] == shown[3] - shown[2]


@in_a_loop
async def test_definitions_that_the_apis_own_search_has_found_count_as_shown() -> None:
    fake = FakeLLM([Move(searches=("forecast",), calls=((FORECAST, {"title": "U"}),)), Move(text="Rain.")])
    proxied = Proxied(fake, executor="native")
    await Agent(proxied, stream=True).says("Rain?")
    found = {each["tool_name"] for each in fake.requests[0].reply["content"][1]["content"]["tool_references"]}
    assert found
    resident = sum(tokens(json.loads(body)["tools"]) for body in proxied.sent)
    of_found = tokens([each for each in messages_tools() if each["name"] in found])
    assert proxied.tally.definition_tokens_after == resident + of_found


@in_a_loop
async def test_answers_to_searches_count_as_shown_in_every_request_that_has_them() -> None:
    fake = FakeLLM([searches("forecast"), bridged((FORECAST, {"title": "U"})), Move(text="Rain.")])
    proxied = Proxied(fake, executor="bridge")
    await Agent(proxied, stream=True).says("Rain?")
    bodies = [json.loads(body) for body in proxied.sent]
    [answer] = bodies[1]["messages"][-1]["content"]
    of_answer = len(msgspec.json.encode(answer)) // 4
    assert of_answer > 50
    assert proxied.tally.definition_tokens_after == sum(tokens(body["tools"]) for body in bodies) + 2 * of_answer
