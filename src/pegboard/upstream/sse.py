"""A server on the legacy HTTP+SSE transport (2024-11-05): one event stream down, a POST for every message up."""

from __future__ import annotations

import asyncio

import httpx2

from pegboard.config.model import ServerSpec
from pegboard.errors import ConnectionLost, ProtocolViolation, ServerError
from pegboard.upstream.events import Cursor, read_events
from pegboard.upstream.http_client import HttpClient, network_error, same_origin, shown
from pegboard.upstream.link import Inbox, Outgoing, SessionExpired, ends_connection
from pegboard.upstream.responses import content_type, drain, status_error
from pegboard.wire.sse import SseEvent

TELL_SECONDS = 30.0


class SseLink:
    """HTTP+SSE as a client. The server names the address for posts; it must be of the same origin."""

    def __init__(self, spec: ServerSpec, max_bytes: int, auth: httpx2.Auth | None = None) -> None:
        self._name = spec.name
        self._url = spec.config.url or ""
        self._headers = spec.config.headers
        self._max_bytes = max_bytes
        self._auth = auth
        self._web: HttpClient | None = None
        self._inbox: Inbox | None = None
        self._reader: asyncio.Task[None] | None = None
        self._posts: dict[int, asyncio.Task[None]] = {}
        self._endpoint: asyncio.Future[httpx2.URL] | None = None
        self._closing = False

    async def open(self, inbox: Inbox) -> None:
        """Opens the stream and waits for the address to post to."""
        self._inbox = inbox
        self._web = HttpClient(self._name, self._url, self._headers, self._auth)
        self._endpoint = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read(self._web, self._endpoint))
        await asyncio.shield(self._endpoint)

    # ── the stream ───────────────────────────────────────────────────────────────────────────────────────────────

    async def _read(self, web: HttpClient, endpoint: asyncio.Future[httpx2.URL]) -> None:
        error: ServerError = ConnectionLost(self._name, "its event stream ended")
        try:
            await self._stream(web, endpoint)
        except httpx2.HTTPError as failure:
            error = network_error(self._name, self._url, failure)
        except ServerError as failure:
            error = failure
        assert self._inbox is not None
        if not endpoint.done():
            endpoint.set_exception(error)
        if not self._closing:
            self._inbox.closed(error)

    async def _stream(self, web: HttpClient, endpoint: asyncio.Future[httpx2.URL]) -> None:
        async with web.stream("GET", {"Accept": "text/event-stream"}) as response:
            if response.status_code >= 300:
                raise status_error(self._name, response)
            kind = content_type(response)
            if kind != "text/event-stream":
                raise ProtocolViolation(self._name, f"it answered with {kind[:100] or 'nothing'} instead of events")

            def take(event: SseEvent) -> bool:
                self._take(event, web.url, endpoint)
                return False

            await read_events(self._name, response, self._max_bytes, Cursor(), take)

    def _take(self, event: SseEvent, url: httpx2.URL, endpoint: asyncio.Future[httpx2.URL]) -> None:
        assert self._inbox is not None
        if event.event == "message" and event.data:
            self._inbox.message(event.data)
        elif event.event == "endpoint" and not endpoint.done():
            endpoint.set_result(self._address(event.data, url))

    def _address(self, data: bytes, url: httpx2.URL) -> httpx2.URL:
        try:
            target = url.join(data.decode("utf-8", "replace").strip())
        except httpx2.InvalidURL:
            raise ProtocolViolation(self._name, "it wants messages sent to something that is no address") from None
        if not same_origin(url, target):
            raise ProtocolViolation(self._name, f"it wants messages sent to another origin, {shown(target)}")
        return target

    # ── posts ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def send(self, message: Outgoing) -> None:
        """Posts one message; its answer arrives on the stream, maybe before the POST is answered."""
        if message.id is None:
            await self._tell(message)
            return
        identity = message.id
        self._posts[identity] = asyncio.create_task(self._ask(message, identity))
        self._posts[identity].add_done_callback(lambda _: self._posts.pop(identity, None))

    async def _ask(self, message: Outgoing, request_id: int) -> None:
        assert self._inbox is not None
        try:
            await self._post(message)
        except ServerError as error:
            self._inbox.failed(request_id, error)
            if ends_connection(error):
                self._inbox.retired(error)

    async def _tell(self, message: Outgoing) -> None:
        try:
            async with asyncio.timeout(TELL_SECONDS):
                await self._post(message)
        except TimeoutError:
            raise ConnectionLost(self._name, f"it did not take a message within {TELL_SECONDS:g} s") from None

    async def _post(self, message: Outgoing) -> None:
        if self._web is None or self._endpoint is None:
            raise ConnectionLost(self._name, "the connection was closed")
        headers = {"Content-Type": "application/json"}
        target = await asyncio.shield(self._endpoint)
        try:
            async with self._web.stream("POST", headers, message.data, url=target) as response:
                if response.status_code == 404:
                    raise SessionExpired(self._name, "it no longer knows our session")
                if response.status_code >= 300:
                    raise status_error(self._name, response)
                await drain(response.aiter_raw())
        except httpx2.HTTPError as error:
            raise network_error(self._name, self._url, error) from None

    def agreed(self, version: str) -> None:
        """The stream is open already."""

    def abandon(self, request_id: int) -> bool:
        """A notification has to say so."""
        task = self._posts.get(request_id)
        if task is not None:
            task.cancel()
        return False

    async def close(self) -> None:
        """Closes the stream."""
        self._closing = True
        web, self._web = self._web, None
        tasks = [*self._posts.values(), *([self._reader] if self._reader else [])]
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            if self._endpoint is not None and self._endpoint.done() and not self._endpoint.cancelled():
                self._endpoint.exception()  # seen: it was raised by open, or never will be
            if web is not None:
                await web.close()

    @property
    def last_words(self) -> str:
        """There is no stderr."""
        return ""

    @property
    def ended_cleanly(self) -> bool:
        """A server across the network does not end; it is lost."""
        return False
