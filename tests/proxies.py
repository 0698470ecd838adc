"""The proxy on a real socket inside a test, planners that change nothing or much, and a client that speaks raw HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h11
import msgspec

from pegboard.config.model import Config, ProxyConfig, StoreConfig
from pegboard.proxy.seam import Asked, Exchange, Passed, ReplyCut
from pegboard.proxy.tally import Tally

PATIENCE = 30.0


class PassAll:
    """A planner that changes nothing."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    async def plan(self, asked: Asked) -> Exchange | Passed:
        self.asked.append(asked)
        return Passed("as it is")


class Shout:
    """An exchange that asks in capitals, and gives on each event, or a whole reply, marked."""

    def __init__(self, body: bytes, *, streamed: bool, rounds: int = 1) -> None:
        self.body, self.streamed = body.upper(), streamed
        self.closed = 0
        self.failure: tuple[int, bytes] | None = None
        self._left = rounds
        self._pending = b""

    def feed(self, data: bytes) -> bytes:
        self._pending += data
        if not self.streamed:
            return b""
        *whole, self._pending = self._pending.split(b"\n\n")
        return b"".join(b"edited " + event + b"\n\n" for event in whole)

    def finish(self) -> bytes:
        rest, self._pending = self._pending, b""
        if self.streamed and rest:
            raise ReplyCut
        return b"" if self.streamed or self._left > 1 else b"edited " + rest

    async def again(self) -> bool:
        self._left -= 1
        self.body = b"again"
        return self._left > 0

    def failed(self, status: int, body: bytes) -> bytes:
        self.failure = status, body
        return b"event: error\n\n"

    async def close(self) -> None:
        self.closed += 1


class ShoutAll:
    """A planner that changes everything."""

    def __init__(self, *, streamed: bool = True, rounds: int = 1) -> None:
        self.streamed, self.rounds = streamed, rounds
        self.exchanges: list[Shout] = []

    async def plan(self, asked: Asked) -> Exchange | Passed:
        exchange = Shout(asked.body, streamed=self.streamed, rounds=self.rounds)
        self.exchanges.append(exchange)
        return exchange


class Proxy:
    """What a test sees of it."""

    def __init__(self, address: tuple[str, int], tally: Tally) -> None:
        self.host, self.port = address
        self.tally = tally

    async def connect(self) -> RawClient:
        return RawClient(*await asyncio.open_connection(self.host, self.port))

    async def ask(self, request: bytes) -> Got:
        """One request on a connection of its own."""
        client = await self.connect()
        try:
            await client.send(request)
            return await client.reply()
        finally:
            client.close()


class Got:
    """A reply as far as it came."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.whole = False

    def values(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key.lower() == name]


class RawClient:
    """Sends bytes, and reads replies by an independent parser."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def reply(self, method: bytes = b"POST") -> Got:
        got, parser = Got(), h11.Connection(h11.CLIENT)
        parser.send(h11.Request(method=method, target="/", headers=[("host", "x"), ("content-length", "0")]))
        parser.send(h11.EndOfMessage())
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    event = parser.next_event()
                except h11.RemoteProtocolError:
                    return got
                if event is h11.NEED_DATA:
                    parser.receive_data(await self._read())
                elif isinstance(event, h11.Response):
                    got.status, got.headers = event.status_code, list(event.headers.raw_items())
                elif isinstance(event, h11.Data):
                    got.body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    got.whole = True
                    return got

    async def all(self) -> bytes:
        """Everything until the other side hangs up."""
        data = b""
        async with asyncio.timeout(PATIENCE):
            while part := await self._read():
                data += part
        return data

    async def until(self, words: bytes) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return await self.reader.readuntil(words)

    async def _read(self) -> bytes:
        try:
            return await self.reader.read(65536)
        except OSError:
            return b""

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@asynccontextmanager
async def proxy(upstreams: dict[str, str], folder: Path, planner: Any = None, **settings: Any) -> AsyncIterator[Proxy]:
    """A proxy in this event loop."""
    from pegboard.proxy.serve import serve

    config = Config(
        proxy=ProxyConfig(listen="127.0.0.1:0", upstreams=upstreams, **settings),
        store=StoreConfig(state_dir=str(folder)),
    )
    tally = Tally()
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(serve(config, planner or PassAll(), tally, on_ready=ready.set_result))
    either: set[asyncio.Future[Any]] = {serving, ready}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        await serving
    host, _, port = (await ready).removeprefix("http://").rpartition(":")
    try:
        yield Proxy((host, int(port)), tally)
    finally:
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving


def post(path: str, body: bytes = b"{}", *headers: str) -> bytes:
    """A request with a length."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    """A request without a body."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *headers]).encode("latin-1") + b"\r\n\r\n"


def running(main: Callable[[], Any]) -> None:
    """Runs a test's coroutine; faults of the event loop's own are the test's."""

    async def guarded() -> None:
        faults: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        await main()
        assert not faults, faults[0]

    asyncio.run(guarded())


def decoded(body: bytes) -> Any:
    """JSON."""
    return msgspec.json.decode(body)
