"""Token counts read out of replies that pass by, however they are sliced."""

from __future__ import annotations

import gzip
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.proxy.seam import Wire
from pegboard.proxy.tally import Tokens
from pegboard.proxy.usage import MOST_BYTES, Meter, UsageReader

ANTHROPIC = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 200,
    "cache_read_input_tokens": 3000,
    "cache_creation": {"ephemeral_5m_input_tokens": 200},
    "output_tokens": 5,
}
CHAT = {"prompt_tokens": 900, "completion_tokens": 30, "prompt_tokens_details": {"cached_tokens": 800}}
RESPONSES = {"input_tokens": 900, "output_tokens": 30, "input_tokens_details": {"cached_tokens": 800}}


def events(*data: Any) -> bytes:
    return b"".join(b"event: x\ndata: " + json.dumps(each).encode() + b"\n\n" for each in data)


STREAMS: dict[Wire, bytes] = {
    "messages": events(
        {"type": "message_start", "message": {"id": "m", "usage": {**ANTHROPIC, "output_tokens": 1}}},
        {"type": "content_block_delta", "delta": {"text": 'say "usage": {"input_tokens": 7777777} é'}},
        {"type": "content_block_delta", "delta": {"name": "usage", "usage": None}},
        {"type": "message_delta", "usage": {"output_tokens": 50}},
        {"type": "message_stop"},
    ),
    "completions": events({"choices": [], "usage": None}, {"choices": [], "usage": CHAT}) + b"data: [DONE]\n\n",
    "responses": events({"type": "response.completed", "response": {"output": ["x" * 50_000], "usage": RESPONSES}}),
}
EXPECTED: dict[Wire, Tokens] = {
    "messages": Tokens(requests=1, input=3210, output=50, cache_read=3000, cache_write=200),
    "completions": Tokens(requests=1, input=900, output=30, cache_read=800),
    "responses": Tokens(requests=1, input=900, output=30, cache_read=800),
}


def counted(wire: Wire, parts: list[bytes]) -> Tokens:
    reader, tokens = UsageReader(wire), Tokens()
    for part in parts:
        reader.feed(part)
    reader.add_to(tokens)
    return tokens


@pytest.mark.parametrize("wire", STREAMS)
@pytest.mark.parametrize("step", [1, 3, 100, 1 << 20])
def test_a_stream_is_counted_however_it_is_sliced(wire: Wire, step: int) -> None:
    data = STREAMS[wire]
    assert counted(wire, [data[at : at + step] for at in range(0, len(data), step)]) == EXPECTED[wire]


def test_a_whole_reply_is_counted() -> None:
    body = {"content": [{"type": "tool_use", "input": {"usage": {"unit": "usage"}}}], "usage": ANTHROPIC}
    for indent in (None, 2):
        data = json.dumps(body, indent=indent).encode()
        assert counted("messages", [data]) == Tokens(requests=1, input=3210, output=5, cache_read=3000, cache_write=200)


def test_a_compressed_reply_is_counted_and_an_unknown_encoding_is_not() -> None:
    tokens = Tokens()
    for encoding in ("gzip", "br"):
        meter = Meter.of("messages", encoding)
        for byte in gzip.compress(STREAMS["messages"]):
            meter.feed(bytes([byte]))
        meter.reader.add_to(tokens)
    assert tokens == EXPECTED["messages"]


def test_counting_tokens_counts_none() -> None:
    assert counted("count_tokens", [b'{"input_tokens": 5, "usage": {"input_tokens": 5}}']) == Tokens()


@pytest.mark.parametrize("value", [b"[]", b"7", b'"usage"', b"{}", b'{"input_tokens": -1}', b'{"input_tokens": true}'])
def test_what_is_no_count_is_none(value: bytes) -> None:
    assert counted("messages", [b'{"usage": ' + value + b"}"]) == Tokens()


def test_an_endless_object_is_given_up_and_the_next_is_found() -> None:
    endless = b'{"usage": {"x": "' + b"y" * (MOST_BYTES * 3)
    parts = [endless[at : at + 1000] for at in range(0, len(endless), 1000)]
    reader = UsageReader("messages")
    for part in parts:
        reader.feed(part)
        assert len(reader._held) <= MOST_BYTES + 1000
    reader.feed(STREAMS["messages"])
    tokens = Tokens()
    reader.add_to(tokens)
    assert tokens == EXPECTED["messages"]


@given(st.binary(max_size=400), st.integers(0, 1000))
def test_garbage_is_no_matter(data: bytes, seed: int) -> None:
    dice = random.Random(seed)
    words = [b'"usage"', b":", b"{", b"}", b'"input_tokens"', b"1", b"[" * 50, data]
    counted("messages", [dice.choice(words) for _ in range(40)])
