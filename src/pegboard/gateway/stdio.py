"""A session on standard input and output: one client, one line for each message, nothing else on stdout.

Below: `pipes` carries the bytes, `wire.framing` cuts lines, `session` works on them.
"""

from __future__ import annotations

import asyncio
import os
import sys

from pegboard.gateway.identity import Origin
from pegboard.gateway.lobby import Lobby
from pegboard.gateway.pipes import FilePen, FileReading, Pen, PipePen, PipeReading, Reading, is_pollable
from pegboard.gateway.refusals import asked_id, too_large
from pegboard.gateway.session import Session
from pegboard.gateway.signals import ending_on_signals
from pegboard.wire.framing import LineDecoder, Oversized

MAX_LINE = 4 * 1024 * 1024
"""The longest message a client may send."""


def take_stdout() -> int:
    """Takes the real stdout away from the process: a stray print must not end up between two messages."""
    sys.stdout.flush()
    private = os.dup(1)
    os.dup2(2, 1)
    return private


async def serve_stdio(lobby: Lobby, origin: Origin, *, stdin: int, stdout: int, limit: int = MAX_LINE) -> None:
    """Serves until the input ends, the client goes away or a signal says so; then cancels what is under way.

    Both descriptors belong to this function from now on, and are closed at the end.
    """
    over = asyncio.Event()
    with ending_on_signals(over):
        line = _Line(lobby, origin, limit, over)
        try:
            await line.open(stdin, stdout)
            await over.wait()
        finally:
            await line.close()


class _Line:
    """The client at the other end."""

    def __init__(self, lobby: Lobby, origin: Origin, limit: int, over: asyncio.Event) -> None:
        self._lobby = lobby
        self._origin = origin
        self._limit = limit
        self._over = over
        self._decoder = LineDecoder(limit)
        self._reading: Reading | None = None
        self._pen: Pen | None = None
        self._session: Session | None = None

    async def open(self, stdin: int, stdout: int) -> None:
        end = self._over.set
        pen: Pen = await PipePen.open(stdout, self._full, end) if is_pollable(stdout) else FilePen(stdout, end)
        self._pen = pen
        self._session = self._lobby.open(pen)
        reading = PipeReading if is_pollable(stdin) else FileReading
        self._reading = reading(stdin, self._take, end)

    def _take(self, data: bytes) -> None:
        assert self._session is not None
        assert self._pen is not None
        for line in self._decoder.feed(data):
            if isinstance(line, Oversized):
                self._session.too_large(asked_id(line), too_large(line.size, self._limit), self._pen)
            else:
                self._session.receive(line, self._pen, self._origin)

    def _full(self, is_full: bool) -> None:
        if self._reading is None:
            return
        if is_full:
            self._reading.pause()
        else:
            self._reading.resume()

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.close()
        if self._session is not None:
            self._session.close_streams()
            await self._lobby.leave(self._session)
        if self._pen is not None:
            await self._pen.close()
