"""A reply's bytes, however they are cut: head, body, and whether the end is one."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.proxy.reply_parser import MOST_HEAD, ReplyParser

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-One: a\r\nX-One: b\r\n\r\nhello"
CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nX-Last: c\r\n\r\n"
CLOSED = b"HTTP/1.1 200 OK\r\nX-One: a\r\n\r\nhello"
AFTER_HINTS = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + LENGTH


def parsed(*pieces: bytes, method: str = "POST", ended: bool = False) -> tuple[ReplyParser, bytes]:
    parser = ReplyParser(method)
    body = b""
    for piece in pieces:
        parser.feed(piece)
        body += parser.take()
    if ended:
        parser.ended()
    return parser, body


@pytest.mark.parametrize("raw", [LENGTH, CHUNKS, AFTER_HINTS])
def test_a_whole_reply_is_whole_and_its_connection_is_good_for_another(raw: bytes):
    parser, body = parsed(raw)
    assert (parser.status, body, parser.is_whole, parser.is_reusable, parser.fault) == (200, b"hello", True, True, "")


def test_headers_keep_their_order_and_are_those_of_the_reply_itself():
    assert parsed(AFTER_HINTS)[0].headers == [(b"Content-Length", b"5"), (b"X-One", b"a"), (b"X-One", b"b")]
    assert parsed(CHUNKS)[0].headers == [(b"Transfer-Encoding", b"chunked")]


@given(st.binary(max_size=6), st.sampled_from([b"content-type", b"x-one"]))
def test_a_header_that_is_taken_can_be_said_to_a_client(value: bytes, name: bytes):
    parser, _ = parsed(b"HTTP/1.1 200 OK\r\n%s: %s\r\nContent-Length: 0\r\n\r\n" % (name, value))
    if parser.has_head:
        h11.Response(status_code=200, headers=parser.headers)


@given(st.sampled_from([LENGTH, CHUNKS, AFTER_HINTS, CLOSED]), st.data())
def test_any_slicing_gives_the_same(raw: bytes, data: st.DataObject):
    cuts = sorted(data.draw(st.sets(st.integers(1, len(raw) - 1), max_size=8)))
    pieces = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    sliced, body = parsed(*pieces, ended=raw is CLOSED)
    whole, _ = parsed(raw, ended=raw is CLOSED)
    assert body == b"hello"
    assert (sliced.headers, sliced.is_whole, sliced.is_reusable) == (whole.headers, True, whole.is_reusable)


@pytest.mark.parametrize("raw", [LENGTH, CHUNKS])
def test_no_cut_looks_like_an_end(raw: bytes):
    for cut in range(len(raw)):
        parser, body = parsed(raw[:cut], ended=True)
        assert not parser.is_whole
        assert parser.fault
        assert b"hello".startswith(body)


def test_what_is_closed_at_its_end_is_whole_then_and_not_before():
    before, _ = parsed(CLOSED)
    assert not before.is_whole
    after, body = parsed(CLOSED, ended=True)
    assert (after.is_whole, after.is_reusable, body) == (True, False, b"hello")


@pytest.mark.parametrize(
    "surplus", [b"x", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", b"\r\n\r\nboo"]
)
@pytest.mark.parametrize("apart", [False, True])
def test_what_follows_a_whole_reply_is_nobodys_and_ends_its_connection(surplus: bytes, apart: bool):
    parser, body = parsed(LENGTH, surplus) if apart else parsed(LENGTH + surplus)
    assert (body, parser.is_whole, parser.is_reusable) == (b"hello", True, False)
    assert parser.headers[0] == (b"Content-Length", b"5")


def test_the_answer_to_head_has_a_length_and_no_body():
    parser, body = parsed(LENGTH.removesuffix(b"hello"), method="HEAD")
    assert (body, parser.is_whole, parser.is_reusable) == (b"", True, True)
    assert not parsed(LENGTH, method="HEAD")[0].is_reusable


def test_what_came_before_a_fault_is_given_before_it():
    parser, body = parsed(CHUNKS[:60] + b"llo\r\nZZ\r\n")
    assert b"hello".startswith(body)
    assert body
    assert "not HTTP" in parser.fault
    assert not parser.is_whole


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nX-One: a\x0bb\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nX-One: a\x00b\r\nContent-Length: 5\r\n\r\nhello",
    ],
)
def test_what_can_be_read_in_two_ways_or_not_be_passed_on_is_not_read(raw: bytes):
    parser, _ = parsed(raw)
    assert "not HTTP" in parser.fault
    assert not parser.has_head


@pytest.mark.parametrize("endless", [b"X-More: and more\r\n", b"\r\nHTTP/1.1 102 Processing\r\n"])
def test_a_head_without_an_end_is_given_up(endless: bytes):
    parser = ReplyParser("GET")
    parser.feed(b"HTTP/1.1 102 Processing\r\n")
    for _ in range(MOST_HEAD // len(endless) + 1):
        parser.feed(endless)
    assert "its head has more than" in parser.fault


def test_a_connection_that_goes_on_to_speak_something_else_is_not_used_again():
    parser, _ = parsed(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n\x01\x02")
    assert (parser.status, parser.is_whole, parser.is_reusable) == (101, True, False)
