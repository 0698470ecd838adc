"""Where the proxy's two halves meet: one moves bytes, the other decides what they become.

Above: `app` drives an `Exchange` over sockets. Below: `planner` makes them; it never touches a socket.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

Wire = Literal["messages", "count_tokens", "completions", "responses"]
"""The endpoints that are understood; all others pass through."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a client's, whole."""

    wire: Wire
    upstream: str
    """The name of where it goes."""
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes
    """As JSON, whatever encoding it came in."""


class Passed(msgspec.Struct, frozen=True):
    """The request goes through byte for byte, for this reason."""

    reason: str


class Exchange(Protocol):
    """One request that is changed on its way, and its reply. May take several rounds with the model's API."""

    body: bytes
    """What to send now, as JSON."""
    streamed: bool
    """Whether the client asked for a stream of events."""

    def feed(self, data: bytes) -> bytes:
        """What the client gets for these bytes of a reply with status 200; maybe nothing yet."""
        ...

    def finish(self) -> bytes:
        """The reply has come whole: what the client gets still. Raises `ReplyCut` when it was not whole after all."""
        ...

    async def again(self) -> bool:
        """Whether another round follows; `body` is then what to send. Asked after `finish`."""
        ...

    def failed(self, status: int, body: bytes) -> bytes:
        """A later round was refused after the client got part of a stream: the end of that stream, which says so."""
        ...

    async def close(self) -> None:
        """Keeps what later requests of the conversation need. Called once, however it ended."""
        ...


class ReplyCut(Exception):
    """A reply ended in the middle; the client must see that too."""


class Planner(Protocol):
    """Decides what becomes of a request."""

    async def plan(self, asked: Asked) -> Exchange | Passed:
        """The changed exchange, or why there is none. Never raises for anything that a client sent."""
        ...
