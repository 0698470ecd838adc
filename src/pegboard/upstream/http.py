"""A server on streamable HTTP: every request is a POST, its answer a JSON body or a stream of events.

Both eras: sessions, the standalone GET stream and resumption up to 2025-11-25; mirrored headers and no session in
2026-07-28. Every body has a byte budget, and a redirect never leaves the origin.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx2

from pegboard.config.model import ServerSpec
from pegboard.errors import ConnectionLost, LimitExceeded, ProtocolViolation, ServerError
from pegboard.upstream.link import Inbox, Outgoing, SessionExpired
from pegboard.upstream.responses import (
    body_of,
    content_type,
    describe_network_error,
    rpc_error_of,
    same_origin_target,
    status_error,
)
from pegboard.wire.http import ACCEPT, request_headers
from pegboard.wire.messages import encode_error
from pegboard.wire.sse import EventTooLarge, SseDecoder, SseEvent
from pegboard.wire.versions import Era, era_of

CONNECT_SECONDS = 10.0
MAX_REDIRECTS = 3
MAX_RESUMES = 5
LONGEST_RETRY_MS = 30_000
RELISTEN_SECONDS = 1.0
SESSION = "Mcp-Session-Id"


class HttpLink:
    """Streamable HTTP as a client."""

    def __init__(self, spec: ServerSpec, max_bytes: int, auth: httpx2.Auth | None = None) -> None:
        self._name = spec.name
        self._url = spec.config.url or ""
        self._headers = dict(spec.config.headers)
        self._max_bytes = max_bytes
        self._auth = auth
        self._client: httpx2.AsyncClient | None = None
        self._inbox: Inbox | None = None
        self._version = ""
        self._session = ""
        self._posts: dict[int, asyncio.Task[None]] = {}
        self._listener: asyncio.Task[None] | None = None

    async def open(self, inbox: Inbox) -> None:
        """Makes the client; nothing is sent before the first request."""
        self._inbox = inbox
        self._client = new_client(self._headers, self._auth)

    async def send(self, message: Outgoing) -> None:
        """Posts a message. A request is answered through the inbox; anything else is awaited here."""
        if message.id is None:
            await self._post(message)
            return
        task = asyncio.ensure_future(self._post(message))
        self._posts[message.id] = task
        task.add_done_callback(lambda _: self._posts.pop(message.id or 0, None))

    def agreed(self, version: str) -> None:
        """Where sessions exist, listens for what the server sends on its own."""
        self._version = version
        if era_of(version) is Era.HANDSHAKE:
            self._listener = asyncio.ensure_future(self._listen())

    def abandon(self, request_id: int) -> bool:
        """Closing a request's stream is how the stateless era cancels it; older servers are told in words too."""
        task = self._posts.get(request_id)
        if task is not None:
            task.cancel()
        return era_of(self._version) is not Era.HANDSHAKE

    async def close(self) -> None:
        """Ends the session and everything under way."""
        tasks = [*self._posts.values(), *([self._listener] if self._listener else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._client is None:
            return
        if self._session:
            with contextlib.suppress(httpx2.HTTPError, TimeoutError):
                async with asyncio.timeout(2):
                    await self._client.delete(self._url, headers=self._common())
        await self._client.aclose()
        self._client = None

    @property
    def last_words(self) -> str:
        """There is no stderr."""
        return ""

    @property
    def ended_cleanly(self) -> bool:
        """A server across the network does not end; it is lost."""
        return False

    def _common(self) -> dict[str, str]:
        headers = {"MCP-Protocol-Version": self._version} if self._version else {}
        return {**headers, SESSION: self._session} if self._session else headers

    # ── one POST ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _post(self, message: Outgoing) -> None:
        assert self._inbox is not None
        try:
            await self._exchange(message)
        except httpx2.ConnectError as error:
            failure = ConnectionLost(self._name, describe_network_error(error, self._url))
            self._fail(message, failure)
            self._inbox.closed(failure)
        except httpx2.HTTPError as error:
            self._fail(message, ConnectionLost(self._name, describe_network_error(error, self._url)))
        except ServerError as error:
            self._fail(message, error)
            if isinstance(error, SessionExpired):
                self._inbox.closed(error)

    def _fail(self, message: Outgoing, error: ServerError) -> None:
        if message.id is None:
            raise error
        assert self._inbox is not None
        self._inbox.failed(message.id, error)

    async def _exchange(self, message: Outgoing) -> None:
        headers = request_headers(message.version, message.method, message.params, message.mirrored)
        if message.method == "initialize":
            headers.pop("MCP-Protocol-Version")
        if self._session:
            headers[SESSION] = self._session
        headers |= {"Content-Type": "application/json", "Accept": ACCEPT}
        async with self._following(message.data, headers) as response:
            self._session = response.headers.get(SESSION, self._session)[:1024]
            if message.id is not None:
                await self._take(response, message.id)
            elif response.status_code >= 400:
                raise status_error(self._name, response)

    @contextlib.asynccontextmanager
    async def _following(self, data: bytes, headers: dict[str, str]) -> AsyncIterator[httpx2.Response]:
        """A POST that follows redirects of its own origin only, and only those that keep the method."""
        assert self._client is not None
        url = httpx2.URL(self._url)
        for _ in range(MAX_REDIRECTS + 1):
            async with self._client.stream("POST", url, content=data, headers=headers) as response:
                if response.status_code not in (301, 302, 303, 307, 308):
                    yield response
                    return
                url = same_origin_target(self._name, url, response)
        raise ProtocolViolation(self._name, f"it redirects more than {MAX_REDIRECTS} times")

    async def _take(self, response: httpx2.Response, request_id: int) -> None:
        assert self._inbox is not None
        if response.status_code == 404 and self._session:
            raise SessionExpired(self._name, "its session expired")
        kind = content_type(response)
        if response.status_code >= 400:
            error = await rpc_error_of(response) if response.status_code not in (401, 403) else None
            if error is None:
                raise status_error(self._name, response)
            # The body may lack the id; the request it answers is known all the same.
            self._inbox.message(encode_error(request_id, error), request_id)
        elif kind == "application/json":
            self._inbox.message(await body_of(self._name, response, self._max_bytes), request_id)
            self._inbox.failed(request_id, ProtocolViolation(self._name, "its body does not answer the request"))
        elif kind == "text/event-stream":
            await self._stream(response, request_id)
        else:
            shown = kind or "nothing"
            raise ProtocolViolation(
                self._name,
                f"it answered with {shown} (HTTP {response.status_code}) instead of JSON or events",
                hint=f"Is {self._url} the address of its MCP endpoint?",
            )

    # ── event streams ────────────────────────────────────────────────────────────────────────────────────────────

    async def _stream(self, response: httpx2.Response, request_id: int) -> None:
        """Reads events until the answer came; where the server numbered them, a cut stream is resumed."""
        assert self._inbox is not None
        last = await self._events(response, request_id)
        for _ in range(MAX_RESUMES):
            if not last or last.id is None or era_of(self._version) is not Era.HANDSHAKE:
                break
            await asyncio.sleep(min(last.retry_ms or 1000, LONGEST_RETRY_MS) / 1000)
            last = await self._get(last, request_id)
        self._inbox.failed(request_id, ConnectionLost(self._name, "the stream ended before the answer came"))

    async def _events(self, response: httpx2.Response, request_id: int | None) -> SseEvent | None:
        assert self._inbox is not None
        decoder = SseDecoder(self._max_bytes)
        retry: int | None = None
        try:
            async for chunk in response.aiter_raw():
                for event in decoder.feed(chunk):
                    retry = event.retry_ms if event.retry_ms is not None else retry
                    if event.data and event.event == "message":
                        self._inbox.message(event.data, request_id)
        except EventTooLarge:
            raise LimitExceeded(
                self._name,
                f"it sent an event of more than {self._max_bytes:,} bytes",
                hint=f"If that is wanted, raise `max_result_bytes` of servers.{self._name}.",
            ) from None
        except httpx2.HTTPError:
            if decoder.last_id is None:
                raise
        return SseEvent(b"", id=decoder.last_id, retry_ms=retry)

    async def _get(self, last: SseEvent | None, request_id: int | None) -> SseEvent | None:
        """A GET stream: the standalone one, or one that resumes after `last`."""
        assert self._client is not None
        headers = {**self._common(), "Accept": "text/event-stream"}
        if last is not None and last.id is not None:
            headers["Last-Event-ID"] = last.id
        async with self._client.stream("GET", self._url, headers=headers) as response:
            if response.status_code != 200 or content_type(response) != "text/event-stream":
                return None
            return await self._events(response, request_id)

    async def _listen(self) -> None:
        last: SseEvent | None = None
        for _ in range(MAX_RESUMES):
            try:
                last = await self._get(last, None)
            except (httpx2.HTTPError, ServerError):
                last = None
            if last is None:
                return
            await asyncio.sleep(min(last.retry_ms or RELISTEN_SECONDS * 1000, LONGEST_RETRY_MS) / 1000)


def new_client(headers: dict[str, str], auth: httpx2.Auth | None) -> httpx2.AsyncClient:
    """A client that asks for plain bodies: what is not compressed cannot be a decompression bomb."""
    return httpx2.AsyncClient(
        headers={**headers, "Accept-Encoding": "identity"},
        auth=auth,
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        follow_redirects=False,
    )
