"""A desk over a small office of tools: a real catalog, a real index, the real call path; only the servers are fakes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from pegboard.catalog.catalog import Catalog
from pegboard.catalog.slices import Inputs, ServerEntry, Slice
from pegboard.config.model import CallsConfig, ServerConfig, ServerSpec, SurfaceConfig
from pegboard.index.finder import Finder, Terms
from pegboard.invoke.path import Invoker
from pegboard.platform_tools.conversations import Conversations
from pegboard.platform_tools.desk import FrontDesk, Parts
from pegboard.platform_tools.library import Library
from pegboard.protocols import Store
from pegboard.surface.tokens import WORD_PIECES
from pegboard.testing import FakeSource, FakeStore
from pegboard.types import Answer, CallContext, Caller, Json, Record, Tool, Unlisted
from tests.unit.index.given import by_name, index_of, office, static

ANA = Caller(conversation="ana")


def catalog_of(tools: Iterable[Tool], version: str = "1") -> Catalog:
    """A catalog of just these."""
    known = by_name(tools)
    servers = dict.fromkeys(tool.server for tool in known.values())
    entries = {name: ServerEntry(name=name, prefix=name, listed=1) for name in servers}
    slices = {
        name: Slice(
            inputs=Inputs(spec=ServerSpec(name=name, config=ServerConfig())),
            entry=entry,
            tools=tuple(tool for tool in known.values() if tool.server == name),
        )
        for name, entry in entries.items()
    }
    return Catalog(version=version, tools=known, servers=entries, slices=slices)


class Office:
    """The desk, and what a test looks at behind it."""

    def __init__(
        self,
        tools: Iterable[Tool] | None = None,
        *,
        store: Store | None = None,
        results: dict[str, Any] | None = None,
        calls: CallsConfig = CallsConfig(),  # noqa: B008 - frozen
        library: Library | None = None,
        unlisted: Callable[[str], Unlisted] = Unlisted,
        **surface: Any,
    ) -> None:
        self.now = time.time()
        self.records: list[Record] = []
        self.store = store if store is not None else FakeStore()
        self.show(list(tools) if tools is not None else office())
        self.results = results or {}
        self.called: list[tuple[str, Json]] = []
        self.surface = SurfaceConfig(**{"mode": "on", **surface})
        self.invoker = Invoker(
            self._find,
            self._execute,
            calls=calls,
            record=self.records.append,
            activate=lambda caller, tool: self.desk.activate(caller, tool),
            count_tokens=WORD_PIECES.count,
        )
        self.conversations = Conversations(
            lambda: self.store,
            cap=self.surface.max_active,
            ttl=self.surface.activation_ttl,
            now=lambda: self.now,
        )
        self.desk = FrontDesk(
            Parts(
                catalog=lambda: self.catalog,
                search=self._search,
                unlisted=unlisted,
                invoker=lambda: self.invoker,
                conversations=self.conversations,
                record=self.records.append,
                surface=self.surface,
                calls=calls,
                library=library,
                now=lambda: self.now,
            )
        )

    def show(self, tools: list[Tool], version: str = "1") -> None:
        """From now on these are the tools."""
        self.catalog = catalog_of(tools, version)
        self._finder = Finder(self.catalog.tools, index_of(*tools), static())

    async def _search(self, query: str, terms: Terms) -> Answer:
        return await self._finder.search(query, terms)

    async def _find(self, name: str) -> Tool:
        return self.catalog.find(name)

    async def _execute(self, tool: Tool, arguments: Json, context: CallContext) -> Json:
        self.called.append((tool.public_name, arguments))
        source = FakeSource(tool.server, [tool.name], results={tool.name: r} if (r := self._result(tool)) else {})
        return await source.call_tool(tool.name, arguments, context)

    def _result(self, tool: Tool) -> Any:
        return self.results.get(tool.public_name)

    async def call(self, name: str, arguments: Any = None, caller: Caller = ANA) -> Json:
        """What the desk answers."""
        return await self.desk.call_tool(name, arguments, caller, CallContext())

    async def search(self, query: str, caller: Caller = ANA, **more: Any) -> str:
        """The words of a search's answer."""
        return text_of(await self.call("search_tools", {"query": query, **more}, caller))

    def listed(self, caller: Caller = ANA) -> list[str]:
        """The names on the list."""
        return [definition["name"] for definition in self.desk.tools(caller)]

    def active(self, caller: Caller = ANA) -> list[str]:
        """What the conversation has loaded."""
        return list(self.conversations.get(caller.conversation).activation.names)


def text_of(result: Json) -> str:
    """All texts of a result."""
    return "\n".join(block["text"] for block in result["content"])
