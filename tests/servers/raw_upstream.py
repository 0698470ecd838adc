"""A model's API made of one coroutine per connection, which sends exactly the bytes a test says and hears what comes.

`Upstream.answer` is called for each request with the connection; raw bytes go out by `send`, and the connection ends by
`fin`, `rst`, or `stay`, which says nothing until the other side hangs up. Every request is kept in `requests`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from weakref import WeakSet


class Request:
    """One request as it came."""

    def __init__(self, line: bytes, headers: list[tuple[bytes, bytes]], body: bytes, connection: int) -> None:
        self.line, self.headers, self.body, self.connection = line, headers, body, connection

    @property
    def target(self) -> bytes:
        return self.line.split(b" ")[1]

    def values(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key.lower() == name]


class Connection:
    """One connection of a client's."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number, self.reader, self.writer = number, reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def fin(self) -> None:
        self.writer.close()

    def rst(self) -> None:
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def stay(self) -> None:
        """Until the other side hangs up."""
        with contextlib.suppress(OSError):
            while await self.reader.read(65536):
                pass

    async def request(self, *, body: bool = True) -> Request | None:
        """The next request; None when there is none."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, OSError):
            return None
        line, *lines = head[:-4].split(b"\r\n")
        headers = [(name, value.strip(b" \t")) for name, _, value in (each.partition(b":") for each in lines)]
        request = Request(line, headers, b"", self.number)
        if body:
            request.body = await self.body(request)
        return request

    async def body(self, request: Request) -> bytes:
        """All of a request's body."""
        if request.values(b"transfer-encoding"):
            parts = []
            while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                parts.append(await self.reader.readexactly(size))
                await self.reader.readexactly(2)
            await self.reader.readuntil(b"\r\n")
            return b"".join(parts)
        return await self.reader.readexactly(int((request.values(b"content-length") or [b"0"])[0]))


Answer = Callable[[Connection, Request], Awaitable[None]]


class Upstream:
    """What a test sees of it."""

    def __init__(self, answer: Answer, *, reads_body: bool = True) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.connections = 0
        self.open = 0
        self.url = ""
        self._reads_body = reads_body
        self._closed = asyncio.Condition()

    async def all_closed(self) -> None:
        """Until nobody is connected."""
        async with self._closed:
            await self._closed.wait_for(lambda: self.open == 0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        connection = Connection(self.connections, reader, writer)
        try:
            while not writer.is_closing():
                request = await connection.request(body=self._reads_body)
                if request is None:
                    break
                self.requests.append(request)
                await self.answer(connection, request)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the other side hung up, which is what many tests are about
        finally:
            writer.close()
            self.open -= 1
            async with self._closed:
                self._closed.notify_all()


@asynccontextmanager
async def upstream(answer: Answer, *, reads_body: bool = True, limit: int = 1 << 16) -> AsyncIterator[Upstream]:
    """One that listens on a free port of 127.0.0.1."""
    site = Upstream(answer, reads_body=reads_body)
    tasks: set[asyncio.Task[None]] = set()
    transports: WeakSet[asyncio.WriteTransport] = WeakSet()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        transports.add(writer.transport)
        with contextlib.suppress(asyncio.CancelledError):
            await site.serve(reader, writer)
        tasks.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=limit, backlog=1024)
    site.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield site
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for transport in list(transports):  # one that has not sent everything would wait for ever to be closed
            transport.abort()
        await asyncio.sleep(0)


def response(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    """A whole one with its length."""
    lines = (b"HTTP/1.1 " + status, *headers, b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunked(*parts: bytes, headers: tuple[bytes, ...] = (), end: bool = True) -> bytes:
    """One in chunks."""
    head = b"\r\n".join((b"HTTP/1.1 200 OK", *headers, b"Transfer-Encoding: chunked")) + b"\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + (b"0\r\n\r\n" if end else b"")
