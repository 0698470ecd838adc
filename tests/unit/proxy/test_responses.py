"""The Responses API through the bridge: one response of several rounds, and the history as the API made it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.proxy.events import encoded
from pegboard.proxy.memory import Remembered, text_of
from pegboard.proxy.seam import ReplyCut
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
    remembered,
    saying,
    searches,
)


def asked(items: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "input": items, "tools": TOOLS["responses"], "stream": True, **more}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


MOVES: dict[str, list[Move]] = {
    "plain": [Move(text="Hello there.")],
    "a real call": [Move(text="Reading.", calls=(("Read", {"path": "a"}), ("Bash", {"text": "ls"})))],
    "one search": [searches("rain", text="Let me look."), bridged(FORECAST, {"title": "Ulm"}, text="Found.")],
    "several": [searches("a", text="One."), searches("b", "c", text="Two."), Move(text="Three.")],
    "no words": [searches("a"), bridged(FORECAST, {})],
    "mixed": [
        searches("a", text="First."),
        Move(
            text="Then.",
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


def played(name: str, stream: bool = True, memory: Remembered | None = None, cuts: Any = ()) -> Driven:
    exchange = begun("responses", memory or remembered(), asked("hi", stream=stream))
    return driven(exchange, by(FakeLLM(list(MOVES[name])), "responses"), cuts)


def response(done: Driven) -> dict[str, Any]:
    """The response as the client has it at the end."""
    if done.out.startswith(b"{"):
        return done.whole
    value: dict[str, Any] = done.events[-1]["response"]
    assert value["output"] == built(done)
    return value


def built(done: Driven) -> list[dict[str, Any]]:
    """The items that a client puts together of a stream, strictly: in their order, each with all its events."""
    items: list[dict[str, Any]] = []
    grown: dict[int, str] = {}
    for number, event in enumerate(done.events):
        assert event["sequence_number"] == number
        kind, at = event["type"], event.get("output_index", -1)
        if kind == "response.output_item.added":
            assert at == len(items)
            items.append(event["item"])
        elif kind.endswith(".delta"):
            grown[at] = grown.get(at, "") + event["delta"]
        elif kind == "response.function_call_arguments.done":
            assert (event["arguments"], event["name"]) == (grown[at], items[at]["name"])
        elif kind == "response.output_item.done":
            text = event["item"].get("arguments") or event["item"]["content"][0]["text"]
            assert (text, event["item"]["id"], at) == (grown[at], items[at]["id"], len(items) - 1)
            items[at] = event["item"]
    return items


def said(done: Driven) -> list[Any]:
    """What the client sees: texts, and calls with their arguments."""
    return [
        (each["name"], json.loads(each["arguments"])) if each["type"] == "function_call" else each["content"][0]["text"]
        for each in response(done)["output"]
    ]


def ran(done: Driven) -> list[dict[str, Any]]:
    calls = [each for each in response(done)["output"] if each["type"] == "function_call"]
    return [{"type": "function_call_output", "call_id": each["call_id"], "output": "ran"} for each in calls]


@given(name=st.sampled_from(sorted(MOVES)), cuts=st.lists(st.integers(0, 60_000), max_size=40))
@settings(max_examples=often(60), deadline=None)
def test_however_the_bytes_are_sliced_the_client_gets_the_same(name: str, cuts: list[int]) -> None:
    assert played(name, cuts=cuts) == played(name)


@pytest.mark.parametrize("name", ["plain", "a real call"])
def test_without_the_bridge_only_the_tools_in_the_stream_are_changed(name) -> None:
    done = played(name)
    theirs = by(FakeLLM(list(MOVES[name])), "responses")(done.sent[0])
    pairs = list(zip(done.out.split(b"\n\n"), theirs.split(b"\n\n"), strict=True))
    assert [ours for ours, other in pairs if b'"tools":' not in other] == [
        other for _, other in pairs if b'"tools":' not in other
    ]
    for ours, other in pairs:
        if b'"tools":' in other:
            before = json.loads(other.split(b"data: ")[1])
            before["response"]["tools"] = TOOLS["responses"]
            assert json.loads(ours.split(b"data: ")[1]) == before


def test_where_the_api_does_not_repeat_the_tools_the_stream_is_the_very_bytes() -> None:
    def answer(body: bytes) -> bytes:
        whole = by(FakeLLM(list(MOVES["a real call"])), "responses")(body)
        events = [json.loads(part.split(b"data: ")[1]) for part in whole.split(b"\n\n")[:-1]]
        for event in events:
            event.get("response", {}).pop("tools", None)
        return b"".join(b"event: %s\ndata:  %s\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)

    done = driven(begun("responses", remembered(), asked("hi")), answer)
    assert done.out == answer(done.sent[0])


def test_the_bridges_tools_come_first_and_the_rest_of_the_request_is_as_it_came() -> None:
    tools = json.dumps(TOOLS["responses"]).encode()
    raw = b'{"seed": 1.0, "input": [ {"role": "user",  "content": "hi"} ], "model":"m", "tools": %s}' % tools
    body = begun("responses", remembered(), raw).body
    assert body.startswith(b'{"seed":1.0,"input":[{"role": "user",  "content": "hi"}],"model":"m","tools":[{"type"')
    assert [each["name"] for each in json.loads(body)["tools"]] == ["search_tools", "call_tool", *CORE]
    assert json.dumps(TOOLS["responses"][0]).encode() in body


def test_input_that_is_text_stays_text_until_there_is_more() -> None:
    done = played("one search")
    assert done.bodies[0]["input"] == "hi"
    assert done.bodies[1]["input"][0] == user("hi")


def test_a_search_is_answered_inside_and_all_rounds_are_one_response(stream) -> None:
    memory = remembered()
    done = played("one search", stream, memory)
    whole = response(done)
    assert said(done) == ["Let me look.", "Found.", (FORECAST, {"title": "Ulm"})]
    assert (whole["id"], whole["tools"]) == ("resp_0001", TOOLS["responses"])
    assert memory.responses == {"resp_0001": "resp_0002"}
    assert [each.get("type") or each["role"] for each in done.bodies[1]["input"]] == [
        "user",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert done.bodies[1]["input"][-1]["output"] == "found for rain"


def test_every_event_has_the_id_of_the_first_round() -> None:
    events = [event for event in played("several").events if "response" in event]
    assert [(event["type"], event["response"]["id"]) for event in events] == [
        ("response.created", "resp_0001"),
        ("response.in_progress", "resp_0001"),
        ("response.completed", "resp_0001"),
    ]


def test_usage_is_that_of_all_rounds(stream) -> None:
    fake = FakeLLM(list(MOVES["several"]))
    done = driven(begun("responses", remembered(), asked("hi", stream=stream)), by(fake, "responses"))
    used = [seen.reply["usage"] for seen in fake.requests]
    assert response(done)["usage"]["total_tokens"] == sum(each["total_tokens"] for each in used)


def test_calls_written_in_other_ways_become_the_same_calls(stream) -> None:
    assert said(played("odd calls", stream)) == [
        (FORECAST, {"title": "first"}),
        (ISSUE, {"title": "text"}),
        (ISSUE, {}),
        (ISSUE, {"title": "beside"}),
    ]


def test_a_call_of_a_tool_that_is_not_there_is_answered_inside(stream) -> None:
    done = played("unknown", stream)
    assert said(done) == ["Sorry."]
    assert "Did you mean" in done.bodies[1]["input"][-1]["output"]


@pytest.mark.parametrize("name", sorted(MOVES))
def test_what_the_client_sends_back_becomes_what_the_model_made_of_it(name, stream) -> None:
    memory = remembered()
    fake = FakeLLM([*MOVES[name], Move(text="Well."), searches("again", text="So."), Move(text="Well.")])
    history: list[Any] = [user("hi")]
    sent: list[bytes] = []
    for _ in range(3):
        done = driven(begun("responses", memory, asked(history, stream=stream)), by(fake, "responses"))
        sent += done.sent
        history = [*history, *response(done)["output"], *ran(done), user("go on")]
    histories = [json.loads(body)["input"] for body in sent]
    for before, after in pairwise(histories):
        assert json.dumps(after[: len(before)]) == json.dumps(before)
    for seen in fake.requests[:-1]:
        ids = [each["id"] for each in seen.reply["output"]]
        assert [each["id"] for each in histories[-1] if each.get("id") in ids] == ids


@pytest.mark.parametrize("name", sorted(MOVES))
def test_a_client_that_goes_on_by_id_is_led_to_the_last_round_with_what_it_does_not_know(name, stream) -> None:
    memory = remembered()
    fake = FakeLLM([*MOVES[name], Move(text="Well.")])
    done = driven(begun("responses", memory, asked("hi", stream=stream)), by(fake, "responses"))
    first, last = response(done)["id"], fake.requests[-1].reply["id"]
    more = asked([*ran(done), user("go on")], stream=stream, previous_response_id=first)
    again = driven(begun("responses", memory, more), by(fake, "responses"))
    assert again.bodies[0]["previous_response_id"] == last
    owed = ["found for b", "found for c"] if name == "mixed" else []
    assert [each["output"] for each in again.bodies[0]["input"] if "output" in each] == [
        *owed,
        *(["ran"] * len(ran(done))),
    ]


def test_calls_beside_a_search_come_back_as_the_model_made_them_with_the_answers_after() -> None:
    memory = remembered()
    done = played("mixed", memory=memory)
    body = json.loads(begun("responses", memory, asked([user("hi"), *response(done)["output"], *ran(done)])).body)
    items = [each.get("name") or each.get("output") or each.get("role") for each in body["input"]]
    assert items == [
        "user", "assistant", "search_tools", "found for a", "assistant", "search_tools", "call_tool", "search_tools",
        "Read", "found for b", "found for c", "ran", "ran",
    ]  # fmt: skip
    called = json.loads(next(each["arguments"] for each in body["input"] if each.get("name") == "call_tool"))
    assert called == {"name": ISSUE, "arguments": {"title": "t", "body": 'q"}{'}}


def test_arguments_that_came_first_come_first_again() -> None:
    memory = remembered()
    done = played("odd calls", memory=memory)
    body = json.loads(begun("responses", memory, asked([user("hi"), *response(done)["output"], *ran(done)])).body)
    calls = [json.loads(each["arguments"]) for each in body["input"] if each.get("name") == "call_tool"]
    assert [next(iter(each)) for each in calls] == ["arguments", "name", "name", "name"]


def test_the_same_words_twice_are_told_apart_by_what_they_answer() -> None:
    memory = remembered()
    history: list[Any] = []
    for query in ("a", "b"):
        history.append(user(query))
        fake = FakeLLM([searches(query), Move(text="Done.")])
        history += response(driven(begun("responses", memory, asked(history)), by(fake, "responses")))["output"]
    body = json.loads(begun("responses", memory, asked([*history, user("c")])).body)
    assert [each.get("name") or each.get("output") or each["role"] for each in body["input"]] == [
        "user", "search_tools", "found for a", "assistant", "user", "search_tools", "found for b", "assistant", "user",
    ]  # fmt: skip


def put_together(output: list[Any], content: Any) -> list[Any]:
    """What Cline makes of a reply: one message without an id, then the calls."""
    calls = [{key: each[key] for key in each if key != "id"} for each in output if each["type"] == "function_call"]
    return [{"role": "assistant", "content": content("".join(texts(output)))}, *calls]


def texts(items: list[Any]) -> list[str]:
    return [part["text"] for each in items if each.get("type") == "message" for part in each["content"]]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(lambda text: text, id="a text"),
        pytest.param(lambda text: [{"type": "output_text", "text": text}], id="a part"),
        pytest.param(
            lambda text: [{"type": "output_text", "text": each} for each in (text[:2], text[2:8], text[8:])], id="parts"
        ),
    ],
)
def test_a_client_that_puts_texts_together_has_the_searches_between_them_put_back(content) -> None:
    memory = remembered()
    moves = [searches("a", text="One."), searches("b", text="Two."), bridged(FORECAST, {}, text="Three.")]
    done = driven(begun("responses", memory, asked([user("hi")])), by(FakeLLM(moves), "responses"))
    history = [user("hi"), *put_together(response(done)["output"], content), *ran(done)]
    body = json.loads(begun("responses", memory, asked(history)).body)
    assert [each.get("name") or each.get("output") or text_of(each) for each in body["input"]] == [
        "hi", "One.", "search_tools", "found for a", "Two.", "search_tools", "found for b", "Three.", "call_tool",
        "ran",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        pytest.param([{"type": "output_text", "text": "One.Two.", "annotations": [{"index": 6}]}], id="annotated"),
        pytest.param([{"type": "refusal", "refusal": "One.Two."}], id="a refusal"),
        pytest.param("Other.", id="other words"),
        pytest.param(None, id="nothing"),
    ],
)
def test_a_message_that_cannot_be_taken_apart_goes_as_it_came(content) -> None:
    memory = remembered()
    moves = [searches("a", text="One."), Move(text="Two.")]
    driven(begun("responses", memory, asked([user("hi")])), by(FakeLLM(moves), "responses"))
    history = [user("hi"), {"role": "assistant", "content": content}, user("more")]
    assert json.loads(begun("responses", memory, asked(history)).body)["input"] == history


# ── what the stand-in does not say ───────────────────────────────────────────────────────────────────────────────────


def item_events(at: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    """An item whose arguments never come in pieces."""
    place = {"output_index": at}
    return [
        {"type": "response.output_item.added", **place, "item": {**item, "arguments": ""}},
        {"type": "response.output_item.done", **place, "item": item},
    ]


def streamed(number: int, *items: dict[str, Any], end: str = "completed") -> bytes:
    about = {"id": f"resp_{number}", "status": end, "usage": {"total_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**about, "status": "in_progress"}}]
    for at, item in enumerate(items):
        events += item_events(at, item)
    events.append({"type": f"response.{end}", "response": {**about, "output": list(items)}})
    return b"".join(encoded({**each, "sequence_number": at}, each["type"]) for at, each in enumerate(events))


def function(tag: str, name: str, given: Any, **more: Any) -> dict[str, Any]:
    text = given if isinstance(given, str) else json.dumps(given)
    return {
        "type": "function_call",
        "id": f"fc_{tag}",
        "call_id": f"call_{tag}",
        "name": name,
        "arguments": text,
        **more,
    }


def thought(tag: str, **more: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": f"rs_{tag}", "summary": [], **more}


SEARCH = function("a", "search_tools", {"query": "x"})
BRIDGED = function("b", "call_tool", {"name": FORECAST, "arguments": {"a": 1}})


def test_arguments_that_never_come_in_pieces_are_understood() -> None:
    done = driven(begun("responses", remembered(), asked("hi")), saying(streamed(1, SEARCH), streamed(2, BRIDGED)))
    assert [(each["name"], each["arguments"]) for each in done.events[-1]["response"]["output"]] == [
        (FORECAST, '{"a": 1}')
    ]


@pytest.mark.parametrize("sealed", [{"encrypted_content": "s1"}, {}], ids=["sealed", "by id"])
def test_thoughts_are_sent_back_before_the_calls_they_led_to(sealed) -> None:
    memory = remembered()
    last = [thought("2", **sealed and {"encrypted_content": "s2"}), BRIDGED]
    rounds = saying(streamed(1, thought("1", **sealed), SEARCH), streamed(2, *last))
    done = driven(begun("responses", memory, asked([user("hi")])), rounds)
    visible = done.events[-1]["response"]["output"]
    assert [each["id"] for each in visible] == ["rs_1", "rs_2", "fc_b"]
    body = json.loads(begun("responses", memory, asked([user("hi"), *visible])).body)
    assert [each.get("id") or each.get("type") for each in body["input"][1:]] == [
        "rs_1",
        "fc_a",
        "function_call_output",
        "rs_2",
        "fc_b",
    ]
    assert body["input"][: len(done.bodies[1]["input"])] == done.bodies[1]["input"]


def test_thoughts_that_nobody_keeps_are_not_sent_back() -> None:
    rounds = saying(
        streamed(1, thought("1"), SEARCH), streamed(2, thought("2", encrypted_content="s"), SEARCH), streamed(3)
    )
    done = driven(begun("responses", remembered(), asked([user("hi")], store=False)), rounds)
    assert [each.get("id") for each in done.bodies[2]["input"]] == [None, "fc_a", None, "rs_2", "fc_a", None]


def test_a_reference_to_a_thought_leads_to_what_came_after_it() -> None:
    memory = remembered()
    driven(
        begun("responses", memory, asked([user("hi")])), saying(streamed(1, thought("1"), SEARCH), streamed(2, BRIDGED))
    )
    references = [{"type": "item_reference", "id": name} for name in ("rs_1", "fc_b")]
    body = json.loads(begun("responses", memory, asked([user("hi"), *references])).body)
    assert [each.get("id") for each in body["input"]] == [None, "rs_1", "fc_a", None, "fc_b"]


@pytest.mark.parametrize("kind", [{"type": "item_reference"}, {}], ids=["said so", "by id alone"])
@pytest.mark.parametrize("name", sorted(MOVES))
def test_a_client_that_only_names_what_the_api_keeps_has_the_rest_put_back_around_it(name, kind) -> None:
    memory, fake = remembered(), FakeLLM([*MOVES[name], Move(text="Well.")])
    done = driven(begun("responses", memory, asked([user("hi")])), by(fake, "responses"))
    output = response(done)["output"]
    said = [*output, *ran(done), user("go on")]
    named = [*({**kind, "id": each["id"]} for each in output), *ran(done), user("go on")]
    before, after = (
        json.loads(begun("responses", memory, asked([user("hi"), *each])).body)["input"] for each in (said, named)
    )
    assert [each.get("id") or each.get("call_id") for each in after] == [
        each.get("id") or each.get("call_id") for each in before
    ]
    if kind:
        more = driven(begun("responses", memory, asked([user("hi"), *named])), by(fake, "responses"))
        assert response(more)["output"][0]["content"][0]["text"].strip() == "Well."


@pytest.mark.parametrize("sealed", [{"encrypted_content": "s"}, {}], ids=["sealed", "by id"])
def test_where_a_client_leaves_thoughts_out_what_they_led_to_stands_without_the_ids_that_ask_for_them(sealed) -> None:
    memory = remembered()
    rounds = [streamed(1, thought("1", **sealed), SEARCH), streamed(2, thought("2", **sealed), BRIDGED)]
    done = driven(begun("responses", memory, asked([user("hi")])), saying(*rounds))
    bare = [each for each in done.events[-1]["response"]["output"] if each["type"] != "reasoning"]
    body = json.loads(begun("responses", memory, asked([user("hi"), *bare])).body)
    assert [(each.get("type"), each.get("id")) for each in body["input"][1:]] == [
        ("function_call", None),
        ("function_call_output", None),
        ("function_call", "fc_b"),
    ]


def test_where_thoughts_are_left_out_between_texts_the_search_between_them_is_put_back() -> None:
    memory = remembered()
    last = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rain."}]}
    rounds = [streamed(1, thought("1"), SEARCH), streamed(2, thought("2"), last)]
    driven(begun("responses", memory, asked([user("hi")])), saying(*rounds))
    body = json.loads(begun("responses", memory, asked([user("hi"), last, user("more")])).body)
    assert [each.get("type") for each in body["input"]] == [
        None,
        "function_call",
        "function_call_output",
        "message",
        None,
    ]


def test_a_server_that_uses_call_ids_again_gets_each_search_where_it_was() -> None:
    memory = remembered()
    history: list[Any] = []
    for query in ("a", "b", "c"):
        history.append(user(query))
        rounds = [streamed(1, function("0", "search_tools", {"query": query})), streamed(2, function("0", "Read", {}))]
        done = driven(begun("responses", memory, asked(history)), saying(*rounds))
        output = {"type": "function_call_output", "call_id": "call_0", "output": "ran"}
        history += [*done.events[-1]["response"]["output"], output]
    body = json.loads(begun("responses", memory, asked(history)).body)
    assert [each.get("content") or each.get("name") or each.get("output") for each in body["input"]] == [
        said for query in ("a", "b", "c") for said in (query, "search_tools", f"found for {query}", "Read", "ran")
    ]


def test_a_whole_reply_in_which_nothing_is_changed_comes_as_the_very_bytes() -> None:
    read = function("r", "Read", {"path": "a"})
    raw = json.dumps({"id": "resp_1", "status": "completed", "output": [read], "usage": {"a": 1.0}}, indent=1).encode()
    assert driven(begun("responses", remembered(), asked("hi", stream=False)), saying(raw)).out == raw


def test_a_server_that_does_not_stream_though_it_was_asked_to_is_understood() -> None:
    def whole(*items: Any) -> bytes:
        return json.dumps({"id": "resp_1", "status": "completed", "output": list(items)}).encode()

    done = driven(begun("responses", remembered(), asked("hi")), saying(whole(SEARCH), whole(BRIDGED)))
    assert [each["name"] for each in done.whole["output"]] == [FORECAST]


@pytest.mark.parametrize("end", ["incomplete", "failed"])
def test_after_a_cut_nothing_is_answered_and_half_a_call_is_forgotten(end) -> None:
    memory = remembered()
    half = function("a", "search_tools", '{"que', status="incomplete")
    done = driven(begun("responses", memory, asked("hi")), saying(streamed(1, half, end=end)))
    assert (len(done.sent), memory.inserts, memory.pending) == (1, [], {})
    assert done.events[-1]["response"]["output"] == []


def test_a_stream_that_ends_in_the_middle_is_cut_for_the_client_too() -> None:
    whole = streamed(1, BRIDGED)
    for keep in range(whole.count(b"\n\n")):
        exchange = begun("responses", remembered(), asked("hi"))
        exchange.feed(b"".join(part + b"\n\n" for part in whole.split(b"\n\n")[:keep]))
        with pytest.raises(ReplyCut):
            exchange.finish()


def test_events_that_are_not_known_pass_with_their_place() -> None:
    odd = encoded(
        {"type": "response.odd.delta", "output_index": 0, "sequence_number": 0, "delta": "x"}, "response.odd.delta"
    )
    other = encoded({"type": "keepalive", "sequence_number": 1}, "keepalive")
    done = driven(begun("responses", remembered(), asked("hi")), saying(odd + other + streamed(1)))
    assert done.out.startswith(odd + other)


def test_a_later_round_that_is_refused_ends_the_stream_as_failed() -> None:
    exchange = begun("responses", remembered(), asked("hi"))
    exchange.feed(streamed(1, BRIDGED))
    event = json.loads(exchange.failed(429, b'{"error": {"message": "slow", "code": "x"}}').split(b"data: ")[1])
    assert (event["type"], event["response"]["id"]) == ("response.failed", "resp_1")
    assert event["response"]["error"] == {"code": "x", "message": "slow"}
