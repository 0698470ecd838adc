"""An agent of LangChain with a board: what its model sees, what its calls do, sync and async."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ToolCallLimitMiddleware,
    wrap_tool_call,
)
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from pegboard import Pegboard
from pegboard.errors import PegboardError
from pegboard.integrations.langchain import PegboardMiddleware
from pegboard.testing import FakeSource, Move, tool_definition
from tests.flow.langchain_chat import ScriptedChat, as_sent, board_in, calls, chat_of, crm, search
from tests.loops import in_a_loop

OWN = ("search_tools", "read_result")
HELLO: Any = {"messages": [("user", "hello")]}


@tool
def weather(city: str) -> str:
    """Tells the weather of a city."""
    return f"sunny in {city}"


def tool_messages(result: Any) -> list[ToolMessage]:
    return [each for each in result["messages"] if isinstance(each, ToolMessage)]


def lists(chat: ScriptedChat) -> list[tuple[str, ...]]:
    return [shown.names for shown in chat.script.shown]


Run = Callable[..., Any]


@pytest.fixture(params=["ainvoke", "invoke", "ainvoke elsewhere"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs an agent on a board: on the board's loop, without any, and on another loop than the board's."""

    def on_its_loop(board: Pegboard, agent_of: Callable[[], Any], given: Any, config: Any) -> Any:
        async def main() -> Any:
            async with board:
                return await agent_of().ainvoke(given, config)

        return asyncio.run(main())

    def without_loop(board: Pegboard, agent_of: Callable[[], Any], given: Any, config: Any) -> Any:
        with board:
            return agent_of().invoke(given, config)

    def elsewhere(board: Pegboard, agent_of: Callable[[], Any], given: Any, config: Any) -> Any:
        with board:
            return asyncio.run(agent_of().ainvoke(given, config))

    ways = {"ainvoke": on_its_loop, "invoke": without_loop, "ainvoke elsewhere": elsewhere}

    def ran(board: Pegboard, agent_of: Callable[[], Any], given: Any = HELLO, config: Any = None) -> Any:
        return ways[request.param](board, agent_of, given, config)

    return ran


# ── what the model sees ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_search_loads_and_the_next_turn_calls_by_name(run: Run, tmp_path: Path) -> None:
    source = crm()
    board = board_in(tmp_path, source)
    chat = chat_of([search("create an invoice", limit=1), calls(("crm__create_invoice", {"customer": "Ada"}))])
    result = run(board, lambda: create_agent(chat, [weather], middleware=[PegboardMiddleware(board)]))
    found, made = tool_messages(result)
    assert "crm__create_invoice: Create an invoice for a customer" in found.text
    assert (made.text, made.status, made.name) == ("create_invoice", "success", "crm__create_invoice")
    assert source.calls == [("create_invoice", {"customer": "Ada"})]
    assert lists(chat) == [
        ("weather", *OWN),
        ("weather", *OWN, "crm__create_invoice"),
        ("weather", *OWN, "crm__create_invoice"),
    ]
    assert list(result) == ["messages"]


def test_a_tool_that_nobody_searched_for_runs_and_is_loaded(run: Run, tmp_path: Path) -> None:
    board = board_in(tmp_path)
    chat = chat_of([calls(("crm__send_reminder", {}))])
    result = run(board, lambda: create_agent(chat, middleware=[PegboardMiddleware(board)]))
    assert [each.text for each in tool_messages(result)] == ["send_reminder"]
    assert lists(chat) == [OWN, (*OWN, "crm__send_reminder")]


def test_calls_of_one_turn_all_count(run: Run, tmp_path: Path) -> None:
    board = board_in(tmp_path)
    both = calls(("crm__send_reminder", {}), ("weather", {"city": "Oslo"}), ("search_tools", {"query": "refund"}))
    chat = chat_of([both, calls(("crm__filler_3", {})), calls(("crm__send_reminder", {}))])
    result = run(board, lambda: create_agent(chat, [weather], middleware=[PegboardMiddleware(board)]))
    first, second, third, last = lists(chat)
    assert [each.name for each in tool_messages(result)[:3]] == ["crm__send_reminder", "weather", "search_tools"]
    assert first == ("weather", *OWN)
    assert {"crm__send_reminder", "crm__refund_payment"} <= set(second)
    # Whatever else is loaded or used again later: what is on the list stays where it is.
    assert third == last == (*second, "crm__filler_3")


