"""Streamable HTTP as a bare ASGI application: `/mcp` in both eras, and `/healthz`.

A POST of the stateless era is a connection of its own; a session of the handshake era is one from `initialize` until
it is deleted or forgotten. Below: `wire.admission` says who may speak, `exchange` writes responses. Above: `listen`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec

from pegboard.gateway.exchange import Exchange, Header, Message, Receive, Send, respond
from pegboard.gateway.http_sessions import HttpSessions
from pegboard.gateway.identity import HEADER_CONVERSATION, Origin
from pegboard.gateway.lobby import Lobby
from pegboard.gateway.refusals import too_large
from pegboard.gateway.session import Session
from pegboard.types import Caller
from pegboard.wire.admission import Admission, Turned
from pegboard.wire.http_server import check_headers, status_of
from pegboard.wire.messages import (
    INVALID_REQUEST,
    NotJsonRpc,
    Request,
    RpcError,
    encode_error,
    object_or_nothing,
    parse,
)
from pegboard.wire.versions import Era

MAX_BODY = 4 * 1024 * 1024
BODY_SECONDS = 30.0
"""How long a client may take to send its request."""
DRAINED = 8
"""Up to this many times the limit is read, in order to say that it was too much."""
NO_STORE: Header = (b"cache-control", b"no-store")


class Ask(msgspec.Struct, frozen=True):
    """One HTTP request that was admitted."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    identity: str

    def header(self, name: str) -> str:
        """A header's value; empty when it is not there."""
        return next((value for key, value in self.headers if key == name), "")


