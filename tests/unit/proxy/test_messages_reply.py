"""Replies of the Messages API: what is hidden, what becomes of a call, and what is not changed by a byte."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pegboard.proxy.events import encoded
from pegboard.proxy.memory import Remembered
from pegboard.proxy.seam import ReplyCut
from pegboard.testing import FakeLLM, Move
from tests.unit.proxy.rounds import (
    FORECAST,
    TOOLS,
    Driven,
    begun,
    bridged,
    by,
    driven,
    remembered,
    saying,
    searches,
)


def asked(*, stream: bool = True, messages: Any = None, **more: Any) -> dict[str, Any]:
    said = messages or [{"role": "user", "content": "hi"}]
    return {
        "model": "claude-opus-5-5",
        "max_tokens": 9,
        "messages": said,
        "tools": TOOLS["messages"],
        "stream": stream,
        **more,
    }


def streamed(*blocks: dict[str, Any], stop: str = "end_turn", usage: Any = None, start: Any = None) -> bytes:
    """A stream of whole blocks, in the API's own order of keys and with blanks of its own."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "msg_1", "content": [], "usage": start or {"input_tokens": 1}}}
    ]
    for at, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": at, "content_block": block})
        events.append({"type": "content_block_stop", "index": at})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage or {"output_tokens": 2}})
    events.append({"type": "message_stop"})
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events)


def whole(*blocks: dict[str, Any], stop: str = "end_turn", **more: Any) -> bytes:
    return json.dumps({"id": "msg_1", "content": list(blocks), "stop_reason": stop, **more}, indent=1).encode()


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(tag: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{tag}", "name": name, "input": given}


READ = call("r", "Read", path="a")
SEARCH = call("s", "search_tools", query="x")
FOUND = {
    "type": "tool_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": FORECAST}],
    },
}
NATIVE = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "x"}}


def got(memory: Remembered, *replies: bytes, stream: bool = True) -> Driven:
    return driven(begun("messages", memory, asked(stream=stream)), saying(*replies))


# ── nothing to change ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("executor", ["bridge", "native"])
def test_a_reply_in_which_nothing_is_hidden_comes_as_the_very_bytes(executor) -> None:
    for blocks in ((text("ü"), READ), (text(""),), (), ({"type": "redacted_thinking", "data": "x"}, text("a"))):
        assert got(remembered(executor), streamed(*blocks)).out == streamed(*blocks)
        assert got(remembered(executor), whole(*blocks), stream=False).out == whole(*blocks)


def test_a_whole_reply_that_is_no_message_comes_as_the_very_bytes() -> None:
    for odd in (b"[1, 2]", b'{"type": "error"}', b'{"content": null, "stop_reason": null }', b'{"content": [1, "a"]}'):
        assert got(remembered(), odd, stream=False).out == odd


def test_a_reply_that_is_no_json_is_a_cut() -> None:
    for odd in (b"", b"<html>", b'{"content": [', b'{"a": "\xff"}', b"[" * 100_000):
        with pytest.raises(ReplyCut):
            got(remembered(), odd, stream=False)


@pytest.mark.parametrize("executor", ["bridge", "native"])
def test_a_server_that_does_not_stream_though_it_was_asked_to_is_understood(executor) -> None:
    assert got(remembered(executor), whole(text("a"))).out == whole(text("a"))
    hidden = (SEARCH,) if executor == "bridge" else (NATIVE, FOUND)
    rounds = [whole(*hidden, stop="tool_use"), whole(READ)] if executor == "bridge" else [whole(*hidden, READ)]
    assert [block["id"] for block in json.loads(got(remembered(executor), *rounds).out)["content"]] == ["toolu_r"]


def test_half_a_reply_that_does_not_stream_is_a_cut() -> None:
    with pytest.raises(ReplyCut):
        got(remembered(), whole(text("a"))[:-5])


# ── the end of a stream ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("missing", [1, 2])
def test_a_last_event_without_its_empty_line_ends_a_stream(missing) -> None:
    stream = streamed(text("a"))[:-missing]
    assert got(remembered(), stream).out == stream


def test_a_last_event_without_its_empty_line_ends_an_inner_round() -> None:
    done = got(remembered(), streamed(SEARCH, stop="tool_use")[:-2], streamed(text("a")))
    assert [each["type"] for each in done.events].count("message_stop") == 1
    assert len(done.sent) == 2


def test_half_a_last_event_is_a_cut_and_is_not_shown() -> None:
    stream = streamed(text("a"))
    for keep in range(len(stream) - 40, len(stream) - 3):
        exchange = begun("messages", remembered(), asked())
        shown = exchange.feed(stream[:keep])
        assert b"message_stop" not in shown
        with pytest.raises(ReplyCut):
            exchange.finish()


def test_what_comes_after_the_end_is_passed_on() -> None:
    stream = streamed(text("a")) + b": bye"
    assert got(remembered(), stream).out == stream


def test_an_error_in_a_stream_passes_and_ends_it() -> None:
    error = encoded({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, "error")
    begins = streamed(text("a")).split(b"event: message_delta")[0]
    memory = remembered()
    assert got(memory, begins + error).out == begins + error
    assert memory.is_torn


# ── usage ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def usage(done: Driven) -> Any:
    return next(each["usage"] for each in reversed(done.events) if each["type"] == "message_delta")


def test_counts_that_are_null_at_the_end_do_not_undo_those_of_the_beginning() -> None:
    start = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}
    end = {"input_tokens": None, "cache_read_input_tokens": None, "output_tokens": 7, "server_tool_use": None}
    first = streamed(SEARCH, stop="tool_use", start=start, usage=end)
    done = got(remembered(), first, streamed(text("a"), start=start, usage=end))
    total = usage(done)
    assert (total["input_tokens"], total["cache_read_input_tokens"], total["output_tokens"]) == (20, 10, 14)


