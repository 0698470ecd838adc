"""MCP servers over HTTP that misbehave, each in one way: `python hostile_http.py MODE`. Standard library only.

Listens on a free port of 127.0.0.1 and prints it as the first line. `MODES` is the table: what each mode does and what
a caller may expect (the words of `hostile.Expect`). Apart from its one fault a mode is a sober streamable HTTP server
with one tool, `poke`, that answers "ok". The process is gone `LIFETIME` seconds after the start, whatever happens.

    --era legacy|modern   the handshake era with sessions (default), or 2026-07-28; session modes know legacy alone
    --log FILE            append one line per request: listener, verb, MCP method, and whether it carried credentials
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
import sys
import time
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, NamedTuple

Json = dict[str, Any]

LIFETIME = int(os.environ.get("SERVER_LIFETIME", "110"))
MEGABYTE = 1 << 20
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
POKE: Json = {"name": "poke", "description": "Answers ok.", "inputSchema": {"type": "object"}}
OK: Json = {"content": [{"type": "text", "text": "ok"}]}
JSON = "application/json"
EVENTS = "text/event-stream"


class Mode(NamedTuple):
    """One way to misbehave."""

    expect: str
    does: str


MODES: dict[str, Mode] = {
    "ok_json": Mode("call_ok", "sober, answers in JSON"),
    "ok_sse": Mode("call_ok", "sober, answers in event streams, with a notification before the answer"),
    "odd_sse": Mode("call_ok", "event streams with CR LF, comments, ids, retry and data cut into several lines"),
    # At once
    "status_401": Mode("start_fails", "401 with WWW-Authenticate to everything"),
    "status_403": Mode("start_fails", "403 to everything"),
    "status_404_html": Mode("start_fails", "404 with a web page to everything"),
    "redirect_cross_origin": Mode("start_fails", "307 to another port, where a sober server waits for who follows"),
    "redirect_loop": Mode("start_fails", "307 to itself"),
    "reset_on_connect": Mode("start_fails", "resets every connection"),
    "not_http": Mode("start_fails", "greets like a mail server"),
    "hang_at_start": Mode("start_fails", "accepts and never says a word"),
    # At a call
    "status_500": Mode("call_fails", "500 to a call"),
    "status_429": Mode("call_fails", "429 with Retry-After to a call"),
    "accepted_call": Mode("call_fails", "202 without an answer to a call"),
    "wrong_content_type": Mode("call_fails", "the answer as text/html"),
    "empty_body": Mode("call_fails", "200 and no body"),
    "wrong_length": Mode("call_fails", "a Content-Length that is half of what it sends"),
    "chunked_garbage": Mode("call_fails", "chunks whose sizes are no numbers"),
    "huge_headers": Mode("call_fails", "2 MB of headers"),
    "reset_mid_body": Mode("call_fails", "resets the connection after half the answer"),
    "sse_cut": Mode("call_fails", "ends the event stream before the answer"),
    "sse_wrong_id": Mode("call_fails", "answers under an id nobody used, and ends the event stream"),
    "sse_flood": Mode("call_ok", "100,000 notifications before the answer"),
    "endless_body": Mode("call_fails", "JSON that never ends (2 GB or 60 s)"),
    "endless_sse_line": Mode("call_fails", "an event whose line never ends (2 GB or 60 s)"),
    "gzip_bomb": Mode("call_fails", "256 KB of gzip that is 256 MB of text, unasked"),
    "hang_headers": Mode("call_fails", "takes the call and sends nothing"),
    "hang_body": Mode("call_fails", "sends half the answer and then nothing"),
    "slow_drip": Mode("call_ok", "the answer one byte per 5 ms"),
    "bad_utf8": Mode("call_ok", "bytes in the text that are not UTF-8"),
    # Between calls
    "closes_idle": Mode("any", "closes the connection after every answer without saying so before"),
    "delete_hangs": Mode("call_ok", "sober, but never answers the DELETE that ends a session"),
    "session_404": Mode("call_ok", "every session expires after two calls: then 404 until the next initialize"),
    "session_changes": Mode("call_ok", "later answers carry a session id that it does not know itself"),
    "wrong_session": Mode("list_fails", "404 to the very session id it gave"),
}


class Request(NamedTuple):
    """One HTTP request, read whole."""

    verb: str
    path: str
    headers: dict[str, str]
    message: Json

    @property
    def method(self) -> str:
        """The MCP method."""
        return str(self.message.get("method", ""))


class Reply(NamedTuple):
    """What goes back, before any fault."""

    status: int
    body: bytes = b""
    headers: tuple[str, ...] = ()
    kind: str = JSON

    def head(self, *headers: str, length: int | None = None) -> bytes:
        """Status line and headers."""
        size = f"Content-Length: {len(self.body) if length is None else length}"
        own = (f"Content-Type: {self.kind}", *self.headers, *(headers or (size,)))
        return "\r\n".join((f"HTTP/1.1 {self.status} Status", *own, "", "")).encode()

    def wire(self) -> bytes:
        """The whole reply."""
        return self.head() + self.body


class Site:
    """A sober MCP endpoint and its sessions."""

    def __init__(self, era: str, log: str, who: str = "mcp") -> None:
        self.era = era
        self.log = log
        self.who = who
        self.sessions: dict[str, int] = {}
        """Session id → calls made in it."""
        self.other_port = 0

    def note(self, request: Request) -> None:
        """One line in the log."""
        if self.log:
            trusted = " with credentials" if "authorization" in request.headers else ""
            with Path(self.log).open("a") as file:
                file.write(f"{self.who} {request.verb} {request.method}{trusted}\n")

    def reply(self, request: Request) -> Reply:
        """What a sober server says to a request."""
        if request.verb == "DELETE" and self.era == "legacy":
            self.sessions.pop(request.headers.get("mcp-session-id", ""), None)
            return Reply(200)
        if request.verb != "POST":
            return Reply(405)
        if "id" not in request.message:
            return Reply(202)
        return self.modern(request) if self.era == "modern" else self.legacy(request)

    def legacy(self, request: Request) -> Reply:
        """The handshake era: nothing without a session."""
        if request.method == "initialize":
            session = f"session-{len(self.sessions) + 1}"
            self.sessions[session] = 0
            info = {"name": "hostile-http", "version": "1"}
            hello = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            return answer(request, hello)._replace(headers=(f"Mcp-Session-Id: {session}",))
        session = request.headers.get("mcp-session-id", "")
        if not session:
            return failure(request, 400, -32600, "Bad Request: Missing session ID")
        if session not in self.sessions:
            return failure(request, 404, -32600, "Session not found")
        if request.method == "tools/call":
            self.sessions[session] += 1
        result = {"tools/list": {"tools": [POKE]}, "tools/call": OK, "ping": {}}.get(request.method)
        return failure(request, 200, -32601, "Method not found") if result is None else answer(request, result)

    def modern(self, request: Request) -> Reply:
        """2026-07-28: every request speaks for itself."""
        meta = (request.message.get("params") or {}).get("_meta") or {}
        version = meta.get(META + "protocolVersion")
        if version != MODERN:
            versions = {"supported": [MODERN], "requested": str(version)}
            return failure(request, 400, -32022, "Unsupported protocol version", versions)
        if (request.headers.get("mcp-protocol-version"), request.headers.get("mcp-method")) != (MODERN, request.method):
            return failure(request, 400, -32020, "Header mismatch")
        hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
        results: dict[str, Json] = {
            "server/discover": {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, **hints},
            "tools/list": {"tools": [POKE], **hints},
            "tools/call": {**OK, "resultType": "complete"},
        }
        result = results.get(request.method)
        return failure(request, 404, -32601, "Method not found") if result is None else answer(request, result)


class Exchange(NamedTuple):
    """One request under way, with the means to answer it in any way at all."""

    site: Site
    request: Request
    reply: Reply
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Bytes to the client, at its pace."""
        self.writer.write(data)
        await self.writer.drain()

    async def end(self, data: bytes = b"") -> None:
        """These bytes, and the connection is closed."""
        await self.send(data)
        self.writer.close()

    def reset(self) -> None:
        """Drops the connection with a TCP reset."""
        self.writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Fault = Callable[[Exchange], Awaitable[None]]