class HttpGateway:
    """The application. `allow` and `conversation` hold for all callers, as the command line said."""

    def __init__(
        self,
        lobby: Lobby,
        admission: Admission,
        *,
        allow: tuple[str, ...] | None = None,
        conversation: str = "",
        max_body: int = MAX_BODY,
        sessions: HttpSessions | None = None,
    ) -> None:
        self._lobby = lobby
        self._admission = admission
        self._allow = allow
        self._conversation = conversation
        self._max_body = max_body
        self._sessions = sessions or HttpSessions(asyncio.get_running_loop().time)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"])
        identity = self._admission.admit(headers)
        if isinstance(identity, Turned):
            extra = [(b"www-authenticate", b"Bearer")] if identity.status == 401 else []
            await respond(send, identity.status, _words(identity.words), extra)
            return
        await self._route(Ask(scope["method"], scope["path"].rstrip("/"), headers, identity), receive, send)

    async def _route(self, ask: Ask, receive: Receive, send: Send) -> None:
        if ask.path == "/healthz" and ask.method in ("GET", "HEAD"):
            body = msgspec.json.encode({"status": "ok", "sessions": len(self._sessions)})
            await respond(send, 200, b"" if ask.method == "HEAD" else body, [NO_STORE])
        elif ask.path != "/mcp":
            await respond(send, 404, _words("MCP is spoken at /mcp"))
        elif ask.method == "POST":
            await self._post(ask, receive, send)
        elif ask.method in ("GET", "DELETE"):
            await self._of_session(ask, receive, send)
        else:
            await respond(send, 405, b"", [(b"allow", b"GET, POST, DELETE")])

    # ── POST: messages from the client ───────────────────────────────────────────────────────────────────────────

    async def _post(self, ask: Ask, receive: Receive, send: Send) -> None:
        body = await self._body(ask, receive)
        if isinstance(body, Turned):
            error = RpcError(INVALID_REQUEST, body.words)
            await respond(send, body.status, encode_error(None, error))
            return
        held = self._session_of(ask)
        if isinstance(held, Turned):
            await respond(send, held.status, encode_error(None, RpcError(INVALID_REQUEST, held.words)))
            return
        request = _single_request(body)
        if request is not None and (wrong := self._header_error(ask, body, request)) is not None:
            await respond(send, status_of(wrong, Era.STATELESS), encode_error(request.id, wrong))
            return
        exchange = Exchange(streams=_takes_events(ask.header("accept")))
        async with _hearing(receive, exchange) as gone:
            await self._answer(ask, body, held, exchange, gone, send)

    async def _answer(
        self, ask: Ask, body: bytes, held: Session | None, exchange: Exchange, gone: asyncio.Task[None], send: Send
    ) -> None:
        session = held or self._lobby.open()
        gone.add_done_callback(lambda _: session.hung_up(exchange))
        try:
            expected = session.receive(body, exchange, self._origin(ask))
            extra: list[Header] = []
            if held is None and session.handshake is not None:
                extra.append((b"mcp-session-id", (await self._keep(session, ask.identity)).encode()))
            if expected:
                await exchange.respond(send, expected, extra)
            else:
                await respond(send, 202, b"", extra)
        finally:
            if held is None and session.handshake is None:
                await self._lobby.leave(session)

    async def _keep(self, session: Session, identity: str) -> str:
        name = self._sessions.add(session, identity)
        for idle in self._sessions.overdue():
            await self._lobby.leave(idle)
        return name

    def _origin(self, ask: Ask) -> Origin:
        return Origin(
            identity=ask.identity,
            conversation=ask.header(HEADER_CONVERSATION) or self._conversation,
            allow=self._allow,
        )

    def _session_of(self, ask: Ask) -> Session | Turned | None:
        name = ask.header("mcp-session-id")
        if not name:
            return None
        return self._sessions.get(name, ask.identity) or Turned(404, "This session is over; initialize anew")

    def _header_error(self, ask: Ask, body: bytes, request: Request) -> RpcError | None:
        schema = None
        if request.method == "tools/call":
            name = object_or_nothing(request.params).get("name")
            viewer = Caller(identity=ask.identity, allow=self._allow)
            known = self._lobby.desk.definition(name, viewer) if isinstance(name, str) else None
            schema = known.get("inputSchema") if known is not None else None
        return check_headers(ask.headers, body, schema=schema)

    async def _body(self, ask: Ask, receive: Receive) -> bytes | Turned:
        kind = ask.header("content-type").partition(";")[0].strip().lower()
        if kind != "application/json" or ask.header("content-encoding") not in ("", "identity"):
            return Turned(415, "The body must be application/json, and not compressed")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await _read_body(receive, self._max_body)
        except TimeoutError:
            return Turned(408, f"The body did not arrive within {BODY_SECONDS:g} s")

    # ── GET and DELETE: a session of the handshake era ───────────────────────────────────────────────────────────

    async def _of_session(self, ask: Ask, receive: Receive, send: Send) -> None:
        if not ask.header("mcp-session-id"):
            await respond(send, 405, b"", [(b"allow", b"POST")])
            return
        session = self._session_of(ask)
        if not isinstance(session, Session):
            await respond(send, 404, _words("This session is over; initialize anew"))
        elif ask.method == "DELETE":
            self._sessions.remove(ask.header("mcp-session-id"), ask.identity)
            session.close_streams()
            await self._lobby.leave(session)
            await respond(send, 200)
        elif not _takes_events(ask.header("accept")):
            await respond(send, 406, _words("This stream is text/event-stream"))
        else:
            await receive()  # the empty body comes first: only what follows it is a client that hangs up
            exchange = Exchange(streams=True)
            async with _hearing(receive, exchange) as gone:
                gone.add_done_callback(lambda _: session.hung_up(exchange))
                session.attach(exchange)
                await exchange.stream(send)


@contextlib.asynccontextmanager
async def _hearing(receive: Receive, exchange: Exchange) -> AsyncIterator[asyncio.Task[None]]:
    """Listens for the client hanging up, as long as a response is being made."""

    async def listen() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    gone = asyncio.ensure_future(listen())
    gone.add_done_callback(lambda _: exchange.hung_up())
    try:
        yield gone
    finally:
        gone.cancel()
        await asyncio.wait({gone})


async def _read_body(receive: Receive, limit: int) -> bytes | Turned:
    body, size, more = bytearray(), 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return Turned(400, "The body was cut short")
        part = message.get("body", b"")
        size += len(part)
        if size <= limit:
            body += part
        elif size > limit * DRAINED:
            break
        more = message.get("more_body", False)
    # What is over the limit is read on for a while, and dropped: who is cut off in mid-sentence never hears why.
    return bytes(body) if size <= limit else Turned(413, too_large(size, limit).message)


def _single_request(body: bytes) -> Request | None:
    try:
        messages = parse(body)
    except NotJsonRpc:
        return None
    return messages[0] if len(messages) == 1 and isinstance(messages[0], Request) else None


def _takes_events(accept: str) -> bool:
    kinds = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return not accept or bool(kinds & {"text/event-stream", "text/*", "*/*"})


def _words(text: str) -> bytes:
    return msgspec.json.encode({"error": text})
