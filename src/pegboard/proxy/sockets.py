"""Sockets for both sides: writes that go out together, and what httpcore2 stands on, on asyncio alone.

httpcore2's own goes through anyio, which turns the event loop once more for each read and each write: half of what a
request cost. Above: `lanes` and `tunnels` for upstreams, `connection` for clients. Below: asyncio.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Iterable
from typing import Any

import httpcore2

from pegboard.wire.admission import is_address

PIECE = 64 * 1024
"""Read at once, and written together at most."""
MOST_HELD = 128 * 1024
"""Of what an upstream has sent and nobody has taken."""
_EYEBALLS_SECONDS = 0.25


class JoinedWrites(asyncio.Transport):
    """A transport that sends the first write of a turn of the event loop at once, and the others of it together."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._size = 0
        self._waits = self._holds_head = False
        self._turn: asyncio.Handle | None = None

    def hold(self) -> None:
        """The next write waits for the one after it, or for the end of the turn: a head goes out with what follows."""
        self._waits = True

    def write(self, data: Any) -> None:
        """Takes the bytes; they are on their way at the end of this turn at the latest."""
        if not data:
            return
        # The first, or what a head has waited for.
        is_due = not self._waits and (self._turn is None or self._holds_head)
        self._holds_head, self._waits = self._waits, False
        self._parts.append(bytes(data))
        self._size += len(data)
        if self._turn is None:
            self._turn = self._loop.call_soon(self._end_turn)
        if is_due or self._size >= PIECE:
            self.flush()

    def _end_turn(self) -> None:
        self._turn = None
        self.flush()

    def flush(self) -> None:
        """Sends what was taken."""
        if not self._parts:
            return
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._size = [], 0
        if not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """Sends the rest and closes."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Closes at once. What was taken was said to be sent, so it goes as far as the socket takes it."""
        self.flush()
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size() + self._size


class Sockets(httpcore2.AsyncNetworkBackend):
    """How httpcore2 reaches an upstream."""

    def __init__(self) -> None:
        # The loop fills it and hands it over in one step, so that all connections can share one.
        self._buffer = memoryview(bytearray(PIECE))  # TLS fills slices of it, which must not be copies

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Stream:
        """A connection, to whichever address of the host answers first."""
        loop = asyncio.get_running_loop()
        local = (local_address, 0) if local_address else None
        try:
            async with asyncio.timeout(timeout):
                _, stream = await loop.create_connection(
                    lambda: Stream(self._buffer),
                    host,
                    port,
                    local_addr=local,
                    # One address needs no race, in which asyncio would lose sight of a socket when it is cancelled.
                    happy_eyeballs_delay=None if is_address(host) else _EYEBALLS_SECONDS,
                )
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(str(error)) from error
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(str(error)) from error
        for option in socket_options or ():
            stream.get_extra_info("socket").setsockopt(*option)
        return stream

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await asyncio.sleep(seconds)


class Stream(asyncio.BufferedProtocol, httpcore2.AsyncNetworkStream):
    """One connection."""

    def __init__(self, buffer: memoryview) -> None:
        self._buffer = buffer
        self._parts: deque[bytes] = deque()
        self.held = 0
        """Bytes that came and were not read yet."""
        self._is_ended = False
        self._fault: Exception | None = None
        self._is_full = False
        self._waiting: set[asyncio.Future[None]] = set()

    # ── What the event loop says ─────────────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: Any) -> None:
        self._bare: Any = transport
        self._out = JoinedWrites(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._parts.append(bytes(self._buffer[:nbytes]))
        self.held += nbytes
        if self.held > MOST_HELD:
            self._bare.pause_reading()
        self._stir()

    def eof_received(self) -> bool:
        self._is_ended = True
        self._stir()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_ended, self._fault = True, exc
        self._is_full = False
        self._stir()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._stir()

    # ── What httpcore2 wants ─────────────────────────────────────────────────────────────────────────────────────────

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some bytes, as soon as there are any; none at the end."""
        self._out.flush()
        while not self._parts:
            if self._fault is not None:
                raise httpcore2.ReadError(str(self._fault))
            if self._is_ended:
                return b""
            await self._wait(timeout, httpcore2.ReadTimeout)
        part = self._parts.popleft()
        if len(part) > max_bytes:
            self._parts.appendleft(part[max_bytes:])
            part = part[:max_bytes]
        was_full = self.held > MOST_HELD
        self.held -= len(part)
        if was_full and self.held <= MOST_HELD and not self._bare.is_closing():
            self._bare.resume_reading()
        return part

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Takes bytes; waits while the other side does not."""
        if self._bare.is_closing():
            raise httpcore2.WriteError(str(self._fault or "the connection is closed"))
        self._out.hold()  # until the answer is waited for, or anything else
        self._out.write(buffer)
        while self._is_full:
            await self._wait(timeout, httpcore2.WriteTimeout)
            if self._bare.is_closing():
                raise httpcore2.WriteError(str(self._fault or "the connection was closed"))

    async def aclose(self) -> None:
        """Hangs up at once."""
        self.abort()

    def abort(self) -> None:
        """The same for whoever has no time to wait."""
        self._bare.abort()

    @property
    def is_readable(self) -> bool:
        """Of one that is kept and idle: whether anything came, if only its end, that nobody asked for."""
        return bool(self._parts) or self._is_ended or self._bare.is_closing()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> Stream:
        """The same connection, encrypted from here on."""
        loop = asyncio.get_running_loop()
        self._out.flush()
        try:
            async with asyncio.timeout(timeout):
                secure = await loop.start_tls(self._bare, self, ssl_context, server_hostname=server_hostname)
        except TimeoutError as error:
            self._bare.abort()
            raise httpcore2.ConnectTimeout(str(error)) from error
        except OSError as error:  # what is wrong with a certificate is one, too
            self._bare.abort()
            raise httpcore2.ConnectError(str(error)) from error
        except BaseException:
            self._bare.abort()
            raise
        if secure is None:
            raise httpcore2.ConnectError("the connection was closed")
        self.connection_made(secure)
        return self

    def get_extra_info(self, info: str) -> Any:
        """What httpcore2 asks of a connection, whether it is still good among it."""
        if info == "is_readable":
            return self.is_readable
        names = {"client_addr": "sockname", "server_addr": "peername"}
        return self._bare.get_extra_info(names.get(info, info))

    def _stir(self) -> None:
        for each in self._waiting:
            if not each.done():
                each.set_result(None)

    async def _wait(self, timeout: float | None, too_long: type[Exception]) -> None:
        stirred = asyncio.get_running_loop().create_future()
        self._waiting.add(stirred)
        try:
            async with asyncio.timeout(timeout):
                await stirred
        except TimeoutError as error:
            raise too_long(str(error)) from error
        finally:
            self._waiting.discard(stirred)
