"""Clients that leave, in every phase and in both ways: their upstream is let go at once, and nothing stays behind."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from pegboard.proxy.seam import Asked, Exchange, Passed
from tests.proxies import PATIENCE, Proxy, RawClient, Shout, ShoutAll, get, post, proxy, running
from tests.servers.raw_upstream import Connection, Request, upstream

EVENT = b"data: {}\n\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNK = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)


class Phase:
    """An upstream that gets as far as a phase says, and then waits for the proxy to hang up."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.reached = asyncio.Event()
        self.left_at = 0.0

    async def answer(self, connection: Connection, request: Request) -> None:
        try:
            await self._get_there(connection)
        finally:
            self.left_at = time.perf_counter()

    async def _get_there(self, connection: Connection) -> None:
        if self.name in ("silent", "streaming"):
            await connection.send(HEAD + CHUNK)
        self.reached.set()
        if self.name == "streaming":
            while not connection.reader.at_eof() and connection.reader.exception() is None:
                await connection.send(CHUNK)
                await asyncio.sleep(0)
            return
        await connection.stay()


async def begin(client: RawClient, phase: str, path: str) -> None:
    if phase == "uploading":
        await client.send(get(path, "Content-Length: 1000000", method="POST") + b"x" * 1000)
        return
    await client.send(post(path))
    if phase in ("silent", "streaming"):
        await client.until(EVENT)


def leave(folder: Path, phase: str, way: str, path: str, planner: Any = None) -> None:
    async def main() -> None:
        state = Phase(phase)
        async with (
            upstream(state.answer, reads_body=phase != "uploading") as up,
            proxy({"up": up.url}, folder, planner) as px,
        ):
            times = []
            for _ in range(5):
                state.reached.clear()
                client = await px.connect()
                await begin(client, phase, path)
                await asyncio.wait_for(state.reached.wait(), PATIENCE)
                left_at = time.perf_counter()
                client.reset() if way == "rst" else client.close()
                await asyncio.wait_for(up.all_closed(), PATIENCE)
                times.append((state.left_at - left_at) * 1000)
            print(f"{phase} {way} {path}: {min(times):.1f} to {max(times):.1f} ms")
            assert px.tally.failures == {"client left": 5}
            assert (len(up.requests), px.tally.streaming) == (5, 0)

    running(main)


@pytest.mark.parametrize("way", ["fin", "rst"])
@pytest.mark.parametrize("phase", ["uploading", "before the first byte", "silent", "streaming"])
def test_an_upstream_is_let_go_when_the_client_leaves(tmp_path: Path, phase: str, way: str) -> None:
    leave(tmp_path, phase, way, "/up/v1/files" if phase == "uploading" else "/up/v1/messages")


@pytest.mark.parametrize("way", ["fin", "rst"])
@pytest.mark.parametrize("phase", ["before the first byte", "silent", "streaming"])
def test_the_same_holds_for_what_is_changed(tmp_path: Path, phase: str, way: str) -> None:
    planner = ShoutAll()
    leave(tmp_path, phase, way, "/up/v1/messages", planner)
    assert [exchange.closed for exchange in planner.exchanges] == [1] * 5


@pytest.mark.parametrize("way", ["fin", "rst"])
@pytest.mark.parametrize("phase", ["before the first byte", "silent", "streaming"])
def test_a_client_of_a_reply_that_is_no_stream_is_noticed_when_it_leaves(tmp_path: Path, phase: str, way: str) -> None:
    """Nothing is written to it before the reply is whole, so no write can fail."""

    async def main() -> None:
        state, planner = Phase(phase), ShoutAll(streamed=False)
        async with upstream(state.answer) as up, proxy({"up": up.url}, tmp_path, planner) as px:
            client = await px.connect()
            await client.send(post("/up/v1/messages"))
            await asyncio.wait_for(state.reached.wait(), PATIENCE)
            client.reset() if way == "rst" else client.close()
            await asyncio.wait_for(up.all_closed(), PATIENCE)
            await asyncio.wait_for(ended(px), PATIENCE)
            assert px.tally.failures == {"client left": 1}
            assert [exchange.closed for exchange in planner.exchanges] == [1]

    running(main)


