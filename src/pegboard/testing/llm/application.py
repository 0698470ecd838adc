"""The stand-in behind a socket: answers go out as ASGI has it, a piece at a time.

Above: `FakeLLM`. Below: `exchange`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pegboard.testing.llm.exchange import Answer
from pegboard.types import Json

Receive = Callable[[], Awaitable[Json]]
Send = Callable[[Json], Awaitable[None]]
Pace = Callable[[int], Awaitable[None]]
"""Waited for before each piece is sent, with its number: a test says with it when a stream goes on."""


async def read(receive: Receive) -> bytes:
    """The whole body of a request."""
    raw, more = b"", True
    while more:
        event = await receive()
        raw, more = raw + event.get("body", b""), event.get("more_body", False)
    return raw


async def write(answer: Answer, send: Send, pace: Pace | None) -> None:
    """The answer. One that is cut is left without its end, so the server closes the connection in the middle."""
    # No connection is kept: a test that leaves its client open leaves nothing else open.
    headers = {"content-type": answer.kind, **answer.headers, "connection": "close"}
    told = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": told})
    for number, piece in enumerate(answer.pieces):
        if pace is not None:
            await pace(number)
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    if not answer.is_cut:
        await send({"type": "http.response.body", "body": b""})
