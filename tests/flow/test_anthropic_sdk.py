"""Loops on the `anthropic` SDK: native deferral from our own index, and everything the API would refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import pytest

from pegboard import Pegboard
from pegboard.errors import PegboardError
from pegboard.integrations.anthropic_sdk import ADDITIONS, AnthropicTools
from pegboard.testing import FakeLLM, FakeSource, Move, text_result, tool_definition
from tests.loops import in_a_loop
from tests.sdk_agents import OnMessages, board_of, call, hub, search

MODEL, OLD = "claude-opus-5", "anthropic.claude-3-haiku"
WEATHER: Any = {"name": "weather", "description": "Weather.", "input_schema": {"type": "object"}}


def names(request: Any, *, deferred: bool) -> list[str]:
    return [each["name"] for each in request.body["tools"] if bool(each.get("defer_loading")) is deferred]


@in_a_loop
async def test_only_what_was_found_is_sent_and_what_stands_before_it_stays_the_same(tmp_path: Path) -> None:
    fake = FakeLLM(
        [search("archive camera of shelf 3"), call("hub__archive_camera_3", id=1), search("count tickets"), Move()]
    )
    async with board_of(tmp_path, hub()) as board:
        await board.refresh()
        await OnMessages(fake, board.conversation("u")).say("go")
    assert all(names(each, deferred=False) == ["search_tools", "read_result"] for each in fake.requests)
    found = [names(each, deferred=True) for each in fake.requests]
    assert found[0] == []
    assert found[1] == found[2] == found[3][: len(found[1])]
    assert 1 <= len(found[1]) <= 5 < len(found[3]) <= 10


@in_a_loop
async def test_evicted_tools_stay_in_the_request_as_long_as_the_history_refers_to_them(tmp_path: Path) -> None:
    fake = FakeLLM([search(f"count {thing} of shelf 1", limit=2) for thing in ("ticket", "parcel", "sensor", "lesson")])
    async with board_of(tmp_path, hub(), max_active=2) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        await one.say("go")
        loaded = one.tools.chat.surface().activation.names
    assert len(loaded) == 2
    assert "hub__count_ticket_1" not in loaded
    assert "hub__count_ticket_1" in names(fake.requests[-1], deferred=True)


@in_a_loop
async def test_a_tool_that_is_gone_is_still_answered_for(tmp_path: Path) -> None:
    source = hub(20)
    fake = FakeLLM([search("create invoice"), Move(text="ok"), call("hub__create_invoice_0", id=1), Move(text="I see")])
    async with board_of(tmp_path, source) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        await one.say("go")
        source.tools = [each for each in source.tools if each["name"] != "create_invoice_0"]
        await board.refresh()
        assert await one.say("create it") == "I see"
        assert "hub__create_invoice_0" in names(fake.requests[-1], deferred=True)
        result: Any = one.history[-2]["content"][0]
        assert result["is_error"] is True
        restarted = OnMessages(FakeLLM([Move(text="still")]), board.conversation("v"))
        restarted.history = one.history
        assert await restarted.say("go on", reads=True) == "still"


@in_a_loop
async def test_a_restart_that_does_not_show_its_history_has_all_that_is_loaded_on_the_list(tmp_path: Path) -> None:
    fake = FakeLLM([search("create invoice"), Move(text="ok")])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        await one.say("go")
        fresh = FakeLLM([Move(text="still")])
        again = OnMessages(fresh, board.conversation("u", state=one.tools.chat.state()))
        again.history = one.history
        assert await again.say("go on") == "still"
        assert "hub__create_invoice_0" in names(fresh.requests[0], deferred=False)


@in_a_loop
async def test_a_sub_agent_given_its_parents_history_learns_nothing_of_what_it_may_not_use(tmp_path: Path) -> None:
    fake = FakeLLM([search("create invoice", limit=1), Move(text="ok")])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        parent = OnMessages(fake, board.conversation("u"))
        await parent.say("go")
        script = FakeLLM([call("hub__create_invoice_0", id=1), Move(text="refused")])
        child = OnMessages(script, parent.tools.chat)
        child.tools, child.history = parent.tools.fork("c", allow=["hub__delete_*"]), list(parent.history)
        assert await child.say("go on", reads=True) == "refused"
        [sent] = [each for each in script.requests[0].body["tools"] if each["name"] == "hub__create_invoice_0"]
        assert sent["input_schema"] == {"type": "object"}
        assert "no longer there" in sent["description"]
        last: Any = child.history[-2]["content"][0]
        assert last["is_error"] is True


@in_a_loop
async def test_the_cache_marker_stands_on_the_last_resident_tool_and_the_longest_one_counts(tmp_path: Path) -> None:
    hour: Any = {"type": "ephemeral", "ttl": "1h"}
    own: Any = [{**WEATHER, "cache_control": hour}, {**WEATHER, "name": "moon", "defer_loading": True}]
    fake = FakeLLM([search("create invoice"), Move(text="ok")])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        await OnMessages(fake, board.conversation("u"), own=own, cache="5m").say("go")
    for seen in fake.requests:
        marked = [each["name"] for each in seen.body["tools"] if "cache_control" in each]
        assert marked == ["read_result"]
        assert next(each for each in seen.body["tools"] if each["name"] == "read_result")["cache_control"] == hour
    assert own[0]["cache_control"] is hour
    assert 0 < fake.requests[0].reading.written == fake.requests[1].reading.cached


@in_a_loop
async def test_no_marker_is_set_that_nobody_asked_for(tmp_path: Path) -> None:
    fake = FakeLLM([])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        await OnMessages(fake, board.conversation("u"), own=[WEATHER]).say("go")
    assert "cache_control" not in str(fake.requests[0].body)
    assert [each["name"] for each in fake.requests[0].body["tools"]] == ["weather", "search_tools", "read_result"]
    assert fake.requests[0].body["tools"][0] == WEATHER


@in_a_loop
async def test_your_own_calls_are_yours_and_go_into_the_same_message(tmp_path: Path) -> None:
    both = Move(calls=(("weather", {"town": "Ulm"}), ("hub__create_invoice_0", {"id": 1})))
    fake = FakeLLM([both, call("weather"), Move(text="ok")])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"), own=[WEATHER])
        one.history = [{"role": "user", "content": "go"}]
        for _ in range(2):
            message = await one.step()
            ours = await one.tools.results(message) or []
            [theirs] = one.tools.others(message)
            assert theirs.name == "weather"
            rain = {"type": "tool_result", "tool_use_id": theirs.id, "content": "rain"}
            one.history.append({"role": "user", "content": [*ours, rain]})
        assert ours == []
        assert (await one.step()).content[0].text == "ok"


@in_a_loop
async def test_a_tool_of_yours_hides_the_boards_of_the_same_name_but_not_the_search(tmp_path: Path) -> None:
    mine: Any = {**WEATHER, "name": "hub__create_invoice_0"}
    source = hub(20)
    fake = FakeLLM([search("create invoice", limit=1), call("hub__create_invoice_0")])
    async with board_of(tmp_path, source) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"), own=[mine])
        await one.say("go")
        told: Any = one.history[2]["content"][0]["content"]
        assert told == [{"type": "text", "text": "Already among your tools: hub__create_invoice_0."}]
        assert source.calls == []
        with pytest.raises(PegboardError, match="search_tools"):
            OnMessages(fake, board.conversation("v"), own=[{**WEATHER, "name": "search_tools"}])


@in_a_loop
async def test_a_paused_turn_goes_back_as_it_is_and_a_cut_one_is_refused(tmp_path: Path) -> None:
    source = hub(20)
    cut = Move(calls=(("hub__create_invoice_0", {"id": 1}),), stop="max_tokens")
    fake = FakeLLM([Move(text="wait", stop="pause_turn"), cut, Move(text="ok")])
    async with board_of(tmp_path, source) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        one.history = [{"role": "user", "content": "go"}]
        paused = await one.step()
        assert await one.tools.results(paused) is None
        results: Any = await one.tools.results(await one.step())
        assert "cut off (max_tokens)" in results[0]["content"]
        assert results[0]["is_error"] is True
        one.history.append({"role": "user", "content": results})
        await one.step()
    assert source.calls == []


@in_a_loop
async def test_a_search_that_finds_nothing_says_so_in_words(tmp_path: Path) -> None:
    fake = FakeLLM([search("select:nothing_of_that_name"), Move(text="ok")])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        await one.say("go")
        assert "nothing_of_that_name" in one.history[2]["content"][0]["content"][0]["text"]
    assert names(fake.requests[-1], deferred=True) == []


@in_a_loop
async def test_a_tool_called_without_a_search_is_defined_from_then_on(tmp_path: Path) -> None:
    fake = FakeLLM([call("hub__create_invoice_0", id=1), call("hub__create_invoice_0", id=2), Move(text="ok")])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        await one.say("go")
        first, second = (one.history[at]["content"][0]["content"] for at in (2, 4))
    assert [part["type"] for part in first] == ["text", "tool_reference"]
    assert [part["type"] for part in second] == ["text"]
    assert "hub__create_invoice_0" in fake.model.shown[1].names


@in_a_loop
async def test_a_history_goes_over_to_a_model_without_deferral_and_to_one_with_it(tmp_path: Path) -> None:
    fake = FakeLLM([search("create invoice"), Move(text="a"), Move(text="b"), Move(text="c")])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        await one.say("go")
        one.model = OLD
        one.tools.tools(OLD)
        one.history = one.tools.mended(one.history)
        assert await one.say("go on") == "b"
        assert "hub__create_invoice_0" in fake.model.shown[-1].names
        one.model = MODEL
        assert await one.say("go on") == "c"
    assert [seen.refused for seen in fake.requests] == [""] * 4


@in_a_loop
async def test_a_trimmed_history_is_mended_and_its_references_are_forgotten(tmp_path: Path) -> None:
    fake = FakeLLM([search("create invoice"), call("hub__create_invoice_0", id=1), Move(text="a"), Move(text="b")])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        await one.say("go")
        one.history = one.history[4:]
        with pytest.raises(anthropic.BadRequestError, match="unexpected `tool_use_id`"):
            await one.say("go on")
        one.history = one.tools.mended(one.history)
        one.tools.compacted(one.history)
        assert await one.step()
    assert names(fake.requests[-1], deferred=True) == []
    assert "hub__create_invoice_0" in names(fake.requests[-1], deferred=False)


@in_a_loop
async def test_at_least_one_tool_is_resident_even_where_the_history_refers_to_all(tmp_path: Path) -> None:
    result = [{"type": "tool_reference", "tool_name": f"hub__{each}_invoice_0"} for each in ("create", "delete")]
    history: list[Any] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "search_tools", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": result}]},
    ]
    fake = FakeLLM([Move(text="a"), Move(text="b")])
    async with board_of(tmp_path, hub(2), mode="auto") as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        one.history = history
        await one.step(reads=True)
        await one.say("again")
    assert [seen.refused for seen in fake.requests] == ["", ""]


@in_a_loop
async def test_deferral_can_be_switched_off_whatever_the_model(tmp_path: Path) -> None:
    fake = FakeLLM([search("create invoice", limit=1), Move(text="ok")])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        await OnMessages(fake, board.conversation("u"), native=False).say("go")
    assert "defer_loading" not in str([seen.body for seen in fake.requests])
    assert names(fake.requests[-1], deferred=False) == ["search_tools", "read_result", "hub__create_invoice_0"]


@in_a_loop
async def test_pictures_and_failures_reach_the_model_as_such(tmp_path: Path) -> None:
    picture = {"content": [{"type": "image", "data": "aWNvbg==", "mimeType": "image/png"}]}
    results: Any = {"draw": picture, "break": text_result("it broke", is_error=True)}
    source = FakeSource("art", ["draw", "break"], results=results)
    fake = FakeLLM([Move(calls=(("art__draw", {}), ("art__break", {}))), Move(text="ok")])
    async with board_of(tmp_path, source) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        await one.say("go")
        drawn, broken = one.history[2]["content"]
    assert drawn["content"][0]["source"] == {"type": "base64", "media_type": "image/png", "data": "aWNvbg=="}
    assert broken["is_error"] is True
    assert "it broke" in broken["content"][0]["text"]


def test_code_that_is_not_async_uses_the_same_tools(tmp_path: Path) -> None:
    def greet(name: str) -> str:
        """Greets somebody."""
        return f"hello {name}"

    fake = FakeLLM([call("greet", name="Ada"), Move(text="ok")])
    client = anthropic.Anthropic(**fake.sync_options())
    settings = {"surface": {"mode": "on"}, "store": {"cache_dir": str(tmp_path), "state_dir": str(tmp_path)}}
    with Pegboard(tools=[greet], settings=settings) as board:
        tools = AnthropicTools(board.conversation("u"))
        history: list[Any] = [{"role": "user", "content": "go"}]
        message = client.messages.create(model=MODEL, max_tokens=100, messages=history, **tools.tools(MODEL))
        results = board.wait(tools.results(message))
        history += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
        assert client.messages.create(model=MODEL, max_tokens=100, messages=history, **tools.tools(MODEL)).content
        assert results is not None
        assert results[0]["content"][0]["text"] == "hello Ada"  # type: ignore[index]


@in_a_loop
async def test_tokens_are_counted_of_the_very_same_request(tmp_path: Path) -> None:
    fake = FakeLLM([])
    async with board_of(tmp_path, hub(500)) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        everything = AnthropicTools(board.conversation("all", search=False))
        client = one.client.messages
        few = await client.count_tokens(
            model=MODEL, messages=[{"role": "user", "content": "x"}], **one.tools.tools(MODEL)
        )
        many = await client.count_tokens(
            model=MODEL, messages=[{"role": "user", "content": "x"}], **everything.tools(MODEL)
        )
    assert many.input_tokens > 50 * few.input_tokens


@in_a_loop
async def test_a_schema_that_the_api_would_refuse_does_not_spoil_the_request(tmp_path: Path) -> None:
    schema = {"oneOf": [{"properties": {"$top": {"type": "integer"}}}, {"properties": {"name": {"type": "string"}}}]}
    source = FakeSource("odd", [tool_definition("list", "Lists.", inputSchema={"type": "object", **schema})])
    fake = FakeLLM([search("select:odd__list"), call("odd__list", name="x"), Move(text="ok")])
    async with board_of(tmp_path, source) as board:
        await board.refresh()
        assert await OnMessages(fake, board.conversation("u")).say("go") == "ok"
    assert source.calls == [("list", {"name": "x"})]


@in_a_loop
async def test_what_your_code_loads_meanwhile_changes_no_prefix_and_is_shown_after_compaction(tmp_path: Path) -> None:
    fake = FakeLLM([])
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        await one.tools.chat.search("select:hub__rename_invoice_0")
        await one.say("go")
        await one.tools.chat.search("select:hub__create_invoice_0")
        await one.say("go on")
        one.tools.compacted(one.history)
        await one.say("and on")
    sent = [names(each, deferred=False) for each in fake.requests]
    assert sent[0] == sent[1] == ["search_tools", "read_result", "hub__rename_invoice_0"]
    assert sent[2] == [*sent[0], "hub__create_invoice_0"]


@in_a_loop
async def test_a_reference_by_another_name_than_the_public_one_is_answered_for(tmp_path: Path) -> None:
    bare = {"type": "tool_reference", "tool_name": "create_invoice_0"}
    fake = FakeLLM([call("create_invoice_0", id=1), Move(text="ok")])
    source = hub(20)
    async with board_of(tmp_path, source) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        one.history = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "search_tools", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [bare]}]},
        ]
        assert await one.say("go on", reads=True) == "ok"
    assert names(fake.requests[0], deferred=True) == ["create_invoice_0"]
    assert source.calls == [("create_invoice_0", {"id": 1})]


@in_a_loop
async def test_what_a_search_says_besides_what_it_found_is_told(tmp_path: Path) -> None:
    fake = FakeLLM([search("select:hub__create_invoice_0,no_such_tool"), Move(text="ok")])
    async with board_of(tmp_path, hub(20), max_active=1) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        await one.tools.chat.search("select:hub__delete_invoice_0")
        await one.say("go")
        found, note = one.history[2]["content"][0]["content"]
    assert found == {"type": "tool_reference", "tool_name": "hub__create_invoice_0"}
    assert note["text"].startswith("No tool is named: no_such_tool")
    assert "Unloaded" not in note["text"]


@in_a_loop
async def test_what_your_code_loads_meanwhile_can_be_added_where_the_conversation_stands(tmp_path: Path) -> None:
    source = hub(20)
    fake = FakeLLM([Move(text="a"), call("hub__create_invoice_0", id=1), Move(text="b")])
    async with board_of(tmp_path, source) as board:
        await board.refresh()
        one = OnMessages(fake, board.conversation("u"))
        await one.say("go")
        assert one.tools.additions() is None
        await one.tools.chat.search("select:hub__create_invoice_0")
        one.history += [{"role": "user", "content": "go on"}, one.tools.additions()]
        assert one.tools.additions() is None
        with pytest.raises(anthropic.BadRequestError, match="requires the beta"):
            await one.step()
        one.client = one.client.with_options(default_headers={"anthropic-beta": ADDITIONS})
        results = await one.tools.results(await one.step())
        one.history.append({"role": "user", "content": results})
        await one.step()
        again = OnMessages(FakeLLM([]), board.conversation("v"))
        assert "hub__create_invoice_0" in str(again.tools.tools(MODEL, one.history))
    assert "hub__create_invoice_0" in fake.model.shown[-1].names
    assert names(fake.requests[-1], deferred=False) == ["search_tools", "read_result"]
    answered = [seen for seen in fake.requests if not seen.refused]
    assert [seen.reading.shared for seen in answered[1:]] == [seen.reading.total for seen in answered[:-1]]
    assert source.calls == [("create_invoice_0", {"id": 1})]


@in_a_loop
async def test_what_the_apis_own_search_found_is_in_the_request_where_it_is_ours(tmp_path: Path) -> None:
    names = ("hub__create_invoice_0", "somebody_elses")
    found: Any = [{"type": "tool_reference", "tool_name": name} for name in names]
    blocks = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "invoice"}},
        {
            "type": "tool_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": {"type": "tool_search_tool_search_result", "tool_references": found},
        },
        {"type": "text", "text": "There is one."},
    ]
    theirs: Any = {"name": "somebody_elses", "input_schema": {"type": "object"}, "defer_loading": True}
    own: Any = [{"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}, theirs]
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        fake = FakeLLM([call("hub__create_invoice_0", id=1), Move(text="ok")])
        one = OnMessages(fake, board.conversation("u"), own=own)
        one.history = [{"role": "user", "content": "invoices?"}, {"role": "assistant", "content": blocks}]
        assert one.tools.rebuild(one.history).loaded == ("hub__create_invoice_0",)
        assert await one.say("write one") == "ok"
    sent = [each["name"] for each in fake.requests[0].body["tools"]]
    assert sent == ["tool_search_tool_bm25", "somebody_elses", "search_tools", "read_result", "hub__create_invoice_0"]