def test_a_name_that_is_nobodys_gets_near_misses(run: Run, tmp_path: Path) -> None:
    board = board_in(tmp_path)
    chat = chat_of([calls(("crm__create_invoces", {"customer": "Ada"}))])
    result = run(board, lambda: create_agent(chat, [weather], middleware=[PegboardMiddleware(board)]))
    [message] = tool_messages(result)
    assert message.status == "error"
    assert "Did you mean crm__create_invoice?" in message.text


def test_a_failing_tool_is_an_error_message_that_the_agent_goes_on_from(run: Run, tmp_path: Path) -> None:
    board = board_in(tmp_path)
    chat = chat_of([calls(("crm__broken", {})), Move(text="I see")])
    result = run(board, lambda: create_agent(chat, middleware=[PegboardMiddleware(board)]))
    [message] = tool_messages(result)
    assert (message.text, message.status) == ("it broke", "error")
    assert result["messages"][-1].text == "I see"


@pytest.mark.parametrize("reveal", ["append", "auto"])
def test_definitions_reach_the_model_exactly_as_they_are(reveal: Any, tmp_path: Path) -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"Level": {"enum": [1, 2]}},
        "properties": {"self": {"$ref": "#/$defs/Level"}, "config": {"type": ["string", "null"], "title": "Config"}},
        "required": ["self"],
        "additionalProperties": False,
    }
    source = FakeSource(
        "odd", [tool_definition("shape", "Odd", inputSchema=schema, annotations={"readOnlyHint": True})]
    )
    arguments = {"self": 1, "config": None}
    chat = chat_of([calls(("odd__shape", arguments))])
    with board_in(tmp_path, source) as board:
        create_agent(chat, middleware=[PegboardMiddleware(board, reveal=reveal)]).invoke(HELLO)
    expected = {"type": "function", "function": {"name": "odd__shape", "description": "Odd", "parameters": schema}}
    assert chat.script.shown[-1].tools[-1] == expected
    assert source.calls == [("shape", arguments)]


def test_a_tool_without_a_schema_has_one_that_takes_nothing(tmp_path: Path) -> None:
    chat = chat_of([calls(("crm__send_reminder", {}))])
    with board_in(tmp_path) as board:
        create_agent(chat, middleware=[PegboardMiddleware(board)]).invoke(HELLO)
    assert chat.script.shown[-1].tools[-1]["function"]["parameters"] == {"type": "object", "properties": {}}


def test_the_system_prompt_gets_one_paragraph_that_stays_the_same(tmp_path: Path) -> None:
    chat = chat_of([search("create an invoice"), calls(("crm__refund_payment", {}))])
    with board_in(tmp_path) as board:
        create_agent(chat, system_prompt="Be kind.", middleware=[PegboardMiddleware(board)]).invoke(HELLO)
    [words] = {shown.system for shown in chat.script.shown}
    assert words.startswith("Be kind.\n\n44 more tools on 1 server")


