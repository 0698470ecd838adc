"""Loops on the `openai` SDK: the wire's own search answered by our index, and the bridge where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

from pegboard import Pegboard
from pegboard.errors import PegboardError
from pegboard.integrations.openai_sdk import ChatCompletionsTools, ResponsesTools
from pegboard.testing import FakeLLM, FakeSource, Move, tool_definition
from tests.loops import in_a_loop
from tests.sdk_agents import OnCompletions, OnResponses, board_of, bridged, call, hub, search

WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}


@in_a_loop
async def test_the_wires_own_search_is_answered_with_definitions_and_the_tools_never_change(tmp_path: Path) -> None:
    fake = FakeLLM(
        [search("archive camera of shelf 3"), call("hub__archive_camera_3", id=1), search("count"), Move(text="ok")]
    )
    async with board_of(tmp_path, hub()) as board:
        await board.refresh()
        one = OnResponses(fake, board.conversation("u"), own=[{"type": "web_search"}, WEATHER])
        assert await one.say("go") == "ok"
    kinds = [(each["type"], each.get("name")) for each in fake.requests[0].body["tools"]]
    assert kinds == [("web_search", None), ("function", "weather"), ("tool_search", None), ("function", "read_result")]
    assert all(seen.body["tools"] == fake.requests[0].body["tools"] for seen in fake.requests)
    [output] = [each for each in fake.requests[1].body["input"] if each.get("type") == "tool_search_output"]
    assert output["execution"] == "client"
    assert output["status"] == "completed"
    assert output["tools"][0]["name"] == "hub__archive_camera_3"
    assert output["tools"][0]["defer_loading"] is True


@in_a_loop
async def test_the_namespace_of_a_call_is_sent_back(tmp_path: Path) -> None:
    fake = FakeLLM([search("select:hub__create_invoice_0"), call("hub__create_invoice_0", id=1), Move(text="ok")])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        one = OnResponses(fake, board.conversation("u"))
        await one.say("go")
        [made] = [each for each in one.history if getattr(each, "type", "") == "function_call"]
        assert made.namespace == "hub__create_invoice_0"
        bare = made.model_dump(exclude={"namespace"}, exclude_none=True)
        one.history = [bare if each is made else each for each in one.history]
        with pytest.raises(openai.BadRequestError, match="lost its namespace"):
            await one.say("again")


@in_a_loop
async def test_a_conversation_that_the_server_keeps_gets_only_what_is_new(tmp_path: Path) -> None:
    fake = FakeLLM([search("select:hub__create_invoice_0"), call("hub__create_invoice_0", id=1), Move(text="ok")])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        one = OnResponses(fake, board.conversation("u"))
        response: Any = await one.client.responses.create(model=one.model, input="go", **one.tools.tools(one.model))
        while results := await one.tools.results(response):
            assert len(results) == 1
            response = await one.client.responses.create(
                model=one.model, input=results, previous_response_id=response.id, **one.tools.tools(one.model)
            )
        assert response.output_text == "ok"
        assert "hub__create_invoice_0" in fake.model.shown[-1].names


@in_a_loop
async def test_a_search_that_finds_nothing_or_only_what_is_listed_loads_nothing(tmp_path: Path) -> None:
    fake = FakeLLM([search("select:no_such_tool"), search("select:hub__create_invoice_0"), Move(text="ok")])
    async with board_of(tmp_path, hub(20), pinned=["hub__create_invoice_0"]) as board:
        await board.refresh()
        one = OnResponses(fake, board.conversation("u"))
        await one.say("go")
        outputs = [each for each in one.history if isinstance(each, dict) and each.get("type") == "tool_search_output"]
    assert [each["tools"] for each in outputs] == [[], []]


@in_a_loop
async def test_a_reply_that_was_cut_off_has_its_calls_refused(tmp_path: Path) -> None:
    source = hub(20)
    cut = Move(calls=(("hub__create_invoice_0", {"id": 1}),), stop="max_output_tokens")
    fake = FakeLLM([cut, Move(text="ok")])
    async with board_of(tmp_path, source) as board:
        await board.refresh()
        one = OnResponses(fake, board.conversation("u"))
        assert await one.say("go") == "ok"
        assert "cut off" in one.answers()
        chat = OnCompletions(FakeLLM([Move(calls=cut.calls, stop="length"), Move(text="ok")]), board.conversation("v"))
        assert await chat.say("go") == "ok"
        assert "cut off (length)" in chat.answers()
    assert source.calls == []


@in_a_loop
async def test_a_responses_history_goes_over_to_a_model_without_search(tmp_path: Path) -> None:
    fake = FakeLLM([search("select:hub__create_invoice_0"), Move(text="a"), Move(text="b")])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        one = OnResponses(fake, board.conversation("u"))
        await one.say("go")
        one.model = "gpt-5"
        one.tools.tools(one.model)
        one.history = one.tools.mended(one.history)
        assert await one.say("go on") == "b"
        assert "hub__create_invoice_0" in fake.model.shown[-1].names
        assert "tool_search" not in str(fake.requests[-1].body)


@in_a_loop
async def test_a_trimmed_history_is_mended_on_both_wires(tmp_path: Path) -> None:
    moves = [
        search("select:hub__create_invoice_0"),
        call("hub__create_invoice_0", id=1),
        Move(text="a"),
        Move(text="b"),
    ]
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        one = OnResponses(FakeLLM(moves), board.conversation("u"))
        await one.say("go")
        one.history = one.history[4:]
        with pytest.raises(openai.BadRequestError, match="No tool call found"):
            await one.say("go on")
        one.history = one.tools.mended(one.history)
        assert await one.step()
        chat = OnCompletions(FakeLLM(moves), board.conversation("v"))
        await chat.say("go")
        chat.history = chat.history[2:]
        with pytest.raises(openai.BadRequestError, match="must be a response to"):
            await chat.say("go on")
        chat.history = chat.tools.mended(chat.history)
        assert await chat.step()


@in_a_loop
async def test_chat_completions_call_through_the_bridge_in_one_or_in_a_batch(tmp_path: Path) -> None:
    source = hub(20)
    several = {"calls": [{"name": f"hub__{each}_invoice_0", "arguments": {"id": 1}} for each in ("create", "delete")]}
    fake = FakeLLM([bridged("hub__archive_invoice_0", id=2), Move(calls=(("batch_tools", several),)), Move(text="ok")])
    async with board_of(tmp_path, source) as board:
        await board.refresh()
        one = OnCompletions(fake, board.conversation("u", reveal="called"))
        assert await one.say("go") == "ok"
    assert sorted(name for name, _ in source.calls) == ["archive_invoice_0", "create_invoice_0", "delete_invoice_0"]
    assert {shown.names for shown in fake.model.shown} == {("search_tools", "call_tool", "batch_tools", "read_result")}


@in_a_loop
async def test_your_own_functions_are_yours_on_both_wires(tmp_path: Path) -> None:
    both = Move(calls=(("weather", {}), ("hub__create_invoice_0", {"id": 1})))
    nested: Any = {
        "type": "function",
        "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
    }
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        one = OnResponses(FakeLLM([both, Move(text="ok")]), board.conversation("u"), own=[WEATHER])
        one.history = [{"role": "user", "content": "go"}]
        response = await one.step()
        [theirs] = one.tools.others(response)
        output: Any = {"type": "function_call_output", "call_id": theirs.id, "output": "rain"}
        one.history += [*(await one.tools.results(response) or []), output]
        assert (await one.step()).output_text == "ok"
        chat = OnCompletions(FakeLLM([both, Move(text="ok")]), board.conversation("v"), own=[nested])
        chat.history = [{"role": "user", "content": "go"}]
        completion = await chat.step()
        [theirs] = chat.tools.others(completion)
        chat.history.append({"role": "tool", "tool_call_id": theirs.id, "content": "rain"})
        chat.history += await chat.tools.results(completion) or []
        assert (await chat.step()).choices[0].message.content == "ok"
        for kind, own in (
            (ResponsesTools, {**WEATHER, "name": "call_tool"}),
            (ChatCompletionsTools, {"type": "function", "function": {"name": "call_tool"}}),
        ):
            with pytest.raises(PegboardError, match="call_tool"):
                kind(board.conversation("w"), [own])  # type: ignore[list-item]


@in_a_loop
async def test_your_own_tools_in_a_namespace_or_with_plain_text_are_yours(tmp_path: Path) -> None:
    crm: Any = {"type": "namespace", "name": "crm", "description": "Customers", "tools": [{**WEATHER, "name": "get"}]}
    call = {"type": "function_call", "call_id": "1", "name": "get", "namespace": "crm", "arguments": "{}"}
    text = {"type": "custom_tool_call", "call_id": "2", "name": "sql", "input": "select 1"}
    sql: Any = {"type": "custom", "custom": {"name": "sql"}}
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        tools = ResponsesTools(board.conversation("u"), [crm, {"type": "custom", "name": "sql"}])
        response = {"output": [call, text]}
        assert await tools.results(response) is None
        assert [(each.id, each.name) for each in tools.others(response)] == [("1", "crm__get"), ("2", "sql")]
        chat = ChatCompletionsTools(board.conversation("v"), [sql])
        message = {"role": "assistant", "tool_calls": [{"id": "2", **sql}]}
        assert await chat.results(message) is None
        assert [each.name for each in chat.others(message)] == ["sql"]


@in_a_loop
async def test_a_plain_message_and_plain_json_are_read_as_the_sdks_objects_are(tmp_path: Path) -> None:
    source = hub(20)
    function = {"name": "hub__create_invoice_0", "arguments": '{"id": 1}'}
    async with board_of(tmp_path, source) as board:
        await board.refresh()
        chat = ChatCompletionsTools(board.conversation("u"))
        call_: Any = {"id": "c", "type": "function", "function": function}
        assert await chat.results({"role": "assistant", "content": None, "tool_calls": [call_]})
        spoilt = await chat.results(
            {"role": "assistant", "tool_calls": [{**call_, "function": {**function, "arguments": "{id"}}]}
        )
        assert spoilt is not None
        assert "not JSON" in str(spoilt[0]["content"])
        assert await chat.results({"role": "assistant", "content": "hello"}) is None
        tools = ResponsesTools(board.conversation("v"))
        items = [{"type": "function_call", "call_id": "c", "name": "hub__create_invoice_0", "arguments": '{"id": 2}'}]
        assert await tools.results(items)
    assert source.calls == [("create_invoice_0", {"id": 1}), ("create_invoice_0", {"id": 2})]


@in_a_loop
async def test_a_picture_is_shown_where_the_wire_takes_it_and_told_of_where_not(tmp_path: Path) -> None:
    picture: Any = {"draw": {"content": [{"type": "image", "data": "aWNvbg==", "mimeType": "image/png"}]}}
    async with board_of(tmp_path, FakeSource("art", ["draw"], results=picture)) as board:
        await board.refresh()
        one = OnResponses(FakeLLM([call("art__draw"), Move(text="ok")]), board.conversation("u"))
        await one.say("go")
        assert "data:image/png;base64,aWNvbg==" in one.answers()
        chat = OnCompletions(FakeLLM([call("art__draw"), Move(text="ok")]), board.conversation("v"))
        await chat.say("go")
        assert "image/png, 6 bytes: this model cannot be shown it" in chat.answers()


@in_a_loop
async def test_schemas_that_openai_would_refuse_do_not_spoil_the_request(tmp_path: Path) -> None:
    choice = {"anyOf": [{"properties": {"tags": {"type": "array"}}}, {"properties": {"name": {"type": "string"}}}]}
    tools = [tool_definition("choose", "Chooses.", inputSchema=choice), tool_definition("bare", "x" * 2000)]
    async with board_of(tmp_path, FakeSource("odd", tools), pinned=["*"]) as board:
        await board.refresh()
        fake = FakeLLM([])
        await OnResponses(fake, board.conversation("u"), longest=1024).say("go")
        await OnCompletions(fake, board.conversation("v"), longest=1024).say("go")
    assert [seen.refused for seen in fake.requests] == ["", ""]
    assert "x" * 1023 + "…" in str(fake.requests[0].body)


def test_code_that_is_not_async_uses_the_same_tools(tmp_path: Path) -> None:
    def greet(name: str) -> str:
        """Greets somebody."""
        return f"hello {name}"

    fake = FakeLLM([call("greet", name="Ada"), Move(text="ok")])
    client = openai.OpenAI(**fake.sync_options())
    settings = {"surface": {"mode": "on"}, "store": {"cache_dir": str(tmp_path), "state_dir": str(tmp_path)}}
    with Pegboard(tools=[greet], settings=settings) as board:
        tools = ResponsesTools(board.conversation("u"))
        items: list[Any] = [{"role": "user", "content": "go"}]
        response = client.responses.create(model="gpt-5.5", input=items, **tools.tools("gpt-5.5"))
        items += [*response.output, *(board.wait(tools.results(response)) or [])]
        assert items[-2]["output"] == "hello Ada"
        assert client.responses.create(model="gpt-5.5", input=items, **tools.tools("gpt-5.5")).output_text == "ok"


@in_a_loop
async def test_a_search_with_arguments_that_do_not_fit_is_made_with_its_query(tmp_path: Path) -> None:
    fake = FakeLLM([search("select:hub__create_invoice_0", limit="as many as there are"), Move(text="ok")])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        await OnResponses(fake, board.conversation("u")).say("go")
    assert "hub__create_invoice_0" in fake.model.shown[-1].names


@in_a_loop
async def test_a_tool_called_without_a_search_is_added_once_and_dropped_for_a_model_without_search(
    tmp_path: Path,
) -> None:
    calls = Move(calls=(("hub__create_invoice_0", {"id": 1}), ("hub__create_invoice_0", {"id": 2}), ("nobody", {})))
    fourth = call("hub__create_invoice_0", id=4)
    fake = FakeLLM([calls, call("hub__create_invoice_0", id=3), Move(text="a"), fourth, Move(), Move(text="b")])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        one = OnResponses(fake, board.conversation("u"))
        await one.say("go")
        [added] = [each for each in one.history if isinstance(each, dict) and each.get("type") == "additional_tools"]
        assert [each["name"] for each in added["tools"]] == ["hub__create_invoice_0"]
        again = OnResponses(fake, board.conversation("v"))
        again.history = list(one.history)
        await again.say("again", reads=True)
        assert str(again.history).count("additional_tools") == 1
        one.model = "gpt-5"
        one.tools.tools(one.model)
        one.history = one.tools.mended(one.history)
        assert await one.say("go on") == "b"
