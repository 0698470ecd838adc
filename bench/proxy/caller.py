"""Clients that are a bare socket: one that blocks and keeps its connection, to time with; and many at once."""

from __future__ import annotations

import asyncio
import re
import socket
import time

import msgspec

from bench.proxy.subjects import KEY, Subject
from bench.proxy.upstream import STAMP

PATIENCE_S = 60.0
_END = b"0\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)


class WrongAnswer(Exception):
    """Not what was asked for."""


class Timed(msgspec.Struct):
    """One reply."""

    first_ms: float
    """From the request's first byte to the first of the reply's body."""
    whole_ms: float
    delays_ms: list[float]
    """Of each event: from when it was sent to when it was here."""
    body: bytes


def request(subject: Subject, body: bytes) -> bytes:
    """As an agent sends it."""
    lines = (
        f"POST {subject.path} HTTP/1.1",
        "host: 127.0.0.1",
        "content-type: application/json",
        "accept: application/json",
        "anthropic-version: 2023-06-01",
        f"x-api-key: {KEY}",
        "user-agent: bench/1",
        *subject.headers,
        f"content-length: {len(body)}",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def unchunked(data: bytes) -> bytes:
    """The body of a reply in chunks."""
    parts, at = [], 0
    while size := int(data[at : (end := data.index(b"\r\n", at))].partition(b";")[0], 16):
        parts.append(data[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
    return b"".join(parts)


class Caller:
    """One connection that is kept."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._socket: socket.socket | None = None

    def ask(self, body: bytes) -> Timed:
        """One request; a connection that was closed meanwhile is made anew, before the clock runs."""
        whole = request(self.subject, body)
        wire = self._connected()
        began = time.monotonic_ns()
        wire.sendall(whole)
        data, first, ended, looked, delays = bytearray(), 0, 0, 0, []
        while not ended:
            piece = wire.recv(1 << 18)
            now = time.monotonic_ns()
            if not piece:
                raise WrongAnswer(f"it hung up: {bytes(data[-200:])!r}")
            data += piece
            first = first or (now if b"event: " in data else 0)
            for stamp in STAMP.finditer(data, looked):  # one may have come in two pieces
                delays.append((now - int(stamp[1])) / 1e6)
                looked = stamp.end()
            ended = now if data.endswith(_END) else 0
            if not ended and not first:
                _check_refusal(data)
        head, _, rest = bytes(data).partition(b"\r\n\r\n")
        if b" 200 " not in head[:20] or not first:
            raise WrongAnswer(bytes(data[:300]).decode(errors="replace"))
        if b"\r\nconnection: close" in head.lower():
            self.close()
        return Timed((first - began) / 1e6, (ended - began) / 1e6, delays, unchunked(rest))

    def _connected(self) -> socket.socket:
        if self._socket is not None:
            self._socket.settimeout(0)
            try:
                gone = self._socket.recv(1) == b""
            except BlockingIOError:
                gone = False
            except OSError:
                gone = True
            if gone:
                self.close()
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self.subject.port), timeout=PATIENCE_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(PATIENCE_S)
        return self._socket

    def close(self) -> None:
        """Hangs up."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _check_refusal(data: bytearray) -> None:
    """A reply with a length is none of the API's: it is waited for, and told."""
    head, found, rest = bytes(data).partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    if found and length and len(rest) >= int(length[1]):
        raise WrongAnswer(rest[:300].decode(errors="replace"))


async def held(subject: Subject, body: bytes) -> bytes:
    """One stream on a connection of its own: the body of its reply, whole."""
    reader, writer = await asyncio.open_connection("127.0.0.1", subject.port)
    try:
        writer.write(request(subject, body))
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head[:20]:
            raise WrongAnswer(head.decode(errors="replace")[:200])
        parts = []
        while size := int(await reader.readuntil(b"\r\n"), 16):
            parts.append((await reader.readexactly(size + 2))[:-2])
        await reader.readexactly(2)
        return b"".join(parts)
    finally:
        writer.close()
