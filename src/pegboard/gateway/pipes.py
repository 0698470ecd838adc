"""Standard input and output on the event loop: pipes and terminals by readiness, plain files by a thread.

Above: `stdio`. When the client does not read what we write, `Pen.is_full` tells, and reading stops until it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import Callable
from typing import Protocol

from pegboard.gateway.outbox import Out

CHUNK = 65536
HIGH_WATER = 1024 * 1024
"""Unread bytes after which nothing more is read."""
FLUSH_SECONDS = 2.0


class Pen(Protocol):
    """What writes: an outbox that can be finished."""

    @property
    def streams(self) -> bool: ...

    def put(self, out: Out) -> None: ...

    async def close(self) -> None:
        """Waits a little for what is still to be written."""
        ...


class Reading(Protocol):
    """What reads, and can be held up."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


def is_pollable(descriptor: int) -> bool:
    """Whether the event loop can wait for it: not so for plain files and /dev/null."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


class PipePen(asyncio.BaseProtocol):
    """Writes to a pipe. Progress is dropped while the client does not read: it would be old news."""

    def __init__(self, on_full: Callable[[bool], None], on_lost: Callable[[], None]) -> None:
        self._on_full = on_full
        self._on_lost = on_lost
        self._transport: asyncio.WriteTransport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._lost = asyncio.Event()

    @property
    def streams(self) -> bool:
        """Anything can be sent at any time."""
        return True

    @classmethod
    async def open(cls, descriptor: int, on_full: Callable[[bool], None], on_lost: Callable[[], None]) -> PipePen:
        """Takes over the descriptor."""
        loop = asyncio.get_running_loop()
        transport, pen = await loop.connect_write_pipe(lambda: cls(on_full, on_lost), os.fdopen(descriptor, "wb", 0))
        transport.set_write_buffer_limits(high=HIGH_WATER)
        pen._transport = transport
        return pen

    def put(self, out: Out) -> None:
        """Writes one line."""
        if not out.data or self._transport is None or self._transport.is_closing():
            return
        if not out.final and not self._room.is_set() and out.data.startswith(_PROGRESS):
            return
        self._transport.write(out.data + b"\n")

    def pause_writing(self) -> None:
        """The client does not read."""
        self._room.clear()
        self._on_full(True)

    def resume_writing(self) -> None:
        """It reads again."""
        self._room.set()
        self._on_full(False)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client closed its end."""
        self._lost.set()
        self._on_lost()

    async def close(self) -> None:
        """Writes what is left, if somebody reads it."""
        if self._transport is None:
            return
        self._transport.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._lost.wait()
                return
        self._transport.abort()


_PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress"'


class FilePen:
    """Writes to a plain file, where nothing ever has to wait."""

    streams = True

    def __init__(self, descriptor: int, on_lost: Callable[[], None]) -> None:
        self._file = os.fdopen(descriptor, "wb", 0)
        self._on_lost = on_lost

    def put(self, out: Out) -> None:
        """Writes one line; a full disk is the end."""
        data = memoryview(out.data + b"\n") if out.data and not self._file.closed else memoryview(b"")
        try:
            while data:
                data = data[self._file.write(data) or 0 :]
        except OSError:
            self._on_lost()

    async def close(self) -> None:
        """Lets go of the file."""
        self._file.close()


class PipeReading:
    """Reads a pipe as it fills.

    Not by asyncio's transport: that asks for 256 kB each time, for which memory is mapped and given back at every line.
    """

    def __init__(self, descriptor: int, take: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Takes over the descriptor."""
        os.set_blocking(descriptor, False)
        self._descriptor: int | None = descriptor
        self._take = take
        self._on_end = on_end
        self.resume()

    def _readable(self) -> None:
        if self._descriptor is None:
            return
        try:
            data = os.read(self._descriptor, CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self._take(data)
        else:  # the client closed its end
            self.close()
            self._on_end()

    def pause(self) -> None:
        """Reads no more for now."""
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)

    def resume(self) -> None:
        """Reads on."""
        if self._descriptor is not None:
            asyncio.get_running_loop().add_reader(self._descriptor, self._readable)

    def close(self) -> None:
        """Reads no more."""
        self.pause()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class FileReading:
    """Reads a plain file, or whatever else cannot be waited for, with a thread."""

    def __init__(self, descriptor: int, take: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._take = take
        self._on_end = on_end
        self._room = asyncio.Event()
        self._room.set()
        self._task = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        try:
            while data := await asyncio.to_thread(os.read, self._descriptor, CHUNK):
                await self._room.wait()
                self._take(data)
        finally:
            self._on_end()

    def pause(self) -> None:
        """Reads no more for now."""
        self._room.clear()

    def resume(self) -> None:
        """Reads on."""
        self._room.set()

    def close(self) -> None:
        """Reads no more."""
        self._task.cancel()
