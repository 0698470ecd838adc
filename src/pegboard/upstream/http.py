"""A server on streamable HTTP: every request is a POST, its answer a JSON body or a stream of events.

Both eras: sessions, the standalone GET stream and resumption up to 2025-11-25; mirrored headers and no session in
2026-07-28. Every body has a byte budget, and a redirect never leaves the origin. One request's failure is its own:
only a server that cannot be reached, forgot the session or turned our credentials down retires the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx2

from pegboard.config.model import ServerSpec
from pegboard.errors import ConnectionLost, ProtocolViolation, ServerError
from pegboard.upstream.events import Cursor, read_events
from pegboard.upstream.http_client import HttpClient, network_error
from pegboard.upstream.link import Inbox, Outgoing, SessionExpired, ends_connection
from pegboard.upstream.responses import body_of, content_type, drain, refusal_in, rpc_error_of, status_error
from pegboard.wire.http import ACCEPT, PLAIN, request_headers
from pegboard.wire.messages import encode_error
from pegboard.wire.sse import SseEvent
from pegboard.wire.versions import Era, era_of

TELL_SECONDS = 30.0
GOODBYE_SECONDS = 2.0
MAX_FAILURES = 5
LASTING_SECONDS = 10.0
SESSION = "Mcp-Session-Id"
PLAIN_STATUSES = (401, 403, 429, 503)
"""These say it all; the body would only be somebody's web page."""


