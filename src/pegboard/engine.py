"""The only wiring: configuration in, a live catalog and a way to call out. Owns every lifetime.

`load_catalog` needs no event loop and starts nothing; `Engine` adds connections, refresh and calls to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

import msgspec

from pegboard.catalog.catalog import Catalog, build, diff
from pegboard.catalog.gate import unavailable
from pegboard.catalog.shelf import Shelf
from pegboard.catalog.snapshot import Snapshot, snapshot_of
from pegboard.config.model import Config
from pegboard.errors import PegboardError, ServerNotFound, ServerUnavailable, ToolNotFound
from pegboard.protocols import Files, Source
from pegboard.store.files import DiskFiles
from pegboard.telemetry.events import Event, OffersChanged, ServerChanged, SkillsUpdated, ToolsUpdated
from pegboard.types import Answer, CallContext, Caller, Json, Listing, Priors, ServerState, Tool, Unlisted, Via
from pegboard.upstream.probe import Prober
from pegboard.upstream.tokens import identity_of

if TYPE_CHECKING:
    import asyncio

    from pegboard.index.finder import Terms
    from pegboard.index.keeper import Built, OnProgress
    from pegboard.index.live import LiveIndex
    from pegboard.invoke.policy import Approve
    from pegboard.platform_tools.desk import FrontDesk
    from pegboard.platform_tools.library import Library
    from pegboard.platform_tools.office import Office
    from pegboard.skills.source import Skill
    from pegboard.upstream.server import Server

RELIST_SECONDS = 2.0
"""A server that says its tools changed is asked at most this often."""
LOOK_AGAIN_SECONDS = 300.0
"""How often it is seen to that servers are asked whose tools are not known, or not any more."""


class Refreshed(msgspec.Struct, frozen=True, kw_only=True):
    """How one server's refresh went."""

    server: str
    tools: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    error: str = ""
    hint: str = ""
    warnings: tuple[str, ...] = ()


def load_catalog(config: Config, files: Files | None = None) -> Catalog:
    """The catalog as the cache has it. Nothing is started; only what `requires` a url is contacted at all."""
    snapshots, warnings = _shelf(config, files).snapshots()
    gated = unavailable(config.servers.values(), Prober().probe_all(config.servers.values()))
    catalog = build(config, snapshots, gated)
    return msgspec.structs.replace(catalog, warnings=(*catalog.warnings, *warnings))


def _shelf(config: Config, files: Files | None) -> Shelf:
    return Shelf(config, files or DiskFiles(), lambda spec: identity_of(spec, config.state_dir))


