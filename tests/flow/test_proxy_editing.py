"""Exchanges that are changed on their way: in one round or several, whole or in a stream, or refused at any of them."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.proxies import PATIENCE, Shout, ShoutAll, decoded, post, proxy, running
from tests.servers.raw_upstream import Connection, Request, chunked, response, upstream

PATH = "/up/v1/messages"
USAGE = json.dumps({"usage": {"input_tokens": 5, "output_tokens": 2}}).encode()
STREAM = chunked(b"data: a\n\nda", b"ta: b\n\n", headers=(b"Content-Type: text/event-stream", b"Request-Id: r"))
REFUSED = response(b'{"type":"error"}', b"Retry-After: 3", status=b"429 Too Many Requests")


class Script:
    """Answers with these, one after the other."""

    def __init__(self, *replies: bytes) -> None:
        self.replies = list(replies)

    async def __call__(self, connection: Connection, request: Request) -> None:
        await connection.send(self.replies.pop(0))


def test_a_changed_request_has_its_own_body_and_the_clients_headers(tmp_path: Path) -> None:
    async def main() -> None:
        async with upstream(Script(STREAM)) as up, proxy({"up": up.url}, tmp_path, ShoutAll()) as px:
            packed = gzip.compress(b'{"a": "b"}')
            headers = ("X-API-Key: k", "Accept-Encoding: gzip, br", "Content-Encoding: gzip", "Idempotency-Key: i")
            await px.ask(post(PATH + "?beta=true", packed, *headers))
            (seen,) = up.requests
            assert (seen.target, seen.body) == (b"/v1/messages?beta=true", b'{"A": "B"}')
            host = up.url.removeprefix("http://").encode()
            assert seen.headers == [
                (b"host", host),
                (b"x-api-key", b"k"),
                (b"idempotency-key", b"i"),
                (b"content-length", b"10"),
                (b"accept-encoding", b"identity"),
            ]

    running(main)


def test_a_changed_stream_reaches_the_client_whole(tmp_path: Path) -> None:
    async def main() -> None:
        planner = ShoutAll()
        async with upstream(Script(STREAM)) as up, proxy({"up": up.url}, tmp_path, planner) as px:
            got = await px.ask(post(PATH))
            assert (got.status, got.body, got.whole) == (200, b"edited data: a\n\nedited data: b\n\n", True)
            assert got.values(b"request-id") == [b"r"]
            assert got.values(b"content-length") == []
            assert planner.exchanges[0].closed == 1
            assert (px.tally.passed, px.tally.failures, px.tally.rounds) == ({}, {}, 0)

    running(main)


@pytest.mark.parametrize("packed", [b"", b"gzip"])
def test_a_changed_reply_has_its_right_length_and_is_counted(tmp_path: Path, packed: bytes) -> None:
    reply = response(gzip.compress(USAGE), b"Content-Encoding: gzip") if packed else response(USAGE)

    async def main() -> None:
        async with upstream(Script(reply)) as up, proxy({"up": up.url}, tmp_path, ShoutAll(streamed=False)) as px:
            got = await px.ask(post(PATH))
            assert (got.status, got.body, got.whole) == (200, b"edited " + USAGE, True)
            assert got.values(b"content-length") == [b"%d" % len(got.body)]
            assert got.values(b"content-encoding") == []
            assert (px.tally.deferred_tokens.input, px.tally.direct_tokens.requests) == (5, 0)

    running(main)


def test_a_stream_that_comes_compressed_unasked_is_read(tmp_path: Path) -> None:
    packed = gzip.compress(b"data: a\n\n")
    reply = chunked(*(packed[at : at + 3] for at in range(0, len(packed), 3)), headers=(b"Content-Encoding: gzip",))

    async def main() -> None:
        async with upstream(Script(reply)) as up, proxy({"up": up.url}, tmp_path, ShoutAll()) as px:
            got = await px.ask(post(PATH))
            assert (got.body, got.whole) == (b"edited data: a\n\n", True)
            assert got.values(b"content-encoding") == []

    running(main)


def test_an_encoding_that_nobody_can_read_is_an_error(tmp_path: Path) -> None:
    async def main() -> None:
        replies = Script(response(b"x", b"Content-Encoding: br"))
        async with upstream(replies) as up, proxy({"up": up.url}, tmp_path, ShoutAll()) as px:
            got = await px.ask(post(PATH))
            assert (got.status, got.whole) == (502, True)
            assert "encoding" in decoded(got.body)["error"]["message"]

    running(main)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_refusal_of_the_first_round_reaches_the_client_as_it_is(tmp_path: Path, streamed: bool) -> None:
    async def main() -> None:
        planner = ShoutAll(streamed=streamed)
        async with upstream(Script(REFUSED)) as up, proxy({"up": up.url}, tmp_path, planner) as px:
            got = await px.ask(post(PATH))
            assert (got.status, got.body, got.whole) == (429, b'{"type":"error"}', True)
            assert got.values(b"retry-after") == [b"3"]
            assert planner.exchanges[0].closed == 1

    running(main)


def test_rounds_follow_each_other_on_one_answer(tmp_path: Path) -> None:
    async def main() -> None:
        replies = Script(STREAM, STREAM, STREAM)
        async with upstream(replies) as up, proxy({"up": up.url}, tmp_path, ShoutAll(rounds=3)) as px:
            got = await px.ask(post(PATH, b"a", "X-API-Key: k"))
            assert (got.body, got.whole) == (b"edited data: a\n\nedited data: b\n\n" * 3, True)
            assert [request.body for request in up.requests] == [b"A", b"again", b"again"]
            assert [request.values(b"x-api-key") for request in up.requests] == [[b"k"]] * 3
            assert (up.connections, px.tally.rounds, px.tally.requests) == (1, 2, 1)

    running(main)


def test_a_key_that_marks_a_request_as_sent_before_is_not_on_the_rounds_that_follow(tmp_path: Path) -> None:
    """An API that knows such keys would give the first round's reply again, or refuse the key on another body."""

    async def main() -> None:
        async with upstream(Script(STREAM, STREAM)) as up, proxy({"up": up.url}, tmp_path, ShoutAll(rounds=2)) as px:
            await px.ask(post(PATH, b"a", "Idempotency-Key: once", "X-API-Key: k"))
            assert [request.values(b"idempotency-key") for request in up.requests] == [[b"once"], []]
            assert [request.values(b"x-api-key") for request in up.requests] == [[b"k"], [b"k"]]

    running(main)