class HttpLink:
    """Streamable HTTP as a client."""

    def __init__(self, spec: ServerSpec, max_bytes: int, auth: httpx2.Auth | None = None) -> None:
        self._name = spec.name
        self._url = spec.config.url or ""
        self._config_headers = spec.config.headers
        self._max_bytes = max_bytes
        self._auth = auth
        self._web: HttpClient | None = None
        self._inbox: Inbox | None = None
        self._version = ""
        self._session = ""
        self._is_expired = False
        self._posts: dict[int, asyncio.Task[None]] = {}
        self._listener: asyncio.Task[None] | None = None

    async def open(self, inbox: Inbox) -> None:
        """Makes the client; nothing is sent before the first request."""
        self._inbox = inbox
        self._web = HttpClient(self._name, self._url, self._config_headers, self._auth)

    async def send(self, message: Outgoing) -> None:
        """Posts a message. A request is answered through the inbox; anything else is awaited here."""
        if message.id is None:
            await self._tell(message)
            return
        identity = message.id
        self._posts[identity] = asyncio.create_task(self._ask(message, identity))
        self._posts[identity].add_done_callback(lambda _: self._posts.pop(identity, None))

    def agreed(self, version: str) -> None:
        """Where sessions exist, listens for what the server sends on its own."""
        self._version = version
        if era_of(version) is Era.HANDSHAKE:
            self._listener = asyncio.create_task(self._listen())

    def abandon(self, request_id: int) -> bool:
        """Closing a request's stream is how the stateless era cancels it; older servers are told in words too."""
        task = self._posts.get(request_id)
        if task is not None:
            task.cancel()
        return era_of(self._version) is not Era.HANDSHAKE

    async def close(self) -> None:
        """Ends the session and everything under way."""
        web, self._web = self._web, None
        tasks = [*self._posts.values(), *([self._listener] if self._listener else [])]
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
            if web is not None and self._session and not self._is_expired:
                await self._end_session(web)
        finally:
            if web is not None:
                await web.close()

    async def _end_session(self, web: HttpClient) -> None:
        with contextlib.suppress(httpx2.HTTPError, ServerError, TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS), web.stream("DELETE", self._headers()):
                pass

    @property
    def last_words(self) -> str:
        """There is no stderr."""
        return ""

    @property
    def ended_cleanly(self) -> bool:
        """A server across the network does not end; it is lost."""
        return False

    def _client(self) -> HttpClient:
        if self._web is None:
            raise ConnectionLost(self._name, "the connection was closed")
        return self._web

    def _headers(self) -> dict[str, str]:
        headers = {"MCP-Protocol-Version": self._version} if self._version else {}
        return {**headers, SESSION: self._session} if self._session else headers

    # ── one POST ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _tell(self, message: Outgoing) -> None:
        """A notification, or our answer to a question: the server only has to take it."""
        try:
            async with asyncio.timeout(TELL_SECONDS), self._post(message) as response:
                if response.status_code >= 400:
                    raise status_error(self._name, response)
                await drain(response.aiter_raw())
        except TimeoutError:
            raise ConnectionLost(self._name, f"it did not take a message within {TELL_SECONDS:g} s") from None
        except httpx2.HTTPError as error:
            raise network_error(self._name, self._url, error) from None

    async def _ask(self, message: Outgoing, request_id: int) -> None:
        """A request, from the POST to its answer, whatever becomes of it."""
        try:
            async with self._post(message) as response:
                await self._take(response, message, request_id)
        except ServerError as error:
            self._fail(request_id, error)
        except httpx2.HTTPError as error:
            self._fail(request_id, network_error(self._name, self._url, error))
        except Exception as error:  # noqa: BLE001  nobody awaits this task: the caller must hear of it here
            cause = f"its answer could not be handled ({type(error).__name__})"
            self._fail(request_id, ProtocolViolation(self._name, cause))

    def _fail(self, request_id: int, error: ServerError) -> None:
        assert self._inbox is not None
        self._is_expired |= isinstance(error, SessionExpired)
        self._inbox.failed(request_id, error)
        if ends_connection(error):
            self._inbox.retired(error)

    @contextlib.asynccontextmanager
    async def _post(self, message: Outgoing) -> AsyncIterator[httpx2.Response]:
        headers = request_headers(message.version, message.method, message.params, message.mirrored)
        is_first = message.method == "initialize"
        if is_first or not message.version:
            headers.pop("MCP-Protocol-Version")
        if self._session and not is_first:
            headers[SESSION] = self._session
        headers |= {"Content-Type": "application/json", "Accept": ACCEPT}
        async with self._client().stream("POST", headers, message.data) as response:
            if is_first and response.status_code < 300:
                # Sessions begin here and nowhere else, whatever later answers say.
                self._session = self._checked_session(response.headers.get(SESSION, ""))
            yield response

    def _checked_session(self, session: str) -> str:
        if session and not PLAIN.fullmatch(session):
            raise ProtocolViolation(self._name, "its session id has characters that a header cannot carry")
        return session

    async def _take(self, response: httpx2.Response, message: Outgoing, request_id: int) -> None:
        kind = content_type(response)
        if response.status_code >= 400:
            await self._take_refusal(response, request_id)
        elif kind == "application/json":
            body = await body_of(self._name, response, self._max_bytes)
            if not body.strip():
                raise ProtocolViolation(self._name, f"its answer is empty (HTTP {response.status_code})")
            self._take_body(body, request_id)
        elif kind == "text/event-stream":
            await self._take_stream(response, request_id, resumable=era_of(message.version) is Era.HANDSHAKE)
        else:
            cause = f"it answered with {kind[:100] or 'nothing'} (HTTP {response.status_code}) instead of MCP"
            raise ProtocolViolation(self._name, cause, hint=f"Is the `url` of servers.{self._name} its MCP endpoint?")

    async def _take_refusal(self, response: httpx2.Response, request_id: int) -> None:
        assert self._inbox is not None
        if response.status_code == 404 and SESSION in response.request.headers:
            raise SessionExpired(self._name, "it no longer knows our session")
        error = None if response.status_code in PLAIN_STATUSES else await rpc_error_of(response)
        if error is None:
            raise status_error(self._name, response)
        # The body may lack the id; the request it answers is known all the same.
        self._inbox.message(encode_error(request_id, error), request_id)

    def _take_body(self, body: bytes, request_id: int) -> None:
        assert self._inbox is not None
        self._inbox.message(body, request_id)
        error = refusal_in(body) if self._inbox.awaits(request_id) else None
        if error is not None:
            self._inbox.message(encode_error(request_id, error), request_id)
        if self._inbox.awaits(request_id):
            raise ProtocolViolation(self._name, "its answer does not belong to the request")

    # ── event streams ────────────────────────────────────────────────────────────────────────────────────────────

    async def _take_stream(self, response: httpx2.Response, request_id: int, *, resumable: bool) -> None:
        """Reads events until the answer came; where the server numbered them, a cut stream is resumed."""
        assert self._inbox is not None
        cursor = Cursor()
        try:
            await self._read(response, request_id, cursor)
        except httpx2.HTTPError:
            if not resumable or cursor.last_id is None:
                raise
        failures = 0
        while self._inbox.awaits(request_id):
            if not resumable or cursor.last_id is None:
                raise ConnectionLost(self._name, "the stream ended before the answer came")
            await asyncio.sleep(cursor.pause(failures))
            try:
                if not await self._get(request_id, cursor):
                    raise ConnectionLost(self._name, "the stream ended before the answer came, and is not resumed")
                failures = 0
            except httpx2.HTTPError:
                failures += 1
                if failures >= MAX_FAILURES:
                    raise

    async def _read(self, response: httpx2.Response, request_id: int | None, cursor: Cursor) -> None:
        inbox = self._inbox
        assert inbox is not None

        def take(event: SseEvent) -> bool:
            if event.data and event.event == "message":
                inbox.message(event.data, request_id)
            return request_id is not None and not inbox.awaits(request_id)

        await read_events(self._name, response, self._max_bytes, cursor, take)

    async def _get(self, request_id: int | None, cursor: Cursor) -> bool:
        """A GET stream: the standalone one, or one that resumes. False when the server offers none."""
        headers = {**self._headers(), "Accept": "text/event-stream"}
        if cursor.last_id is not None:
            headers["Last-Event-ID"] = cursor.last_id
        async with self._client().stream("GET", headers) as response:
            if response.status_code != 200 or content_type(response) != "text/event-stream":
                return False
            await self._read(response, request_id, cursor)
            return True

    async def _listen(self) -> None:
        """Keeps the standalone stream open while the connection lasts; a server without one is left alone."""
        cursor, failures = Cursor(), 0
        clock = asyncio.get_running_loop().time
        while True:
            began, seen = clock(), cursor.last_id
            try:
                if not await self._get(None, cursor):
                    return
            except httpx2.HTTPError:
                pass
            except ServerError:
                return
            lasted = clock() - began >= LASTING_SECONDS or cursor.last_id != seen
            failures = 0 if lasted else failures + 1
            await asyncio.sleep(cursor.pause(min(failures, MAX_FAILURES)))
