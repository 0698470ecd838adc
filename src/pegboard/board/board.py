"""The board itself: tools of MCP servers and of this program, found by what they do and called by name.

Above: agents' code and the plug-ins. Below: the engine, which it opens and closes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import msgspec

from pegboard.board.chat import Chat
from pegboard.board.functions import FunctionSource
from pegboard.board.home import Home, not_open
from pegboard.config.load import from_tables, load
from pegboard.config.model import Config, ServerConfig, ServerSpec
from pegboard.engine import Engine
from pegboard.errors import ConfigError, PegboardError
from pegboard.types import Answer, Caller, Reveal

if TYPE_CHECKING:
    from pegboard.catalog.catalog import Catalog
    from pegboard.invoke.policy import Approve
    from pegboard.platform_tools.desk import FrontDesk
    from pegboard.protocols import Source

FUNCTIONS = "python"
"""The server that Python functions belong to; their names stand without it."""
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Answer = TypeVar("_Answer")
_Work = Coroutine[Any, Any, _Answer]


class Pegboard:
    """Many tools, of which a model sees few. Use as `async with Pegboard(...) as board`, or `with` in sync code."""

    def __init__(
        self,
        tools: Iterable[Callable[..., Any]] = (),
        servers: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        sources: Sequence[Source] = (),
        settings: Mapping[str, Any] | None = None,
        approve: Approve | None = None,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        """`tools` are Python functions, `servers` as in a configuration file, `settings` its other tables.

        No file is read; `Pegboard.open` reads those that the command line reads. `sources` is for tools that come from
        anywhere else. `approve` is asked about calls that a person has to approve.
        """
        config = from_tables({"servers": dict(servers or {}), **(settings or {})})
        self._begin(config, tools, sources, approve, on_warning)

    @classmethod
    def open(
        cls,
        *files: str | Path,
        tools: Iterable[Callable[..., Any]] = (),
        sources: Sequence[Source] = (),
        settings: Mapping[str, Any] | None = None,
        approve: Approve | None = None,
        on_warning: Callable[[str], None] | None = None,
    ) -> Self:
        """The board of the user's and the project's configuration, or of these files; `settings` come on top."""
        board = cls.__new__(cls)
        config = load(files=[Path(file) for file in files], tables=settings or {})
        board._begin(config, tools, sources, approve, on_warning)
        return board

    def _begin(
        self,
        config: Config,
        tools: Iterable[Callable[..., Any]],
        sources: Sequence[Source],
        approve: Approve | None,
        on_warning: Callable[[str], None] | None,
    ) -> None:
        self._functions = FunctionSource(FUNCTIONS)
        for function in tools:
            self._functions.add(function)
        every = (self._functions, *sources)
        self.config = _with_sources(config, every)
        self.home = Home()
        self._new_engine = partial(Engine, self.config, sources=every, approve=approve, on_warning=on_warning)
        self._engine = self._new_engine()
        self._desk: FrontDesk | None = None

    # ── lifetime ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        self._must_be_closed()
        self.home.settle()
        try:
            await self._open()
        except BaseException:
            self.home.leave()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._close()
        finally:
            self.home.leave()

    def __enter__(self) -> Self:
        self._must_be_closed()
        self.home.move_out()
        try:
            self.home.wait(self._open())
        except BaseException:
            self.home.come_back()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.home.wait(self._close())
        finally:
            self.home.come_back()

    async def _open(self) -> None:
        self._engine = await self._new_engine().__aenter__()  # one that was closed belongs to the loop it was on
        self._desk = self._engine.desk()  # on the board's own loop, for it has work that goes on there

    async def _close(self) -> None:
        self._desk = None
        await self._engine.__aexit__()

    def _must_be_closed(self) -> None:
        if self.home.is_lived_in:
            raise PegboardError("The board is open already.", hint="Open it once, and share it.")

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────

    @overload
    def tool(self, function: _Function) -> _Function: ...

    @overload
    def tool(
        self, *, name: str = "", description: str = "", read_only: bool | None = None
    ) -> Callable[[_Function], _Function]: ...

    def tool(
        self,
        function: _Function | None = None,
        *,
        name: str = "",
        description: str = "",
        read_only: bool | None = None,
    ) -> _Function | Callable[[_Function], _Function]:
        """Makes a function a tool: its schema comes from its types, its description from its docstring."""

        def added(function: _Function) -> _Function:
            self._functions.add(function, name=name, description=description, read_only=read_only)
            if self._desk is not None:
                self.home.look(lambda: self._engine.offer(FUNCTIONS, self._functions.listing()))
            return function

        return added if function is None else added(function)

    @property
    def catalog(self) -> Catalog:
        """Every tool that may be used now: an immutable value."""
        return self._engine.catalog

    async def refresh(self, *servers: str) -> None:
        """Asks these servers, or all, for their tools, and waits; those that fail keep what is known of them."""
        await self.home.run(lambda: self._engine.refresh(servers))

    async def ready(self) -> None:
        """Waits until the index knows every tool; searches before that go by words alone, and say so."""
        await self.home.run(self._engine.ready_to_search)

    async def search(
        self,
        query: str,
        *,
        limit: int = 5,
        server: str | None = None,
        tags: Sequence[str] = (),
        max_cost_usd: float | None = None,
        max_latency_ms: float | None = None,
    ) -> Answer:
        """The tools that can do what the query says, best first. Nothing is started, nothing is loaded."""
        from pegboard.index.finder import Terms
        from pegboard.index.narrow import Narrow

        narrow = Narrow(
            servers=(server,) if server else (),
            tags=tuple(tags),
            max_cost_usd=max_cost_usd,
            max_latency_ms=max_latency_ms,
        )
        return await self.home.run(lambda: self._engine.search(query, Terms(limit=limit, narrow=narrow)))

    # ── conversations ────────────────────────────────────────────────────────────────────────────────────────────

    def conversation(
        self,
        key: str = "",
        *,
        allow: Sequence[str] | None = None,
        state: bytes | None = None,
        reveal: Reveal | None = "listed",
        search: bool = True,
        identity: str = "",
    ) -> Chat:
        """The conversation of this key; without one, a new conversation that nobody else is in.

        `reveal` says how it gets at deferred tools: `listed` puts what it loads on its list, `called` leaves the list
        as it is and offers `call_tool`. Without `search` nothing is deferred. `allow` names what it may use at all.
        """
        import uuid

        caller = Caller(
            identity=identity,
            conversation=key or f"chat-{uuid.uuid4().hex}",
            allow=None if allow is None else tuple(allow),
            reveal=reveal if search else "all",
        )
        return Chat(self, caller, state)

    @property
    def desk(self) -> FrontDesk:
        """Where every edge lists and calls tools."""
        if self._desk is None:
            raise not_open()
        return self._desk

    def wait(self, work: _Work[_Answer]) -> _Answer:
        """Runs a coroutine of this board and waits for it, in code that is not async."""
        return self.home.wait(work)

    def remember(self, caller: Caller) -> None:
        """Fetches what the store has of a conversation, and waits for the disk, once for each conversation."""
        if not self.home.is_here:
            self.home.wait(self.desk.recall(caller))
            return
        # The loop cannot wait for itself, and whoever asks is not async: another thread reads the one row.
        reader = threading.Thread(target=lambda: asyncio.run(self.desk.recall(caller)), name="pegboard recall")
        reader.start()
        reader.join()


def _with_sources(config: Config, sources: Sequence[Source]) -> Config:
    servers = dict(config.servers)
    for source in sources:
        if source.name in servers:
            raise ConfigError(f"Two sources of tools are named {source.name!r}.", hint="Give one of them another name.")
        spec = ServerSpec(name=source.name, config=ServerConfig(), local=True, bare=source.name == FUNCTIONS)
        servers[source.name] = spec
    return msgspec.structs.replace(config, servers=servers)