def test_counts_that_end_higher_than_they_began_are_not_added_twice() -> None:
    start, end = {"input_tokens": 10, "output_tokens": 1}, {"input_tokens": 30, "output_tokens": 7}
    first = streamed(SEARCH, stop="tool_use", start=start, usage=end)
    total = usage(got(remembered(), first, streamed(text("a"), start=start, usage=end)))
    assert (total["input_tokens"], total["output_tokens"]) == (60, 14)


@pytest.mark.parametrize("count", [None, {}, {"input_tokens": None, "output_tokens": 3}])
def test_a_whole_reply_with_null_counts_or_none_is_understood(count) -> None:
    more = {} if count is None else {"usage": count}
    first, last = whole(SEARCH, stop="tool_use", **more), whole(text("a"), **more)
    reply = json.loads(got(remembered(), first, last, stream=False).out)
    assert reply["content"] == [text("a")]
    assert reply.get("usage", {}).get("output_tokens") == (6 if count else None)


# ── what is hidden ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_search_with_its_result_is_hidden_and_the_rest_is_numbered_anew(stream) -> None:
    made = streamed if stream else whole
    memory = remembered("native")
    done = got(memory, made(text("a"), NATIVE, FOUND, READ, stop="tool_use"), stream=stream)
    if stream:
        starts = [each for each in done.events if each["type"] == "content_block_start"]
        assert [(each["index"], each["content_block"]["type"]) for each in starts] == [(0, "text"), (1, "tool_use")]
    else:
        assert [block["type"] for block in done.whole["content"]] == ["text", "tool_use"]
    assert [block["type"] for block in memory.inserts[0].blocks] == ["server_tool_use", "tool_search_tool_result"]
    assert [*memory.definitions] == [FORECAST]


def test_other_tools_that_the_api_runs_are_shown() -> None:
    fetch = {"type": "server_tool_use", "id": "srvtoolu_9", "name": "web_fetch", "input": {"url": "x"}}
    stream = streamed(fetch, {"type": "web_fetch_tool_result", "tool_use_id": "srvtoolu_9", "content": {}}, text("a"))
    assert got(remembered("native"), stream).out == stream


def test_a_search_that_failed_is_hidden_and_put_back_as_it_is() -> None:
    error = {"type": "tool_search_tool_result_error", "error_code": "unavailable", "error_message": None}
    failed = {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": error}
    memory = remembered("native")
    got(memory, streamed(NATIVE, failed, READ, stop="tool_use"))
    history = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [READ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_r", "content": "x"}]},
    ]
    body = json.loads(begun("messages", memory, asked(messages=history)).body)
    assert body["messages"][1]["content"] == [NATIVE, failed, READ]


def test_a_search_cut_by_the_limit_of_tokens_is_not_answered_and_the_reply_ends() -> None:
    memory = remembered()
    done = got(memory, streamed(text("a"), SEARCH, stop="max_tokens"))
    assert [each["content_block"]["type"] for each in done.events if "content_block" in each] == ["text"]
    assert next(each["delta"] for each in done.events if each["type"] == "message_delta") == {
        "stop_reason": "max_tokens"
    }


def test_each_call_of_several_keeps_its_own_arguments() -> None:
    moves = [
        searches("a"),
        Move(
            calls=(
                ("call_tool", {"name": FORECAST, "arguments": {"title": 'q"}{'}}),
                ("Read", {"path": "p"}),
                ("call_tool", {"arguments": {}, "name": FORECAST}),
            )
        ),
    ]
    for stream in (True, False):
        fake = FakeLLM(moves)
        done = driven(begun("messages", remembered(), asked(stream=stream)), by(fake, "messages"))
        if stream:
            parts: dict[int, str] = {}
            for each in done.events:
                if each["type"] == "content_block_delta":
                    parts[each["index"]] = parts.get(each["index"], "") + each["delta"]["partial_json"]
            assert [json.loads(parts[at]) for at in sorted(parts)] == [{"title": 'q"}{'}, {"path": "p"}, {}]
        else:
            assert [block["name"] for block in done.whole["content"]] == [FORECAST, "Read", FORECAST]


def test_a_tool_that_is_in_sight_can_be_called_through_the_bridge_as_well() -> None:
    fake = FakeLLM([bridged("Read", {"path": "a"})])
    done = driven(begun("messages", remembered(), asked(stream=False)), by(fake, "messages"))
    assert [(block["name"], block["input"]) for block in done.whole["content"]] == [("Read", {"path": "a"})]


def test_a_later_round_that_is_refused_ends_the_stream_with_what_the_api_said() -> None:
    exchange = begun("messages", remembered(), asked())
    said = {"type": "error", "error": {"type": "overloaded_error", "message": "m"}, "request_id": "r"}
    assert exchange.failed(529, json.dumps(said).encode()) == encoded(said, "error")
    for body in (b"", b"<html>", b"[]", b'{"error": "x"}', b"\xff"):
        assert b"answered 502" in exchange.failed(502, body)
