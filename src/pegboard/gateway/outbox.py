"""Where a session puts what it has to send: the one pipe of stdio, or the HTTP response of one request."""

from __future__ import annotations

from typing import Protocol

import msgspec

from pegboard.wire.messages import RpcError
from pegboard.wire.versions import Era


class Out(msgspec.Struct, frozen=True):
    """One message to send. `error` and `era` are those of an answer, for edges that turn them into a status."""

    data: bytes
    """Empty when there is nothing to say, only that a request is over."""
    final: bool = False
    """A request has its answer now, or will never have one."""
    error: RpcError | None = None
    era: Era | None = None


class Outbox(Protocol):
    """One way out. Putting never waits: an edge that cannot keep up stops reading instead."""

    @property
    def streams(self) -> bool:
        """Whether more than answers can be sent: progress, and questions to the client."""
        ...

    def put(self, out: Out) -> None:
        """Sends, as soon as it can be sent."""
        ...
