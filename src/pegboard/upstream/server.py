"""One MCP server, supervised: started when it is used, stopped when it is not, tried again with patience.

One task, the keeper, owns each connection from start to end. Callers only ever touch the connection's futures, so no
caller's fate is tied to another's, and cancelling a call never tears a connection down.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from pegboard.config.model import GatewayConfig, ServerSpec
from pegboard.errors import (
    AuthRequired,
    ConnectionLost,
    PegboardError,
    RemoteError,
    ServerError,
    ServerUnavailable,
    StartFailed,
)
from pegboard.types import CallContext, Json, Listing, ServerState
from pegboard.upstream.backoff import Backoff
from pegboard.upstream.connection import Connection
from pegboard.upstream.link import Link, SessionExpired, TurnedDown
from pegboard.upstream.listing import list_all
from pegboard.wire.http import Mirrored, mirrored_arguments
from pegboard.wire.messages import HEADER_MISMATCH
from pegboard.wire.versions import Era

T = TypeVar("T")
LEGACY_STATUSES = (400, 404, 405)
"""How a legacy SSE server turns a POST down."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how much, for one server: its own settings, else the gateway's."""

    start_timeout: float
    call_timeout: float
    idle_timeout: float
    max_result_bytes: int
    max_pages: int
    max_tools: int

    @classmethod
    def of(cls, spec: ServerSpec, defaults: GatewayConfig) -> Limits:
        """What holds for this server."""
        config = spec.config
        return cls(
            start_timeout=config.start_timeout or defaults.start_timeout,
            call_timeout=config.call_timeout or defaults.call_timeout,
            idle_timeout=config.idle_timeout or defaults.idle_timeout,
            max_result_bytes=config.max_result_bytes or defaults.max_result_bytes,
            max_pages=defaults.max_pages,
            max_tools=defaults.max_tools,
        )


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What a server needs from whoever keeps it."""

    links: Callable[[ServerSpec, Limits], list[Link]]
    starting: asyncio.Semaphore
    """Bounds how many servers start at the same time."""
    on_state: Callable[[str, ServerState, str], None]
    on_tools_changed: Callable[[str], None]
    schema_of: Callable[[str, str], Json | None]
    """The input schema of a tool, as last known; for arguments that HTTP mirrors into headers."""
    known_version: Callable[[str], str]
    """The protocol revision a server spoke last time."""


class Server:
    """A `Source` backed by one MCP server."""

    def __init__(self, spec: ServerSpec, limits: Limits, surroundings: Surroundings) -> None:
        self.spec = spec
        self.limits = limits
        self._around = surroundings
        self._backoff = Backoff(random.random)
        self._connection: Connection | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Connection] | None = None
        self._stopping = asyncio.Event()
        self._users = 0
        self._last_used = 0.0
        self.state = ServerState.IDLE
        self.last_error: PegboardError | None = None

    @property
    def name(self) -> str:
        """Its key in the configuration."""
        return self.spec.name

    # ── what callers use ─────────────────────────────────────────────────────────────────────────────────────────

    async def list_tools(self) -> Listing:
        """All tools, asked anew."""
        return await self._using(lambda connection: list_all(self.name, connection, self.limits))

    async def call_tool(self, tool: str, arguments: Json, context: CallContext) -> Json:
        """One `tools/call`."""
        timeout = context.timeout or self.limits.call_timeout
        params = {"name": tool, "arguments": arguments}

        async def call(connection: Connection) -> Json:
            return await connection.call(params, context, timeout, self._mirrored(connection, tool))

        try:
            return await self._using(call)
        except RemoteError as error:
            if error.code != HEADER_MISMATCH:
                raise
        # The server's idea of which arguments are headers has changed: learn it, then try once more.
        fresh = await self.list_tools()
        schema = next((each.get("inputSchema") for each in fresh.tools if each.get("name") == tool), None)
        mirrored = _safe_mirrored(schema)
        return await self._using(lambda connection: connection.call(params, context, timeout, mirrored))

    async def request(self, method: str, params: Json, timeout: float | None = None) -> Json:
        """Any other request, relayed as it is."""
        wait = timeout or self.limits.call_timeout
        return await self._using(lambda connection: connection.request(method, params, timeout=wait))

    async def stop(self) -> None:
        """Ends the process or session, if there is one. The next call starts it again."""
        if self._keeper is not None:
            self._stopping.set()
            await asyncio.gather(self._keeper, return_exceptions=True)

    @property
    def is_used(self) -> bool:
        """Whether a call is under way."""
        return self._users > 0

    @property
    def is_running(self) -> bool:
        """Whether there is a connection, or one is being made."""
        return self._keeper is not None

    def retry(self) -> None:
        """A person asks for a fresh start: forget past failures."""
        self._backoff.reset()

    # ── the connection ───────────────────────────────────────────────────────────────────────────────────────────

    async def _using(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        self._users += 1
        try:
            try:
                return await work(await self._connected())
            except SessionExpired:
                return await work(await self._connected())
        finally:
            self._users -= 1
            self._last_used = asyncio.get_running_loop().time()

    async def _connected(self) -> Connection:
        connection = self._connection
        if connection is not None and not connection.over.done():
            return connection
        if self._keeper is not None and (self._ready is None or self._ready.done()):
            # The old connection is being cleared away; two processes of one server would fight over its files.
            await asyncio.wait({self._keeper})
        if self._keeper is None:
            self._refuse_if_resting()
            self._ready = asyncio.get_running_loop().create_future()
            self._ready.add_done_callback(_seen)
            self._stopping.clear()
            self._keeper = asyncio.create_task(self._keep(self._ready), name=f"pegboard keeper of {self.name}")
        assert self._ready is not None
        return await asyncio.shield(self._ready)

    def _refuse_if_resting(self) -> None:
        now = asyncio.get_running_loop().time()
        cause = self.last_error.message.removeprefix(f"{self.name}: ") if self.last_error else "it failed"
        if self._backoff.is_refused and isinstance(self.last_error, AuthRequired):
            raise AuthRequired(self.name, self.last_error.cause, hint=self.last_error.hint)
        if self._backoff.is_open(now):
            raise ServerUnavailable(
                self.name,
                f"it failed {self._backoff.failures} times in a row and rests for another "
                f"{self._backoff.wait(now):.0f} s; the last time: {cause}",
                hint=f"`pegboard refresh {self.name}` tries again at once.",
            )

    async def _keep(self, ready: asyncio.Future[Connection]) -> None:
        """Owns one connection: opens it, waits until it is over or no longer wanted, clears it away."""
        connection: Connection | None = None
        try:
            connection = await self._open(ready)
            if connection is not None:
                self._note_end(connection, await self._until_over(connection))
        except asyncio.CancelledError:
            self._set_state(ServerState.IDLE)
            if not ready.done():
                ready.set_exception(ServerUnavailable(self.name, "it was stopped before it was ready"))
        finally:
            self._connection = None
            if connection is not None:
                await connection.close()
            self._keeper = None

    async def _open(self, ready: asyncio.Future[Connection]) -> Connection | None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._backoff.wait(loop.time()))
        async with self._around.starting:
            self._set_state(ServerState.STARTING)
            links = self._around.links(self.spec, self.limits)
            for link in links:
                connection = Connection(self.name, link, on_tools_changed=self._tools_changed)
                error = await self._try(connection, link)
                if error is None:
                    self._connection = connection
                    self._backoff.started(loop.time())
                    self._last_used = loop.time()
                    self._set_state(ServerState.READY)
                    ready.set_result(connection)
                    return connection
                if isinstance(error, TurnedDown) and error.status in LEGACY_STATUSES and link is not links[-1]:
                    await connection.close()
                    continue
                self._note_failure(error)
                ready.set_exception(error)
                await connection.close()
                return None
        return None

    async def _try(self, connection: Connection, link: Link) -> ServerError | None:
        """Opens a connection; the error, if that fails."""
        try:
            async with asyncio.timeout(self.limits.start_timeout):
                await connection.open(self._around.known_version(self.name))
        except TimeoutError:
            return StartFailed(
                self.name,
                f"it was not ready within {self.limits.start_timeout:g} s",
                hint=_with_stderr(link, f"If it needs longer, raise `start_timeout` of servers.{self.name}."),
            )
        except ConnectionLost as error:
            return StartFailed(self.name, f"{error.cause} before it was ready", hint=error.hint)
        except ServerError as error:
            error.hint = _with_stderr(link, error.hint)
            return error
        except asyncio.CancelledError:
            await connection.close()
            raise
        return None

    async def _until_over(self, connection: Connection) -> ServerError | None:
        """Waits for the end: the reason when it came by itself, None when it was idle or asked to stop."""
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            while True:
                idle = self._last_used + self.limits.idle_timeout - asyncio.get_running_loop().time()
                timeout = self.limits.idle_timeout if self._users else max(idle, 0.001)
                ends: set[asyncio.Future[Any]] = {connection.over, stop}
                await asyncio.wait(ends, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                if connection.over.done():
                    return connection.over.result()
                if self._stopping.is_set():
                    return None
                over = asyncio.get_running_loop().time() - self._last_used >= self.limits.idle_timeout
                if over and not self._users:
                    return None
        finally:
            stop.cancel()

    # ── the record ───────────────────────────────────────────────────────────────────────────────────────────────

    def _note_end(self, connection: Connection, error: ServerError | None) -> None:
        now = asyncio.get_running_loop().time()
        if error is None or isinstance(error, SessionExpired) or connection.ended_cleanly:
            self._backoff.ended(now)
            self._set_state(ServerState.IDLE)
        else:
            self._note_failure(error)

    def _note_failure(self, error: ServerError) -> None:
        if isinstance(error, AuthRequired):
            self._backoff.refused()
        else:
            self._backoff.failed(asyncio.get_running_loop().time())
        self._set_state(ServerState.ERROR, error)

    def _set_state(self, state: ServerState, error: PegboardError | None = None) -> None:
        if state is ServerState.READY or error is not None:
            self.last_error = error
        self.state = state
        self._around.on_state(self.name, state, error.message if error else "")

    def _tools_changed(self) -> None:
        self._around.on_tools_changed(self.name)

    def _mirrored(self, connection: Connection, tool: str) -> Mirrored:
        if self.spec.transport != "http" or connection.agreement.era is not Era.STATELESS:
            return ()
        return _safe_mirrored(self._around.schema_of(self.name, tool))


def _safe_mirrored(schema: Json | None) -> Mirrored:
    try:
        return mirrored_arguments(schema)
    except ValueError:
        return ()  # such a tool is withheld from the catalog; a call by name goes without headers


def _with_stderr(link: Link, hint: str) -> str:
    words = link.last_words
    return f"It wrote on stderr:\n{words}" if words else hint


def _seen(future: asyncio.Future[Connection]) -> None:
    # Every caller may have gone away before the start failed: the error is kept as `last_error`.
    if not future.cancelled():
        future.exception()
