"""The connection under a client's requests: uvicorn's, which requests can reach, and which waits for no head for ever.

Above: `serve` makes them; `client` reaches them as its `Line`. Below: `sockets`, uvicorn (`pegboard[http]`).
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from pegboard.proxy.client import LINE
from pegboard.proxy.sockets import JoinedWrites

HEADER_SECONDS = 30.0
"""How long a client may take to send a whole set of headers."""
_LEFT = getattr(select, "POLLRDHUP", 0)


class ClientConnection(H11Protocol):
    """Implements `client.Line`."""

    def __init__(self, config: Any, server_state: Any, app_state: dict[str, Any], **more: Any) -> None:
        super().__init__(config, server_state, {**app_state, LINE: self}, **more)

    def connection_made(self, transport: Any) -> None:
        self._joined = JoinedWrites(transport)
        super().connection_made(self._joined)
        self._patience = self._head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._patience.cancel()

    # ── Whoever sends half a head ────────────────────────────────────────────────────────────────────────────────────

    def _unset_keepalive_if_required(self) -> None:
        if self.timeout_keep_alive_task is not None:  # something of the next request has come
            self._patience.cancel()
            self._patience = self._head_timer()
        super()._unset_keepalive_if_required()

    def _head_timer(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(HEADER_SECONDS, self._lose_patience)

    def _lose_patience(self) -> None:
        if self._owes_a_head() and not self.transport.is_closing():
            self.transport.close()

    def _owes_a_head(self) -> bool:
        """Whether a request was begun, and no more came of it: between whole ones a client may be idle."""
        cycle: Any = self.cycle
        return cycle is None or (cycle.response_complete and self.timeout_keep_alive_task is None)

    # ── What requests ask of it ──────────────────────────────────────────────────────────────────────────────────────

    def is_gone(self) -> bool:
        """Whether the client hung up, although nobody reads what it sent."""
        end = self.transport.get_extra_info("socket")
        if end is None or end.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(end.fileno(), _LEFT)
        return bool(poll.poll(0))

    def hold(self) -> None:
        """What is written next may wait for what is written right after it."""
        self._joined.hold()

    def reset(self) -> None:
        """Breaks off, so that nobody can take what came for all there is."""
        end = self.transport.get_extra_info("socket")
        if end is not None and end.fileno() >= 0:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()
