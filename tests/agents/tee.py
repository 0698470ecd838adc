"""Stands between an agent and the proxy and remembers every byte that went either way."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import NamedTuple

import h11

PIECE = 64 * 1024


class Spoken(NamedTuple):
    """One request and its reply, as the agent sent and got them."""

    method: str
    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes
    status: int
    """0 when there was no reply."""
    reply: bytes
    is_whole: bool
    """Whether the reply came to its end."""


class Wire:
    """One connection."""

    def __init__(self) -> None:
        self.up = bytearray()
        self.down = bytearray()

    def spoken(self) -> Iterator[Spoken]:
        """The requests that it carried, in order."""
        server, client = h11.Connection(h11.SERVER), h11.Connection(h11.CLIENT)
        server.receive_data(bytes(self.up))
        client.receive_data(bytes(self.down))
        client.receive_data(b"")
        while isinstance(request := server.next_event(), h11.Request):
            body, is_sent = _data(server)
            status, reply, is_whole = _reply(client, request)
            yield Spoken(
                request.method.decode(),
                request.target.decode(),
                {name.decode(): value.decode("latin-1") for name, value in request.headers},
                body,
                status,
                reply,
                is_whole,
            )
            if not (is_sent and is_whole and client.our_state is h11.DONE and client.their_state is h11.DONE):
                return
            client.start_next_cycle()
            server.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            server.send(h11.EndOfMessage())
            if server.our_state is not h11.DONE:
                return
            server.start_next_cycle()


def _reply(client: h11.Connection, request: h11.Request) -> tuple[int, bytes, bool]:
    client.send(h11.Request(method=request.method, target=request.target, headers=[("host", "x")]))
    client.send(h11.EndOfMessage())
    try:
        head = client.next_event()
        while isinstance(head, h11.InformationalResponse):
            head = client.next_event()
        if not isinstance(head, h11.Response):
            return 0, b"", False
        return head.status_code, *_data(client)
    except h11.RemoteProtocolError:
        return 0, b"", False


def _data(side: h11.Connection) -> tuple[bytes, bool]:
    """A body, as far as it came, and whether that is all of it."""
    got = b""
    with contextlib.suppress(h11.RemoteProtocolError):
        while isinstance(event := side.next_event(), h11.Data):
            got += bytes(event.data)
        return got, isinstance(event, h11.EndOfMessage)
    return got, False


class Tee:
    """A relay in a thread. What it heard is whole once it has ended."""

    def __init__(self) -> None:
        self.wires: list[Wire] = []

    @property
    def spoken(self) -> list[Spoken]:
        """All requests of all connections."""
        return [each for wire in self.wires for each in wire.spoken()]

    @contextlib.contextmanager
    def listening(self, port: int, target: int) -> Iterator[None]:
        """Relays from one port to another on this machine for as long as that lasts."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        made = asyncio.run_coroutine_threadsafe(self._begin(port, target), loop)
        try:
            server = made.result(20)
            yield
            server.close()
        finally:
            asyncio.run_coroutine_threadsafe(_end_tasks(), loop).result(20)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(20)
            loop.close()

    async def _begin(self, port: int, target: int) -> asyncio.Server:
        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            wire = Wire()
            self.wires.append(wire)
            try:
                there, back = await asyncio.open_connection("127.0.0.1", target)
            except OSError:
                writer.close()
                return
            await asyncio.gather(_pump(reader, back, wire.up), _pump(there, writer, wire.down))

        return await asyncio.start_server(relay, "127.0.0.1", port)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
    """Until one side hangs up; the other is told so."""
    with contextlib.suppress(OSError):
        while data := await reader.read(PIECE):
            kept += data
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def _end_tasks() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