Faults = dict[str, Fault]
"""By moment: connect (nothing read yet), call (tools/call), post, get, delete, any; the most particular one strikes."""


def encode(message: Json) -> bytes:
    """A JSON-RPC message."""
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()


def answer(request: Request, result: Json) -> Reply:
    """A result."""
    return Reply(200, encode({"id": request.message["id"], "result": result}))


def failure(request: Request, status: int, code: int, message: str, data: Json | None = None) -> Reply:
    """A JSON-RPC error."""
    error: Json = {"code": code, "message": message, **({"data": data} if data else {})}
    return Reply(status, encode({"id": request.message["id"], "error": error}))


def event(data: bytes) -> bytes:
    """A message as a server-sent event."""
    return b"event: message\ndata: " + data + b"\n\n"


NOTE = event(encode({"method": "notifications/message", "params": {"level": "info", "data": "x"}}))


def replies(reply: Reply) -> Fault:
    """This, whatever was asked."""
    return lambda exchange: exchange.send(reply.wire())


def stream(before: bytes, times: int = 1, *, with_answer: bool = True) -> Fault:
    """An event stream: these bytes so many times, then perhaps the answer."""

    async def run(exchange: Exchange) -> None:
        body = before * times + (event(exchange.reply.body) if with_answer else b"")
        await exchange.end(exchange.reply._replace(kind=EVENTS).head("Connection: close") + body)

    return run