@pytest.mark.parametrize("is_changed", [False, True])
@pytest.mark.parametrize("who", ["client", "server"])
def test_what_a_reply_that_broke_off_has_cost_is_counted(tmp_path: Path, is_changed: bool, who: str) -> None:
    async def answer(connection: Connection, request: Request) -> None:
        told = chunked(b"data: " + USAGE + b"\n\n", headers=(b"Content-Type: text/event-stream",), end=False)
        await connection.send(told)
        await connection.stay() if who == "client" else connection.rst()

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path, ShoutAll() if is_changed else None) as px:
            client = await px.connect()
            await client.send(post(PATH))
            await client.until(b"}}\n\n")
            client.close()
            async with asyncio.timeout(PATIENCE):
                while not px.tally.failures:
                    await asyncio.sleep(0)
            tokens = px.tally.deferred_tokens if is_changed else px.tally.direct_tokens
            assert (tokens.requests, tokens.input, tokens.output) == (1, 5, 2)

    running(main)


def test_a_later_refusal_ends_a_stream_with_words_and_without_an_end(tmp_path: Path) -> None:
    async def main() -> None:
        planner = ShoutAll(rounds=2)
        async with upstream(Script(STREAM, REFUSED)) as up, proxy({"up": up.url}, tmp_path, planner) as px:
            got = await px.ask(post(PATH))
            assert got.body == b"edited data: a\n\nedited data: b\n\nevent: error\n\n"
            assert (got.status, got.whole) == (200, False)
            assert planner.exchanges[0].failure == (429, b'{"type":"error"}')
            assert (planner.exchanges[0].closed, px.tally.failures) == (1, {"round refused": 1})

    running(main)


def test_a_later_refusal_of_a_whole_reply_reaches_the_client_as_it_is(tmp_path: Path) -> None:
    async def main() -> None:
        planner = ShoutAll(streamed=False, rounds=2)
        async with upstream(Script(response(b"{}"), REFUSED)) as up, proxy({"up": up.url}, tmp_path, planner) as px:
            got = await px.ask(post(PATH))
            assert (got.status, got.body, got.whole) == (429, b'{"type":"error"}', True)

    running(main)


def test_an_upstream_that_goes_away_between_rounds_ends_the_stream_with_words(tmp_path: Path) -> None:
    async def answer(connection: Connection, request: Request) -> None:
        if request.body == b"again":
            connection.rst()
        else:
            await connection.send(STREAM)

    async def main() -> None:
        planner = ShoutAll(rounds=2)
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path, planner) as px:
            got = await px.ask(post(PATH))
            assert (got.body.endswith(b"event: error\n\n"), got.whole) == (True, False)
            assert planner.exchanges[0].failure is not None
            assert planner.exchanges[0].failure[0] == 502

    running(main)


def test_a_whole_reply_without_end_is_given_up(tmp_path: Path) -> None:
    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await connection.send(bytes(10_000))

    async def main() -> None:
        planner = ShoutAll(streamed=False)
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path, planner, max_body_bytes=100_000) as px:
            got = await px.ask(post(PATH))
            assert (got.status, got.whole) == (502, True)
            await up.all_closed()

    running(main)


@pytest.mark.parametrize("where", ["feed", "finish", "again", "close"])
def test_a_fault_in_an_exchange_is_an_error_or_a_cut_and_quotes_nothing(
    tmp_path: Path, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    words = "what a client said"

    def fail(*arguments: Any) -> Any:
        raise RuntimeError(words)

    class Faulty:
        async def plan(self, asked: Any) -> Any:
            exchange = Shout(asked.body, streamed=True)
            setattr(exchange, where, fail)
            return exchange

    async def main() -> None:
        async with upstream(Script(STREAM)) as up, proxy({"up": up.url}, tmp_path, Faulty()) as px:
            got = await px.ask(post(PATH))
            expected = {"feed": (502, True), "finish": (200, False), "again": (200, False), "close": (200, True)}
            assert (got.status, got.whole) == expected[where]
            assert px.tally.failures == {"error in the proxy": 1}

    running(main)
    assert "RuntimeError" in caplog.text
    assert words not in caplog.text
