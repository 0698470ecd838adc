"""Chat Completions through the bridge: what the client gets of several rounds, and what the API gets of them again."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.proxy.completions_request import is_answered
from pegboard.proxy.events import encoded
from pegboard.proxy.memory import Remembered
from pegboard.proxy.seam import ReplyCut
from pegboard.proxy.weave import NotUnderstood
from pegboard.testing import FakeLLM, Move
from tests.agent_tools import CORE
from tests.often import often
from tests.unit.proxy.rounds import (
    FORECAST,
    ISSUE,
    TOOLS,
    Driven,
    begun,
    bridged,
    by,
    driven,
    now,
    remembered,
    saying,
    searches,
)

DONE = b"data: [DONE]\n\n"


def asked(messages: list[Any], **more: Any) -> dict[str, Any]:
    options = {"stream_options": {"include_usage": True}} if more.get("stream", True) else {}
    return {"model": "m", "messages": messages, "tools": TOOLS["completions"], "stream": True, **options, **more}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}] if delta is not None else []
    return encoded({"id": "c", "object": "chat.completion.chunk", "choices": choices, **more})


def call(index: int, name: str, arguments: str, **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {
        "tool_calls": [{"index": index, "id": f"call_{index}_{name}", "type": "function", "function": function, **more}]
    }


def search(index: int = 0, query: str = "x") -> dict[str, Any]:
    return call(index, "search_tools", json.dumps({"query": query}))


def message(done: Driven) -> dict[str, Any]:
    """What a client puts together of a stream, strictly: by index, with no place left out."""
    if not done.out.startswith(b"data:"):
        value: dict[str, Any] = done.whole["choices"][0]["message"]
        return {key: each for key, each in value.items() if each is not None or key == "content"}
    said: dict[str, Any] = {}
    calls: list[dict[str, Any]] = []
    for event in done.events:
        for choice in event["choices"]:
            for key, piece in choice["delta"].items():
                if key == "tool_calls":
                    _grow(calls, piece)
                elif piece is not None:
                    assert key != "role" or "role" not in said
                    said[key] = said.get(key, "") + piece
    said = {"role": "assistant", "content": said.get("content") or None, **said}
    return {**said, "tool_calls": calls} if calls else said


def _grow(calls: list[dict[str, Any]], pieces: list[dict[str, Any]]) -> None:
    for piece in pieces:
        if piece["index"] == len(calls):
            calls.append({key: value for key, value in piece.items() if key != "index"})
            continue
        calls[piece["index"]]["function"]["arguments"] += piece["function"]["arguments"]


def replayed(done: Driven, before: list[Any]) -> list[Any]:
    """The history of a client that runs what was called."""
    said = message(done)
    ran = [{"role": "tool", "tool_call_id": each["id"], "content": "ran"} for each in said.get("tool_calls", ())]
    return [*before, said, *ran]


MOVES: dict[str, list[Move]] = {
    "plain": [Move(text="Hello there.")],
    "a real call": [Move(text="Reading.", calls=(("Read", {"path": "a"}), ("Bash", {"text": "ls"})))],
    "one search": [searches("rain", text="Let me look. "), bridged(FORECAST, {"title": "Ulm"}, text="Found. ")],
    "several": [searches("a", text="One. "), searches("b", "c", text="Two. "), Move(text="Three.")],
    "no words": [searches("a"), bridged(FORECAST, {})],
    "mixed": [
        searches("a", text="First. "),
        Move(
            text="Then. ",
            calls=(
                ("search_tools", {"query": "b"}),
                ("call_tool", {"name": ISSUE, "arguments": {"title": "t", "body": 'q"}{'}}),
                ("search_tools", {"query": "c"}),
                ("Read", {"path": "p"}),
            ),
        ),
    ],
    "unknown": [bridged("mcp__weather__forcast", {"a": 1}), Move(text="Sorry.")],
    "odd calls": [
        Move(
            calls=(
                ("call_tool", {"arguments": {"title": "first"}, "name": FORECAST}),
                ("call_tool", {"name": ISSUE, "arguments": '{"title": "text"}'}),
                ("call_tool", {"name": ISSUE}),
                ("call_tool", {"name": ISSUE, "title": "beside"}),
            )
        )
    ],
}


@pytest.fixture(params=[True, False], ids=["stream", "whole"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def played(name: str, *more: Move, stream: bool = True, memory: Remembered | None = None, cuts: Any = ()) -> Driven:
    fake = FakeLLM([*MOVES[name], *more])
    exchange = begun("completions", memory or remembered(), asked([user("hi")], stream=stream))
    return driven(exchange, by(fake, "completions"), cuts)


@given(name=st.sampled_from(sorted(MOVES)), cuts=st.lists(st.integers(0, 20_000), max_size=40))
@settings(max_examples=often(60), deadline=None)
def test_however_the_bytes_are_sliced_the_client_gets_the_same(name: str, cuts: list[int]) -> None:
    assert played(name, cuts=cuts) == played(name)


@pytest.mark.parametrize("name", ["plain", "a real call"])
def test_without_the_bridge_the_stream_is_the_very_bytes(name) -> None:
    done = played(name)
    other = FakeLLM(list(MOVES[name]))
    assert done.out == by(other, "completions")(done.sent[0])


def test_the_bridges_tools_come_first_and_the_rest_of_the_request_is_as_it_came() -> None:
    tools = json.dumps(TOOLS["completions"])
    raw = (
        b'{"seed": 1.0, "messages": [ {"role": "user",  "content": "hi"} ], "model":"m", "tools": %s}' % tools.encode()
    )
    body = begun("completions", remembered(), raw).body
    assert body.startswith(b'{"seed":1.0,"messages":[{"role": "user",  "content": "hi"}],"model":"m","tools":[{"type"')
    names = [each["function"]["name"] for each in json.loads(body)["tools"]]
    assert names == ["search_tools", "call_tool", *CORE]
    assert json.dumps(TOOLS["completions"][0]).encode() in body


def test_a_marker_of_a_deferred_tool_moves_to_the_last_that_stays() -> None:
    tools = [dict(each) for each in TOOLS["completions"]]
    tools[-1]["cache_control"] = {"type": "ephemeral"}
    sent = json.loads(begun("completions", remembered(), {**asked([user("hi")]), "tools": tools}).body)
    assert [each["function"]["name"] for each in sent["tools"] if "cache_control" in each] == [CORE[-1]]


def test_a_search_is_answered_inside_and_the_texts_follow_upon_each_other(stream) -> None:
    done = played("one search", stream=stream)
    said = message(done)
    assert said["content"] == "Let me look. Found. "
    assert [each["function"] for each in said["tool_calls"]] == [{"name": FORECAST, "arguments": '{"title": "Ulm"}'}]
    assert done.bodies[1]["messages"] == [
        user("hi"),
        {
            "role": "assistant",
            "content": "Let me look. ",
            "tool_calls": [
                {
                    "id": "call_0001_0",
                    "type": "function",
                    "function": {"name": "search_tools", "arguments": '{"query": "rain"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_0001_0", "content": "found for rain"},
    ]


def test_usage_is_that_of_all_rounds_and_comes_once(stream) -> None:
    fake = FakeLLM(list(MOVES["several"]))
    done = driven(begun("completions", remembered(), asked([user("hi")], stream=stream)), by(fake, "completions"))
    used = [seen.reply["usage"] for seen in fake.requests]
    said = [event["usage"] for event in (done.events if stream else [done.whole]) if event.get("usage")]
    assert [each["total_tokens"] for each in said] == [sum(each["total_tokens"] for each in used)]
    cached = "prompt_tokens_details", "cached_tokens"
    assert said[0][cached[0]][cached[1]] == sum(each[cached[0]][cached[1]] for each in used)
    assert done.out.count(DONE) == (1 if stream else 0)


def test_the_reason_to_finish_comes_once_and_last() -> None:
    reasons = [choice["finish_reason"] for event in played("one search").events for choice in event["choices"]]
    assert [each for each in reasons if each] == ["tool_calls"]
    assert reasons[-1] == "tool_calls"


def test_calls_written_in_other_ways_become_the_same_calls(stream) -> None:
    said = message(played("odd calls", stream=stream))
    assert [(each["function"]["name"], json.loads(each["function"]["arguments"])) for each in said["tool_calls"]] == [
        (FORECAST, {"title": "first"}),
        (ISSUE, {"title": "text"}),
        (ISSUE, {}),
        (ISSUE, {"title": "beside"}),
    ]


def test_a_call_of_a_tool_that_is_not_there_is_answered_inside(stream) -> None:
    done = played("unknown", stream=stream)
    assert message(done) == {"role": "assistant", "content": "Sorry."}
    assert "Did you mean" in done.bodies[1]["messages"][-1]["content"]


@pytest.mark.parametrize("name", sorted(MOVES))
def test_what_the_client_sends_back_becomes_what_the_model_made_of_it(name, stream) -> None:
    memory = remembered()
    fake = FakeLLM([*MOVES[name], Move(text="Well."), searches("again", text="So. "), Move(text="Well.")])
    history: list[Any] = [user("hi")]
    sent: list[bytes] = []
    for _ in range(2):
        done = driven(begun("completions", memory, asked(history, stream=stream)), by(fake, "completions"))
        sent += done.sent
        history = [*replayed(done, history), user("go on")]
    done = driven(begun("completions", memory, asked(history, stream=stream)), by(fake, "completions"))
    sent += done.sent
    histories = [json.loads(body)["messages"] for body in sent]
    for before, after in pairwise(histories):
        assert json.dumps(after[: len(before)]) == json.dumps(before)
    for seen, after in zip(fake.requests, histories[1:], strict=False):
        assert flat(seen.reply["choices"][0]["message"]) in [flat(each) for each in after]


def flat(said: dict[str, Any]) -> Any:
    """A message but for how its arguments are spaced and ordered, and for ways to say that there is no text."""
    calls = [
        (each["id"], each["function"]["name"], inner(each["function"]["arguments"]))
        for each in said.get("tool_calls") or ()
    ]
    return said.get("content") or "", calls


def inner(text: str) -> Any:
    value = json.loads(text)
    if "name" in value and not isinstance(value.get("arguments"), dict):  # written in one of the other ways
        return {"name": value["name"]}
    return {"name": value["name"]} if value.get("name") == ISSUE else value


def test_a_search_beside_calls_is_put_back_among_them_with_its_answer() -> None:
    memory = remembered()
    done = played("mixed", memory=memory)
    body = json.loads(begun("completions", memory, asked(replayed(done, [user("hi")]))).body)
    said, *answers = body["messages"][3:]
    assert [each["function"]["name"] for each in said["tool_calls"]] == [
        "search_tools",
        "call_tool",
        "search_tools",
        "Read",
    ]
    assert (said["content"], [each["content"] for each in answers]) == (
        "Then. ",
        ["found for b", "found for c", "ran", "ran"],
    )


def test_a_search_that_was_never_answered_is_not_put_back() -> None:
    memory = remembered()
    done = played("mixed", memory=memory)
    body = asked(replayed(done, [user("hi")]))
    asked_of_us = [insert for insert in memory.inserts if insert.asked]
    assert [is_answered(insert) for insert in asked_of_us] == [False, False]
    begun("completions", memory, body)
    assert [is_answered(insert) for insert in asked_of_us] == [True, True]


@pytest.mark.parametrize(
    "text", ["One. Two. Three.", "  One. Two. Three.  ", [{"type": "text", "text": "One. Two. Three."}]]
)
def test_one_text_is_parted_where_the_rounds_were(text) -> None:
    memory = remembered()
    played("several", memory=memory)
    history = [user("hi"), {"role": "assistant", "content": text}, user("go on")]
    body = json.loads(begun("completions", memory, asked(history)).body)
    said = [each["content"] for each in body["messages"] if each["role"] == "assistant"]
    if text == "  One. Two. Three.  ":
        assert said == [None, None, text]
    else:
        assert said == ["One. ", "Two. ", "Three."]


MARKER = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            [{"type": "text", "text": "One. Two. Three.", **MARKER}],
            ["One. ", "Two. ", [{"type": "text", "text": "Three.", **MARKER}]],
        ),
        (
            [{"type": "text", "text": "One. Two"}, {"type": "text", "text": ". Three.", **MARKER}],
            ["One. ", "Two. ", [{"type": "text", "text": "Three.", **MARKER}]],
        ),
        (
            [{"type": "text", "text": "One. Two. ", **MARKER}, {"type": "text", "text": "Three."}],
            ["One. ", [{"type": "text", "text": "Two. ", **MARKER}], [{"type": "text", "text": "Three."}]],
        ),
        (
            [{"type": "text", "text": "One. Two. Three."}, {"type": "image", "data": "x"}],
            [None, None, [{"type": "text", "text": "One. Two. Three."}, {"type": "image", "data": "x"}]],
        ),
    ],
    ids=["one that is marked", "several", "one that was all said before", "other parts"],
)
def test_parts_keep_their_markers_and_all_else_they_have_when_a_text_is_parted(parts, said) -> None:
    memory = remembered()
    played("several", memory=memory)
    history = [user("hi"), {"role": "assistant", "content": parts}, user("go on")]
    body = json.loads(begun("completions", memory, asked(history)).body)
    assert [each["content"] for each in body["messages"] if each["role"] == "assistant"] == said


def test_a_marker_on_a_text_that_was_all_said_before_goes_with_it() -> None:
    memory = remembered()
    moves = [searches("rain", text="Look."), bridged(FORECAST, {})]
    done = driven(begun("completions", memory, asked([user("hi")])), by(FakeLLM(moves), "completions"))
    said, *ran = replayed(done, [])
    marked = {**said, "content": [{"type": "text", "text": "Look.", **MARKER}]}
    body = json.loads(begun("completions", memory, asked([user("hi"), marked, *ran])).body)
    sent = [each["content"] for each in body["messages"] if each["role"] == "assistant"]
    assert sent == [[{"type": "text", "text": "Look.", **MARKER}], None]


@pytest.mark.parametrize("odd", [7, "x", None])
def test_calls_that_are_not_understood_are_not_dropped(odd) -> None:
    memory = remembered()
    moves = [bridged(FORECAST, {})]
    done = driven(begun("completions", memory, asked([user("hi")])), by(FakeLLM(moves), "completions"))
    said, *ran = replayed(done, [])
    wrong = {**said, "tool_calls": [*said["tool_calls"], odd]}
    with pytest.raises(NotUnderstood):
        begun("completions", memory, asked([user("hi"), wrong, *ran]))


def test_a_text_that_the_client_changed_goes_whole_with_the_last_round() -> None:
    memory = remembered()
    done = played("one search", memory=memory)
    said, *ran = replayed(done, [])
    body = json.loads(begun("completions", memory, asked([user("hi"), {**said, "content": "Shortened"}, *ran])).body)
    assert [each["content"] for each in body["messages"] if each["role"] == "assistant"] == [None, "Shortened"]


def test_the_same_words_twice_are_told_apart_by_what_they_answer() -> None:
    memory = remembered()
    history: list[Any] = []
    for query in ("a", "b"):
        history.append(user(query))
        fake = FakeLLM([searches(query), Move(text="Done.")])
        done = driven(begun("completions", memory, asked(history)), by(fake, "completions"))
        history = replayed(done, history)
    body = json.loads(begun("completions", memory, asked([*history, user("c")])).body)
    assert [each["content"] for each in body["messages"]] == [
        "a", None, "found for a", "Done.", "b", None, "found for b", "Done.", "c",
    ]  # fmt: skip


def test_a_server_that_uses_call_ids_again_gets_each_search_and_each_call_where_it_was() -> None:
    memory = remembered()
    history: list[Any] = []
    for turn, name in (("a", "call_tool"), ("b", "Read"), ("c", "call_tool")):
        history.append(user(turn))
        given = {"name": FORECAST, "arguments": {"title": turn}} if name == "call_tool" else {"path": turn}
        rounds = [
            whole({"id": "call_0", "function": {"name": "search_tools", "arguments": json.dumps({"query": turn})}}),
            whole({"id": "call_0", "function": {"name": name, "arguments": json.dumps(given)}}),
        ]
        done = driven(begun("completions", memory, asked(history, stream=False)), saying(*rounds))
        history += [done.whole["choices"][0]["message"], {"role": "tool", "tool_call_id": "call_0", "content": "ran"}]
    body = json.loads(begun("completions", memory, asked(history)).body)
    said = [
        each.get("content") or [call["function"]["name"] for call in each["tool_calls"]] for each in body["messages"]
    ]
    assert said == [
        "a", ["search_tools"], "found for a", ["call_tool"], "ran",
        "b", ["search_tools"], "found for b", ["Read"], "ran",
        "c", ["search_tools"], "found for c", ["call_tool"], "ran",
    ]  # fmt: skip


def whole(*calls: dict[str, Any], **more: Any) -> bytes:
    message = {"role": "assistant", "content": None, "tool_calls": [{"type": "function", **each} for each in calls]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return json.dumps({"id": "1", "choices": [choice], **more}, indent=1).encode()


def test_a_whole_reply_in_which_nothing_is_changed_comes_as_the_very_bytes() -> None:
    read = {"id": "call_1", "function": {"name": "Read", "arguments": '{"path": "ü"}'}, "odd": 1.0}
    for raw in (whole(read, usage={"x": 1.50}), b'{"choices": [] }', b'{"error": {"message": "m"} }'):
        exchange = begun("completions", remembered(), asked([user("hi")], stream=False))
        assert driven(exchange, saying(raw)).out == raw


def test_a_server_that_does_not_stream_though_it_was_asked_to_is_understood() -> None:
    search = {"id": "call_0", "function": {"name": "search_tools", "arguments": '{"query": "x"}'}}
    done = told(whole(search), whole({"id": "call_1", "function": {"name": "Read", "arguments": "{}"}}))
    assert [each["function"]["name"] for each in done.whole["choices"][0]["message"]["tool_calls"]] == ["Read"]


def test_counts_in_a_last_chunk_without_its_empty_line_are_added_up() -> None:
    def ends(tokens: int) -> bytes:
        return chunk({}, "stop") + b'data: {"choices": [], "usage": {"total_tokens": %d}}' % tokens

    done = told(chunk({"role": "assistant", **search()}) + ends(3), chunk({"content": "Bye."}) + ends(4))
    assert [each["usage"] for each in done.events if each.get("usage")] == [{"total_tokens": 7}]


# ── streams of servers that do it in their own ways ──────────────────────────────────────────────────────────────────


def told(*streams: bytes, memory: Remembered | None = None) -> Driven:
    return driven(begun("completions", memory or remembered(), asked([user("hi")])), saying(*streams))


END = chunk({"content": "Bye."}) + chunk({}, "stop") + DONE


def test_what_was_asked_counts_and_not_the_reason_to_finish() -> None:
    done = told(chunk({"role": "assistant", **search()}) + chunk({}, "stop") + DONE, END)
    assert message(done)["content"] == "Bye."


def test_all_in_one_chunk_is_understood() -> None:
    first = chunk({"role": "assistant", "content": "Hm. ", **search()}, "tool_calls", usage={"total_tokens": 3})
    second = chunk(
        {"role": "assistant", **call(0, "call_tool", json.dumps({"name": FORECAST, "arguments": {"a": 1}}))},
        "stop",
        usage={"total_tokens": 4},
    )
    done = told(first, second)
    assert (message(done)["content"], message(done)["tool_calls"][0]["function"]["name"]) == ("Hm. ", FORECAST)
    assert [event["usage"] for event in done.events if event.get("usage")] == [{"total_tokens": 7}]
    assert done.events[-1]["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "stop"}


def test_a_server_without_the_last_line_is_understood() -> None:
    done = told(chunk(search()) + chunk({}, "tool_calls"), chunk({"content": "Bye."}) + chunk({}, "stop"))
    assert message(done)["content"] == "Bye."


def test_calls_without_numbers_are_told_apart_by_their_ids() -> None:
    calls = [search(0)["tool_calls"][0], call(1, "Read", "{}")["tool_calls"][0]]
    first = chunk({"tool_calls": [{key: value for key, value in each.items() if key != "index"} for each in calls]})
    done = told(first + chunk({}, "tool_calls") + DONE)
    assert [each["function"]["name"] for each in message(done)["tool_calls"]] == ["Read"]


def test_a_call_whose_name_comes_late_waits_for_it() -> None:
    begins = {"tool_calls": [{"index": 0, "id": "c0", "type": "function", "function": {"arguments": '{"pa'}}]}
    goes_on = {"tool_calls": [{"index": 0, "function": {"name": "Read", "arguments": 'th": 1}'}}]}
    done = told(chunk(begins) + chunk(goes_on) + chunk({}, "tool_calls") + DONE)
    assert message(done)["tool_calls"] == [
        {"id": "c0", "type": "function", "function": {"name": "Read", "arguments": '{"path": 1}'}}
    ]


def test_a_call_that_is_held_keeps_its_place_before_the_next() -> None:
    odd = json.dumps({"name": FORECAST, "arguments": '{"a": 1}'})
    done = told(chunk(call(0, "call_tool", odd)) + chunk(call(1, "Read", "{}")) + chunk({}, "tool_calls") + DONE)
    assert [each["function"]["name"] for each in message(done)["tool_calls"]] == [FORECAST, "Read"]


def test_thoughts_pass_and_are_sent_back_with_the_calls_they_led_to() -> None:
    memory = remembered()
    first = chunk({"reasoning_content": "I think. "}) + chunk(search()) + chunk({}, "tool_calls") + DONE
    last = chunk({"reasoning_content": "I know. ", "odd": "x"}) + END
    done = told(first, last, memory=memory)
    assert message(done)["reasoning_content"] == "I think. I know. "
    assert done.bodies[1]["messages"][1]["reasoning_content"] == "I think. "
    body = json.loads(begun("completions", memory, asked([*replayed(done, [user("hi")]), user("go on")])).body)
    said = [each["reasoning_content"] for each in body["messages"] if each["role"] == "assistant"]
    assert said == ["I think. ", "I know. "]


def test_arguments_that_are_no_json_are_not_sent_back() -> None:
    done = told(chunk(call(0, "search_tools", '{"query": "x')) + chunk({}, "tool_calls") + DONE, END)
    assert done.bodies[1]["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_comments_and_chunks_without_choices_pass() -> None:
    stream = b": processing\n\n" + chunk(prompt_filter_results=[]) + END
    assert told(stream).out == stream


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_after_a_cut_nothing_is_answered_and_half_a_call_is_forgotten(reason) -> None:
    memory = remembered()
    done = told(chunk({"content": "So"}) + chunk(search()) + chunk({}, reason) + DONE, memory=memory)
    assert message(done) == {"role": "assistant", "content": "So"} | {"role": "assistant"}
    assert (len(done.sent), memory.inserts) == (1, [])


@pytest.mark.parametrize("keep", range(1, 6))
def test_a_stream_that_ends_in_the_middle_is_cut_for_the_client_too(keep) -> None:
    pieces = [chunk({"role": "assistant"}), *[chunk({"content": each}) for each in "abcde"]]
    exchange = begun("completions", remembered(), asked([user("hi")]))
    exchange.feed(b"".join(pieces[:keep]))
    with pytest.raises(ReplyCut):
        exchange.finish()


def test_an_end_without_a_reason_is_a_cut_too() -> None:
    exchange = begun("completions", remembered(), asked([user("hi")]))
    assert DONE not in exchange.feed(chunk({"content": "So"}) + DONE)
    with pytest.raises(ReplyCut):
        exchange.finish()


@pytest.mark.parametrize("torn", [b"d", b"data: [DON", b'data: {"choices": [], "usage": {"total_tokens": 4', b"data:"])
def test_half_an_event_after_the_reason_to_finish_is_a_cut_too(torn) -> None:
    """It came of a later round, whose counts are not those of the whole reply."""
    exchange = begun("completions", remembered(), asked([user("hi")]))
    exchange.feed(chunk(search()) + chunk({}, "tool_calls", usage={"total_tokens": 3}) + DONE)
    exchange.finish()
    assert now(exchange.again())
    exchange.feed(chunk({"content": "Bye."}) + chunk({}, "stop") + torn)
    with pytest.raises(ReplyCut):
        exchange.finish()


def test_a_comment_without_an_end_is_no_cut() -> None:
    assert told(END + b": bye").out == END + b": bye"


def test_an_error_in_a_stream_passes_and_ends_it() -> None:
    wrong = encoded({"error": {"message": "overloaded"}})
    assert told(chunk(search()) + wrong).out.endswith(wrong)


def test_a_later_round_that_is_refused_ends_the_stream_with_what_was_said() -> None:
    exchange = begun("completions", remembered(), asked([user("hi")]))
    assert json.loads(exchange.failed(429, b'{"error": {"message": "slow", "code": "x"}}')[6:]) == {
        "error": {"message": "slow", "code": "x"}
    }
    assert "502" in json.loads(exchange.failed(502, b"<html>")[6:])["error"]["message"]
