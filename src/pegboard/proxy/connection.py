"""The connection under a client's requests: uvicorn's, which requests can reach, and which waits for nobody for ever.

Above: `serve` makes them; `client` reaches them as its `Line`. Below: `sockets`, uvicorn (`pegboard[http]`).
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from pegboard.proxy.client import LINE, LOOK_SECONDS
from pegboard.proxy.sockets import JoinedWrites

HEADER_SECONDS = 30.0
"""How long a client may take to send a whole set of headers."""
STALL_SECONDS = 300.0
"""How long a client may take nothing of an answer that waits for it, or send nothing of a body that it owes."""
_LEFT = getattr(select, "POLLRDHUP", 0)


class ClientConnection(H11Protocol):
    """Implements `client.Line`."""

    def __init__(self, config: Any, server_state: Any, app_state: dict[str, Any], **more: Any) -> None:
        super().__init__(config, server_state, {**app_state, LINE: self}, **more)
        self._received = self._resumed = 0
        self._stall: asyncio.TimerHandle | None = None
        self._lookout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self._joined = JoinedWrites(transport)
        super().connection_made(self._joined)
        self._patience = self._head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._patience, self._stall, self._lookout):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)
        if self._owes_a_body():
            self._watch_for_stalls()
        if self.flow.read_paused and self._lookout is None:
            self._look_out()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_for_stalls()

    def resume_writing(self) -> None:
        self._resumed += 1
        super().resume_writing()

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

    # ── Whoever stops in the middle ──────────────────────────────────────────────────────────────────────────────────

    def _watch_for_stalls(self) -> None:
        if self._stall is None and not self.transport.is_closing():
            later = asyncio.get_running_loop().call_later
            self._stall = later(STALL_SECONDS, self._end_stall, self._moved())

    def _end_stall(self, before: tuple[int, ...]) -> None:
        self._stall = None
        # A body that we do not read ourselves, because its upstream is slow, is not the client's fault.
        is_owing = self.flow.write_paused or (self._owes_a_body() and not self.flow.read_paused)
        if is_owing and self._moved() == before:
            self.transport.abort()
        elif self.flow.write_paused or self._owes_a_body():
            self._watch_for_stalls()

    def _moved(self) -> tuple[int, ...]:
        return self._received, self._resumed, self.transport.get_write_buffer_size()

    def _owes_a_body(self) -> bool:
        cycle: Any = self.cycle
        return cycle is not None and cycle.more_body and not cycle.response_started

    def _look_out(self) -> None:
        """While nothing is read, as after a request that came before its turn, nobody would hear a client leave."""
        self._lookout = None
        if not self.flow.read_paused or self.transport.is_closing():
            return
        if self.is_gone():
            self.transport.abort()
        else:
            self._lookout = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look_out)

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
