"""The client's side of one request: its body as it comes, its answer as it goes, and whether it is still there.

One task listens for the client hanging up from the moment that anybody waits for an upstream until the answer is
finished, and ends the work at once. Below: ASGI. Above: `passage`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from typing import Any, Protocol

from pegboard.proxy.headers import Header, body_length

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LINE = "pegboard.line"
"""Where the server puts the connection into a request's state."""
MOST_HELD = 256 * 1024
"""Of an upload that is faster than its upstream."""
LOOK_SECONDS = 0.02


class Line(Protocol):
    """The connection under a request, for what HTTP cannot say."""

    def is_gone(self) -> bool:
        """Whether the client hung up, although nobody reads what it sent."""
        ...

    def reset(self) -> None:
        """Breaks off, so that nobody can take what came for all there is."""
        ...

    def hold(self) -> None:
        """What is written next may wait for what is written right after it."""
        ...


class ClientLeft(Exception):
    """The client hung up before its answer was finished."""


class Client:
    """Whoever sent a request."""

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.headers: list[Header] = scope["headers"]
        self.answer = Answer(scope, send)
        self._receive = receive
        self._line: Line | None = (scope.get("state") or {}).get(LINE)
        self._more = True
        self._parts: deque[bytes] = deque()
        self._held = 0
        self._stirred = asyncio.Event()
        self._left = False

    @property
    def is_whole(self) -> bool:
        """Whether the body has come to its end."""
        return not self._more

    async def read(self, limit: int) -> bytes:
        """The body; or its beginning, when it is over the limit."""
        parts: list[bytes] = []
        size = 0
        announced = body_length(self.headers) or 0
        if announced > limit:
            limit = 0
        while self._more:
            part = self._take(await self._receive())
            parts.append(part)
            size += len(part)
            if size > limit:
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def rest(self, begun: bytes) -> AsyncIterator[bytes]:
        """The body as it comes, after what was read of it; for use while the client is `watched`."""
        if begun:
            yield begun
        while True:
            while self._parts:
                part = self._parts.popleft()
                self._held -= len(part)
                self._stirred.set()
                yield part
            if not self._more:
                return
            self._stirred.clear()
            await self._stirred.wait()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Ends what is under way when the client hangs up: as `ClientLeft`."""
        work = asyncio.current_task()
        assert work is not None
        watcher = asyncio.ensure_future(self._watch(work))
        try:
            yield
        except asyncio.CancelledError:
            if not self._left:
                raise
            work.uncancel()
            raise ClientLeft from None
        finally:
            watcher.cancel()

    async def _watch(self, work: asyncio.Task[Any]) -> None:
        with contextlib.suppress(ClientLeft):
            while True:
                if self._held > MOST_HELD:
                    await self._room()
                part = self._take(await self._receive())
                if part:
                    self._parts.append(part)
                    self._held += len(part)
                self._stirred.set()
        # The server says "gone" after a finished answer too.
        if not self.answer.is_over:
            self._left = True
            work.cancel()

    async def _room(self) -> None:
        """Waits until an upload goes on. Nobody reads from the client meanwhile, so it has to be looked at."""
        while self._held > MOST_HELD:
            self._stirred.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._stirred.wait()
            if self._line is not None and self._line.is_gone():
                raise ClientLeft

    def _take(self, message: Message) -> bytes:
        if message["type"] == "http.disconnect":
            raise ClientLeft
        self._more = self._more and bool(message.get("more_body", False))
        part: bytes = message.get("body", b"")
        return part


class Answer:
    """What goes back to the client."""

    def __init__(self, scope: Message, send: Send) -> None:
        self._send = send
        self._line: Line | None = (scope.get("state") or {}).get(LINE)
        self._is_old: bool = scope.get("http_version") == "1.0"
        self._framed = True
        self.is_begun = False
        self.is_over = False
        """Nothing is to be sent any more; a client that leaves now has all it gets."""

    async def begin(self, status: int, headers: list[Header]) -> None:
        """The head."""
        self.is_begun = True
        self._framed = not self._is_old or body_length(headers) is not None
        if self._line is not None:
            self._line.hold()
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data: bytes) -> None:
        """A part of the body; waits for a client that reads slowly."""
        if data:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """The last part."""
        self.is_over = True
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def whole(self, status: int, headers: list[Header], body: bytes) -> None:
        """All of it."""
        await self.begin(status, headers)
        await self.end(body)

    def cut(self) -> None:
        """It breaks off here: the server closes the connection without the end that HTTP demands."""
        self.is_over = True
        if not self._framed and self._line is not None:
            self._line.reset()  # to an old client the end of the connection is the end of the body
