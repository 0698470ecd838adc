"""The HTTP+SSE transport of MCP 2024-11-05, as it was: `python legacy_sse.py [options of plain.py]`.

GET /sse opens the stream, whose first event names the address to POST messages to; answers come on the stream.
Every stream has a `plain.py` of its own behind it, so all its tools are there. Prints its port as the first line.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

LIFETIME = int(os.environ.get("SERVER_LIFETIME", "110"))
PLAIN = Path(__file__).with_name("plain.py")
LINE_LIMIT = 1 << 26
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


class Streams:
    """The open streams and the server behind each."""

    def __init__(self, options: list[str]) -> None:
        self.options = options
        self.servers: dict[str, Process] = {}
        self.opened = 0

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests on one connection, until it ends or becomes a stream."""
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.strip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                verb, target, _ = first.split(" ")
                await self.respond(verb, target, body, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client left
        finally:
            writer.close()

    async def respond(
        self, verb: str, target: str, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One request: the stream, a message for it, or neither."""
        path = urlsplit(target).path
        if (verb, path) == ("GET", "/sse"):
            await self.stream(reader, writer)
            return
        if (verb, path) == ("POST", "/messages"):
            status = await self.post(parse_qs(urlsplit(target).query).get("session_id", [""])[0], body)
        else:
            status = "405 Method Not Allowed" if path in ("/sse", "/messages") else "404 Not Found"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()

    async def post(self, session: str, body: bytes) -> str:
        """Hands a message to the server behind the stream."""
        server = self.servers.get(session)
        if server is None or server.stdin is None:
            return "404 Not Found"
        server.stdin.write(body.replace(b"\n", b" ") + b"\n")
        await server.stdin.drain()
        return "202 Accepted"

    async def stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Events until the client or the server behind goes away."""
        self.opened += 1
        session = f"s{self.opened}"
        command = (sys.executable, "-IS", str(PLAIN), "--era", "legacy", *self.options)
        server = await create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, limit=LINE_LIMIT)
        self.servers[session] = server
        writer.write(STREAM_HEAD + f"event: endpoint\ndata: /messages?session_id={session}\n\n".encode())
        pump = asyncio.create_task(self.pump(server, writer))
        gone = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait((pump, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self.servers[session]
            pump.cancel()
            gone.cancel()
            server.kill()
            await server.wait()
            writer.close()

    async def pump(self, server: Process, writer: asyncio.StreamWriter) -> None:
        """Each line of the server as an event."""
        assert server.stdout is not None
        async for line in server.stdout:
            writer.write(b"event: message\ndata: " + line.rstrip(b"\n") + b"\n\n")
            await writer.drain()


async def serve(options: list[str]) -> None:
    """Listens until the alarm."""
    server = await asyncio.start_server(Streams(options).connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    signal.alarm(LIFETIME)
    asyncio.run(serve(sys.argv[1:]))
