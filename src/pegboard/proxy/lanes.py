"""Connections to one upstream without anything in between, kept for later requests: HTTP/1.1, one request at a time.

Above: `api`. Below: `sockets`, `reply_parser`. Errors are httpcore2's, which is what the other way out raises, too.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterable

import httpcore2
import msgspec

from pegboard.proxy.headers import Header, is_chunked
from pegboard.proxy.reply_parser import ReplyParser
from pegboard.proxy.routes import Address
from pegboard.proxy.sockets import PIECE, Sockets, Stream

CONNECT_SECONDS = 15.0
KEPT_CONNECTIONS = 64
KEEP_SECONDS = 60.0
KEEP_PLAIN_SECONDS = 4.0
"""Servers without TLS are small ones, which hang up after 5 s: we must not write into a connection being closed."""

_METHOD = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TARGET = re.compile(rb"[\x21-\x7e]+")
_HEADER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [^\x00\r\n]*\r\n")


class Patience(msgspec.Struct, frozen=True):
    """How long an upstream may be silent."""

    head: float
    """Before it begins to answer: a model may think for long."""
    idle: float
    """While it answers, or takes a request."""


class Lanes:
    """All connections to one upstream."""

    def __init__(self, address: Address, context: ssl.SSLContext | None) -> None:
        """`context` is None where the upstream speaks without TLS."""
        self._address = address
        self._context = context
        self._keep_seconds = KEEP_PLAIN_SECONDS if context is None else KEEP_SECONDS
        self._sockets = Sockets()
        self._open: set[Stream] = set()
        self._idle: list[tuple[float, Stream]] = []
        """With the time at which nobody is to use it any more; the one used last is the last."""

    async def ask(
        self,
        method: str,
        target: bytes,
        headers: list[Header],
        content: AsyncIterable[bytes],
        patience: Patience,
    ) -> LaneReply:
        """Sends a request; gives the reply when its head is there."""
        head = _head(method, target, headers)
        stream = self._kept() or await self._connected()
        try:
            await _send(stream, head, content, chunked=is_chunked(headers), timeout=patience.idle)
            parser = ReplyParser(method)
            while not (parser.has_head or parser.fault):
                await _read(stream, parser, patience.head)
            if not parser.has_head:
                raise httpcore2.RemoteProtocolError(parser.fault)
        except BaseException:
            self.drop(stream)
            raise
        return LaneReply(self, stream, parser, patience.idle)

    async def close(self) -> None:
        """Closes every connection."""
        for stream in list(self._open):
            self.drop(stream)

    def keep(self, stream: Stream) -> None:
        """For another request."""
        self._idle.append((asyncio.get_running_loop().time() + self._keep_seconds, stream))
        if len(self._idle) > KEPT_CONNECTIONS:
            self.drop(self._idle.pop(0)[1])

    def drop(self, stream: Stream) -> None:
        """Hangs up at once."""
        self._open.discard(stream)
        stream.abort()

    def _kept(self) -> Stream | None:
        """A connection that can be written to now, if that is done before anything else happens."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            until, stream = self._idle.pop()
            if now < until and not stream.is_readable:
                return stream
            self.drop(stream)
        return None

    async def _connected(self) -> Stream:
        stream = await self._sockets.connect_tcp(self._address.host, self._address.port, CONNECT_SECONDS)
        if self._context is not None:
            stream = await stream.start_tls(self._context, self._address.host, CONNECT_SECONDS)
        self._open.add(stream)
        return stream


class LaneReply:
    """One reply: iterate for its body, and `aclose` it in any case."""

    def __init__(self, lanes: Lanes, stream: Stream, parser: ReplyParser, patience: float) -> None:
        self.status = parser.status
        self.headers = parser.headers
        self._lanes = lanes
        self._stream: Stream | None = stream
        self._parser = parser
        self._patience = patience

    def __aiter__(self) -> LaneReply:
        return self

    async def __anext__(self) -> bytes:
        """The next bytes, as soon as there are some."""
        while self._stream is not None:
            if body := self._parser.take():
                return body
            if self._parser.fault:
                raise httpcore2.RemoteProtocolError(self._parser.fault)
            if self._parser.is_whole:
                break
            await _read(self._stream, self._parser, self._patience)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Gives the connection back when the reply has come to its end, else closes it."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        if self._parser.is_reusable and not stream.is_readable:
            self._lanes.keep(stream)
        else:
            self._lanes.drop(stream)


def _head(method: str, target: bytes, headers: list[Header]) -> bytes:
    lines = [b"%s: %s\r\n" % each for each in headers]
    if not _METHOD.fullmatch(method) or not _TARGET.fullmatch(target) or not all(map(_HEADER.fullmatch, lines)):
        raise httpcore2.LocalProtocolError("it cannot be put into HTTP")
    return b"".join([method.encode(), b" ", target, b" HTTP/1.1\r\n", *lines, b"\r\n"])


async def _send(stream: Stream, head: bytes, content: AsyncIterable[bytes], *, chunked: bool, timeout: float) -> None:
    try:
        await stream.write(head, timeout)
        async for part in content:
            if part:
                await stream.write(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part, timeout)
        if chunked:
            await stream.write(b"0\r\n\r\n", timeout)
    except httpcore2.WriteError:
        return  # it may have answered before it hung up


async def _read(stream: Stream, parser: ReplyParser, timeout: float) -> None:
    data = await stream.read(PIECE, timeout)
    if data:
        parser.feed(data)
    else:
        parser.ended()
