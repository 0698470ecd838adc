"""Replies that are cut, anywhere and in every way: what came is handed on exactly, and nobody takes it for whole."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import h11
import pytest

from pegboard.config.model import ProxyConfig
from pegboard.proxy.keeper import Keeper
from pegboard.proxy.planner import DeferringPlanner
from pegboard.proxy.seam import Wire
from pegboard.proxy.searching import Searching
from pegboard.proxy.tally import Tally
from tests.agent_tools import completions_tools, messages_tools, responses_tools
from tests.proxied import WIRES
from tests.proxies import Got, Proxy, ShoutAll, decoded, get, post, proxy, running
from tests.servers.raw_upstream import Connection, Request, chunked, response, upstream

EVENTS = [
    b"event: message_start\ndata: "
    + json.dumps({"type": "message_start", "message": {"usage": {}}}).encode()
    + b"\n\n",
    'event: content_block_delta\ndata: {"delta": {"partial_json": "{\\"cité\\": \\"Zürich 東京\\"}"}}\n\n'.encode(),
    b'event: message_stop\ndata: {"type": "message_stop"}\n\n',
]
JSON = json.dumps({"type": "message", "content": [{"type": "text", "text": "Zürich"}]}, ensure_ascii=False).encode()
REPLIES = {
    "sse": chunked(*EVENTS, headers=(b"Content-Type: text/event-stream",)),
    "json": response(JSON, b"Content-Type: application/json"),
    "gzip": response(gzip.compress(JSON, mtime=0), b"Content-Encoding: gzip"),
    "packed events": chunked(gzip.compress(b"".join(EVENTS), mtime=0), headers=(b"Content-Encoding: gzip",)),
}
ENDS = ["fin", "rst"]
STALLS = ["stall"]
IDLE = {"fin": 30.0, "stall": 1.0}
"""Seconds: a stall must be noticed soon, and nothing else be taken for one on a busy machine."""
AT_ONCE = 100
SAID = [{"role": "user", "content": "hi"}]


def prefix(raw: bytes) -> tuple[bool, bytes]:
    """Whether these bytes have a whole head, and what of the body: by a parser of its own."""
    parser, body, has_head = h11.Connection(h11.CLIENT), b"", False
    parser.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    parser.send(h11.EndOfMessage())
    parser.receive_data(raw) if raw else None
    while (event := parser.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
        has_head = has_head or isinstance(event, h11.Response)
        body += bytes(event.data) if isinstance(event, h11.Data) else b""
    return has_head, body


def edited(body: bytes) -> bytes:
    return b"".join(b"edited " + event + b"\n\n" for event in body.split(b"\n\n")[:-1])


async def cut(connection: Connection, request: Request) -> None:
    """Answers by the path: which reply, how much of it, and how it ends."""
    _, name, at, way = request.target.decode().replace("%20", " ").split("?")[1].split("/")
    await connection.send(REPLIES[name][: int(at)])
    if way == "stall":
        await connection.stay()
    connection.rst() if way == "rst" else connection.fin()


async def all_cuts(px: Proxy, name: str, ways: Iterable[str], step: int, path: str) -> list[tuple[int, str, Got]]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(at: int, way: str) -> tuple[int, str, Got]:
        async with gate:
            return at, way, await px.ask(post(f"{path}?/{name.replace(' ', '%20')}/{at}/{way}"))

    places = [(at, way) for at in range(0, len(REPLIES[name]), step) for way in ways]
    return await asyncio.gather(*(one(at, way) for at, way in places))


def check_error(got: Got, way: str, path: str) -> None:
    assert (got.status, got.whole) == (504 if way == "stall" else 502, True)
    error = decoded(got.body)
    assert error["error"]["type"] == "api_error"
    assert "Try again" in error["error"]["message"]
    assert (error.get("type") == "error") == path.endswith("messages")


def check_passed(results: list[tuple[int, str, Got]], name: str, path: str) -> None:
    for at, way, got in results:
        has_head, body = prefix(REPLIES[name][:at])
        if has_head:
            assert (got.status, got.body, got.whole) == (200, body, False), (name, at, way)
        else:
            check_error(got, way, path)


def check_edited(results: list[tuple[int, str, Got]], name: str, path: str) -> None:
    for at, way, got in results:
        _, body = prefix(REPLIES[name][:at])
        if expected := edited(body):
            assert (got.status, got.body, got.whole) == (200, expected, False), (name, at, way)
        else:
            check_error(got, way, path)


def cut_everywhere(folder: Path, name: str, step: int, ways: list[str], path: str = "/up/v1/messages") -> None:
    async def main() -> None:
        async with upstream(cut) as up, proxy({"up": up.url}, folder, idle_seconds=IDLE[ways[0]]) as px:
            results = await all_cuts(px, name, ways, step, path)
            check_passed(results, name, path)
            assert len(up.requests) == len(results)
            assert sum(px.tally.failures.values()) == len(results)
            assert px.tally.streaming == 0

    running(main)


@pytest.mark.parametrize("ways", [ENDS, STALLS])
@pytest.mark.parametrize("name", REPLIES)
def test_a_cut_reply_is_an_exact_prefix_and_never_looks_whole(tmp_path: Path, name: str, ways: list[str]) -> None:
    cut_everywhere(tmp_path, name, 7, ways)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/up/v1/messages", "/up/v1/responses", "/up/v1/files"])
@pytest.mark.parametrize("ways", [ENDS, STALLS])
@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_cut_at_any_byte_is_an_exact_prefix(tmp_path: Path, name: str, ways: list[str], path: str) -> None:
    cut_everywhere(tmp_path, name, 1, ways, path)


def edit_everywhere(folder: Path, name: str, step: int, ways: list[str], *, streamed: bool) -> None:
    async def main() -> None:
        planner = ShoutAll(streamed=streamed)
        async with upstream(cut) as up, proxy({"up": up.url}, folder, planner, idle_seconds=IDLE[ways[0]]) as px:
            path = "/up/v1/messages"
            results = await all_cuts(px, name, ways, step, path)
            if streamed:
                check_edited(results, name, path)
            else:
                for _, way, got in results:
                    check_error(got, way, path)
            assert [exchange.closed for exchange in planner.exchanges] == [1] * len(results)
            assert px.tally.deferred_tokens.requests == 0

    running(main)


@pytest.mark.parametrize("ways", [ENDS, STALLS])
def test_a_cut_stream_that_is_changed_never_looks_whole(tmp_path: Path, ways: list[str]) -> None:
    edit_everywhere(tmp_path, "sse", 7, ways, streamed=True)


@pytest.mark.parametrize("name", ["json", "gzip"])
def test_a_cut_reply_that_is_changed_is_an_error(tmp_path: Path, name: str) -> None:
    edit_everywhere(tmp_path, name, 7, ENDS, streamed=False)


@pytest.mark.slow
def test_a_stream_that_is_changed_and_cut_at_any_byte_never_looks_whole(tmp_path: Path) -> None:
    edit_everywhere(tmp_path, "sse", 1, ENDS, streamed=True)


def test_an_old_client_sees_that_its_answer_was_cut(tmp_path: Path) -> None:
    """To HTTP/1.0 the end of a connection is the end of a body, so it must not end in order."""

    async def main() -> None:
        async with upstream(cut) as up, proxy({"up": up.url}, tmp_path) as px:
            for at, is_whole in ((len(REPLIES["sse"]), True), (200, False)):
                client = await px.connect()
                request = get(f"/up/v1/x?/sse/{at}/fin").replace(b"HTTP/1.1", b"HTTP/1.0")
                await client.send(request)
                reset = False
                data = b""
                try:
                    while part := await client.reader.read(65536):
                        data += part
                except ConnectionResetError:
                    reset = True
                assert reset == (not is_whole)
                assert data.endswith(prefix(REPLIES["sse"][:at])[1])
                client.close()

    running(main)


@pytest.mark.parametrize(
    "garbage",
    [
        b"220 mail.example ESMTP\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nA\x00B: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
    ],
)
def test_what_is_no_reply_is_an_error_in_the_shape_of_the_api(tmp_path: Path, garbage: bytes) -> None:
    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(garbage)
        connection.fin()

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            got = await px.ask(post("/up/v1/messages"))
            assert (got.status, decoded(got.body)["error"]["type"]) == (502, "api_error")

    running(main)


def test_a_stream_that_falls_silent_is_ended_for_the_client_and_its_upstream(tmp_path: Path) -> None:
    """Some clients would wait for ever."""

    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(chunked(EVENTS[0], end=False, headers=(b"Content-Type: text/event-stream",)))
        await connection.stay()

    async def main() -> None:
        for planner, shown in ((None, EVENTS[0]), (ShoutAll(), b"edited " + EVENTS[0])):
            async with upstream(answer) as up, proxy({"up": up.url}, tmp_path, planner, idle_seconds=0.2) as px:
                got = await px.ask(post("/up/v1/messages"))
                assert (got.status, got.body, got.whole) == (200, shown, False)
                await up.all_closed()
                assert px.tally.failures == {"idle": 1}

    running(main)


EMPTY = {
    "nothing": response(b"", b"Content-Type: application/json"),
    "no events": chunked(headers=(b"Content-Type: text/event-stream",)),
    "a comment": chunked(b": ok\n\n", headers=(b"Content-Type: text/event-stream",)),
    "only the end of a stream": chunked(b"data: [DONE]\n\n", headers=(b"Content-Type: text/event-stream",)),
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("wire", "path"), [(wire, path) for path, wire in WIRES.items() if wire != "count_tokens"])
@pytest.mark.parametrize("name", EMPTY)
def test_an_upstream_that_says_nothing_is_never_an_empty_answer(
    tmp_path: Path, name: str, wire: Wire, path: str, stream: bool
) -> None:
    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(EMPTY[name])

    async def main() -> None:
        tools = {"completions": completions_tools, "responses": responses_tools}.get(wire, messages_tools)()
        body = {"model": "m", "tools": tools, "stream": stream, "messages": SAID, "input": SAID}
        config, tally = ProxyConfig(min_tokens=500, executor="bridge"), Tally()
        planner = DeferringPlanner(config, {}, Keeper(None, 60.0), lambda: Searching(None, 5), tally)
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path, planner) as px:
            got = await px.ask(post(f"/up/v1{path}", json.dumps(body).encode()))
            assert tally.deferred == {"bridge": 1}
            assert got.status == 502 or not got.whole
            assert px.tally.failures == {"reply cut": 1}

    running(main)


def test_broken_chunks_are_a_cut(tmp_path: Path) -> None:
    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(chunked(b"one", end=False) + b"nonsense\r\n")
        await connection.stay()

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            got: Any = await px.ask(post("/up/v1/messages"))
            assert (got.status, got.body, got.whole) == (200, b"one", False)
            assert px.tally.failures == {"reply cut": 1}

    running(main)
