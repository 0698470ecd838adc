"""What both ways to an upstream keep to: straight, and through a proxy that the environment names."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import httpcore2
import pytest

from pegboard.proxy.api import WayOut
from pegboard.proxy.lanes import Lanes, Patience
from pegboard.proxy.routes import address_of
from pegboard.proxy.tunnels import Tunnels, proxy_for
from tests.proxies import running
from tests.servers.raw_upstream import Answer, Connection, Request, Upstream, response, upstream

PATIENT, HASTY = Patience(head=30, idle=30), Patience(head=0.05, idle=0.05)
HEADERS = [(b"host", b"models.example"), (b"x-one", b"a"), (b"x-one", b"b")]


@pytest.fixture(params=["straight", "tunnel"])
def opened(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Upstream], WayOut]:
    """Gives the way to an upstream; where a proxy is named, it plays that proxy and gets what is meant for others."""

    def open_to(up: Upstream) -> WayOut:
        if request.param == "straight":
            return Lanes(address_of(up.url), None)
        monkeypatch.setenv("http_proxy", up.url)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        address = address_of("https://models.example")
        plain = type(address)("http", address.host, 80, b"")
        between = proxy_for(plain)
        assert between is not None
        return Tunnels(plain, None, between)

    return open_to


async def parts(*said: bytes) -> AsyncIterator[bytes]:
    for part in said:
        yield part


async def got(way: WayOut, method: str = "GET", patience: Patience = PATIENT) -> bytes:
    """The body of one reply."""
    reply = await way.ask(method, b"/v1/models?limit=2", HEADERS, parts(), patience)
    body = b""
    try:
        with contextlib.suppress(StopAsyncIteration):
            while True:
                body += await reply.__anext__()
    finally:
        await reply.aclose()
    return body


def against(answer: Answer, opened: Callable[[Upstream], WayOut], main: Callable[..., Awaitable[None]]) -> None:
    """Does this with a way to an upstream that answers like that."""

    async def whole() -> None:
        async with upstream(answer) as up:
            way = opened(up)
            try:
                await main(way, up)
            finally:
                await way.close()
            await up.all_closed()

    running(whole)


async def say_ok(connection: Connection, request: Request) -> None:
    await connection.send(response(b"" if request.line.startswith(b"HEAD") else b"ok"))


def test_a_connection_is_used_again(opened: Callable[[Upstream], WayOut]):
    async def main(way: WayOut, up: Upstream) -> None:
        for _ in range(3):
            assert await got(way) == b"ok"
        assert up.connections == 1
        assert up.requests[0].target.endswith(b"/v1/models?limit=2")
        assert up.requests[0].values(b"x-one") == [b"a", b"b"]

    against(say_ok, opened, main)


def test_an_upload_in_chunks_arrives_whole(opened: Callable[[Upstream], WayOut]):
    async def main(way: WayOut, up: Upstream) -> None:
        headers = [*HEADERS, (b"transfer-encoding", b"chunked")]
        reply = await way.ask("POST", b"/v1/files", headers, parts(b"one ", b"", b"x" * 100_000), PATIENT)
        assert reply.status == 200
        await reply.aclose()
        assert up.requests[0].body == b"one " + b"x" * 100_000

    against(say_ok, opened, main)


def test_a_reply_that_nobody_reads_to_its_end_takes_its_connection_with_it(opened: Callable[[Upstream], WayOut]):
    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")

    async def main(way: WayOut, up: Upstream) -> None:
        reply = await way.ask("GET", b"/", HEADERS, parts(), PATIENT)
        assert await reply.__anext__() == b"half"
        await reply.aclose()
        await up.all_closed()

    against(answer, opened, main)


def test_what_follows_a_whole_reply_is_never_the_answer_to_the_next_request(opened: Callable[[Upstream], WayOut]):
    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(response(b"ok") + response(b"not asked for"))

    async def main(way: WayOut, up: Upstream) -> None:
        assert [await got(way), await got(way)] == [b"ok", b"ok"]
        assert up.connections == 2

    against(answer, opened, main)


@pytest.mark.parametrize("end", ["fin", "rst"])
def test_a_reply_that_is_cut_is_an_error_after_what_came_of_it(opened: Callable[[Upstream], WayOut], end: str):
    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
        if request.target.endswith(b"now"):
            getattr(connection, end)()
        await connection.stay()

    async def main(way: WayOut, up: Upstream) -> None:
        reply = await way.ask("GET", b"/later", HEADERS, parts(), HASTY)
        assert await reply.__anext__() == b"half"
        with pytest.raises(httpcore2.ReadTimeout):
            await reply.__anext__()
        await reply.aclose()
        with pytest.raises((httpcore2.RemoteProtocolError, httpcore2.ReadError)):
            await got_of(way, b"/now")

    async def got_of(way: WayOut, target: bytes) -> None:
        reply = await way.ask("GET", target, HEADERS, parts(), PATIENT)
        try:
            while True:
                await reply.__anext__()
        finally:
            await reply.aclose()

    against(answer, opened, main)


def test_silence_before_the_head_ends_in_time_and_leaves_no_connection(opened: Callable[[Upstream], WayOut]):
    async def answer(connection: Connection, request: Request) -> None:
        await connection.stay()

    async def main(way: WayOut, up: Upstream) -> None:
        with pytest.raises(httpcore2.ReadTimeout):
            await got(way, patience=HASTY)
        await up.all_closed()

    against(answer, opened, main)


def test_an_answer_before_the_upload_is_over_is_heard(opened: Callable[[Upstream], WayOut]):
    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmuch")
        connection.fin()

    async def whole() -> None:
        async with upstream(answer, reads_body=False) as up:
            way = opened(up)
            headers = [*HEADERS, (b"content-length", b"50000000")]
            reply = await way.ask("POST", b"/", headers, parts(*[b"x" * 1_000_000] * 50), PATIENT)
            assert reply.status == 413
            await reply.aclose()
            await way.close()

    running(whole)


@pytest.mark.parametrize("bad", [(b"x-bad", b"a\r\nhost: other"), (b"x bad", b"a"), (b"x-bad", b"\0"), (b"", b"a")])
def test_no_header_can_become_two(opened: Callable[[Upstream], WayOut], bad: tuple[bytes, bytes]):
    async def main(way: WayOut, up: Upstream) -> None:
        with pytest.raises(httpcore2.LocalProtocolError):
            await way.ask("GET", b"/", [*HEADERS, bad], parts(), PATIENT)
        assert up.requests == []

    against(say_ok, opened, main)


@pytest.mark.parametrize("target", [b"/a b", b"/a\r\nx: y", b""])
def test_no_target_can_become_two(opened: Callable[[Upstream], WayOut], target: bytes):
    async def main(way: WayOut, up: Upstream) -> None:
        with pytest.raises((httpcore2.LocalProtocolError, ValueError)):
            await way.ask("GET", target, HEADERS, parts(), PATIENT)
        assert up.requests == []

    against(say_ok, opened, main)
