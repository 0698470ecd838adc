"""HTTP without a network: a request goes to a function, and its answer comes back piece by piece.

Above: `FakeLLM`. Below: `httpx2`, which both SDKs talk through.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import httpx2

from pegboard.testing.llm.exchange import Answer

Answering = Callable[[str, Mapping[str, str], bytes], Answer | tuple[int, str, list[bytes]]]
"""Takes path (with what comes after a question mark), headers and body; three parts are enough of an answer."""


class InProcess(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """For clients that are async and those that are not."""

    def __init__(self, answer: Answering) -> None:
        self._answer = answer

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """One request."""
        return self._response(request, request.read())

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """One request."""
        return self._response(request, await request.aread())

    def _response(self, request: httpx2.Request, raw: bytes) -> httpx2.Response:
        made = self._answer(request.url.raw_path.decode(), request.headers, raw)
        answer = made if isinstance(made, Answer) else Answer(*made)
        headers = {"content-type": answer.kind, **answer.headers}
        return httpx2.Response(answer.status, headers=headers, stream=_Pieces(answer), request=request)


class _Pieces(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A body that comes in pieces, and may break off as one from a socket does."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.pieces
        if self._answer.is_cut:
            raise httpx2.RemoteProtocolError("peer closed connection without sending complete message body")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for each in self:
            yield each
