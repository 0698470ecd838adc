"""`wire_server` on streamable HTTP, as a bare ASGI application: both eras, JSON or SSE as the answer demands.

A POST of the stateless era is a connection of its own; a session of the handshake era is one from `initialize` on.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from pegboard.types import Json
from pegboard.wire.http_server import check_headers, status_of
from pegboard.wire.messages import NotJsonRpc, Request, RequestId, encode_error, parse, read_object
from pegboard.wire.versions import Era
from tests.servers.wire_server import Board, Desk, Out

Receive = Callable[[], Awaitable[Json]]
Send = Callable[[Json], Awaitable[None]]


class Counter:
    """A desk, and the HTTP responses that carry what it has to say."""

    def __init__(self, board: Board) -> None:
        self.streams: dict[RequestId | None, asyncio.Queue[Out]] = {None: asyncio.Queue()}
        self.desk = Desk(board, self._route)

    def _route(self, out: Out) -> None:
        self.streams.get(out.about, self.streams[None]).put_nowait(out)


class HttpBoard:
    """The application."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self._sessions: dict[str, Counter] = {}

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        session = dict(headers).get("mcp-session-id", "")
        counter = self._sessions.get(session)
        if session and counter is None:
            await _respond(send, 404)
        elif scope["method"] == "POST":
            await self._post(headers, await _body(receive), counter, receive, send)
        elif counter is None:
            await _respond(send, 405)
        elif scope["method"] == "GET":
            await _body(receive)  # empty, but it comes first: only what follows it is a client that hangs up
            await _stream(counter, None, None, receive, send)
        else:
            del self._sessions[session]
            counter.desk.close()
            await _respond(send, 200)

    async def _post(
        self, headers: list[tuple[str, str]], body: bytes, counter: Counter | None, receive: Receive, send: Send
    ) -> None:
        request = _request(body)
        schema = self.board.schema_of(read_object(request.params).get("name")) if request else None
        error = check_headers(headers, body, schema=schema)
        if error is not None and request is not None:
            await _respond(send, status_of(error, Era.STATELESS), encode_error(request.id, error))
            return
        ours = counter or Counter(self.board)
        extra: list[tuple[bytes, bytes]] = []
        if request is None:
            ours.desk.handle(body)
            await _respond(send, 202)
        else:
            ours.streams[request.id] = asyncio.Queue()
            ours.desk.handle(body)
            if request.method == "initialize" and ours.desk.side.handshake is not None:
                session = secrets.token_hex(8)
                self._sessions[session] = ours
                extra = [(b"mcp-session-id", session.encode())]
            await _answer(ours, request.id, receive, send, extra)
        if ours not in self._sessions.values():
            ours.desk.close()


def _request(body: bytes) -> Request | None:
    try:
        [message] = parse(body)
    except (NotJsonRpc, ValueError):
        return None
    return message if isinstance(message, Request) else None


async def _body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _answer(
    counter: Counter, identity: RequestId, receive: Receive, send: Send, extra: list[tuple[bytes, bytes]]
) -> None:
    first = await _next(counter, identity, receive)
    if first is None:
        counter.desk.hung_up(identity)
    elif first.final:
        await _respond(send, status_of(first.error, first.era), first.data, extra)
    else:
        await _stream(counter, identity, first, receive, send)
    del counter.streams[identity]


async def _next(counter: Counter, identity: RequestId | None, receive: Receive) -> Out | None:
    """What comes next on a stream; None when the client hung up first."""
    out = asyncio.ensure_future(counter.streams[identity].get())
    gone = asyncio.ensure_future(receive())
    done, waiting = await asyncio.wait((out, gone), return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    return out.result() if out in done else None


async def _stream(
    counter: Counter, identity: RequestId | None, first: Out | None, receive: Receive, send: Send
) -> None:
    headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    out = first or await _next(counter, identity, receive)
    while out is not None:
        event = b"event: message\r\ndata: " + out.data + b"\r\n\r\n"
        await send({"type": "http.response.body", "body": event, "more_body": not out.final})
        if out.final:
            return
        out = await _next(counter, identity, receive)
    if identity is not None and counter.desk.side.handshake is None:
        counter.desk.hung_up(identity)  # in the handshake era a lost stream is no cancellation


async def _respond(send: Send, status: int, body: bytes = b"", extra: list[tuple[bytes, bytes]] | None = None) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *(extra or [])]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