def endless(kind: str, opening: bytes) -> Fault:
    """A body that goes on and on."""

    async def run(exchange: Exchange) -> None:
        await exchange.send(exchange.reply._replace(kind=kind).head("Connection: close") + opening)
        deadline = time.monotonic() + 60
        for _ in range(2048):
            if time.monotonic() > deadline:
                break
            await exchange.send(b"x" * MEGABYTE)
        exchange.writer.close()

    return run


def changed(change: Callable[[Reply], bytes]) -> Fault:
    """The sober reply, with other bytes, on a connection that nobody is to use again."""
    return lambda exchange: exchange.end(change(last(exchange.reply)))


def last(reply: Reply) -> Reply:
    """Says that the connection will be closed: a client that used it again would meet a second fault."""
    return reply._replace(headers=(*reply.headers, "Connection: close"))


async def soberly(exchange: Exchange) -> None:
    """The sober reply, as it is."""
    await exchange.send(exchange.reply.wire())


async def nothing(_exchange: Exchange) -> None:
    """Keeps the client waiting."""
    await asyncio.sleep(LIFETIME)


async def not_http(exchange: Exchange) -> None:
    await exchange.send(b"220 mail.example.com ESMTP ready\r\n")
    await nothing(exchange)


async def reset(exchange: Exchange) -> None:
    exchange.reset()


async def reset_mid_body(exchange: Exchange) -> None:
    wire = exchange.reply.wire()
    await exchange.send(wire[:-10])
    exchange.reset()


async def hang_body(exchange: Exchange) -> None:
    await exchange.send(exchange.reply.wire()[:-10])
    await asyncio.sleep(LIFETIME)


async def slow_drip(exchange: Exchange) -> None:
    for byte in exchange.reply.wire():
        await exchange.send(bytes([byte]))
        await asyncio.sleep(0.005)


def is_answer(reply: Reply) -> bool:
    """Whether there is something in it to stream."""
    return reply.status == 200 and bool(reply.body)


async def ok_sse(exchange: Exchange) -> None:
    await (stream(NOTE) if is_answer(exchange.reply) else soberly)(exchange)


