"""Lines out of a byte stream: whole, bounded, and never stuck on one that is too long."""

from __future__ import annotations

import pytest

from pegboard.wire.framing import EDGE, LineDecoder, Oversized, answered_id

LIMIT = 2000


def test_a_line_arrives_when_its_newline_does() -> None:
    decoder = LineDecoder(LIMIT)
    assert decoder.feed(b'{"a"') == []
    assert decoder.feed(b":1}") == []
    assert decoder.feed(b"\n") == [b'{"a":1}']


def test_one_chunk_may_hold_many_lines_and_the_beginning_of_the_next() -> None:
    decoder = LineDecoder(LIMIT)
    assert decoder.feed(b"one\ntwo\nthr") == [b"one", b"two"]
    assert decoder.feed(b"ee\n") == [b"three"]


def test_blank_lines_are_left_out() -> None:
    assert LineDecoder(LIMIT).feed(b"\n  \n\r\nx\n") == [b"x"]


def test_a_line_of_exactly_the_limit_is_whole() -> None:
    line = b"x" * LIMIT
    assert LineDecoder(LIMIT).feed(line + b"\n") == [line]


def test_a_line_of_exactly_the_limit_is_whole_even_if_its_newline_comes_later() -> None:
    line = b"x" * LIMIT
    decoder = LineDecoder(LIMIT)
    assert decoder.feed(line) == []
    assert decoder.feed(b"\n") == [line]


def test_a_line_over_the_limit_is_reported_with_its_size_and_edges() -> None:
    line = b"<" + b"x" * LIMIT + b">"
    [oversized] = LineDecoder(LIMIT).feed(line + b"\n")
    assert oversized == Oversized(len(line), line[:EDGE], line[-EDGE:])


def test_an_oversized_line_in_pieces_is_reported_as_if_it_came_whole() -> None:
    line = b"<" + bytes(range(32, 127)) * 40 + b">"
    whole, pieces = LineDecoder(LIMIT), LineDecoder(LIMIT)
    chunks = [line[at : at + 7] for at in range(0, len(line), 7)]
    assert [each for chunk in [*chunks, b"\n"] for each in pieces.feed(chunk)] == whole.feed(line + b"\n")


def test_the_line_after_an_oversized_one_is_whole() -> None:
    decoder = LineDecoder(LIMIT)
    for _ in range(10):
        assert decoder.feed(b"x" * LIMIT) == []
    lines = decoder.feed(b"\nnext\n")
    assert [type(line) for line in lines] == [Oversized, bytes]
    assert lines[1] == b"next"


def test_an_oversized_line_is_not_kept_in_memory_while_it_is_skipped() -> None:
    decoder = LineDecoder(LIMIT)
    for _ in range(1000):
        decoder.feed(b"x" * LIMIT)
    held = decoder._held
    assert len(held) <= EDGE


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":7,"result":{"x":"%s"}}',
        b'{"id": 7, "jsonrpc": "2.0", "result": {"x":"%s"}}',
        b'{"id":7,"error":{"message":"%s"}}',
        b'{"result":{"x":"%s"},"jsonrpc":"2.0","id":7}',
        b'{"jsonrpc":"2.0","result":{"x":"%s"},"id":7}',
        b'{"result":{"x":"%s"},"id":7,"jsonrpc":"2.0"}\r',
    ],
)
def test_the_request_that_an_oversized_line_answered_is_read_off_its_edges(frame: bytes) -> None:
    [line] = LineDecoder(LIMIT).feed(frame % (b"x" * LIMIT) + b"\n")
    assert isinstance(line, Oversized)
    assert answered_id(line) == 7


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"x":"%s"}}',
        b'{"method":"notifications/message","params":{"x":"%s","id":7}}',
        b'{"jsonrpc":"2.0","method":"m","params":{"x":"%s"},"id":7}',
        b'{"jsonrpc":"2.0","id":"7","result":{"x":"%s"}}',
        b"some log line %s, and more",
        b'{"result":{"x":"%s","id":7}}',
    ],
)
def test_an_oversized_line_that_is_no_answer_of_ours_names_no_request(frame: bytes) -> None:
    [line] = LineDecoder(LIMIT).feed(frame % (b"x" * LIMIT) + b"\n")
    assert isinstance(line, Oversized)
    assert answered_id(line) is None