@pytest.mark.parametrize("way", ["fin", "rst"])
@pytest.mark.parametrize("phase", ["before the first byte", "silent", "streaming"])
def test_a_client_that_sent_more_before_its_turn_is_noticed_when_it_leaves(
    tmp_path: Path, phase: str, way: str
) -> None:
    """What it sent meanwhile waits, and so its end would wait behind it."""

    async def main() -> None:
        state = Phase(phase)
        async with upstream(state.answer) as up, proxy({"up": up.url}, tmp_path) as px:
            client = await px.connect()
            await begin(client, phase, "/up/v1/messages")
            await asyncio.wait_for(state.reached.wait(), PATIENCE)
            await client.send(post("/up/v1/messages"))
            await asyncio.wait_for(paused(client), PATIENCE)
            left_at = time.perf_counter()
            client.reset() if way == "rst" else client.close()
            await asyncio.wait_for(up.all_closed(), PATIENCE)
            print(f"{phase} {way} with another request waiting: {(state.left_at - left_at) * 1000:.1f} ms")
            assert (len(up.requests), px.tally.failures) == (1, {"client left": 1})

    running(main)


async def paused(client: RawClient) -> None:
    """Until what was sent has arrived: everything is in one event loop here."""
    for _ in range(20):
        await asyncio.sleep(0)


async def ended(px: Proxy) -> None:
    while not px.tally.failures:
        await asyncio.sleep(0)


def test_what_is_kept_of_a_client_that_left_holds_nobody_up(tmp_path: Path) -> None:
    class Slow(Shout):
        async def close(self) -> None:
            closing.set()
            await may_close.wait()
            await super().close()

    class First(ShoutAll):
        async def plan(self, asked: Asked) -> Exchange | Passed:
            if self.exchanges:
                return Passed("as it is")
            self.exchanges.append(Slow(asked.body, streamed=True))
            return self.exchanges[0]

    closing, may_close = asyncio.Event(), asyncio.Event()

    async def main() -> None:
        state, planner = Phase("silent"), First()
        async with upstream(state.answer) as up, proxy({"up": up.url}, tmp_path, planner) as px:
            client = await px.connect()
            await begin(client, "silent", "/up/v1/messages")
            client.close()
            await asyncio.wait_for(closing.wait(), PATIENCE)
            await asyncio.wait_for(up.all_closed(), PATIENCE)  # before anything was kept
            other = await px.connect()
            await begin(other, "silent", "/up/v1/messages")
            other.close()
            assert planner.exchanges[0].closed == 0
            may_close.set()
            await asyncio.wait_for(up.all_closed(), PATIENCE)

    running(main)
    may_close.set()


def test_a_client_that_leaves_an_upload_which_nobody_reads_is_noticed(tmp_path: Path) -> None:
    """By a reset, that is: a FIN stands in line behind what nobody reads, and has not arrived."""

    async def main() -> None:
        gone = asyncio.Event()
        reached = asyncio.Event()

        async def answer(connection: Connection, request: Request) -> None:
            reached.set()
            await gone.wait()  # reads nothing more: what it was sent stands in the way of the end
            await connection.stay()

        async with upstream(answer, reads_body=False, limit=1024) as up, proxy({"up": up.url}, tmp_path) as px:
            client = await px.connect()
            await client.send(get("/up/v1/files", "Content-Length: 900000000", method="POST"))
            client.writer.transport.set_write_buffer_limits(0)
            stuck = asyncio.ensure_future(fill(client))
            await asyncio.wait_for(reached.wait(), PATIENCE)
            await asyncio.wait({stuck}, timeout=1.0)
            assert not stuck.done()  # everything between is full
            stuck.cancel()
            left_at = time.perf_counter()
            client.reset()
            while not px.tally.failures:
                await asyncio.sleep(0)
            print(f"upload that nobody reads: {(time.perf_counter() - left_at) * 1000:.1f} ms")
            assert px.tally.failures == {"client left": 1}
            gone.set()
            await asyncio.wait_for(up.all_closed(), PATIENCE)

    running(main)


async def fill(client: RawClient) -> None:
    while True:
        await client.send(bytes(100_000))


def test_a_client_that_leaves_while_a_plan_is_made_ends_the_planning(tmp_path: Path) -> None:
    class Slow:
        def __init__(self) -> None:
            self.begun, self.ended = asyncio.Event(), asyncio.Event()

        async def plan(self, asked: Any) -> Any:
            self.begun.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.ended.set()

    async def main() -> None:
        planner = Slow()
        async with proxy({"up": "http://127.0.0.1:9"}, tmp_path, planner) as px:
            client = await px.connect()
            await client.send(post("/up/v1/messages"))
            await asyncio.wait_for(planner.begun.wait(), PATIENCE)
            client.close()
            await asyncio.wait_for(planner.ended.wait(), PATIENCE)

    running(main)


def test_a_client_that_leaves_after_its_answer_left_nothing(tmp_path: Path) -> None:
    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            for _ in range(50):
                client = await px.connect()
                await client.send(post("/up/v1/messages"))
                assert (await client.reply()).whole
                client.reset()
            assert px.tally.failures == {}
            assert up.connections == 1

    running(main)
