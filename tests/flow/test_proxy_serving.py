"""The proxy's own life in a process: the file that tells of it, what it cannot do, and how it ends."""

from __future__ import annotations

import asyncio
import builtins
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pegboard.config.model import Config, ProxyConfig, StoreConfig
from pegboard.errors import MissingExtra, PegboardError
from pegboard.proxy import connection
from pegboard.proxy import serve as serving
from pegboard.proxy.tally import Running, Tally
from tests.proxies import PATIENCE, PassAll, get, post, proxy, running
from tests.servers.raw_upstream import Connection, Request, response, upstream


async def say_ok(connection: Connection, request: Request) -> None:
    await connection.send(response(b"ok"))


def told(folder: Path) -> Running:
    return msgspec.json.decode((folder / "proxy.json").read_bytes(), type=Running)


def refused(folder: Path, listen: str, **upstreams: str) -> PegboardError:
    config = Config(proxy=ProxyConfig(listen=listen, upstreams=upstreams), store=StoreConfig(state_dir=str(folder)))
    with pytest.raises(PegboardError) as caught:
        asyncio.run(serving.serve(config, PassAll(), Tally()))
    assert not (folder / "proxy.json").exists()
    return caught.value


def test_a_file_tells_of_the_proxy_from_its_start_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "WRITE_SECONDS", 0.01)

    async def main() -> None:
        async with upstream(say_ok) as up, proxy({"up": up.url}, tmp_path) as px:
            assert told(tmp_path).listen == f"127.0.0.1:{px.port}"
            assert told(tmp_path).tally.requests == 0
            await px.ask(get("/up/v1/x"))
            async with asyncio.timeout(PATIENCE):
                while told(tmp_path).tally.requests == 0:
                    await asyncio.sleep(0)
            monkeypatch.setattr(serving, "WRITE_SECONDS", 1000.0)
            await px.ask(get("/up/v1/x"))

    running(main)
    assert told(tmp_path).tally.requests == 2
    assert (tmp_path / "proxy.json").stat().st_mode & 0o077 == 0


def test_a_proxy_that_cannot_write_its_file_any_more_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "WRITE_SECONDS", 0.001)
    folder = tmp_path / "state"

    async def main() -> None:
        async with upstream(say_ok) as up, proxy({"up": up.url}, folder) as px:
            folder.rename(tmp_path / "gone")
            folder.write_text("in the way")
            for _ in range(20):
                assert (await px.ask(get("/up/v1/x"))).body == b"ok"
                await asyncio.sleep(0.005)
            folder.unlink()

    running(main)
    assert told(folder).tally.requests == 20


