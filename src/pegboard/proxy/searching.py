"""The bridge's search: Pegboard's own index over the tools of one request, and the two tools that lead to it.

Above: `planner`. Below: `index`, `surface`, `declared`. An index is made when somebody first searches in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

import msgspec

from pegboard.catalog.nearest import nearest
from pegboard.index.finder import Finder, Terms
from pegboard.index.index import Index
from pegboard.protocols import Embedder
from pegboard.proxy.declared import Declared, servers
from pegboard.proxy.memory import digest
from pegboard.surface.render import Detail, rendered
from pegboard.types import Json, Tool

MOST_SETS = 16
MOST_FOUND = 20
"""Tools in one answer, whatever the model asks for."""
SEARCH, CALL = "search_tools", "call_tool"
_SEARCH_TEXT = (
    "Finds more tools. Besides the tools you see there are others, which this finds by what they do. Say what you want "
    "to get done, in plain words; `select:a,b` gives tools by name. The answer has how to call each of them with "
    "`{call}`. Search before you say that something cannot be done. There are:\n{listing}"
)
_CALL_TEXT = (
    "Calls a tool that `{search}` found, by its exact name, with its arguments. Tools that you see beside this one are "
    "called directly instead."
)


class Found(msgspec.Struct, frozen=True):
    """The answer to a search."""

    text: str
    names: tuple[str, ...]


def names_for(tools: Sequence[Declared]) -> tuple[str, str]:
    """What the two tools are called among these, where one might be called so already."""
    taken = {tool.name.lower() for tool in tools}
    prefix = ""
    while taken & {prefix + SEARCH, prefix + CALL}:
        prefix += "pegboard_"
    return prefix + SEARCH, prefix + CALL


def definitions(search: str, call: str, listing: str) -> tuple[Json, Json]:
    """The two tools: name, description and schema of each."""
    query = {"type": "string", "description": "What the tool should do, in a few words."}
    detail = {"type": "string", "enum": ["signature", "schema"], "description": "`schema`: with the whole schema."}
    limit = {"type": "integer", "minimum": 1, "maximum": MOST_FOUND}
    finds = _object({"query": query, "limit": limit, "detail": detail}, ["query"])
    calls = _object(
        {
            "name": {"type": "string", "description": "The tool's exact name."},
            "arguments": {"type": "object", "description": "Its arguments.", "additionalProperties": True},
        },
        ["name", "arguments"],
    )
    return (
        {"name": search, "description": _SEARCH_TEXT.format(call=call, listing=listing), "schema": finds},
        {"name": call, "description": _CALL_TEXT.format(search=search), "schema": calls},
    )


def _object(properties: Json, required: list[str]) -> Json:
    return {"type": "object", "properties": properties, "required": required}


class Searching:
    """Searches in sets of tools, and keeps the indexes of the latest."""

    def __init__(self, embedder: Embedder | None, limit: int) -> None:
        self._embedder = embedder
        self._limit = limit
        self._finders: dict[str, asyncio.Future[Finder]] = {}

    async def search(self, tools: Sequence[Declared], asked: Json, call: str, in_sight: Collection[str] = ()) -> Found:
        """What there is for this query among these tools, as text for a model, which sees those `in_sight` already."""
        query = str(asked.get("query") or asked.get("intent") or "").strip()
        if not query:
            return Found(f"Say what the tool should do. There are {len(tools)} tools to be found.", ())
        finder = await self._finder(tools)
        limit = asked.get("limit")
        most = min(limit, MOST_FOUND) if isinstance(limit, int) and limit > 0 else self._limit
        answer = await finder.search(query, Terms(limit=most))
        hits = [finder.tools[hit.name] for hit in answer.hits if hit.name in finder.tools]
        seen = [name for name in dict.fromkeys((*answer.unknown, query)) if name in in_sight]
        unknown = [name for name in answer.unknown if name not in seen]
        more = [f"You see {', '.join(seen)} already: call directly."] if seen else []
        if not hits:
            more += [_nothing(query, finder.tools, unknown)] if unknown or not seen else []
            return Found("\n".join(more), ())
        detail: Detail = "schema" if asked.get("detail") == "schema" else "signature"
        more += [f"No tool is called {', '.join(unknown)}."] if unknown else []
        lines = [f"Call with {call}(name, arguments):", *(rendered(tool, detail) for tool in hits), *more]
        return Found("\n".join(lines), tuple(tool.public_name for tool in hits))

    async def _finder(self, tools: Sequence[Declared]) -> Finder:
        key = digest(*(tool.raw for tool in tools))
        made = self._finders.get(key)
        if made is None:
            made = asyncio.ensure_future(self._made(tools, key))
            self._finders[key] = made
            while len(self._finders) > MOST_SETS:
                del self._finders[next(iter(self._finders))]
        try:
            return await asyncio.shield(made)
        except BaseException:
            if made.done():
                self._finders.pop(key, None)
            raise

    async def _made(self, tools: Sequence[Declared], key: str) -> Finder:
        from pegboard.index.build import assemble, plan, texts_to_embed

        where = servers(tools)
        known = {tool.name: tool.tool(where[tool.name]) for tool in tools}
        identity = self._embedder.identity if self._embedder else ""
        work = await asyncio.to_thread(plan, known.values(), identity)
        vectors = await self._embedder.embed(texts_to_embed(work)) if self._embedder else None
        parts = await asyncio.to_thread(assemble, work, catalog=key, embedder=identity, vectors=vectors)
        return Finder(known, Index(parts), self._embedder)


def unknown_tool(name: str, tools: Sequence[Declared], search: str) -> str:
    """The answer to a call of a tool that is not there."""
    near = nearest(name, [tool.name for tool in tools])
    hint = f"Did you mean {', '.join(near)}? " if near else ""
    return f"There is no tool named {name!r}. {hint}{search} finds tools by what they do."


def _nothing(query: str, known: Mapping[str, Tool], unknown: Sequence[str]) -> str:
    where = list(dict.fromkeys(tool.server for tool in known.values()))[:40]
    about = f"No tool is called {', '.join(unknown)}." if unknown else f"No tool fits {query[:200]!r}."
    return f"{about} Say it in other words. There are {len(known)} tools, of: {', '.join(where)}."
