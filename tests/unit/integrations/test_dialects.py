"""Calls, results and histories on the wires of the model APIs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pegboard.board.result import Result
from pegboard.integrations.dialects import completions, messages, responses
from pegboard.integrations.dialects.mend_messages import LOST
from pegboard.integrations.dialects.mend_messages import mended as mended_messages
from pegboard.integrations.dialects.plain import Call, plain
from pegboard.surface.models import messages_defers, responses_searches

CALL = Call("c1", "t", {})
PNG = {"type": "image", "data": "aWNvbg==", "mimeType": "image/png"}
SVG = {"type": "image", "data": "PHN2Zz4=", "mimeType": "image/svg+xml"}
PDF: Any = {
    "type": "resource",
    "resource": {"uri": "file:///a/report.pdf", "mimeType": "application/pdf", "blob": "JVBERg=="},
}


def result(*content: Any, **more: Any) -> Result:
    return Result({"content": list(content), **more})


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


@pytest.mark.parametrize(
    "model",
    [
        "claude-opus-5-5", "claude-haiku-4-5-20251001", "claude-opus-4-5", "anthropic.claude-sonnet-4-6-v1:0",
        "claude-mythos-9", "my-gateway-alias", "claude-sonnet-4-5@20250929", "claude-opus-4-10",
    ],
)  # fmt: skip
def test_newer_and_unknown_models_defer_on_messages(model: str) -> None:
    assert messages_defers(model)


@pytest.mark.parametrize(
    "model",
    [
        "claude-3-7-sonnet-latest", "claude-3-opus-20240229", "anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-2.1",
        "claude-opus-4-1-20250805", "claude-opus-4-1", "claude-sonnet-4-20250514", "claude-opus-4@20250514",
        "claude-sonnet-4-0", "claude-instant-1.2", "glm-5", "kimi-k3", "deepseek-chat", "gpt-5.5",
    ],
)  # fmt: skip
def test_older_and_foreign_models_do_not(model: str) -> None:
    assert not messages_defers(model)


@pytest.mark.parametrize(
    ("model", "searches"),
    [
        ("gpt-5.4", True), ("gpt-5.4-mini-2026-03-05", True), ("gpt-6-astra", True), ("gpt-5.10", True),
        ("openai/gpt-5.6", True), ("gpt-5", False), ("gpt-5.3-codex", False), ("gpt-4.1", False), ("o3", False),
        ("my-deployment", False), ("chatgpt-4o-latest", False),
    ],
)  # fmt: skip
def test_responses_models_search_from_gpt_5_4_on(model: str, *, searches: bool) -> None:
    assert responses_searches(model) is searches


def test_an_sdk_object_and_the_same_as_json_are_read_alike() -> None:
    from anthropic.types import Message

    said = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "a__b", "input": {"x": 1}}],
    }  # fmt: skip
    message = Message.model_validate(said)
    assert messages.calls(message) == messages.calls(said) == [Call("toolu_1", "a__b", {"x": 1})]
    assert plain(message) == said


def test_pictures_documents_and_text_go_where_each_wire_takes_them() -> None:
    given = result(text("look"), PNG, PDF, SVG, text(""))
    on_messages = messages.result(CALL, given)["content"]
    assert [block["type"] for block in on_messages] == ["text", "image", "document", "text"]
    assert on_messages[1]["source"] == {"type": "base64", "media_type": "image/png", "data": "aWNvbg=="}
    on_responses = responses.result(CALL, given)["output"]
    assert [part["type"] for part in on_responses] == ["input_text", "input_image", "input_file", "input_text"]
    assert on_responses[1]["image_url"] == "data:image/png;base64,aWNvbg=="
    assert on_responses[2]["filename"] == "report.pdf"
    on_chat = completions.result(CALL, given)["content"]
    assert on_chat.startswith(
        "look\n[image, image/png, 6 bytes: this model cannot be shown it]\n[file, application/pdf"
    )


def test_a_failure_is_marked_on_every_wire() -> None:
    given = result(text("disk full"), isError=True)
    assert messages.result(CALL, given)["is_error"] is True
    assert responses.result(CALL, given)["output"] == "Error: disk full"
    assert completions.result(CALL, given)["content"] == "Error: disk full"
    assert responses.result(CALL, result(PNG, isError=True))["output"][0] == {"type": "input_text", "text": "Error: "}


def test_a_result_without_text_is_still_an_answer() -> None:
    assert messages.result(CALL, result())["content"] == [text("(no output)")]
    assert responses.result(CALL, result(structuredContent={"n": 1}))["output"] == '{"n":1}'
    assert completions.result(CALL, result(text("")))["content"] == "(no output)"


@pytest.mark.parametrize("blank", [text(" \n"), {"type": "resource", "resource": {"uri": "f:x", "text": "\t"}}])
def test_blanks_and_pictures_without_data_are_no_blocks_of_their_own(blank: Any) -> None:
    assert messages.result(CALL, result(blank))["content"] == [text("(no output)")]
    assert messages.result(CALL, result(blank, text("a"), blank))["content"] == [text("a")]
    for picture in ({**PNG, "data": ""}, {"type": "resource", "resource": {**PDF["resource"], "blob": ""}}):
        assert [block["type"] for block in messages.result(CALL, result(picture))["content"]] == ["text"]


@pytest.mark.parametrize("reason", ["pause_turn", "refusal", "compaction"])
def test_nothing_is_run_of_a_turn_that_is_handed_back(reason: str) -> None:
    block = {"type": "tool_use", "id": "1", "name": "t", "input": {}}
    assert messages.calls({"role": "assistant", "content": [block], "stop_reason": reason}) == []


def test_a_call_that_was_cut_off_is_refused_and_not_run() -> None:
    block = {"type": "tool_use", "id": "1", "name": "t", "input": {}}
    [call] = messages.calls({"role": "assistant", "content": [block], "stop_reason": "max_tokens"})
    assert "cut off" in call.problem
    item = {"type": "function_call", "call_id": "1", "name": "t", "arguments": '{"a": "un', "status": "incomplete"}
    [call] = responses.calls({"status": "incomplete", "output": [item]})
    assert "cut off" in call.problem
    message = {
        "role": "assistant",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "t", "arguments": "{}"}}],
    }
    [call] = completions.calls({"choices": [{"finish_reason": "length", "message": message}]})
    assert "cut off" in call.problem


@pytest.mark.parametrize(("arguments", "given"), [("", {}), ("  ", {}), ('{"a": 1}', {"a": 1})])
def test_arguments_come_as_text_or_not_at_all(arguments: str, given: Any) -> None:
    [call] = responses.calls([{"type": "function_call", "call_id": "1", "name": "t", "arguments": arguments}])
    assert (call.arguments, call.problem) == (given, "")


def test_arguments_that_are_no_json_are_told_so() -> None:
    [call] = responses.calls([{"type": "function_call", "call_id": "1", "name": "t", "arguments": "{a: 1"}])
    assert "not JSON" in call.problem


def test_calls_that_others_run_are_not_ours() -> None:
    program = {
        "type": "function_call",
        "call_id": "1",
        "name": "t",
        "arguments": "{}",
        "caller": {"type": "program", "caller_id": "p"},
    }
    hosted: Any = {"type": "tool_search_call", "execution": "server", "call_id": None, "arguments": {}}
    assert responses.calls({"output": [program, hosted, {"type": "web_search_call", "id": "w"}]}) == []
    server = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    member = {"type": "tool_use", "id": "1", "name": "click", "input": {}, "toolset_name": "browser"}
    assert messages.calls({"role": "assistant", "content": [server, member]}) == []
    custom = {"id": "1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    assert completions.calls({"role": "assistant", "tool_calls": [custom]}) == []


def test_a_namespace_stands_before_the_name_unless_it_is_the_name() -> None:
    item = {"type": "function_call", "call_id": "1", "name": "create", "namespace": "crm", "arguments": "{}"}
    assert [call.name for call in responses.calls([item, {**item, "namespace": "create"}])] == ["crm__create", "create"]


def test_one_cache_marker_is_left_on_the_last_resident_and_lasts_longest() -> None:
    hour = {"type": "ephemeral", "ttl": "1h"}
    tools: Any = [
        {"name": "a", "cache_control": hour},
        {"name": "b", "defer_loading": False},
        {"name": "c", "defer_loading": True, "cache_control": {"type": "ephemeral"}},
    ]
    marked = messages.with_marker(tools, {"type": "ephemeral", "ttl": "5m"})
    assert [each.get("cache_control") for each in marked] == [None, hour, None]
    assert tools[0]["cache_control"] is hour
    assert (
        messages.with_marker([{"name": "a", "cache_control": {"type": "ephemeral"}}], hour)[0]["cache_control"] == hour
    )
    assert messages.with_marker([{"name": "a"}]) == [{"name": "a"}]


def said(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def told(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def use(call_id: str, name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def given_back(call_id: str, *content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": list(content) or "ok"}


def reference(name: str) -> dict[str, str]:
    return {"type": "tool_reference", "tool_name": name}


def test_the_tools_of_a_messages_history_are_in_the_order_of_their_last_use() -> None:
    history = [
        told(text("go")),
        said(use("1", "search_tools", query="q")),
        told(given_back("1", reference("a__x"), reference("b__y"))),
        said(use("2", "call_tool", name="c__z", arguments={}), use("3", "batch_tools", calls=[{"name": "d__w"}, 7])),
        told(given_back("2"), given_back("3")),
        said(use("4", "a__x")),
    ]
    assert messages.uses(history) == ["b__y", "c__z", "d__w", "a__x"]
    assert messages.references(history) == ["a__x", "b__y"]


def test_the_tools_of_a_responses_history_are_in_the_order_of_their_last_use() -> None:
    space = {"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "find"}]}
    history = [
        {"role": "user", "content": "go"},
        {"type": "tool_search_call", "call_id": "1", "execution": "client", "arguments": {}},
        {"type": "tool_search_output", "call_id": "1", "tools": [{"type": "function", "name": "a__x"}, space]},
        {"type": "function_call", "call_id": "2", "name": "a__x", "namespace": "a__x", "arguments": "{}"},
    ]
    assert responses.uses(history) == ["crm__find", "a__x"]


def test_the_tools_of_a_chat_history_are_those_it_called() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "call_tool", "arguments": '{"name": "a__x"}'}}
    assert completions.uses([{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": [call]}]) == [
        "a__x"
    ]


def test_a_whole_history_is_not_mended() -> None:
    history = [told(text("go")), said(use("1", "a")), told(given_back("1")), said(text("done"))]
    assert all(new is old for new, old in zip(mended_messages(history), history, strict=True))


def test_a_trimmed_messages_history_loses_its_orphans_and_its_first_half_turn() -> None:
    history = [said(use("0", "a")), told(given_back("0")), told(given_back("0"), text("go on")), said(text("ok"))]
    assert mended_messages(history) == [told(text("go on")), said(text("ok"))]


def test_a_call_whose_result_was_not_kept_is_answered_so() -> None:
    history = [told(text("go")), said(use("1", "a"), use("2", "b")), told(text("well?"))]
    lost = [{"type": "tool_result", "tool_use_id": each, "content": LOST, "is_error": True} for each in ("1", "2")]
    assert mended_messages(history)[2] == told(*lost, text("well?"))
    assert mended_messages([*history[:2], {"role": "user", "content": "well?"}])[2] == told(*lost, text("well?"))


def test_results_that_come_in_two_messages_of_one_turn_are_kept() -> None:
    asking = [told(text("go")), said(use("1", "a"), use("2", "b"))]
    history = [*asking, told(given_back("1")), told(given_back("2"), text("go on"))]
    assert mended_messages(history) == history
    lost = {"type": "tool_result", "tool_use_id": "2", "content": LOST, "is_error": True}
    late = [*asking, told(given_back("1"), text("hm")), told(given_back("2"), text("go on"))]
    assert mended_messages(late) == [*asking, told(lost, given_back("1"), text("hm")), told(text("go on"))]


def test_tools_that_were_added_meanwhile_are_left_out_for_a_model_that_does_not_know_them() -> None:
    added = messages.addition(["a__x"])
    history = [told(text("go")), added, said(text("ok")), told(text("on"))]
    assert mended_messages(history) == history
    assert mended_messages(history, references=False) == [history[0], *history[2:]]
    both = {**added, "content": [*added["content"], text("be brief")]}
    brief = {"role": "system", "content": [text("be brief")]}
    assert mended_messages([history[0], both], references=False) == [history[0], brief]


def test_references_are_spelled_out_for_a_model_that_does_not_know_them() -> None:
    history = [told(text("go")), said(use("1", "search_tools")), told(given_back("1", reference("a__x")))]
    assert mended_messages(history, references=False)[2] == told(given_back("1", text("Found: a__x")))
    assert mended_messages(history) == history


def test_a_trimmed_responses_history_loses_orphans_and_gets_what_is_missing() -> None:
    call = {"type": "function_call", "call_id": "2", "name": "a", "arguments": "{}"}
    search = {"type": "tool_search_call", "call_id": "3", "execution": "client", "arguments": {}}
    history = [
        {"type": "function_call_output", "call_id": "1", "output": "x"},
        call,
        {"role": "user", "content": "?"},
        search,
    ]
    fixed = responses.mended(history)
    assert [each.get("type") for each in fixed] == [
        "function_call", "function_call_output", None, "tool_search_call", "tool_search_output",
    ]  # fmt: skip
    assert fixed[4] == {
        "type": "tool_search_output", "call_id": "3", "execution": "client", "status": "completed", "tools": [],
    }  # fmt: skip
    assert [each.get("type") for each in responses.mended(history, searches=False)][2:] == [None]


def test_a_trimmed_chat_history_loses_orphans_and_gets_what_is_missing() -> None:
    calls = [{"id": each, "type": "function", "function": {"name": "a", "arguments": "{}"}} for each in "12"]
    asking = {"role": "assistant", "content": None, "tool_calls": calls}
    orphan = {"role": "tool", "tool_call_id": "0", "content": "x"}
    answer = {"role": "tool", "tool_call_id": "1", "content": "y"}
    user = {"role": "user", "content": "?"}
    fixed = completions.mended([orphan, asking, answer, user, asking])
    assert fixed == [asking, answer, {"role": "tool", "tool_call_id": "2", "content": LOST}, user, asking]


def test_calls_with_plain_text_and_their_answers_are_kept_and_mended_too() -> None:
    asking = {"role": "assistant", "tool_calls": [{"id": "1", "type": "custom", "custom": {"name": "a", "input": "x"}}]}
    answer, user = {"role": "tool", "tool_call_id": "1", "content": "y"}, {"role": "user", "content": "?"}
    assert completions.mended([asking, answer, user]) == [asking, answer, user]
    lost = {"role": "tool", "tool_call_id": "1", "content": LOST}
    assert completions.mended([answer, asking, user]) == [asking, lost, user]
    item = {"type": "custom_tool_call", "call_id": "1", "name": "a", "input": "x"}
    output = {"type": "custom_tool_call_output", "call_id": "1", "output": "y"}
    assert responses.mended([item, output]) == [item, output]
    assert responses.mended([output, user]) == [user]
    assert responses.mended([item, user]) == [item, {**output, "output": LOST}, user]


def test_what_the_api_searched_itself_needs_no_answer() -> None:
    call = {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {"paths": ["crm"]}}
    output: Any = {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": []}
    assert responses.mended([call, output]) == [call, output]
    assert responses.mended([call]) == [call]
    assert responses.mended([output]) == [output]


def test_a_reply_that_a_filter_cut_off_is_not_run() -> None:
    function = {"name": "a", "arguments": "{}"}
    message = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": function}]}
    [call] = completions.calls({"choices": [{"finish_reason": "content_filter", "message": message}]})
    assert "cut off (content_filter)" in call.problem


def test_a_long_description_is_cut_only_where_asked() -> None:
    definition = {"name": "t", "description": "x" * 3000, "inputSchema": {"type": "object"}}
    assert len(responses.tool(definition)["description"]) == 3000
    assert len(completions.tool(definition, longest=1024)["function"]["description"]) == 1024


def test_what_a_model_is_not_to_see_is_not_sent() -> None:
    definition = {
        "name": "t", "title": "T", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True}, "_meta": {"secret": 1}, "icons": [],
    }  # fmt: skip
    for made in (messages.tool(definition), responses.tool(definition), completions.tool(definition)):
        assert "secret" not in msgspec.json.encode(made).decode()
    assert messages.tool(definition) == {"name": "t", "description": "T", "input_schema": {"type": "object"}}


def test_a_systems_message_that_lost_its_place_is_left_out() -> None:
    system = {"role": "system", "content": "be brief"}
    history = [system, told(text("go")), system, said(text("ok")), system, told(text("on"))]
    assert mended_messages(history) == [history[1], system, history[3], history[5]]


def test_a_systems_message_between_two_turns_of_the_users_stands_after_both() -> None:
    one, added, two, reply = told(text("go")), messages.addition(["a__x"]), told(text("on")), said(text("ok"))
    assert mended_messages([one, added, two, reply]) == [one, two, added, reply]