class Engine:
    """A catalog that stays current, and the connections behind it. Use as `async with Engine(config) as engine`."""

    def __init__(
        self,
        config: Config,
        *,
        files: Files | None = None,
        on_event: Callable[[Event], None] | None = None,
        on_warning: Callable[[str], None] | None = None,
        approve: Approve | None = None,
        refresh: bool | None = None,
        sources: Sequence[Source] = (),
    ) -> None:
        """`refresh` says whether stale servers are asked in the background; by default the configuration does.

        `sources` are in this process; the configuration has a `local` entry for each, by its name.

        `approve` is asked about calls that need a person's approval; without it they are refused.
        """
        self.config = config
        self._on_warning, self._approve = on_warning, approve
        self._refreshes = config.gateway.background_refresh if refresh is None else refresh
        self._sources = {source.name: source for source in sources}
        self._shelf = _shelf(config, files)
        self._on_event = on_event
        self._prober = Prober()
        self._snapshots: dict[str, Snapshot] = {}
        self._gated: dict[str, str] = {}
        self._file_warnings: tuple[str, ...] = ()
        self._catalog = Catalog(version="", tools={}, servers={})
        self._refreshing: dict[str, asyncio.Task[Refreshed]] = {}
        self._failed: dict[str, str] = {}  # why the latest attempt to list a server's tools did
        self._upkeep: asyncio.Task[None] | None = None
        self._relisted: dict[str, float] = {}
        self._asked_again: set[str] = set()
        self._live: LiveIndex | None = None
        self._library: Library | None = None
        self._priors: dict[str, Priors] = {}
        self._office: Office | None = None

    # ── lifetime ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        import asyncio

        from pegboard.upstream.pool import Pool

        self._pool = Pool(
            self.config,
            on_state=self._state_changed,
            on_tools_changed=self._tools_changed,
            on_offers_changed=lambda server: self._emit(OffersChanged(server=server)),
            schema_of=self._schema_of,
            known_version=self._known_version,
        )
        self._refresh_slots = asyncio.Semaphore(self.config.gateway.max_starting)
        self._snapshots, warnings = self._shelf.snapshots()
        self._file_warnings = tuple(warnings)
        for name in self._sources:
            self._snapshots[name] = await self._read_source(name)
        await self._probe()
        self._rebuild()
        if self.config.skill_roots:
            from pegboard.platform_tools.library import open_library

            self._library = await open_library(
                self.config,
                lambda: self.index().embedder,
                on_change=lambda: self._emit(SkillsUpdated()),
                on_warning=self._on_warning,
            )
        if self._refreshes:
            self._upkeep = asyncio.create_task(self._keep_fresh(), name="pegboard upkeep")
        return self

    async def __aexit__(self, *_: object) -> None:
        import asyncio

        tasks = [*self._refreshing.values(), *([self._upkeep] if self._upkeep is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._live is not None:
            await self._live.close()
        await self._pool.close()
        if self._office is not None:
            await self._office.close()

    # ── the catalog ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def catalog(self) -> Catalog:
        """The catalog as it is now: an immutable value, replaced when something changes."""
        return self._catalog

    async def current(self) -> Catalog:
        """The catalog, after looking again at what servers require; answers are kept for half a minute."""
        await self._probe()
        if self._gated != {
            name: entry.unavailable for name, entry in self._catalog.servers.items() if entry.unavailable
        }:
            self._rebuild()
        return self._catalog

    async def _probe(self) -> None:
        specs = self.config.servers.values()
        self._gated = unavailable(specs, await self._prober.probe(specs))

    def _rebuild(self) -> None:
        catalog = build(self.config, self._snapshots, self._gated, previous=self._catalog)
        self._catalog = msgspec.structs.replace(catalog, warnings=(*catalog.warnings, *self._file_warnings))

    # ── refresh ──────────────────────────────────────────────────────────────────────────────────────────────────

    def stale(self) -> list[str]:
        """The servers whose tools should be asked anew."""
        now, after = time.time(), self.config.tools.refresh_after
        return [
            server.name
            for server in self._pool.all()
            if self._catalog.servers[server.name].usable
            and not ((known := self._snapshots.get(server.name)) and known.is_fresh(now, after))
        ]

    async def _keep_fresh(self) -> None:
        """Asks stale servers, a few at a time, now and as long as this lives: one that was down may be up by then."""
        import asyncio

        for name in self.stale():
            self._refresh_task(name)
        while True:
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
            for name in self.stale():
                known = self._snapshots.get(name)
                # How long a list may be relied on is no word on how often its server should be started for it.
                if known is None or not 0 <= time.time() - known.cached_at < self.config.tools.refresh_after:
                    self._refresh_task(name)

    async def refresh(
        self, names: Sequence[str] = (), *, on_done: Callable[[Refreshed], None] | None = None
    ) -> list[Refreshed]:
        """Asks these servers, or all that may be used, for their tools, and waits. Past failures are forgiven."""
        import asyncio

        chosen = list(names) or [
            *self._sources,
            *(server.name for server in self._pool.all() if self._catalog.servers[server.name].usable),
        ]
        for name in chosen:
            if name not in self._sources:
                self._server(name).retry()
        tasks = [self._refresh_task(name) for name in chosen]
        for each in asyncio.as_completed(tasks):
            outcome = await each
            if on_done is not None:
                on_done(outcome)
        return [task.result() for task in tasks]

    def _server(self, name: str) -> Server:
        if name not in self.config.servers:
            raise ServerNotFound(name, self._catalog.nearest_servers(name))
        if problem := self._catalog.servers[name].problem:
            raise ServerUnavailable(name, problem, hint="`pegboard config check` shows where.")
        return self._pool.get(name)

    def _refresh_task(self, name: str) -> asyncio.Task[Refreshed]:
        import asyncio

        running = self._refreshing.get(name)
        if running is None:
            running = asyncio.create_task(self._refresh(name), name=f"pegboard refresh of {name}")
            self._refreshing[name] = running
            running.add_done_callback(lambda _: self._refreshing.pop(name, None))
        return running

    def offer(self, name: str, listing: Listing) -> None:
        """Takes over what a source in this process has now."""
        self._adopt(name, snapshot_of(listing, now=time.time()), ())

    async def _read_source(self, name: str) -> Snapshot:
        return snapshot_of(await self._sources[name].list_tools(), now=time.time())

    async def _refresh(self, name: str) -> Refreshed:
        import asyncio

        if name in self._sources:
            try:
                return self._adopt(name, await self._read_source(name), ())
            except PegboardError as error:
                known = self._catalog.servers[name].tool_count
                return Refreshed(server=name, tools=known, error=error.message, hint=error.hint)
        server = self._pool.get(name)
        if lacks := self._gated.get(name):
            return Refreshed(server=name, error=f"{name}: not asked, for it cannot work now: it {lacks}")
        async with self._refresh_slots:
            was_running = server.is_running
            try:
                listing = await server.list_tools()
            except PegboardError as error:
                self._failed[name] = error.message
                await asyncio.to_thread(self._shelf.put_error, server.spec, error)
                known = self._catalog.servers[name].tool_count
                return Refreshed(server=name, tools=known, error=error.message, hint=error.hint)
            finally:
                if not was_running and not server.is_used:
                    await server.stop()
            snapshot, warning = await asyncio.to_thread(self._shelf.put, server.spec, listing)
        return self._adopt(name, snapshot, (*listing.warnings, *((warning,) if warning else ())))

    def _adopt(self, name: str, snapshot: Snapshot, warnings: tuple[str, ...]) -> Refreshed:
        self._snapshots[name] = snapshot
        self._failed.pop(name, None)
        before = self._catalog
        self._rebuild()
        changes = diff(before, self._catalog).get(name)
        outcome = Refreshed(
            server=name,
            tools=self._catalog.servers[name].tool_count,
            added=changes.added if changes else (),
            removed=changes.removed if changes else (),
            changed=changes.changed if changes else (),
            warnings=warnings,
        )
        if changes:
            self._emit(
                ToolsUpdated(
                    server=name,
                    added=changes.added,
                    removed=changes.removed,
                    changed=changes.changed,
                    catalog_version=self._catalog.version,
                )
            )
        return outcome

    # ── search ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def search(self, query: str, terms: Terms | None = None) -> Answer:
        """The tools that can do what the query says, best first. Nothing is started."""
        from pegboard.index.finder import Terms

        return await self.index().search(await self.current(), query, terms or Terms())

    async def search_skills(self, query: str) -> list[Skill]:
        """The few skills that surely fit what the query says, best first; none where skills are off."""
        return await self._library.search(query) if self._library is not None else []

    async def ready_to_search(self, on_progress: OnProgress | None = None) -> Built | None:
        """Waits until the index is that of the catalog as it is now; None when it was already."""
        return await self.index(on_progress).ready(await self.current())

    def index(self, on_progress: OnProgress | None = None) -> LiveIndex:
        """The index behind `search`; made when it is first needed."""
        if self._live is None:
            from pegboard.index.blas import on_one_core

            with on_one_core():
                from pegboard.index.keeper import keeper_of
                from pegboard.index.live import LiveIndex

            specs = self.config.servers.values()
            self._live = LiveIndex(
                keeper_of(self.config, on_progress),
                limited=[spec.name for spec in specs if spec.config.trust == "limited"],
                max_share=self.config.search.max_server_share,
            )
            self._live.priors = self._priors
        return self._live

    def learn(self, priors: Mapping[str, Priors]) -> None:
        """What past calls say of the tools, by public name; searches take it into account from now on."""
        self._priors = dict(priors)
        if self._live is not None:
            self._live.priors = self._priors

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def call(
        self, name: str, arguments: Json, context: CallContext | None = None, *, via: Via = "framework"
    ) -> Json:
        """Calls a tool by its public or unambiguous bare name; its server starts if need be. What fails is raised."""
        return (
            await self.office()
            .invoker()
            .call(name, arguments, Caller(), context or CallContext(), via=via, verbatim=True, raises=True)
        )

    async def _prepare(self, tool: Tool) -> None:
        if tool.server in self._sources:
            return
        server = self._pool.get(tool.server)
        if server.state is not ServerState.READY:
            try:
                await server.start()
            except PegboardError as error:
                await self._keep_error(server, error)
                raise

    async def _execute(self, tool: Tool, arguments: Json, context: CallContext) -> Json:
        if source := self._sources.get(tool.server):
            return await source.call_tool(tool.name, arguments, context)
        server = self._pool.get(tool.server)
        try:
            return await server.call_tool(tool.name, arguments, context)
        except PegboardError as error:
            await self._keep_error(server, error)
            raise

    async def _keep_error(self, server: Server, error: PegboardError) -> None:
        """What broke a server is kept, for the roster."""
        import asyncio

        if server.state is ServerState.ERROR:
            await asyncio.to_thread(self._shelf.put_error, server.spec, error)

    async def find(self, name: str) -> Tool:
        """The tool. A server that the name points at is asked if it was never listed, or if its list is an old one."""
        try:
            return self._catalog.find(name)
        except ToolNotFound as error:
            unknown, server = error, self._who_may_know(name, error)
            if server is None:
                raise
        was_listed = self._catalog.servers[server].listed is not None
        outcome = await self._refresh_task(server)
        if outcome.error:
            raise unknown if was_listed else PegboardError(outcome.error, hint=outcome.hint)
        return self._catalog.find(name)

    def _who_may_know(self, name: str, error: ToolNotFound) -> str | None:
        """The server to ask about a name the catalog does not have: the cache may be older than the tool."""
        prefix, separator, _ = name.partition("__")
        for entry in self._catalog.servers.values():
            if entry.name in self._sources:
                continue  # what it has is known
            if not separator or not entry.usable or prefix not in (entry.prefix, entry.name):
                continue
            if entry.listed is None:
                return entry.name
            if not error.reason and entry.name not in self._asked_again:
                self._asked_again.add(entry.name)  # once is enough: names that do not exist must not cost a list each
                return entry.name
        return None

    # ── the desk, the call path and the record ───────────────────────────────────────────────────────────────────

    def office(self) -> Office:
        """The call path, the record and the desk; made when it is first needed."""
        if self._office is None:
            from pegboard.platform_tools.office import House, Office

            self._office = Office(
                House(
                    config=self.config,
                    catalog=lambda: self._catalog,
                    find=self.find,
                    prepare=self._prepare,
                    execute=self._execute,
                    search=self.search,
                    unlisted=lambda name: Unlisted(name, name in self._refreshing, self._failed.get(name, "")),
                    learn=self.learn,
                    library=self._library,
                    approve=self._approve,
                    warn=self._on_warning,
                )
            )
        return self._office

    def desk(self) -> FrontDesk:
        """Where every edge lists and calls tools."""
        return self.office().desk()

    # ── what the pool tells ──────────────────────────────────────────────────────────────────────────────────────

    def server(self, name: str) -> Server:
        """One server, for its state."""
        return self._server(name)

    def _state_changed(self, server: str, state: ServerState, reason: str) -> None:
        self._emit(ServerChanged(server=server, state=state, reason=reason))
        if state is ServerState.READY:
            import asyncio

            loop = asyncio.get_running_loop()
            loop.run_in_executor(None, self._shelf.clear_error, self.config.servers[server])

    def _emit(self, event: Event) -> None:
        if self._on_event is not None:
            self._on_event(event)

    def _tools_changed(self, server: str) -> None:
        import asyncio

        loop = asyncio.get_running_loop()
        due = max(loop.time(), self._relisted.get(server, 0.0) + RELIST_SECONDS)
        if self._relisted.get(server, 0.0) > loop.time():
            return  # already planned
        self._relisted[server] = due
        loop.call_at(due, self._relist, server)

    def _relist(self, server: str) -> None:
        if self._pool.get(server).is_running:
            self._refresh_task(server)

    def _schema_of(self, server: str, tool: str) -> Json | None:
        known = self._snapshots.get(server)
        for each in known.tools if known else ():
            if each.name == tool:
                schema: Json | None = msgspec.json.decode(each.definition).get("inputSchema")
                return schema
        return None

    def _known_version(self, server: str) -> str:
        known = self._snapshots.get(server)
        return known.protocol_version if known else ""