async def odd_sse(exchange: Exchange) -> None:
    body = exchange.reply.body
    if not is_answer(exchange.reply):
        return await soberly(exchange)
    cut = body.index(b",") + 1
    preamble = (b": hello", b"retry: 10", b"id: 7", b"", b":", b"event:message")
    lines = (*preamble, b"data:" + body[:cut], b"data: " + body[cut:], b"", b"")
    head = exchange.reply._replace(kind=EVENTS + "; charset=utf-8").head("Connection: close")
    return await exchange.end(head + b"\r\n".join(lines))


async def redirect_cross_origin(exchange: Exchange) -> None:
    where = f"Location: http://127.0.0.1:{exchange.site.other_port}/mcp"
    await exchange.send(Reply(307, headers=(where,)).wire())


async def sse_wrong_id(exchange: Exchange) -> None:
    await stream(event(encode({"id": "nobody's", "result": OK})), with_answer=False)(exchange)


async def gzip_bomb(exchange: Exchange) -> None:
    body = bomb(exchange.reply.body)
    await exchange.end(last(exchange.reply).head("Content-Encoding: gzip", f"Content-Length: {len(body)}") + body)


def bomb(message: bytes, megabytes: int = 256) -> bytes:
    """A valid gzip of the message with its text blown up. One compressed block is repeated, so it costs no time."""
    before, after = message.split(b'"ok"')
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    opening = deflate.compress(before + b'"') + deflate.flush(zlib.Z_FULL_FLUSH)
    block = deflate.compress(b"x" * MEGABYTE) + deflate.flush(zlib.Z_FULL_FLUSH)
    closing = deflate.compress(b'"' + after) + deflate.flush()
    checksum = zlib.crc32(before + b'"')
    for _ in range(megabytes):
        checksum = zlib.crc32(b"x" * MEGABYTE, checksum)
    checksum = zlib.crc32(b'"' + after, checksum)
    size = len(before) + len(after) + 2 + megabytes * MEGABYTE
    trailer = struct.pack("<II", checksum, size & 0xFFFFFFFF)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + opening + block * megabytes + closing + trailer


async def closes_idle(exchange: Exchange) -> None:
    await exchange.end(exchange.reply.wire())


async def session_404(exchange: Exchange) -> None:
    session = exchange.request.headers.get("mcp-session-id", "")
    await exchange.send(exchange.reply.wire())
    if exchange.site.sessions.get(session, 0) >= 2:
        del exchange.site.sessions[session]


async def session_changes(exchange: Exchange) -> None:
    own = exchange.reply.headers or ("Mcp-Session-Id: other",)
    await exchange.send(exchange.reply._replace(headers=own).wire())


async def wrong_session(exchange: Exchange) -> None:
    exchange.site.sessions.clear()
    await exchange.send(exchange.reply.wire())


GARBAGE = b"zz\r\nnonsense\r\n-5\r\n\r\n"
HTML = b"<!doctype html><title>Not found</title><h1>There is nothing here</h1>"
CHALLENGE = 'WWW-Authenticate: Bearer realm="hostile", error="invalid_token"'

