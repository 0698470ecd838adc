"""HTTP without a network: a request goes to a function, and its answer comes back piece by piece.

Above: `FakeLLM`. Below: `httpx2`, which both SDKs talk through.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import httpx2

Answer = Callable[[str, Mapping[str, str], bytes], tuple[int, str, list[bytes]]]


class InProcess(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """For clients that are async and those that are not."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """One request."""
        return self._response(request, request.read())

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """One request."""
        return self._response(request, await request.aread())

    def _response(self, request: httpx2.Request, raw: bytes) -> httpx2.Response:
        status, kind, body = self._answer(request.url.path, request.headers, raw)
        return httpx2.Response(status, headers={"content-type": kind}, stream=_Pieces(body), request=request)


class _Pieces(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A body that comes in pieces."""

    def __init__(self, body: list[bytes]) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield from self._body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for each in self._body:
            yield each
