"""One HTTP response: JSON when the answer is all there is to send, a stream of events when more comes before it.

Below: ASGI's `send`. Above: `http` makes one for each request, and the session puts messages into it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from pegboard.gateway.outbox import Out
from pegboard.wire.http_server import status_of

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

KEEP_ALIVE_SECONDS = 20.0
"""A comment is sent on a silent stream this often, so that whatever stands between does not take it for dead."""
MAX_QUEUED = 1000
_JSON: Header = (b"content-type", b"application/json")
_EVENTS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)


class Exchange:
    """The outbox of one HTTP request."""

    def __init__(self, *, streams: bool) -> None:
        self._streams = streams
        self._queue: asyncio.Queue[Out | None] = asyncio.Queue()
        self._expected = 0
        self._finals = 0

    @property
    def streams(self) -> bool:
        """Whether the client takes a stream of events."""
        return self._streams

    def put(self, out: Out) -> None:
        """Queues a message. A client that does not read loses progress first, and never an answer."""
        self._finals += out.final
        if out.final or (self._streams and self._queue.qsize() < MAX_QUEUED):
            self._queue.put_nowait(out)

    def hung_up(self) -> None:
        """The client is gone: whoever writes stops."""
        self._queue.put_nowait(None)

    async def respond(self, send: Send, expected: int, extra: list[Header]) -> None:
        """Writes the response to `expected` requests; returns when all have their answers or the client is gone."""
        self._expected = expected
        first = await self._queue.get()
        if first is None:
            return
        if expected == 1 and first.final:
            await respond(send, status_of(first.error, first.era) if first.data else 202, first.data, extra)
            return
        await self._stream(send, first, extra)

    async def stream(self, send: Send) -> None:
        """Writes events until the client is gone, or a message says that nothing more comes."""
        self._expected = 1
        await self._stream(send, None, [])

    async def _stream(self, send: Send, first: Out | None, extra: list[Header]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [*_EVENTS, *extra]})
        if first is None:  # a client that only listens must see that it was heard
            await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
        out, left = first, self._expected
        while True:
            if out is not None:
                left -= out.final
                await send({"type": "http.response.body", "body": _event(out.data), "more_body": left > 0})
                if left <= 0:
                    return
            try:
                async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                    out = await self._queue.get()
            except TimeoutError:
                await send({"type": "http.response.body", "body": b": still here\n\n", "more_body": True})
                out = None
                continue
            if out is None:
                return


def _event(data: bytes) -> bytes:
    return b"event: message\r\ndata: " + data + b"\r\n\r\n" if data else b""


async def respond(send: Send, status: int, body: bytes = b"", extra: list[Header] | None = None) -> None:
    """Writes a whole response."""
    headers = [*(extra or ()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, *headers] if body else headers})
    await send({"type": "http.response.body", "body": body})