FAULTS: dict[str, Faults] = {
    "ok_json": {},
    "ok_sse": {"post": ok_sse},
    "odd_sse": {"post": odd_sse},
    "status_401": {"any": replies(Reply(401, b'{"error":"invalid_token"}', (CHALLENGE,)))},
    "status_403": {"any": replies(Reply(403, b'{"error":"forbidden"}'))},
    "status_404_html": {"any": replies(Reply(404, HTML, kind="text/html"))},
    "redirect_cross_origin": {"any": redirect_cross_origin},
    "redirect_loop": {"any": replies(Reply(307, headers=("Location: /mcp",)))},
    "reset_on_connect": {"connect": reset},
    "not_http": {"connect": not_http},
    "hang_at_start": {"connect": nothing},
    "status_500": {"call": replies(Reply(500, b"Internal Server Error", kind="text/plain"))},
    "status_429": {"call": replies(Reply(429, b'{"error":"slow down"}', ("Retry-After: 3600",)))},
    "accepted_call": {"call": replies(Reply(202))},
    "wrong_content_type": {"call": changed(lambda reply: reply._replace(kind="text/html").wire())},
    "empty_body": {"call": replies(Reply(200))},
    "wrong_length": {"call": changed(lambda reply: reply.head(length=len(reply.body) // 2) + reply.body)},
    "chunked_garbage": {"call": changed(lambda reply: reply.head("Transfer-Encoding: chunked") + GARBAGE)},
    "huge_headers": {"call": changed(lambda reply: reply._replace(headers=("X-Filler: " + "x" * 1000,) * 2000).wire())},
    "reset_mid_body": {"call": reset_mid_body},
    "sse_cut": {"call": stream(NOTE + b"event: message\ndata: {", with_answer=False)},
    "sse_wrong_id": {"call": sse_wrong_id},
    "sse_flood": {"call": stream(NOTE, 100_000)},
    "endless_body": {"call": endless(JSON, b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"')},
    "endless_sse_line": {"call": endless(EVENTS, b"event: message\ndata: ")},
    "gzip_bomb": {"call": gzip_bomb},
    "hang_headers": {"call": nothing},
    "hang_body": {"call": hang_body},
    "slow_drip": {"call": slow_drip},
    "bad_utf8": {
        "call": changed(lambda reply: reply._replace(body=reply.body.replace(b'"ok"', b'"ok\xff\xc3"')).wire())
    },
    "closes_idle": {"any": closes_idle},
    "delete_hangs": {"delete": nothing},
    "session_404": {"post": session_404},
    "session_changes": {"post": session_changes},
    "wrong_session": {"post": wrong_session},
}


def moments(request: Request) -> tuple[str, ...]:
    """Which faults may strike now, the most particular first."""
    if request.verb == "POST":
        return ("call", "post", "any") if request.method == "tools/call" else ("post", "any")
    return (request.verb.lower(), "any")


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection, or None at its end."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    verb, path, _ = first.split(" ")
    return Request(verb, path, headers, json.loads(body) if body else {})


async def serve(site: Site, faults: Faults, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection, until it ends."""
    try:
        if "connect" in faults:
            await faults["connect"](Exchange(site, Request("", "", {}, {}), Reply(200), writer))
        while not writer.is_closing() and (request := await read_request(reader)) is not None:
            site.note(request)
            exchange = Exchange(site, request, site.reply(request), writer)
            fault = next((faults[moment] for moment in moments(request) if moment in faults), soberly)
            await fault(exchange)
    except ConnectionError:
        pass  # the client left; that is its right
    finally:
        writer.close()


async def listen(site: Site, faults: Faults) -> int:
    """Starts a listener; its port."""
    server = await asyncio.start_server(lambda r, w: serve(site, faults, r, w), "127.0.0.1", 0)
    await server.start_serving()
    port: int = server.sockets[0].getsockname()[1]
    return port


async def run(mode: str, era: str, log: str) -> None:
    """Serves until the alarm."""
    site = Site(era, log)
    if mode == "redirect_cross_origin":
        site.other_port = await listen(Site(era, log, "other"), {})
    print(await listen(site, FAULTS[mode]), flush=True)
    await asyncio.sleep(LIFETIME)


def main() -> None:
    """Reads the command line."""
    options = dict(zip(sys.argv[2::2], sys.argv[3::2], strict=False))
    if len(sys.argv) < 2 or sys.argv[1] not in FAULTS or not options.keys() <= {"--era", "--log"}:
        sys.exit(f"usage: hostile_http.py MODE [--era legacy|modern] [--log FILE]\nmodes: {' '.join(FAULTS)}")
    signal.alarm(LIFETIME)
    asyncio.run(run(sys.argv[1], options.get("--era", "legacy"), options.get("--log", "")))


if __name__ == "__main__":
    main()
