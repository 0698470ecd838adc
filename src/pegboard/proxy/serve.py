"""Puts the proxy on a socket until a signal ends it, and keeps `proxy.json` beside the store up to date.

uvicorn does the HTTP; it is an optional dependency: `pegboard[http]`.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pegboard.errors import MissingExtra, PegboardError, StoreError
from pegboard.proxy.routes import BUILT_IN
from pegboard.proxy.tally import Tally

if TYPE_CHECKING:
    from pegboard.config.model import Config, ProxyConfig
    from pegboard.proxy.app import ProxyApp
    from pegboard.proxy.seam import Planner

RUNNING_FILE = "proxy.json"
WRITE_SECONDS = 3.0
KEEP_ALIVE_SECONDS = 75
"""Longer than clients keep theirs, so that they never write into a connection being closed."""
GRACE_SECONDS = 10
MAX_CONNECTIONS = 4096
MAX_HEADER_BYTES = 64 * 1024
_ENDING = (signal.SIGTERM, signal.SIGINT)


async def serve(
    config: Config, planner: Planner, tally: Tally, *, on_ready: Callable[[str], None] | None = None
) -> None:
    """Serves until a signal says so: streams may finish for a while, a second signal ends them too."""
    app = _app(config.proxy, planner, tally)
    server = _server(app)
    with contextlib.closing(_bind(config.proxy.listen)) as listener:
        app.listen = _shown(listener)
        record = Record(config.state_dir / RUNNING_FILE, app)
        await record.write()
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        keeping = asyncio.ensure_future(record.keep())
        with _ending(server):
            if on_ready is not None:
                on_ready(f"http://{app.listen}")
            try:
                await asyncio.wait({serving, keeping}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                server.should_exit = True
                keeping.cancel()
                await serving
                await app.close()
                await record.write()


class Record:
    """The file that tells others of a running proxy."""

    def __init__(self, path: Path, app: ProxyApp) -> None:
        self._path = path
        self._app = app
        self._written = b""

    async def keep(self) -> None:
        """Writes what is new, again and again."""
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            # A full disk must not end the proxy; the next time may work.
            with contextlib.suppress(StoreError):
                await self.write()

    async def write(self) -> None:
        """Replaces the file, when anything has changed."""
        from pegboard.store.files import replace_file

        content = msgspec.json.format(msgspec.json.encode(self._app.running()))
        if content == self._written:
            return
        try:
            await asyncio.to_thread(replace_file, self._path, (content,))
        except OSError as error:
            reason = error.strerror or str(error)
            raise StoreError(f"{self._path} cannot be written: {reason}.", hint="Set `store.state_dir`.") from None
        self._written = content


def _app(config: ProxyConfig, planner: Planner, tally: Tally) -> ProxyApp:
    from pegboard.proxy.app import ProxyApp

    try:
        return ProxyApp(planner, {**BUILT_IN, **config.upstreams}, config, tally)
    except ValueError as error:
        raise PegboardError(f"An address under `proxy.upstreams` cannot be used: {error}.") from None


def _bind(listen: str) -> socket.socket:
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # An empty host would be every address of this machine; that has to be said in words.
        if not host or not port.isdecimal() or int(port) > 65535:
            raise ValueError("it is not HOST:PORT")
        listener = socket.create_server((host, int(port)), family=family, backlog=1024)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PegboardError(f"Cannot listen on {listen}: {reason}.", hint="Set `proxy.listen`.") from None
    # Connections inherit it. asyncio sets it only where it made the socket; without it a body waits 40 ms for its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setblocking(False)
    return listener


def _shown(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextlib.contextmanager
def _ending(server: Any) -> Iterator[None]:
    """The first signal lets streams finish, the second does not."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    for number in _ENDING:
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):  # not the main thread
            loop.add_signal_handler(number, end)
    try:
        yield
    finally:
        for number in _ENDING:
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(number)


def _server(app: ProxyApp) -> Any:
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("The proxy", "http") from None
    import logging

    from pegboard.proxy.connection import ClientConnection

    # It complains of every answer that is cut and of every request that is no HTTP; these are counted, or not ours.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)

    class Quiet(uvicorn.Server):
        """Leaves signals to us."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Quiet(
        uvicorn.Config(
            app,
            http=ClientConnection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        )
    )
