"""Requests that go through the proxy unchanged: every byte of them, both ways. Real sockets."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.proxies import PassAll, decoded, get, post, proxy, running
from tests.servers.raw_upstream import Connection, Request, chunked, response, upstream

SECRETS = ["Authorization: Bearer s\xe9cret", "X-API-Key: k", "anthropic-beta: a,b", "Anthropic-Beta: c", "Cookie: c=1"]
SEEN_SECRETS = [
    (b"authorization", b"Bearer s\xe9cret"),
    (b"x-api-key", b"k"),
    (b"anthropic-beta", b"a,b"),
    (b"anthropic-beta", b"c"),
    (b"cookie", b"c=1"),
]
HELLO = b'{"model": "m"}'


async def say_ok(connection: Connection, request: Request) -> None:
    await connection.send(response(b"ok"))


def test_a_request_arrives_as_it_was_sent_with_its_credentials_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with upstream(say_ok) as up, proxy({"up": up.url}, tmp_path) as px:
            sent = post("/up/v1/messages?beta=true&x=%2F", HELLO, *SECRETS, "Keep-Alive: 5", "X-Odd: \xff\x01")
            got = await px.ask(sent)
            assert (got.status, got.body, got.whole) == (200, b"ok", True)
            (seen,) = up.requests
            assert seen.line == b"POST /v1/messages?beta=true&x=%2F HTTP/1.1"
            host = up.url.removeprefix("http://").encode()
            odd = (b"x-odd", b"\xff\x01")
            assert seen.headers == [(b"host", host), *SEEN_SECRETS, odd, (b"content-length", b"14")]
            assert seen.body == HELLO

    running(main)


def test_a_reply_arrives_as_it_was_sent_with_its_headers_in_order(tmp_path: Path) -> None:
    headers = (b"Date: then", b"Request-Id: r", b"Set-Cookie: a", b"X-Odd: \xfe\xff", b"Set-Cookie: b", b"Server: s")

    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(response(b"\x00\xff", *headers, b"Connection: x-hop", b"X-Hop: 1", b"Keep-Alive: 3"))

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            got = await px.ask(get("/up/v1/models"))
            expected = [tuple(header.split(b": ")) for header in headers]
            assert got.headers == [*expected, (b"Content-Length", b"2")]
            assert (got.body, got.whole) == (b"\x00\xff", True)

    running(main)


@pytest.mark.parametrize("packed", [False, True])
def test_a_planner_sees_json_and_the_upstream_what_was_sent(tmp_path: Path, packed: bool) -> None:
    async def main() -> None:
        planner, body = PassAll(), gzip.compress(HELLO) if packed else HELLO
        more = ["Content-Encoding: gzip"] if packed else []
        async with upstream(say_ok) as up, proxy({"up": up.url}, tmp_path, planner) as px:
            await px.ask(post("/up/v1/responses", body, "X-Two: a", "x-two: b", *more))
            (asked,) = planner.asked
            assert (asked.wire, asked.upstream, asked.body) == ("responses", "up", HELLO)
            assert asked.headers["x-two"] == "a, b"
            assert up.requests[0].body == body
            assert up.requests[0].values(b"content-encoding") == ([b"gzip"] if packed else [])
            assert px.tally.passed == {"as it is": 1}

    running(main)


@pytest.mark.parametrize(
    ("path", "headers", "body", "reason"),
    [
        ("/up/v1/models", [], HELLO, "other endpoint"),
        ("/up/v1/messages", [], b"x" * 5000, "body too large"),
        ("/up/v1/messages", ["Content-Encoding: gzip"], gzip.compress(b"x" * 5000, mtime=0), "body too large"),
        ("/up/v1/messages", ["Content-Encoding: br"], HELLO, "body encoding"),
        ("/up/v1/messages", ["Content-Encoding: gzip"], HELLO, "body encoding"),
    ],
)
def test_what_cannot_be_read_goes_through_and_is_counted(
    tmp_path: Path, path: str, headers: list[str], body: bytes, reason: str
) -> None:
    async def main() -> None:
        async with upstream(say_ok) as up, proxy({"up": up.url}, tmp_path, max_body_bytes=2000) as px:
            got = await px.ask(post(path, body, *headers))
            assert got.body == b"ok"
            assert up.requests[0].body == body
            assert px.tally.passed == {reason: 1}

    running(main)


def test_a_body_in_chunks_goes_on_whether_it_is_small_or_too_large(tmp_path: Path) -> None:
    async def main() -> None:
        async with upstream(say_ok) as up, proxy({"up": up.url}, tmp_path, max_body_bytes=2000) as px:
            for size in (10, 300_000):
                for path in ("/up/v1/messages", "/up/v1/files"):
                    body = bytes(range(256)) * (size // 256 + 1)
                    head = get(path, "Content-Length: 7", "Transfer-Encoding: chunked", method="POST")
                    parts = [body[at : at + 999] for at in range(0, len(body), 999)]
                    framed = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
                    got = await px.ask(head + framed + b"0\r\n\r\n")
                    seen = up.requests[-1]
                    assert (got.body, seen.body) == (b"ok", body)
                    assert bool(seen.values(b"content-length")) != bool(seen.values(b"transfer-encoding"))

    running(main)


def test_a_fault_in_planning_costs_no_client_its_request(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        async def plan(self, asked: Any) -> Any:
            raise KeyError(asked.body)

    async def main() -> None:
        async with upstream(say_ok) as up, proxy({"up": up.url}, tmp_path, Broken()) as px:
            got = await px.ask(post("/up/v1/messages", b"secret words"))
            assert (got.status, got.body, up.requests[0].body) == (200, b"ok", b"secret words")
            assert px.tally.failures == {"planning failed": 1}

    running(main)
    assert "KeyError" in caplog.text
    assert "secret" not in caplog.text


def test_connections_are_kept_on_both_sides(tmp_path: Path) -> None:
    async def main() -> None:
        async with upstream(say_ok) as up, proxy({"up": up.url}, tmp_path) as px:
            client = await px.connect()
            for path in ["/up/v1/messages", "/up/v1/files"] * 5:
                await client.send(post(path, HELLO))
                assert (await client.reply()).body == b"ok"
            assert len(up.requests) == 10
            assert up.connections == 1
            client.close()

    running(main)


@pytest.mark.parametrize(
    ("raw", "method", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HEAD", 200, b""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "DELETE", 204, b""),
        (b"HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 9\r\n\r\n", "GET", 304, b""),
        (
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "GET",
            200,
            b"ok",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nok", "PUT", 201, b"ok"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n", "GET", 302, b""),
        (b"HTTP/1.1 529 Overloaded\r\nContent-Length: 2\r\n\r\n{}", "GET", 529, b"{}"),
        (b"HTTP/1.1 599 Odd\r\nContent-Length: 0\r\n\r\n", "GET", 599, b""),
        (b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\nT: 1\r\n\r\n", "GET", 200, b"ok"),
    ],
)
def test_every_kind_of_reply_is_passed_on_and_the_connection_used_again(
    tmp_path: Path, raw: bytes, method: str, status: int, body: bytes
) -> None:
    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(raw)

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            client = await px.connect()
            for _ in range(2):
                await client.send(get("/up/v1/x", method=method))
                got = await client.reply(method.encode())
                assert (got.status, got.body, got.whole) == (status, body, True)
            assert (len(up.requests), up.connections) == (2, 1)
            client.close()

    running(main)


def test_a_reply_that_ends_with_its_connection_comes_whole(tmp_path: Path) -> None:
    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(b"HTTP/1.0 200 OK\r\n\r\nold")
        connection.fin()

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            got = await px.ask(get("/up/v1/x"))
            assert (got.body, got.whole) == (b"old", True)

    running(main)


def test_bytes_after_a_reply_never_become_the_answer_to_another_request(tmp_path: Path) -> None:
    async def answer(connection: Connection, request: Request) -> None:
        name = request.target.rpartition(b"/")[2]
        await connection.send(response(name) + response(b"smuggled"))

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            for number in range(20):
                got = await px.ask(get(f"/up/v1/{number}"))
                assert got.body == str(number).encode()
            assert up.connections == 20

    running(main)


def test_who_asks_whether_to_continue_is_told_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with upstream(say_ok) as up, proxy({"up": up.url}, tmp_path) as px:
            for path in ("/up/v1/messages", "/up/v1/files"):
                client = await px.connect()
                head, _, body = post(path, HELLO, "Expect: 100-continue").partition(b"\r\n\r\n")
                await client.send(head + b"\r\n\r\n")
                assert (await client.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
                await client.send(body)
                assert (await client.reply()).body == b"ok"
                assert up.requests[-1].body == HELLO
                assert up.requests[-1].values(b"expect") == []
                client.close()

    running(main)


FOREIGN = [
    ["Host: evil.example"],
    ["Host: localhost", "Host: evil.example"],
    ["Host: localhost", "Origin: http://evil.example"],
    ["Host: localhost", "Origin: null"],
    ["Host: 127.0.0.1.evil.example:8722"],
]
NOWHERE = [
    "http://evil.example/v1/messages",
    "//evil.example/v1/messages",
    "/up/../evil/v1",
    "/up/v1/%2e%2e/x",
    "/nobody/v1/x",
    "evil.example:80",
    "*",
]


def test_other_hosts_and_origins_are_refused_everywhere(tmp_path: Path) -> None:
    async def main() -> None:
        async with upstream(say_ok) as up, proxy({"up": up.url}, tmp_path) as px:
            for path in ("/_pegboard/status", "/up/v1/messages", "/v1/models", "/nowhere"):
                for headers in FOREIGN:
                    lines = [f"GET {path} HTTP/1.1", *headers]
                    got = await px.ask("\r\n".join(lines).encode() + b"\r\n\r\n")
                    assert got.status in (400, 403)
            assert (up.connections, px.tally.requests) == (0, 0)

    running(main)


def test_no_target_reaches_anything_that_is_not_configured(tmp_path: Path) -> None:
    async def main() -> None:
        async with upstream(say_ok) as up, proxy({"up": up.url}, tmp_path) as px:
            more = ["X-Forwarded-Host: evil.example", "Forwarded: host=evil.example"]
            for target in NOWHERE:
                assert (await px.ask(post(target, HELLO, *more))).status in (400, 404)
            assert up.connections == 0

    running(main)


def test_status_tells_counts_and_no_secrets(tmp_path: Path) -> None:
    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(response(json.dumps({"usage": {"input_tokens": 3, "output_tokens": 4}}).encode()))

    async def main() -> None:
        async with upstream(answer) as up:
            secret = up.url.replace("//", "//user:hidden@") + "/?key=hidden"
            async with proxy({"up": secret}, tmp_path) as px:
                await px.ask(post("/up/v1/messages", HELLO, *SECRETS))
                got = await px.ask(get("/_pegboard/status"))
                status = decoded(got.body)
                assert status["upstreams"]["up"] == up.url
                assert status["listen"] == f"127.0.0.1:{px.port}"
                assert status["tally"]["requests"] == 1
                assert status["tally"]["direct_tokens"]["input"] == 3
                assert b"hidden" not in got.body
                assert b"cret" not in got.body
                assert up.requests[0].target == b"/v1/messages"

    running(main)


@pytest.mark.parametrize("stream", [False, True])
def test_usage_of_what_passes_is_counted(tmp_path: Path, stream: bool) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7}
    event = b"data: " + json.dumps({"type": "message_start", "message": {"usage": usage}}).encode() + b"\n\n"

    async def answer(connection: Connection, request: Request) -> None:
        whole = gzip.compress(json.dumps({"usage": usage}).encode())
        await connection.send(chunked(event) if stream else response(whole, b"Content-Encoding: gzip"))

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            await px.ask(post("/up/v1/messages", HELLO))
            await px.ask(post("/up/v1/files", HELLO))
            tokens = px.tally.direct_tokens
            assert (tokens.requests, tokens.input, tokens.cache_read, tokens.output) == (1, 100, 90, 7)

    running(main)


def test_an_upstream_that_is_not_there_is_an_error_that_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with upstream(say_ok) as up:
            gone = up.url
        async with proxy({"up": gone}, tmp_path) as px:
            got = await px.ask(post("/up/v1/messages", HELLO))
            error = decoded(got.body)
            assert (got.status, error["type"], error["error"]["type"]) == (502, "error", "api_error")
            assert "cannot be reached" in error["error"]["message"]
            assert "try again" in error["error"]["message"].lower()
            got = await px.ask(post("/up/v1/chat/completions", HELLO))
            assert (got.status, set(decoded(got.body))) == (502, {"error"})
            assert px.tally.failures == {"upstream unreachable": 2}

    running(main)


def test_an_upstream_that_never_answers_is_an_error_in_time(tmp_path: Path) -> None:
    async def answer(connection: Connection, request: Request) -> None:
        await connection.stay()

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path, idle_seconds=0.05) as px:
            got = await px.ask(post("/up/v1/messages", HELLO))
            assert got.status == 504
            assert "did not answer in time" in decoded(got.body)["error"]["message"]
            assert px.tally.failures == {"no answer in time": 1}
            await asyncio.wait_for(up.all_closed(), 10)

    running(main)


def test_a_connection_that_died_while_idle_costs_nothing(tmp_path: Path) -> None:
    died = asyncio.Event()

    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(response(b"ok"))
        connection.rst() if request.target.endswith(b"rst") else connection.fin()
        died.set()

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            client = await px.connect()
            for path in ["/up/v1/fin", "/up/v1/rst"] * 5:
                died.clear()
                await client.send(post(path, HELLO))
                assert (await client.reply()).body == b"ok"
                await died.wait()
                await up.all_closed()
            assert len(up.requests) == 10
            client.close()

    running(main)


@pytest.mark.parametrize("path", ["/up/v1/messages", "/up/v1/files"])
def test_a_request_whose_body_was_sent_is_never_sent_again(tmp_path: Path, path: str) -> None:
    seen: list[Request] = []

    async def answer(connection: Connection, request: Request) -> None:
        seen.append(request)
        if len(seen) % 2:
            await connection.send(response(b"ok"))
        else:  # the second on a kept connection: it dies with the request in hand
            connection.rst() if len(seen) % 4 else connection.fin()

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            statuses = [(await px.ask(post(path, HELLO))).status for _ in range(12)]
            assert statuses == [200, 502] * 6
            assert len(seen) == 12
            assert px.tally.failures == {"reply cut": 6}

    running(main)
