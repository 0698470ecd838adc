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
    ProtocolViolation,
    RemoteError,
    ServerError,
    ServerUnavailable,
    StartFailed,
)
from pegboard.types import CallContext, Json, Listing, ServerState
from pegboard.upstream.backoff import Backoff
from pegboard.upstream.connection import PROBE_SECONDS, Connection
from pegboard.upstream.link import Link, SessionExpired, TurnedDown, Unreachable
from pegboard.upstream.listing import list_all
from pegboard.wire.http import Mirrored, mirrored_arguments
from pegboard.wire.messages import HEADER_MISMATCH
from pegboard.wire.versions import NEWEST_HANDSHAKE, Era

T = TypeVar("T")
PROBE_SHARE = 0.3
"""The part of the time to start in which a server must say what it speaks, before it is asked in the older way."""
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
    on_offers_changed: Callable[[str], None] = lambda _: None
    """A server says that its prompts or resources are others now."""
    schema_of: Callable[[str, str], Json | None]
    """The input schema of a tool, as last known; for arguments that HTTP mirrors into headers."""
    known_version: Callable[[str], str]
    """The protocol revision a server spoke last time."""
    sign_in_of: Callable[[ServerSpec], object] = lambda _: None
    """Something that changes when a person signs in to the server: then it is asked again."""


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
        self._finishing: set[asyncio.Task[None]] = set()
        self._refused_with: object = None
        self._greets_first = False
        self._closed = False
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

        def call(connection: Connection) -> Awaitable[Json]:
            return connection.use("tools/call", params, context, timeout, self._mirrored(connection, tool))

        try:
            return await self._using(call)
        except RemoteError as error:
            if error.code != HEADER_MISMATCH:
                raise
        # The server's idea of which arguments are headers has changed: learn it, then try once more.
        fresh = await self.list_tools()
        self._tools_changed()
        schema = next((each.get("inputSchema") for each in fresh.tools if each.get("name") == tool), None)
        mirrored = _safe_mirrored(schema)
        return await self._using(lambda connection: connection.use("tools/call", params, context, timeout, mirrored))

    async def start(self) -> None:
        """Sees that there is a connection, as a call would."""
        await self._using(_nothing)

    async def request(
        self, method: str, params: Json, timeout: float | None = None, context: CallContext | None = None
    ) -> Json:
        """Any other request, relayed as it is; with a context, its progress and its questions reach the caller."""
        wait = timeout or self.limits.call_timeout
        if context is None:
            return await self._using(lambda connection: connection.request(method, params, timeout=wait))
        asker = context
        return await self._using(lambda connection: connection.use(method, params, asker, wait))

    async def stop(self) -> None:
        """Ends the process or session, if there is one. The next call starts it again."""
        if self._keeper is not None:
            is_starting = self._ready is not None and not self._ready.done()
            if is_starting and not self._stopping.is_set():
                self._keeper.cancel()  # nobody wants to wait until it is ready; but once is enough, lest we cut its end
            self._stopping.set()
            await asyncio.wait({self._keeper})
        for finishing in self._finishing:
            finishing.cancel()
        await asyncio.gather(*self._finishing, return_exceptions=True)

    async def close(self) -> None:
        """Stops it for good: later calls are refused."""
        self._closed = True
        await self.stop()

    @property
    def is_used(self) -> bool:
        """Whether a call is under way."""
        return self._users > 0

    @property
    def is_running(self) -> bool:
        """Whether there is a connection, or one is being made."""
        return self._keeper is not None

    @property
    def capabilities(self) -> Json | None:
        """What the server said it can do; None while there is no connection."""
        return None if self._connection is None else self._connection.agreement.capabilities

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
        while True:
            connection = self._connection
            if connection is not None and not connection.over.done():
                return connection
            if self._keeper is None:
                self._start()
            assert self._keeper is not None
            assert self._ready is not None
            if not self._ready.done():
                return await asyncio.shield(self._ready)
            # The old connection is being cleared away; two processes of one server would fight over its files.
            await asyncio.wait({self._keeper})

    def _start(self) -> None:
        if self._closed:
            raise ServerUnavailable(self.name, "it was not started, because Pegboard is closing")
        self._refuse_if_resting()
        self._ready = ready = asyncio.get_running_loop().create_future()
        ready.add_done_callback(_seen)
        self._stopping.clear()
        self._keeper = asyncio.create_task(self._keep(ready), name=f"pegboard keeper of {self.name}")
        self._keeper.add_done_callback(lambda keeper: self._kept(keeper, ready))

    def _refuse_if_resting(self) -> None:
        now = asyncio.get_running_loop().time()
        cause = self.last_error.message.removeprefix(f"{self.name}: ") if self.last_error else "it failed"
        if self._backoff.is_refused and isinstance(self.last_error, AuthRequired):
            if self._around.sign_in_of(self.spec) == self._refused_with:
                raise AuthRequired(self.name, self.last_error.cause, hint=self.last_error.hint)
            self._backoff.reset()
        if self._backoff.is_open(now):
            raise ServerUnavailable(
                self.name,
                f"it failed {self._backoff.failures} times in a row and rests for another "
                f"{self._backoff.wait(now):.0f} s; the last time: {cause}",
                hint=f"`pegboard refresh {self.name}` tries again at once.",
            )

    async def _keep(self, ready: asyncio.Future[Connection]) -> None:
        """Owns one connection: opens it, waits until it is over or no longer wanted, clears it away."""
        made: list[Connection] = []
        try:
            if await self._open(ready, made):
                self._note_end(made[-1], await self._until_over(made[-1]))
        finally:
            self._connection = None
            for connection in made:
                await self._clear_away(connection)

    async def _clear_away(self, connection: Connection) -> None:
        if self._stopping.is_set() or not connection.is_busy:
            await connection.close()
            return
        # Over HTTP a server may forget our session while it still works on a call: that call ends in its own time.
        finishing = asyncio.create_task(connection.finish())
        self._finishing.add(finishing)
        finishing.add_done_callback(self._finishing.discard)

    def _kept(self, keeper: asyncio.Task[None], ready: asyncio.Future[Connection]) -> None:
        """The keeper is done. Whatever happened to it, whoever waits must hear of it."""
        self._keeper = None
        fault = None if keeper.cancelled() else keeper.exception()
        if fault is not None:  # our own fault, or a missing extra
            known = fault if isinstance(fault, PegboardError) else StartFailed(self.name, f"an unexpected {fault!r}")
            known.__cause__ = None if known is fault else fault
            self._set_state(ServerState.ERROR, known)
        elif keeper.cancelled():
            self._set_state(ServerState.IDLE)
        if not ready.done():
            stopped = ServerUnavailable(self.name, "it was stopped before it was ready")
            ready.set_exception(stopped if fault is None else (self.last_error or fault))

    async def _open(self, ready: asyncio.Future[Connection], made: list[Connection]) -> bool:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._backoff.wait(loop.time()))
        async with self._around.starting:
            self._set_state(ServerState.STARTING)
            error = await self._reach(made)
            if error is not None:
                self._note_failure(error)
                ready.set_exception(error)
                await made[-1].close()
                return False
        self._connection = made[-1]
        self._backoff.started(loop.time())
        self._last_used = loop.time()
        self._set_state(ServerState.READY)
        ready.set_result(made[-1])
        return True

    async def _reach(self, made: list[Connection]) -> ServerError | None:
        """Tries the ways there are; the error, if none leads there. `made` has every connection, the last one last."""
        error = await self._try_links(made, self._greets_first)
        if self.spec.transport != "stdio" or error is None:
            return error
        # Some servers end when the first message is not `initialize`. Others end for reasons of their own: only the
        # first time is the other way tried at once, and from then on the two take turns.
        self._greets_first = made[-1].lost_at_probe
        if self._greets_first and not self._backoff.failures:
            await made[-1].close()
            error = await self._try_links(made, self._greets_first)
            self._greets_first = error is None
        return error

    async def _try_links(self, made: list[Connection], greets_first: bool) -> ServerError | None:
        older = greets_first or self.spec.config.protocol == "handshake"
        known = NEWEST_HANDSHAKE if older else self._around.known_version(self.name)
        if self.spec.transport != "stdio":
            await asyncio.to_thread(_load_http, self.spec.config.url or "")
        links = self._around.links(self.spec, self.limits)
        first: TurnedDown | None = None
        for link in links:
            connection = Connection(
                self.name, link, on_tools_changed=self._tools_changed, on_offers_changed=self._offers_changed
            )
            made.append(connection)
            is_legacy = first is not None or self.spec.transport == "sse"
            error = await self._try(connection, link, NEWEST_HANDSHAKE if is_legacy else known)
            if first is not None and isinstance(error, TurnedDown | ProtocolViolation):
                return first  # it is no legacy server either: what it said to begin with tells more
            if not isinstance(error, TurnedDown) or error.status not in LEGACY_STATUSES or link is links[-1]:
                return error
            first = error
            await connection.close()
        return first

    async def _try(self, connection: Connection, link: Link, known_version: str) -> ServerError | None:
        """Opens a connection; the error, if that fails."""
        limit = self.limits.start_timeout
        try:
            async with asyncio.timeout(limit):
                await connection.open(known_version, min(PROBE_SECONDS, limit * PROBE_SHARE))
        except TimeoutError:
            return StartFailed(
                self.name,
                f"it was not ready within {limit:g} s",
                hint=_with_noise(
                    connection,
                    _with_stderr(link, f"If it needs longer, raise `start_timeout` of servers.{self.name}."),
                ),
            )
        except ConnectionLost as error:
            if isinstance(error, Unreachable):
                hint = error.hint or f"Does it run? If it moved, mend `url` of servers.{self.name}."
                return StartFailed(self.name, error.cause, hint=hint)
            return StartFailed(
                self.name, f"{error.cause} before it was ready", hint=_with_noise(connection, error.hint)
            )
        except ServerError as error:
            error.hint = _with_stderr(link, error.hint)
            return error
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
            self._refused_with = self._around.sign_in_of(self.spec)
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

    def _offers_changed(self) -> None:
        self._around.on_offers_changed(self.name)

    def _mirrored(self, connection: Connection, tool: str) -> Mirrored:
        if self.spec.transport != "http" or connection.agreement.era is not Era.STATELESS:
            return ()
        return _safe_mirrored(self._around.schema_of(self.name, tool))


def _safe_mirrored(schema: Json | None) -> Mirrored:
    try:
        return mirrored_arguments(schema)
    except ValueError:
        return ()  # such a tool is withheld from the catalog; a call by name goes without headers


async def _nothing(_: Connection) -> None:
    """No work: to be connected was all."""


def _load_http(url: str) -> None:
    # Not everybody has remote servers, and this takes long enough to keep the calls of others waiting.
    from pegboard.upstream.http_client import load_certificates

    if url.startswith("https:"):
        load_certificates()


def _with_stderr(link: Link, hint: str) -> str:
    words = link.last_words
    return f"It wrote on stderr:\n{words}" if words else hint


def _with_noise(connection: Connection, hint: str) -> str:
    if not connection.noise:
        return hint
    first = connection.noise.decode(errors="replace").strip()
    return f"It writes on stdout what is not MCP; the first line: {first!r}" + (f"\n{hint}" if hint else "")


def _seen(future: asyncio.Future[Connection]) -> None:
    # Every caller may have gone away before the start failed: the error is kept as `last_error`.
    if not future.cancelled():
        future.exception()
