"""Replies longer than any model says: they pass whole, what is kept is bounded, and no half of one is sent back."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pegboard.proxy.declared import Family
from pegboard.proxy.events import encoded
from pegboard.proxy.seam import ReplyCut
from pegboard.proxy.turn import MOST_KEPT
from tests.unit.proxy.rounds import TOOLS, begun, now, remembered

PIECE = "0123456789abcdef" * 1024
MEBIBYTE = 1 << 20
Events = Callable[[int, bool], Iterator[bytes]]


def messages(pieces: int, asks: bool) -> Iterator[bytes]:
    yield encoded({"type": "message_start", "message": {"id": "msg_1", "content": []}}, "message_start")
    start: dict[str, Any] = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield encoded(start)
    for _ in range(pieces):
        delta = {"type": "text_delta", "text": PIECE}
        yield encoded({"type": "content_block_delta", "index": 0, "delta": delta})
    yield encoded({"type": "content_block_stop", "index": 0})
    if asks:
        block = {"type": "tool_use", "id": "toolu_1", "name": "search_tools", "input": {"query": "rain"}}
        yield encoded({"type": "content_block_start", "index": 1, "content_block": block})
        yield encoded({"type": "content_block_stop", "index": 1})
    yield encoded({"type": "message_delta", "delta": {"stop_reason": "tool_use" if asks else "end_turn"}})
    yield encoded({"type": "message_stop"})


def completions(pieces: int, asks: bool) -> Iterator[bytes]:
    for _ in range(pieces):
        yield encoded({"id": "c", "choices": [{"index": 0, "delta": {"content": PIECE}, "finish_reason": None}]})
    call = {"index": 0, "id": "call_1", "type": "function"}
    function = {"name": "search_tools", "arguments": '{"query": "rain"}'}
    delta = {"tool_calls": [{**call, "function": function}]} if asks else {}
    finish = "tool_calls" if asks else "stop"
    yield encoded({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    yield b"data: [DONE]\n\n"


WIRES: dict[Family, Events] = {"messages": messages, "completions": completions}


def exchange(family: Family, *, stream: bool = True) -> Any:
    said = [{"role": "user", "content": "hi"}]
    body = {"model": "claude-opus-5-5", "messages": said, "tools": TOOLS[family], "stream": stream}
    return begun(family, remembered(), body)


@pytest.mark.parametrize("family", WIRES)
def test_a_reply_of_any_length_passes_whole_and_costs_no_more_than_what_is_kept(family: Family):
    pieces = 16 * MEBIBYTE // len(PIECE)
    under_way, sent, got = exchange(family), 0, 0
    tracemalloc.start()
    try:
        for event in WIRES[family](pieces, False):
            sent += len(event)
            got += len(under_way.feed(event))
        got += len(under_way.finish())
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert got == sent
    assert not now(under_way.again())
    assert most < 4 * MEBIBYTE + MOST_KEPT


@pytest.mark.parametrize("family", WIRES)
@pytest.mark.parametrize(("pieces", "goes_on"), [(MOST_KEPT // len(PIECE), True), (MOST_KEPT // len(PIECE) + 1, False)])
def test_a_search_after_more_than_is_kept_ends_the_reply_with_words(family: Family, pieces: int, goes_on: bool):
    under_way = exchange(family)
    for event in WIRES[family](pieces - goes_on, True):
        under_way.feed(event)
    under_way.finish()
    if goes_on:
        assert now(under_way.again())
        assert (PIECE * (pieces - 1)).encode() in under_way.body
        return
    with pytest.raises(ReplyCut, match="too long"):
        now(under_way.again())


def test_a_reply_in_one_piece_loses_nothing_however_long_it_is():
    under_way = exchange("completions", stream=False)
    long = "x" * (MOST_KEPT + 10)
    function = {"name": "search_tools", "arguments": '{"query": "rain"}'}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    asked = {"role": "assistant", "content": long, "reasoning": long, "tool_calls": calls}
    under_way.feed(json.dumps({"id": "c", "choices": [{"message": asked, "finish_reason": "tool_calls"}]}).encode())
    assert under_way.finish() == b""
    assert now(under_way.again())
    assert json.loads(under_way.body)["messages"][-2]["content"] == long
    last = {"role": "assistant", "content": "It rains."}
    under_way.feed(json.dumps({"id": "c", "choices": [{"message": last, "finish_reason": "stop"}]}).encode())
    message = json.loads(under_way.finish())["choices"][0]["message"]
    assert message["content"] == long + "It rains."
    assert message["reasoning"] == long