def test_blocks_of_a_system_message_keep_what_they_say_of_the_cache(tmp_path: Path) -> None:
    prompt = SystemMessage(content=[{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}])
    seen: list[Any] = []

    class Look(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.append(request.system_message.content)
            return handler(request)

    with board_in(tmp_path) as board:
        create_agent(chat_of([]), system_prompt=prompt, middleware=[PegboardMiddleware(board), Look()]).invoke(HELLO)
    [[first, second]] = seen
    assert first == prompt.content[0]
    assert (second["type"], "more tools" in second["text"]) == ("text", True)


def test_without_guidance_the_prompt_is_left_alone(tmp_path: Path) -> None:
    chat = chat_of([])
    with board_in(tmp_path) as board:
        middleware = PegboardMiddleware(board, guidance=False)
        create_agent(chat, system_prompt="Be kind.", middleware=[middleware]).invoke(HELLO)
    assert chat.script.shown[0].system == "Be kind."


def test_where_nothing_is_deferred_all_is_bound_and_nothing_is_added(tmp_path: Path) -> None:
    chat = chat_of([calls(("crm__create_invoice", {"customer": "Ada"}))])
    with board_in(tmp_path, mode="off") as board:
        everything = tuple(board.catalog.tools)
        result = create_agent(chat, [weather], middleware=[PegboardMiddleware(board)]).invoke(HELLO)
    assert lists(chat) == [("weather", *everything)] * 2
    assert chat.script.shown[0].system == ""
    assert tool_messages(result)[0].text == "create_invoice"


def test_without_the_search_tool_nothing_is_deferred(tmp_path: Path) -> None:
    chat = chat_of([])
    with board_in(tmp_path) as board:
        create_agent(chat, middleware=[PegboardMiddleware(board, search=False)]).invoke(HELLO)
        assert set(lists(chat)[0]) == set(board.catalog.tools)


def test_a_model_that_never_searches_has_what_is_pinned_and_the_roster(tmp_path: Path) -> None:
    chat = chat_of([])
    with board_in(tmp_path, pinned=["crm__create_invoice"]) as board:
        create_agent(chat, middleware=[PegboardMiddleware(board)]).invoke(HELLO)
    assert lists(chat) == [(*OWN, "crm__create_invoice")]
    assert "crm" in chat.script.shown[0].tools[0]["function"]["description"]


def test_what_is_not_allowed_is_neither_found_nor_called(tmp_path: Path) -> None:
    source = crm()
    chat = chat_of([search("create an invoice"), calls(("crm__create_invoice", {"customer": "Ada"}))])
    with board_in(tmp_path, source) as board:
        middleware = PegboardMiddleware(board, allow=["crm__filler_*"])
        result = create_agent(chat, middleware=[middleware]).invoke(HELLO)
    found, refused = tool_messages(result)
    assert "create_invoice" not in found.text
    assert refused.status == "error"
    assert source.calls == []


def test_where_the_list_must_not_change_call_tool_calls(run: Run, tmp_path: Path) -> None:
    board = board_in(tmp_path)
    call = calls(("call_tool", {"name": "crm__create_invoice", "arguments": {"customer": "Ada"}}))
    chat = chat_of([search("create an invoice"), call])
    result = run(board, lambda: create_agent(chat, middleware=[PegboardMiddleware(board, reveal="bridge")]))
    assert lists(chat) == [("search_tools", "call_tool", "batch_tools", "read_result")] * 3
    assert tool_messages(result)[-1].text == "create_invoice"
    sent = [as_sent(shown)[:-1] for shown in chat.script.shown]
    assert all(after.startswith(before) for before, after in pairwise(sent))


# ── the agent's own tools ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_agents_own_tools_run_as_ever(run: Run, tmp_path: Path) -> None:
    board = board_in(tmp_path)
    chat = chat_of([calls(("weather", {"city": "Oslo"})), calls(("weather", {"town": "Oslo"}))])
    result = run(board, lambda: create_agent(chat, [weather], middleware=[PegboardMiddleware(board)]))
    good, bad = tool_messages(result)
    assert good.text == "sunny in Oslo"
    assert bad.status == "error"
    assert lists(chat) == [("weather", *OWN)] * 3


def test_only_what_is_to_be_hidden_is_hidden_and_stays_callable(tmp_path: Path) -> None:
    @tool
    def weather_history(city: str) -> str:
        """Tells what the weather was."""
        return f"rain in {city}"

    chat = chat_of([calls(("weather_history", {"city": "Oslo"}))])
    with board_in(tmp_path) as board:
        middleware = PegboardMiddleware(board, hide=["weather_*"])
        result = create_agent(chat, [weather, weather_history], middleware=[middleware]).invoke(HELLO)
    assert lists(chat) == [("weather", *OWN)] * 2
    assert tool_messages(result)[0].text == "rain in Oslo"


def test_a_tool_of_the_providers_stays_where_it_is(tmp_path: Path) -> None:
    builtin = {"type": "web_search", "name": "web_search"}
    seen: list[Any] = []

    class Look(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.append(request.tools)
            return handler(request.override(tools=[]))

    with board_in(tmp_path) as board:
        agent = create_agent(chat_of([]), [weather, builtin], middleware=[PegboardMiddleware(board), Look()])
        agent.invoke(HELLO)
    assert seen[0][:2] == [weather, builtin]


def test_of_two_tools_of_one_name_the_agents_own_wins_and_that_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    def crm__create_invoice(customer: str) -> str:
        """Mine."""
        return f"my own invoice for {customer}"

    call = calls(("crm__create_invoice", {"customer": "Ada"}))
    chat = chat_of([search("create an invoice", limit=1), call, call])
    with board_in(tmp_path) as board, caplog.at_level(logging.WARNING):
        agent = create_agent(chat, [crm__create_invoice], middleware=[PegboardMiddleware(board)])
        result = agent.invoke(HELLO)
    assert lists(chat) == [("crm__create_invoice", *OWN)] * 4
    assert tool_messages(result)[1].text == "my own invoice for Ada"
    assert [each.getMessage() for each in caplog.records] == [
        "The agent has a tool of its own named crm__create_invoice: the board's is not shown."
    ]


def test_an_own_tool_that_takes_the_searchs_name_switches_deferral_off(tmp_path: Path) -> None:
    @tool
    def search_tools(query: str) -> str:
        """Searches the tool shed."""
        return "a hammer"

    chat = chat_of([calls(("search_tools", {"query": "nails"}))])
    with board_in(tmp_path) as board:
        everything = set(board.catalog.tools)
        result = create_agent(chat, [search_tools], middleware=[PegboardMiddleware(board)]).invoke(HELLO)
    assert tool_messages(result)[0].text == "a hammer"
    assert set(lists(chat)[0]) == {"search_tools", *everything}


# ── LangChain's other machinery ──────────────────────────────────────────────────────────────────────────────────────


def test_results_carry_pictures_and_what_mcp_said(tmp_path: Path) -> None:
    raw = {
        "content": [{"type": "text", "text": "a cat"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}],
        "structuredContent": {"cats": 1},
    }
    source = FakeSource("zoo", [tool_definition("photo", "Takes a photo")], results={"photo": raw})
    with board_in(tmp_path, source) as board:
        agent = create_agent(chat_of([calls(("zoo__photo", {}))]), middleware=[PegboardMiddleware(board)])
        [message] = tool_messages(agent.invoke(HELLO))
    assert message.content_blocks == [
        {"type": "text", "text": "a cat"},
        {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
    ]
    assert message.artifact["structuredContent"] == {"cats": 1}


def test_callbacks_and_inner_middleware_see_every_call(tmp_path: Path) -> None:
    class Heard(BaseCallbackHandler):
        def __init__(self) -> None:
            self.started: list[Any] = []

        def on_tool_start(self, serialized: Any, input_str: str, *, inputs: Any = None, **kwargs: Any) -> None:
            self.started.append((serialized["name"], inputs))

    passed: list[str] = []

    @wrap_tool_call
    def note(request: Any, handler: Any) -> Any:
        passed.append(request.tool_call["name"])
        return handler(request)

    heard = Heard()
    chat = chat_of([calls(("crm__create_invoice", {"customer": "Ada"}), ("weather", {"city": "Oslo"}))])
    with board_in(tmp_path) as board:
        agent = create_agent(chat, [weather], middleware=[PegboardMiddleware(board), note])
        agent.invoke(HELLO, {"callbacks": [heard]})
    assert sorted(passed) == ["crm__create_invoice", "weather"]
    assert sorted(heard.started) == [("crm__create_invoice", {"customer": "Ada"}), ("weather", {"city": "Oslo"})]


@in_a_loop
async def test_a_stream_shows_each_step(tmp_path: Path) -> None:
    chat = chat_of([search("create an invoice"), calls(("crm__create_invoice", {"customer": "Ada"}))])
    async with board_in(tmp_path) as board:
        agent = create_agent(chat, middleware=[PegboardMiddleware(board)])
        updates = [each async for each in agent.astream(HELLO, stream_mode="updates")]
    assert [next(iter(each)) for each in updates] == [
        "PegboardMiddleware.before_agent",
        *["model", "tools", "model", "tools", "model"],
    ]


@in_a_loop
async def test_a_search_needs_no_approval_and_what_needs_one_waits_for_it(tmp_path: Path) -> None:
    source = crm()
    chat = chat_of([search("create an invoice"), calls(("crm__create_invoice", {"customer": "Ada"}))])
    config: Any = {"configurable": {"thread_id": "t"}}
    async with board_in(tmp_path, source) as board:
        asks = HumanInTheLoopMiddleware(interrupt_on={"crm__create_invoice": True})
        agent = create_agent(chat, middleware=[PegboardMiddleware(board), asks], checkpointer=InMemorySaver())
        stopped = await agent.ainvoke(HELLO, config)
        assert len(stopped["__interrupt__"]) == 1
        assert len(tool_messages(stopped)) == 1
        assert source.calls == []
        edited = {"name": "crm__create_invoice", "args": {"customer": "Grace"}}
        decision = {"decisions": [{"type": "edit", "edited_action": edited}]}
        result = await agent.ainvoke(Command(resume=decision), config)
    assert source.calls == [("create_invoice", {"customer": "Grace"})]
    assert tool_messages(result)[-1].status == "success"


def test_limits_on_calls_hold_for_the_boards_tools(tmp_path: Path) -> None:
    source = crm()
    chat = chat_of([calls(("crm__filler_1", {})), calls(("crm__filler_1", {})), calls(("crm__filler_2", {}))])
    with board_in(tmp_path, source) as board:
        limit = ToolCallLimitMiddleware(tool_name="crm__filler_1", run_limit=1, exit_behavior="continue")
        create_agent(chat, middleware=[PegboardMiddleware(board), limit]).invoke(HELLO)
    assert source.calls == [("filler_1", {}), ("filler_2", {})]


@in_a_loop
async def test_a_cancelled_run_cancels_the_call(tmp_path: Path) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(arguments: Any, context: Any) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    source = FakeSource("slow", ["wait"], results={"wait": wait})
    async with board_in(tmp_path, source) as board:
        agent = create_agent(chat_of([calls(("slow__wait", {}))]), middleware=[PegboardMiddleware(board)])
        running = asyncio.create_task(agent.ainvoke(HELLO))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.wait_for(ended.wait(), 10)


@in_a_loop
async def test_invoking_without_await_on_the_boards_loop_is_refused_at_once(tmp_path: Path) -> None:
    async with board_in(tmp_path) as board:
        agent = create_agent(chat_of([]), middleware=[PegboardMiddleware(board)])
        with pytest.raises(PegboardError, match="without await") as caught:
            agent.invoke(HELLO)
    assert "ainvoke" in caught.value.hint


def test_a_board_that_is_not_open_says_so(tmp_path: Path) -> None:
    agent = create_agent(chat_of([]), middleware=[PegboardMiddleware(board_in(tmp_path))])
    with pytest.raises(PegboardError, match="not open"):
        agent.invoke(HELLO)


def test_agents_of_one_board_do_not_see_what_others_load(tmp_path: Path) -> None:
    one = chat_of([search("create an invoice", limit=1), Move(text="ok")])
    other = chat_of([])
    with board_in(tmp_path) as board:
        create_agent(one, middleware=[PegboardMiddleware(board)]).invoke(HELLO)
        create_agent(other, middleware=[PegboardMiddleware(board)]).invoke(HELLO)
    assert lists(one)[-1] == (*OWN, "crm__create_invoice")
    assert lists(other) == [OWN]


def test_an_agent_that_keeps_no_state_goes_on_where_its_conversation_was(tmp_path: Path) -> None:
    chat = chat_of([search("create an invoice", limit=1), Move(text="ok"), Move(text="ok")])
    with board_in(tmp_path) as board:
        agent = create_agent(chat, middleware=[PegboardMiddleware(board, conversation="user-42")])
        result = agent.invoke(HELLO)
        more: Any = {"messages": [*result["messages"], ("user", "and now?")]}
        agent.invoke(more)
    assert lists(chat)[2] == (*OWN, "crm__create_invoice")


def test_a_long_result_is_read_on_in_pages(tmp_path: Path) -> None:
    text = "\n".join(f"line {n} of a long result" for n in range(20_000))
    source = FakeSource("big", ["dump"], results={"dump": {"content": [{"type": "text", "text": text}]}})

    def read_on(shown: Any) -> Move:
        [handle] = re.findall(r'handle="([^"]+)"', shown.messages[-1].text)
        return calls(("read_result", {"handle": handle, "page": 2}))

    chat = chat_of([calls(("big__dump", {})), read_on])
    with board_in(tmp_path, source) as board:
        result = create_agent(chat, middleware=[PegboardMiddleware(board)]).invoke(HELLO)
    cut, more = tool_messages(result)
    assert len(cut.text) < len(text)
    assert more.status == "success"
    assert "of a long result" in more.text
