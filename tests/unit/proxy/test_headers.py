"""Which headers go on, and which end at the proxy."""

from __future__ import annotations

import pytest

from pegboard.proxy.headers import (
    HOP_BY_HOP,
    body_length,
    edited_reply_headers,
    edited_request_headers,
    end_to_end,
    request_headers,
)

CREDENTIALS = [(b"authorization", b"Bearer \xff s"), (b"x-api-key", b"k"), (b"anthropic-beta", b"a"), (b"cookie", b"c")]


def test_headers_of_one_connection_do_not_reach_the_next() -> None:
    assert end_to_end([(name.title(), b"x") for name in HOP_BY_HOP]) == []


def test_what_connection_names_ends_there_too() -> None:
    headers = [(b"Connection", b"close, X-Mine"), (b"connection", b"x-other"), (b"X-Mine", b"1"), (b"x-other", b"2")]
    assert end_to_end([*headers, (b"x-third", b"3")]) == [(b"x-third", b"3")]


def test_credentials_go_on_as_they_are_and_in_order() -> None:
    sent = request_headers([(b"host", b"localhost"), *CREDENTIALS], b"api.example", 2, chunked=False)
    assert sent == [(b"host", b"api.example"), *CREDENTIALS, (b"content-length", b"2")]


def test_a_header_that_comes_twice_goes_on_twice() -> None:
    twice = [(b"anthropic-beta", b"a"), (b"x", b"1"), (b"anthropic-beta", b"b")]
    assert request_headers(twice, b"h", None, chunked=False)[1:] == twice


def test_length_and_chunks_are_never_both_said() -> None:
    both = [(b"content-length", b"5"), (b"transfer-encoding", b"chunked"), (b"host", b"evil")]
    assert request_headers(both, b"h", None, chunked=True) == [(b"host", b"h"), (b"transfer-encoding", b"chunked")]
    assert body_length(both) is None


def test_a_length_that_does_not_count_is_not_told_on() -> None:
    both = [(b"Content-Length", b"9"), (b"Transfer-Encoding", b"chunked"), (b"x", b"1")]
    assert end_to_end(both) == [(b"x", b"1")]


@pytest.mark.parametrize("value", [b"", b"x", b"-1", b"+1", b"1 1", b"\xb2"])
def test_a_length_that_is_no_number_is_none(value: bytes) -> None:
    assert body_length([(b"Content-Length", value)]) is None


def test_an_edited_request_is_plain_and_asks_for_a_plain_answer() -> None:
    headers = [(b"content-encoding", b"gzip"), (b"accept-encoding", b"br"), (b"content-length", b"9"), *CREDENTIALS]
    assert edited_request_headers(headers, b"h", 3) == [
        (b"host", b"h"),
        *CREDENTIALS,
        (b"content-length", b"3"),
        (b"accept-encoding", b"identity"),
    ]


def test_an_edited_reply_says_nothing_of_what_it_was() -> None:
    headers = [(b"Content-Length", b"9"), (b"Content-Encoding", b"gzip"), (b"Request-Id", b"r"), (b"TE", b"x")]
    assert edited_reply_headers(headers, None) == [(b"Request-Id", b"r")]
    assert edited_reply_headers(headers, 4) == [(b"Request-Id", b"r"), (b"content-length", b"4")]
