"""An HTTP server inside the test, which does what the test's own coroutine says: for faults that need to be timed.

`sober` is the handler to start from: a streamable HTTP server of either era with a few tools, whose answers a test
replaces where it wants to. Every request is kept in `Scripted.requests`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

Json = dict[str, Any]
MODERN = "2026-07-28"


class Asked:
    """One request, with the means to answer it."""

    def __init__(self, site: Scripted, line: str, headers: dict[str, str], body: bytes, io: Any) -> None:
        self.site = site
        self.verb, self.target, _ = line.split(" ")
        self.headers = headers
        self.message: Json = msgspec.json.decode(body) if body.startswith(b"{") else {}
        self._reader: asyncio.StreamReader = io[0]
        self.writer: asyncio.StreamWriter = io[1]

    @property
    def method(self) -> str:
        return str(self.message.get("method", ""))

    @property
    def tool(self) -> str:
        return str((self.message.get("params") or {}).get("name", ""))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def reply(self, status: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> None:
        named = {"Content-Type": kind, "Content-Length": str(len(body)), **headers}
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items())
        await self.send(f"HTTP/1.1 {status} Status\r\n{lines}\r\n".encode() + body)

    async def answer(self, result: Json, **headers: str) -> None:
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": self.message.get("id"), "result": result})
        await self.reply(200, body, **headers)

    async def refuse(self, status: int, code: int, words: str) -> None:
        error = {"code": code, "message": words}
        await self.reply(status, msgspec.json.encode({"jsonrpc": "2.0", "id": self.message.get("id"), "error": error}))

    async def begin_events(self) -> None:
        await self.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, message: Json, identity: str = "") -> None:
        mark = f"id: {identity}\n".encode() if identity else b""
        await self.chunk(mark + b"data: " + msgspec.json.encode(message) + b"\n\n")

    async def result_event(self, result: Json, request_id: Any = None, identity: str = "") -> None:
        answered = self.message.get("id") if request_id is None else request_id
        await self.event({"jsonrpc": "2.0", "id": answered, "result": result}, identity)

    async def end(self) -> None:
        await self.send(b"0\r\n\r\n")

    def cut(self) -> None:
        self.writer.close()

    async def gone(self) -> None:
        """Waits until the client has closed the connection."""
        while await self._reader.read(1024):
            pass


Handler = Callable[[Asked], Awaitable[None]]


class Scripted:
    """The server, its address, and what it was asked."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self.requests: list[Asked] = []
        self.connections = 0
        self.origin = ""
        self.faults: list[BaseException] = []

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    def count(self, method: str) -> int:
        return sum(each.method == method for each in self.requests)

    def verbs(self, verb: str) -> list[Asked]:
        return [each for each in self.requests if each.verb == verb]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while not writer.is_closing():
                asked = await self._read(reader, writer)
                self.requests.append(asked)
                await self._handler(asked)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client left, or the test is over
        except Exception as fault:  # noqa: BLE001  the test must hear of it, and looks here
            self.faults.append(fault)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Asked(self, first, headers, body, (reader, writer))

    async def listen(self, port: int = 0) -> None:
        """Begins to accept connections."""
        self._server = await asyncio.start_server(self.serve, "127.0.0.1", port)
        self.origin = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Drops every connection and accepts no more."""
        assert self._server is not None
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()


@asynccontextmanager
async def scripted(handler: Handler) -> AsyncIterator[Scripted]:
    """Runs the handler on a free port of 127.0.0.1; a handler that failed fails the test."""
    site = Scripted(handler)
    await site.listen()
    try:
        yield site
    finally:
        await site.close()
    assert not site.faults, site.faults


def sober(era: str = "legacy", tools: list[Json] | None = None) -> Handler:
    """A well-behaved server: every tool answers with its own name."""
    offered = tools or [{"name": name, "inputSchema": {"type": "object"}} for name in ("one", "two")]
    hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
    session = "session-1"

    async def handle(asked: Asked) -> None:
        results: dict[str, Json] = {
            "tools/list": {"tools": offered, **hints},
            "tools/call": {"content": [{"type": "text", "text": asked.tool}], "resultType": "complete"},
        }
        if era == "modern":
            results["server/discover"] = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, **hints}
        else:
            info = {"name": "scripted", "version": "1"}
            results["initialize"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        if asked.verb == "DELETE":
            await asked.reply(200)
        elif asked.verb != "POST":
            await asked.reply(405)
        elif "id" not in asked.message:
            await asked.reply(202)
        elif asked.method == "initialize" and asked.method in results:
            await asked.answer(results["initialize"], Mcp_Session_Id=session)
        elif asked.method in results:
            await asked.answer(results[asked.method])
        else:
            await asked.refuse(404 if era == "modern" else 200, -32601, "Method not found")

    return handle