def test_a_port_that_is_taken_is_said_to_be(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        error = refused(tmp_path, f"127.0.0.1:{taken.getsockname()[1]}")
    assert "in use" in error.message
    assert "proxy.listen" in error.hint


@pytest.mark.parametrize("listen", ["127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "nowhere.invalid:0", ":8722", ""])
def test_what_is_no_place_to_listen_is_said_to_be(tmp_path: Path, listen: str) -> None:
    assert "Cannot listen" in refused(tmp_path, listen).message


def test_an_upstream_that_is_no_address_is_said_to_be(tmp_path: Path) -> None:
    assert "proxy.upstreams" in refused(tmp_path, "127.0.0.1:0", up="ftp://user:secret@x").message
    assert "secret" not in refused(tmp_path, "127.0.0.1:0", up="ftp://user:secret@x").message


def test_without_uvicorn_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("uvicorn"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    error = refused(tmp_path, "127.0.0.1:0")
    assert isinstance(error, MissingExtra)
    assert "pegboard[http]" in error.hint


@pytest.mark.parametrize("before", [0, 1, 2])
def test_whoever_never_sends_a_whole_head_is_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """Also after whole requests on the same connection."""
    monkeypatch.setattr(connection, "HEADER_SECONDS", 0.3)

    async def main() -> None:
        async with upstream(say_ok) as up, proxy({"up": up.url}, tmp_path) as px:
            client = await px.connect()
            for _ in range(before):
                await client.send(post("/up/v1/x"))
                assert (await client.reply()).body == b"ok"
            await client.send(b"POST /up/v1/x HTTP/1.1\r\nHost: local")
            assert await client.all() == b""
            client.close()
            assert px.tally.requests == before

    running(main)


def test_a_request_that_takes_its_time_is_not_taken_for_one_without_a_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEADER_SECONDS", 0.05)
    passed = asyncio.Event()

    async def answer(connection: Connection, request: Request) -> None:
        asyncio.get_running_loop().call_later(0.3, passed.set)  # long after whoever sent no head was given up
        await passed.wait()
        await connection.send(response(b"ok"))

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            client = await px.connect()
            for _ in range(2):
                passed.clear()
                await client.send(post("/up/v1/x"))
                assert (await client.reply()).body == b"ok"
            client.close()

    running(main)


def test_a_client_that_takes_nothing_of_its_answer_does_not_hold_its_upstream_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "STALL_SECONDS", 0.3)

    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n")
        while True:
            await connection.send(bytes(100_000))

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            client = await px.connect()
            await client.send(post("/up/v1/messages"))
            await client.until(b"\r\n\r\n")
            await asyncio.wait_for(up.all_closed(), PATIENCE)
            assert px.tally.failures == {"client left": 1}
            client.close()

    running(main)


@pytest.mark.parametrize("path", ["/up/v1/messages", "/up/v1/files"])
def test_a_client_that_stops_in_the_middle_of_a_request_is_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(connection, "STALL_SECONDS", 0.3)

    async def main() -> None:
        async with upstream(say_ok) as up, proxy({"up": up.url}, tmp_path) as px:
            client = await px.connect()
            await client.send(get(path, "Content-Length: 8", method="POST") + b"half")
            assert await client.all() == b""
            assert px.tally.failures == {"client left": 1}
            await asyncio.wait_for(up.all_closed(), PATIENCE)
            client.close()

    running(main)


def test_a_slow_client_is_not_taken_for_one_that_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "STALL_SECONDS", 1.0)
    size = 8_000_000

    async def answer(connection: Connection, request: Request) -> None:
        await connection.send(response(bytes(size)))

    async def main() -> None:
        async with upstream(answer) as up, proxy({"up": up.url}, tmp_path) as px:
            client = await px.connect()
            await client.send(get("/up/v1/files", "Content-Length: 20", method="POST"))
            for _ in range(20):
                await client.send(b"x")
                await asyncio.sleep(0.06)  # longer than a stall in all, but never at once
            await client.until(b"\r\n\r\n")
            taken = 0
            while taken < size:
                taken += len(await client.reader.read(1 << 20))
                await asyncio.sleep(0.02)
            assert (taken, px.tally.failures) == (size, {})
            client.close()

    running(main)


def test_more_connections_than_there_is_room_for_are_told_so_and_harm_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "MAX_CONNECTIONS", 3)

    async def main() -> None:
        async with upstream(say_ok) as up, proxy({"up": up.url}, tmp_path) as px:
            first = [await px.connect() for _ in range(2)]
            for client in first:
                await client.send(post("/up/v1/x"))
                assert (await client.reply()).status == 200
            statuses = [(await px.ask(post("/up/v1/x"))).status for _ in range(3)]
            assert set(statuses) == {503}
            for client in first:
                await client.send(post("/up/v1/x"))
                client.close()
            assert px.tally.requests == 2

    running(main)


def test_a_head_without_bounds_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with upstream(say_ok) as up, proxy({"up": up.url}, tmp_path) as px:
            client = await px.connect()
            client.writer.write(
                b"GET /up/v1/x HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 4 * serving.MAX_HEADER_BYTES
            )
            assert b" 400 " in (await client.all()).split(b"\r\n")[0]
            client.close()
            assert up.requests == []

    running(main)


def test_streams_may_finish_when_the_proxy_is_told_to_end(tmp_path: Path) -> None:
    async def main() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def answer(connection: Connection, request: Request) -> None:
            await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
            begun.set()
            await go_on.wait()
            await connection.send(b"cd")

        async with upstream(answer) as up:
            async with proxy({"up": up.url}, tmp_path) as px:
                asking = asyncio.ensure_future(px.ask(post("/up/v1/messages")))
                await begun.wait()
                asyncio.get_running_loop().call_later(0.3, go_on.set)
            got = await asking
            assert (got.body, got.whole) == (b"abcd", True)

    running(main)


def test_streams_that_never_finish_are_cut_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "GRACE_SECONDS", 0.2)

    async def main() -> None:
        begun = asyncio.Event()

        async def answer(connection: Connection, request: Request) -> None:
            await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
            begun.set()
            await connection.stay()

        async with upstream(answer) as up:
            async with proxy({"up": up.url}, tmp_path) as px:
                asking = asyncio.ensure_future(px.ask(post("/up/v1/messages")))
                await begun.wait()
            got = await asking
            assert (got.body, got.whole) == (b"ab", False)
            await asyncio.wait_for(up.all_closed(), PATIENCE)

    running(main)


def test_the_proxy_of_the_environment_is_used_for_what_is_not_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with upstream(say_ok) as up, upstream(say_ok) as near:
            monkeypatch.setenv("http_proxy", up.url.replace("//", "//me:pass@"))
            monkeypatch.setenv("no_proxy", "inside.invalid")
            far = {"far": "http://far.invalid/base", "near": near.url, "inside": "http://inside.invalid"}
            async with proxy(far, tmp_path) as px:
                assert (await px.ask(post("/far/v1/x", b"b"))).body == b"ok"
                (seen,) = up.requests
                assert seen.line == b"POST http://far.invalid:80/base/v1/x HTTP/1.1"
                assert seen.values(b"host") == [b"far.invalid"]
                assert seen.values(b"proxy-authorization") == [b"Basic bWU6cGFzcw=="]
                assert (await px.ask(post("/near/v1/x"))).body == b"ok"
                assert (await px.ask(post("/inside/v1/x"))).status == 502
                assert (len(near.requests), len(up.requests)) == (1, 1)

    running(main)
