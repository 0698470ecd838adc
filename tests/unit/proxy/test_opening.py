"""What a request says of its conversation: how that began, where it stands, and what of it is known."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from pegboard.proxy.declared import Family
from pegboard.proxy.memory import mark
from pegboard.proxy.opening import LATEST, Opening, defers_itself, opening

FIELD: dict[Family, str] = {"messages": "messages", "completions": "messages", "responses": "input"}


def read(family: Family, said: Any, *context: str, **more: Any) -> Opening:
    body = json.dumps({FIELD[family]: said, **more}).encode()
    found = opening(family, msgspec.json.decode(body, type=dict[str, msgspec.Raw]), *context)
    assert found is not None
    return found


def user(text: Any = "hi") -> dict[str, Any]:
    return {"role": "user", "content": text}


def says(text: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.mark.parametrize("family", FIELD)
def test_all_requests_of_a_conversation_have_one_key_and_only_the_first_is_first(family) -> None:
    first, later = read(family, [user()]), read(family, [user(), says("a"), user("more")])
    assert (first.is_first, later.is_first) == (True, False)
    assert first.key == later.key != ""


def test_conversations_differ_by_first_words_wire_upstream_and_user() -> None:
    keys = {
        read("messages", [user()]).key,
        read("messages", [user("hello")]).key,
        read("completions", [user()]).key,
        read("messages", [user()], "other").key,
        read("messages", [user()], "other", "somebody").key,
    }
    assert len(keys) == 5


def test_first_words_are_the_same_as_text_as_blocks_with_markers_and_with_pictures() -> None:
    marked = {**text("hi"), "cache_control": {"type": "ephemeral"}}
    picture = {"type": "image", "source": {"data": "x"}}
    keys = {read("messages", [user(said)]).key for said in ("hi", [text("hi")], [marked], [picture, marked])}
    assert len(keys) == 1


def test_input_that_is_one_text_begins_as_the_same_message_does() -> None:
    assert read("responses", "hi") == read("responses", [user()])


def test_a_request_that_goes_on_by_id_tells_no_beginning() -> None:
    later = read("responses", [user("more")], previous_response_id="resp_1")
    assert (later.key, later.is_first, later.previous, later.row) == ("", False, "resp_1", 0)


def test_a_prompt_of_the_systems_alone_is_no_beginning() -> None:
    assert read("completions", [{"role": "system", "content": "x"}]).key == ""


@pytest.mark.parametrize("family", ["messages", "completions"])
def test_a_reply_is_the_message_after_the_last(family) -> None:
    assert [read(family, [user(), says("a"), user("b")][:count]).row for count in (1, 3)] == [1, 3]


def test_a_reply_is_a_run_of_items_and_goes_on_where_the_model_spoke_last() -> None:
    call = {"type": "function_call", "call_id": "1", "name": "x", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "1", "output": ""}
    developer = {"role": "developer", "content": "x"}
    thought = {"type": "reasoning", "id": "rs_1"}
    assert read("responses", [developer, user()]).row == 1
    assert read("responses", [developer, user(), thought, says("a"), call, output]).row == 3
    assert read("responses", [user(), thought, says("a")]).row == 1


def test_the_first_and_the_latest_replies_are_looked_at() -> None:
    history = [user()]
    for number in range(10):
        history += [says(f"reply {number}"), user("more")]
    said = read("messages", history).said
    latest = [f"reply {number}" for number in (0, *range(10 - LATEST, 10))]
    assert said == {mark(text(words)) for words in latest}


def test_replies_are_known_by_calls_thoughts_and_words_on_every_wire() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        text("a"),
        {"type": "tool_use", "id": "toolu_1", "name": "x", "input": {}},
    ]
    assert read("messages", [user(), says(blocks), user("b")]).said == {*map(mark, blocks)}
    call = {"id": "call_1", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    completed = read("completions", [user(), {**says("a"), "tool_calls": [call]}])
    assert completed.said == {mark(text("a")), "id:call_1"}
    items = [
        {"type": "reasoning", "id": "rs_1"},
        {"type": "message", **says([{"type": "output_text", "text": "a"}])},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "x", "arguments": "{}"},
        {"type": "item_reference", "id": "msg_1"},
    ]
    responded = read("responses", [user(), *items]).said
    assert responded == {mark({"encrypted_content": "rs_1"}), mark(text("a")), "id:call_1", "item:msg_1"}


@pytest.mark.parametrize(
    "item",
    [
        {"type": "item_reference", "id": "msg_1"},
        {"id": "msg_1"},
        {"type": "custom_tool_call", "call_id": "1", "name": "x", "input": ""},
        {"type": "web_search_call", "id": "ws_1"},
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "x"},
    ],
)
def test_whatever_only_a_model_can_have_said_shows_that_it_is_not_the_first_request(item) -> None:
    assert not read("responses", [user(), item, user("more")]).is_first


def test_what_is_answered_is_known_by_the_last_block_of_the_last_message() -> None:
    results = [{"type": "tool_result", "tool_use_id": known, "content": "x"} for known in ("1", "2")]
    assert read("messages", [user(), says("a"), user(results)]).prior == "for:2"
    assert read("messages", [user("hi")]).prior == read("messages", [user([text("hi")])]).prior == mark(text("hi"))
    assert read("completions", [user(), {"role": "tool", "tool_call_id": "1", "content": "x"}]).prior == "for:1"
    output = {"type": "function_call_output", "call_id": "1", "output": "x"}
    assert read("responses", [user(), output]).prior == "for:1"


@pytest.mark.parametrize("said", [None, 1, {}, [1], [[]], "", [], [{"role": 1}], [{"role": "user", "content": {}}]])
@pytest.mark.parametrize("family", FIELD)
def test_what_is_not_what_the_wire_says_is_none_and_no_error(family, said) -> None:
    body = json.dumps({FIELD[family]: said}).encode()
    found = opening(family, msgspec.json.decode(body, type=dict[str, msgspec.Raw]))
    assert found is None or not found.said
    assert opening(family, {}) is None


@pytest.mark.parametrize(
    ("said", "defers"),
    [
        ([{"role": "user", "content": [{"type": "tool_reference", "tool_name": "x"}]}], True),
        ([{"role": "user", "content": [{"type": "tool_result", "content": [{"type": "tool_reference"}]}]}], True),
        ([{"role": "system", "content": [{"type": "tool_addition", "tool": {}}]}], True),
        ([{"role": "system", "content": [{"type": "tool_removal", "tool": {}}]}], True),
        ([{"role": "assistant", "content": [{"type": "tool_search_tool_result", "content": {}}]}], True),
        ([{"type": "tool_search_call", "arguments": {}}], True),
        ([{"type": "tool_search_output", "tools": []}], True),
        ([{"type": "additional_tools", "role": "developer", "tools": []}], True),
        ([{"role": "user", "content": 'the words "tool_reference" and {"type":"tool_addition"}'}], False),
        ([{"role": "assistant", "content": [{"type": "tool_use", "input": {"type": "tool_reference"}}]}], False),
        ([{"role": "user", "content": [{"type": {"type": "tool_reference"}}, {"type": ["tool_addition"]}]}], False),
    ],
)
def test_a_client_that_defers_by_itself_is_told_by_its_blocks_and_not_by_its_words(said, defers) -> None:
    body = json.dumps({"messages": said}).encode()
    assert defers_itself(msgspec.json.decode(body, type=dict[str, msgspec.Raw])) == defers
