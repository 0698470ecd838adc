from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import AuthRequired, LimitExceeded, ProtocolViolation, ServerError, ServerUnavailable
from pegboard.upstream.events import DEFAULT_RETRY, LONGEST_RETRY, SHORTEST_RETRY, Cursor, read_events
from pegboard.upstream.link import Forbidden, TurnedDown, ends_connection
from pegboard.upstream.responses import body_of, content_type, drain, refusal_in, rpc_error_of, status_error
from pegboard.wire.messages import RpcError
from pegboard.wire.sse import SseEvent

REQUEST = httpx2.Request("POST", "https://user:secret@host.example/mcp?key=secret")


def response(status: int = 200, body: bytes | AsyncIterator[bytes] = b"", **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(
        status, headers=named, content=pieces(body) if isinstance(body, bytes) else body, request=REQUEST
    )


async def pieces(body: bytes, size: int = 7) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b"x" * 1000


@pytest.mark.parametrize(
    ("status", "headers", "kind", "words", "hint"),
    [
        (401, {}, AuthRequired, "asks for credentials", "pegboard login far"),
        (403, {}, Forbidden, "does not allow that", "headers"),
        (404, {}, TurnedDown, "HTTP 404 Not Found", "Is https://host.example/mcp the address"),
        (405, {}, TurnedDown, "HTTP 405", "Is https://host.example/mcp the address"),
        (429, {"Retry_After": "30"}, ServerUnavailable, "left alone", "Try again in 30 s."),
        (503, {"Retry_After": "Fri, 31 Dec 1999 23:59:59 GMT"}, ServerUnavailable, "left alone", "Try again later."),
        (503, {"Retry_After": "9" * 400}, ServerUnavailable, "left alone", "Try again later."),
        (500, {}, TurnedDown, "HTTP 500", ""),
        (418, {}, TurnedDown, "HTTP 418", ""),
    ],
)
def test_a_status_is_put_into_words(
    status: int, headers: dict[str, str], kind: type[ServerError], words: str, hint: str
) -> None:
    error = status_error("far", response(status, b"", **headers))
    assert type(error) is kind
    assert words in str(error)
    assert str(error).startswith("far: ")
    assert hint in error.hint
    assert "secret" not in error.hint + str(error)


def test_only_what_makes_further_requests_pointless_ends_a_connection() -> None:
    ending = {status for status in range(400, 600) if ends_connection(status_error("far", response(status)))}
    assert ending == {401}


def test_the_media_type_is_read_without_its_parameters() -> None:
    assert content_type(response(Content_Type=" Application/JSON ; charset=utf-8")) == "application/json"
    assert content_type(response()) == ""


def test_a_body_within_its_budget_is_read_whole_and_one_byte_more_is_refused() -> None:
    async def scenario() -> None:
        assert await body_of("far", response(body=b"x" * 100), 100) == b"x" * 100
        with pytest.raises(LimitExceeded, match="a body of more than 99 bytes") as caught:
            await body_of("far", response(body=b"x" * 100), 99)
        assert "max_result_bytes` of servers.far" in caught.value.hint

    asyncio.run(scenario())


@pytest.mark.parametrize("encoding", ["gzip", "br", "Identity, gzip", "zstd"])
def test_a_compressed_body_is_refused_before_a_byte_is_read(encoding: str) -> None:
    async def scenario() -> None:
        with pytest.raises(ProtocolViolation, match="compressed"):
            await body_of("far", response(body=endless(), Content_Encoding=encoding), 10)

    asyncio.run(scenario())


def test_the_rest_of_a_body_is_read_when_it_is_small_and_left_when_it_is_not() -> None:
    async def scenario() -> None:
        small = response(body=b"x" * 100)
        await drain(small.aiter_raw())
        assert small.num_bytes_downloaded == 100
        large = response(body=endless())
        await drain(large.aiter_raw())
        assert large.num_bytes_downloaded < 200_000

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}', RpcError(-1, "no")),
        (b'{"error":{"code":7}}', RpcError(7, "(the server gave no message)")),
        (b'{"id":null,"error":{"code":7,"message":"no","data":[1]}}', RpcError(7, "no", [1])),
        (b'{"error":"not found"}', None),
        (b'{"error":{"code":"7","message":"no"}}', None),
        (b'{"error":null}', None),
        (b'{"result":{}}', None),
        (b"<html>", None),
        (b"\xff\xfe", None),
        (b"[" * 100_000, None),
        (b"", None),
    ],
)
def test_a_refusal_is_told_from_a_body_that_only_looks_like_one(body: bytes, expected: RpcError | None) -> None:
    assert refusal_in(body) == expected


@given(st.binary(max_size=200))
def test_no_body_whatsoever_breaks_the_search_for_a_refusal(body: bytes) -> None:
    assert refusal_in(body) is None or b"error" in body


def test_an_error_status_is_searched_for_a_refusal_only_in_json_of_a_sane_size() -> None:
    refusal = b'{"error":{"code":-1,"message":"no"}}'

    async def scenario() -> None:
        json = {"Content_Type": "application/json"}
        assert await rpc_error_of(response(400, refusal, **json)) == RpcError(-1, "no")
        assert await rpc_error_of(response(400, refusal, Content_Type="text/plain")) is None
        assert await rpc_error_of(response(400, endless(), **json)) is None
        assert await rpc_error_of(response(400, refusal, Content_Encoding="gzip", **json)) is None

    asyncio.run(scenario())


# ── event streams ────────────────────────────────────────────────────────────────────────────────────────────────


def test_reading_events_stops_when_enough_was_heard_and_remembers_where() -> None:
    async def scenario() -> None:
        stream = b"id: a\nretry: 250\ndata: 1\n\nid: b\ndata: 2\n\nid: c\ndata: 3\n\n"
        heard: list[bytes] = []
        cursor = Cursor()

        def take(event: SseEvent) -> bool:
            heard.append(event.data)
            return event.data == b"2"

        await read_events("far", response(body=stream), 100, cursor, take)
        assert heard == [b"1", b"2"]
        assert (cursor.last_id, cursor.retry_ms) == ("b", 250)

    asyncio.run(scenario())


def test_the_pause_before_a_stream_is_resumed_is_what_the_server_says_within_reason() -> None:
    assert Cursor().pause() == DEFAULT_RETRY
    assert Cursor(retry_ms=500).pause() == 0.5
    assert Cursor(retry_ms=0).pause() == SHORTEST_RETRY
    assert Cursor(retry_ms=10**9).pause() == LONGEST_RETRY


@given(st.integers(0, 10**9), st.integers(0, 40))
def test_the_more_tries_fail_the_longer_the_pause(retry_ms: int, failures: int) -> None:
    cursor = Cursor(retry_ms=retry_ms)
    assert SHORTEST_RETRY <= cursor.pause(failures) <= cursor.pause(failures + 1) <= LONGEST_RETRY
