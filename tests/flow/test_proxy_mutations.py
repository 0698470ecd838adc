"""Bytes in other slices, and bytes that are wrong: the first make no difference, and the second harm nobody."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path

import pytest

from tests.proxies import PATIENCE, Proxy, ShoutAll, get, post, proxy, running
from tests.servers.raw_upstream import Connection, Request, chunked, response, upstream

AT_ONCE = 20
EVENTS = [f'event: delta\r\ndata: {{"n": {n}, "text": "é東{"x" * n}"}}\n\n'.encode() for n in range(12)]
REPLY = chunked(*EVENTS, headers=(b"Content-Type: text/event-stream",))
REQUEST_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ /\S* HTTP/1\.1")


async def batches(count: int, one: object) -> None:
    """So many of them, some at once."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await one(number)  # type: ignore[operator]

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


def slices(data: bytes, dice: random.Random) -> list[bytes]:
    cuts = sorted({dice.randrange(1, len(data)) for _ in range(dice.choice([1, 2, 5, 20]))})
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def reslice(folder: Path, count: int, planner: ShoutAll | None) -> None:
    body = b"".join(EVENTS)
    expected = b"".join(b"edited " + event + b"\n\n" for event in body.split(b"\n\n")[:-1]) if planner else body

    async def answer(connection: Connection, request: Request) -> None:
        for part in slices(REPLY, random.Random(request.body)):
            await connection.send(part)
            await asyncio.sleep(0)

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, folder, planner) as px:

            async def one(number: int) -> None:
                client = await px.connect()
                for part in slices(post("/up/v1/messages", b"%d" % number), random.Random(number)):
                    await client.send(part)
                    await asyncio.sleep(0)
                got = await client.reply()
                assert (got.body, got.whole) == (expected, True), number
                client.close()

            await batches(count, one)
            assert (len(up.requests), px.tally.failures) == (count, {})

    running(main)


@pytest.mark.parametrize("editing", [False, True])
def test_slices_make_no_difference(tmp_path: Path, editing: bool) -> None:
    reslice(tmp_path, 500, ShoutAll() if editing else None)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("editing", [False, True])
def test_ten_thousand_slicings_make_no_difference(tmp_path: Path, editing: bool) -> None:
    reslice(tmp_path, 10_000, ShoutAll() if editing else None)


SPICES = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\x00",
    b"\xff",
    b" ",
    b":",
    b"0\r\n\r\n",
    b"Content-Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: identity\r\n",
    b"Connection: content-length, host\r\n",
    b"Host: evil.example\r\n",
    b"GET /up/v1/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled",
    b"-1",
    b"ffffffffffffffff",
    b"HTTP/1.0",
    b"Expect: 100-continue\r\n",
    b"Upgrade: websocket\r\nConnection: upgrade\r\n",
]


def mutated(data: bytes, dice: random.Random) -> bytes:
    """Cut, replaced, inserted or repeated, once or a few times."""
    for _ in range(dice.choice([1, 1, 2, 4])):
        at, end = sorted(dice.randrange(len(data) + 1) for _ in range(2))
        end = min(end, at + dice.choice([0, 1, 4, 40]))
        spice = dice.choice([*SPICES, dice.randbytes(3)])
        kind = dice.randrange(5)
        data = [
            data[:at] or b"x",
            data[:at] + spice + data[end:],
            data[:at] + spice + data[at:],
            data[:end] + data[at:],
            data[:at] + data[end:] or b"x",
        ][kind]
    return data


def requests(number: int) -> list[bytes]:
    body = b'{"number": %d}' % number
    framed = b"5\r\n" + body[:5] + b"\r\n%x\r\n" % len(body[5:]) + body[5:] + b"\r\n0\r\n\r\n"
    return [
        post("/up/v1/messages?beta=true", body, "Authorization: Bearer s"),
        get("/up/v1/messages", "Transfer-Encoding: chunked", method="POST") + framed,
        get(f"/up/v1/models/{number}", "X-API-Key: s"),
        post("/up/v1/files", body) + get("/up/v1/second"),
    ]


async def echo(connection: Connection, request: Request) -> None:
    await connection.send(response(request.target + b" " + request.body))


def mutate_requests(folder: Path, count: int) -> None:
    async def main() -> None:
        async with upstream(echo) as up, proxy({"up": up.url}, folder) as px:

            async def one(number: int) -> None:
                dice = random.Random(number)
                await provoke(px, mutated(dice.choice(requests(number)), dice))
                await sane(px, number)

            await batches(count, one)
            host = up.url.removeprefix("http://").encode()
            for seen in up.requests:
                assert REQUEST_LINE.fullmatch(seen.line), seen.line
                assert seen.values(b"host") == [host]
                assert not (seen.values(b"content-length") and seen.values(b"transfer-encoding"))
            # Nobody saw a request that the proxy did not see as one.
            assert len(up.requests) <= px.tally.requests
            assert set(px.tally.failures) <= {"client left", "reply cut"}

    running(main)


async def provoke(px: Proxy, data: bytes) -> None:
    client = await px.connect()
    try:
        await client.send(data)
        client.writer.write_eof()
        await client.all()
    except OSError:
        pass
    finally:
        client.close()


async def sane(px: Proxy, number: int) -> None:
    """A sober request in between gets its own answer."""
    for _ in range(5):
        got = await px.ask(post(f"/up/v1/sober/{number}", b"%d" % number))
        if got.status != 504:  # a machine with much to do may be silent for as long as the watchdog waits here
            break
    assert (got.status, got.body) == (200, b"/v1/sober/%d %d" % (number, number))


def mutate_replies(folder: Path, count: int, planner: ShoutAll | None) -> None:
    wholes = [REPLY, response(b"data: x\n\n", b"Request-Id: r"), b"HTTP/1.1 100 Continue\r\n\r\n" + response(b"{}")]

    async def answer(connection: Connection, request: Request) -> None:
        if b"sober" in request.target:
            await echo(connection, request)
            return
        dice = random.Random(request.body)
        for part in slices(mutated(dice.choice(wholes), dice) + b"  ", dice):
            await connection.send(part)
        if dice.random() < 0.5:
            connection.fin() if dice.random() < 0.5 else connection.rst()

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, folder, planner, idle_seconds=0.2) as px:

            async def one(number: int) -> None:
                got = await px.ask(post("/up/v1/messages", b"%d" % number))
                assert got.status
                await sane(px, number)

            await asyncio.wait_for(batches(count, one), PATIENCE * 20)
            assert set(px.tally.failures) <= {"reply cut", "idle", "no answer in time", "client left"}

    running(main)


def check_quiet(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    assert "Traceback" not in caplog.text
    assert [record for record in caplog.records if record.exc_info] == []
    assert "Traceback" not in "".join(capfd.readouterr())


def test_wrong_requests_harm_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    mutate_requests(tmp_path, 1000)
    check_quiet(caplog, capfd)


@pytest.mark.parametrize("editing", [False, True])
def test_wrong_replies_harm_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], editing: bool
) -> None:
    mutate_replies(tmp_path, 500, ShoutAll() if editing else None)
    check_quiet(caplog, capfd)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_thousand_wrong_requests_and_replies_harm_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    mutate_requests(tmp_path, 10_000)
    mutate_replies(tmp_path, 10_000, None)
    check_quiet(caplog, capfd)
