"""A server on the legacy HTTP+SSE transport (2024-11-05): one event stream down, a POST for every message up."""

from __future__ import annotations

import asyncio

import httpx2

from pegboard.config.model import ServerSpec
from pegboard.errors import ConnectionLost, LimitExceeded, ProtocolViolation, ServerError
from pegboard.upstream.http import new_client
from pegboard.upstream.link import Inbox, Outgoing
from pegboard.upstream.responses import content_type, describe_network_error, status_error
from pegboard.wire.sse import EventTooLarge, SseDecoder, SseEvent


class SseLink:
    """HTTP+SSE as a client. The server names the address for posts; it must be of the same origin."""

    def __init__(self, spec: ServerSpec, max_bytes: int, auth: httpx2.Auth | None = None) -> None:
        self._name = spec.name
        self._url = httpx2.URL(spec.config.url or "")
        self._headers = dict(spec.config.headers)
        self._max_bytes = max_bytes
        self._auth = auth
        self._client: httpx2.AsyncClient | None = None
        self._inbox: Inbox | None = None
        self._reader: asyncio.Task[None] | None = None
        self._endpoint: asyncio.Future[httpx2.URL] | None = None
        self._closing = False

    async def open(self, inbox: Inbox) -> None:
        """Opens the stream and waits for the address to post to."""
        self._inbox = inbox
        self._client = new_client(self._headers, self._auth)
        self._endpoint = asyncio.get_running_loop().create_future()
        self._reader = asyncio.ensure_future(self._read())
        await asyncio.shield(self._endpoint)

    async def _read(self) -> None:
        error: ServerError = ConnectionLost(self._name, "its event stream ended")
        try:
            await self._stream()
        except httpx2.HTTPError as failure:
            error = ConnectionLost(self._name, describe_network_error(failure, str(self._url)))
        except EventTooLarge:
            error = LimitExceeded(self._name, f"it sent an event of more than {self._max_bytes:,} bytes")
        except ServerError as failure:
            error = failure
        assert self._endpoint is not None
        assert self._inbox is not None
        if not self._endpoint.done():
            self._endpoint.set_exception(error)
        if not self._closing:
            self._inbox.closed(error)

    async def _stream(self) -> None:
        assert self._client is not None
        async with self._client.stream("GET", self._url, headers={"Accept": "text/event-stream"}) as response:
            if response.status_code >= 300:
                raise status_error(self._name, response)
            if content_type(response) != "text/event-stream":
                raise ProtocolViolation(self._name, f"it answered with {content_type(response)} instead of events")
            decoder = SseDecoder(self._max_bytes)
            async for chunk in response.aiter_raw():
                for event in decoder.feed(chunk):
                    self._take(event)

    def _take(self, event: SseEvent) -> None:
        assert self._endpoint is not None
        assert self._inbox is not None
        if event.event != "endpoint":
            self._inbox.message(event.data)
            return
        target = self._url.join(event.data.decode("utf-8", "replace"))
        if (target.scheme, target.host, target.port) != (self._url.scheme, self._url.host, self._url.port):
            raise ProtocolViolation(self._name, f"it wants messages sent to another origin, {target.host}")
        if not self._endpoint.done():
            self._endpoint.set_result(target)

    async def send(self, message: Outgoing) -> None:
        """Posts one message; its answer arrives on the stream."""
        assert self._client is not None
        assert self._endpoint is not None
        try:
            response = await self._client.post(
                await self._endpoint, content=message.data, headers={"Content-Type": "application/json"}
            )
        except httpx2.HTTPError as error:
            raise ConnectionLost(self._name, describe_network_error(error, str(self._url))) from None
        if response.status_code >= 300:
            raise status_error(self._name, response)

    def agreed(self, version: str) -> None:
        """The stream is open already."""

    def abandon(self, request_id: int) -> bool:
        """A notification has to say so."""
        return False

    async def close(self) -> None:
        """Closes the stream."""
        self._closing = True
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        if self._endpoint is not None and self._endpoint.done() and not self._endpoint.cancelled():
            self._endpoint.exception()  # seen: it was raised by open, or never will be
        if self._client is not None:
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
