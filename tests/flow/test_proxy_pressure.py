"""The proxy under load: slow readers, uploads nobody reads, many streams at once, and what is left after all that."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import random
import resource
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.proxies import PATIENCE, PassAll, Proxy, RawClient, get, post, proxy, running
from tests.servers.raw_upstream import Connection, Request, response, upstream

MEBIBYTE = 1 << 20
LARGE = 200 * MEBIBYTE
PART = bytes(range(256)) * 1024
GROWTH = 4 * MEBIBYTE
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def rss() -> int:
    gc.collect()
    return psutil.Process().memory_info().rss


async def stuck(finished: asyncio.Event) -> None:
    """Until everything between is full, which is soon: it must not finish."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(finished.wait(), 0.7)


def test_a_slow_reader_holds_its_upstream_back_and_costs_no_memory(tmp_path: Path) -> None:
    async def main() -> None:
        sent, finished = 0, asyncio.Event()

        async def answer(connection: Connection, request: Request) -> None:
            nonlocal sent
            await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE)
            for _ in range(LARGE // len(PART)):
                await connection.send(PART)
                sent += len(PART)
            finished.set()

        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            for path in ("/up/v1/x", "/up/v1/messages"):
                sent = 0
                finished.clear()
                client = await px.connect()
                before = rss()
                await client.send(post(path))
                await client.until(b"\r\n\r\n")
                await stuck(finished)
                assert sent < LARGE / 2
                assert rss() - before < GROWTH
                print(f"{path}: {sent / MEBIBYTE:.0f} MiB taken, {(rss() - before) / MEBIBYTE:.1f} MiB held")
                count, digest = 0, hashlib.sha256()
                while count < LARGE:
                    data = await client.reader.read(MEBIBYTE)
                    assert data
                    count += len(data)
                    digest.update(data)
                assert digest.digest() == hashlib.sha256(PART * (LARGE // len(PART))).digest()
                client.close()

    running(main)


def test_an_upload_that_nobody_reads_holds_its_client_back_and_costs_no_memory(tmp_path: Path) -> None:
    async def main() -> None:
        sent, go_on, finished = 0, asyncio.Event(), asyncio.Event()
        received = hashlib.sha256()

        async def answer(connection: Connection, request: Request) -> None:
            await go_on.wait()
            left = LARGE
            while left:
                data = await connection.reader.read(MEBIBYTE)
                received.update(data)
                left -= len(data)
            await connection.send(response(b"ok"))

        async def pour(client: RawClient) -> None:
            nonlocal sent
            for _ in range(LARGE // len(PART)):
                await client.send(PART)
                sent += len(PART)
            finished.set()

        async with upstream(answer, reads_body=False) as up, proxy({"up": up.url}, tmp_path) as px:
            client = await px.connect()
            before = rss()
            await client.send(get("/up/v1/files", f"Content-Length: {LARGE}", method="POST"))
            pouring = asyncio.ensure_future(pour(client))
            await stuck(finished)
            assert sent < LARGE / 2
            assert rss() - before < GROWTH
            go_on.set()
            await pouring
            assert (await client.reply()).body == b"ok"
            assert received.digest() == hashlib.sha256(PART * (LARGE // len(PART))).digest()
            client.close()

    running(main)


def test_five_hundred_streams_at_once_get_each_their_own(tmp_path: Path, many_files: None) -> None:
    async def main() -> None:
        all_open, count = asyncio.Event(), 0

        async def answer(connection: Connection, request: Request) -> None:
            nonlocal count
            count += 1
            if count == 500:
                all_open.set()
            await connection.send(HEAD + _chunk(request.body))
            await all_open.wait()
            for number in range(5):
                await connection.send(_chunk(request.body + b" %d" % number))
            await connection.send(b"0\r\n\r\n")

        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            names = [f"stream {number}".encode() for number in range(500)]
            replies = await asyncio.gather(*(px.ask(post("/up/v1/messages", name)) for name in names))
            for name, got in zip(names, replies, strict=True):
                assert got.body == b"".join([name, *(name + b" %d" % number for number in range(5))])
                assert got.whole
            assert px.tally.requests == 500
            assert px.tally.streaming == 0
            assert px.tally.failures == {}

    running(main)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def soak(folder: Path, rounds: int, at_once: int) -> None:
    """Requests of every fate; afterwards tasks, files and memory are what they were."""

    async def answer(connection: Connection, request: Request) -> None:
        fate = request.body.split(b" ")[0]
        if fate == b"whole":
            await connection.send(response(request.body))
        elif fate == b"stream":
            await connection.send(HEAD + _chunk(request.body) * 20 + b"0\r\n\r\n")
        elif fate == b"cut":
            await connection.send(HEAD + _chunk(request.body))
            connection.rst()
        else:
            await connection.send(HEAD + _chunk(request.body))
            await connection.stay()

    async def one(px: Proxy, number: int, dice: random.Random) -> None:
        fate = dice.choice(["whole", "stream", "cut", "leave"])
        body = f"{fate} {number}".encode()
        client = await px.connect()
        await client.send(post(dice.choice(["/up/v1/messages", "/up/v1/x"]), body))
        if fate == "leave":
            await client.until(body)
            dice.choice([client.close, client.reset])()
            return
        got = await client.reply()
        assert got.body == body * (20 if fate == "stream" else 1)
        assert got.whole == (fate != "cut")
        client.close()

    async def settled(px: Proxy) -> tuple[int, int]:
        while px.tally.streaming or len(asyncio.all_tasks()) > 70:
            await asyncio.sleep(0.01)
        return len(asyncio.all_tasks()), psutil.Process().num_fds()

    async def main() -> None:
        dice, planner = random.Random(7), PassAll()
        async with upstream(answer) as up, proxy({"up": up.url}, folder, planner) as px:
            for number in range(at_once * 2):
                await one(px, number, dice)
            (tasks, files), memory = await asyncio.wait_for(settled(px), PATIENCE), rss()
            for start in range(0, rounds, at_once):
                await asyncio.gather(*(one(px, start + each, dice) for each in range(at_once)))
                for records in (up.requests, planner.asked):  # the test's own, which would look like the proxy's
                    records.clear()
            after_tasks, after_files = await asyncio.wait_for(settled(px), PATIENCE)
            grown = (rss() - memory) / MEBIBYTE
            print(f"tasks {tasks} {after_tasks}, files {files} {after_files}, {grown:.1f} MiB more")
            # Connections that are kept for later are no leak, and there are at most 64, with two ends each here.
            assert after_tasks - tasks <= 66
            assert after_files - files <= 140
            assert grown < 16
            assert set(px.tally.failures) <= {"reply cut", "client left"}

    running(main)


def test_nothing_is_left_after_requests_of_every_fate(tmp_path: Path, many_files: None) -> None:
    soak(tmp_path, 1000, 50)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nothing_is_left_after_a_hundred_thousand_requests(tmp_path: Path, many_files: None) -> None:
    soak(tmp_path, 100_000, 100)
