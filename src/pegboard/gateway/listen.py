"""Puts the HTTP application on a socket. uvicorn does the HTTP; it is an optional dependency: `pegboard[http]`."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pegboard.errors import MissingExtra, PegboardError
from pegboard.gateway.signals import ending_on_signals
from pegboard.wire.admission import is_loopback

if TYPE_CHECKING:
    from pegboard.gateway.http import HttpGateway
    from pegboard.gateway.lobby import Lobby

HEADER_SECONDS = 30.0
"""How long a connection may take to send a whole set of headers."""
MAX_CONNECTIONS = 4096
GRACE_SECONDS = 3
MAX_HEADER_BYTES = 64 * 1024


def bind(host: str, port: int, *, has_token: bool) -> socket.socket:
    """A listening socket. Addresses that others can reach need a token."""
    if not has_token and not is_loopback(host):
        raise PegboardError(
            f"{host} can be reached from other machines, so that whoever finds it could use your tools.",
            hint="Set a token in a variable and name it with --token-env, or listen on 127.0.0.1.",
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise PegboardError(f"Cannot listen on {host}:{port}: {reason}.", hint="Port 0 takes a free one.") from None
    listener.setblocking(False)
    return listener


async def serve_http(
    app: HttpGateway, lobby: Lobby, listener: socket.socket, *, ready: Callable[[], None] | None = None
) -> None:
    """Serves until a signal says so; then tells listeners, and cancels what is under way."""
    server = _server(app)
    over = asyncio.Event()
    with ending_on_signals(over), contextlib.closing(listener):
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        ending = asyncio.ensure_future(over.wait())
        if ready is not None:
            ready()
        try:
            await asyncio.wait({serving, ending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            lobby.close_streams()
            server.should_exit = True
            await lobby.close()
            await serving


def _server(app: HttpGateway) -> Any:
    try:
        import uvicorn
        from uvicorn.protocols.http.h11_impl import H11Protocol
    except ImportError:
        raise MissingExtra("Serving over HTTP", "http") from None

    class Impatient(H11Protocol):
        """Hangs up on whoever connects and then sends no whole request."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._patience = asyncio.get_running_loop().call_later(HEADER_SECONDS, self._lose_patience)

        def _lose_patience(self) -> None:
            cycle: object = self.cycle
            if cycle is None and not self.transport.is_closing():
                self.transport.close()

        def connection_lost(self, exc: Exception | None) -> None:
            self._patience.cancel()
            super().connection_lost(exc)

    class Quiet(uvicorn.Server):
        """Leaves signals to us."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(
        app,
        http=Impatient,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
    )
    return Quiet(config)
