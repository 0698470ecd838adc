"""The seam between a connection and the way its bytes travel. `stdio`, `http` and `sse` are the three links."""

from __future__ import annotations

from typing import Protocol

import msgspec

from pegboard.errors import AuthRequired, ConnectionLost, ServerError
from pegboard.types import Json
from pegboard.wire.framing import Oversized
from pegboard.wire.http import Mirrored


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """One message to send, with what a link may need to know of it."""

    data: bytes
    version: str
    """The protocol revision it speaks."""
    method: str = ""
    params: Json = {}
    id: int | None = None
    """Set when it is a request, whose answer goes to the inbox."""
    mirrored: Mirrored = ()
    """Arguments that HTTP repeats as headers."""


class TurnedDown(ServerError):
    """The server did not serve the request at all: an HTTP status instead of an answer."""

    def __init__(self, server: str, status: int, phrase: str, *, hint: str = "") -> None:
        super().__init__(server, f"it answered HTTP {status} {phrase}".rstrip(), hint=hint)
        self.status = status


class Forbidden(AuthRequired):
    """The server knows us and does not allow this one thing; other requests may be served."""


class Unreachable(ConnectionLost):
    """Nobody accepts connections where the server should be; the request was not sent."""


class SessionExpired(ConnectionLost):
    """The server forgot our session and did not serve the request: it may be asked again on a new one."""


def ends_connection(error: ServerError) -> bool:
    """Whether asking for something else on the same connection is no use either."""
    refused = isinstance(error, AuthRequired) and not isinstance(error, Forbidden)
    return refused or isinstance(error, SessionExpired | Unreachable)


class Inbox(Protocol):
    """Where a link puts what happens. None of these may block or raise."""

    def message(self, data: bytes, origin: int | None = None) -> None:
        """A frame arrived; `origin` is the request on whose stream it came, where the link knows."""
        ...

    def oversized(self, line: Oversized) -> None:
        """A frame was over the limit and was dropped."""
        ...

    def failed(self, request_id: int, error: ServerError) -> None:
        """This request will get no answer."""
        ...

    def awaits(self, request_id: int) -> bool:
        """Whether somebody still waits for the answer to this request."""
        ...

    def retired(self, error: ServerError) -> None:
        """Nothing new can be asked here; what is under way goes on."""
        ...

    def closed(self, error: ServerError) -> None:
        """Nothing will arrive any more."""
        ...


class Link(Protocol):
    """One way to exchange messages with a server."""

    async def open(self, inbox: Inbox) -> None:
        """Gets ready to send; raises a ServerError that says why it cannot."""
        ...

    async def send(self, message: Outgoing) -> None:
        """Hands one message over; waits when the server does not take more."""
        ...

    def agreed(self, version: str) -> None:
        """The handshake is over: links that listen for more start to."""
        ...

    def abandon(self, request_id: int) -> bool:
        """The caller gave up; True when the link itself lets the server know."""
        ...

    async def close(self) -> None:
        """Ends everything the link started. Safe to call twice."""
        ...

    @property
    def last_words(self) -> str:
        """What the server wrote on stderr of late, where there is such a thing."""
        ...

    @property
    def ended_cleanly(self) -> bool:
        """Whether the server ended by itself and without an error."""
        ...
