"""The tools of a request, as each wire declares them: what they are called, and the bytes they came in.

Above: `decide`, the editors of requests, `searching`. Below: nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from pegboard.surface.markers import longest
from pegboard.types import Json, Tool

Family = Literal["messages", "completions", "responses"]
MOST_KNOWN = 20_000


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of a request."""

    name: str
    raw: bytes
    """The entry as it came."""
    typed: bool = False
    """Not a plain function: the API runs it itself, or it is of a kind of its own."""
    stays: bool = False
    """Always in sight: it is typed, or code that the API runs may call it."""
    defers: bool = False
    """The client defers it by itself, or it is a search of the API's own."""
    marker: Json | None = None
    """Its cache marker."""
    description: str = ""
    schema: Json = {}

    def tool(self, server: str) -> Tool:
        """As the index knows tools."""
        definition = msgspec.json.encode({"name": self.name, "inputSchema": self.schema})
        return Tool(
            server=server,
            name=self.name,
            public_name=self.name,
            definition=definition,
            fingerprint="",
            description=self.description,
        )


class Declarations:
    """Reads tools, and knows those it has read: an agent sends the same ones with every request."""

    def __init__(self) -> None:
        self._known: dict[tuple[Family, bytes], Declared] = {}

    def read(self, family: Family, entries: Iterable[bytes]) -> list[Declared] | None:
        """The tools of a request; None where one is not what the wire says it is."""
        found = []
        for raw in entries:
            known = self._known.get((family, raw)) or _read(family, raw)
            if known is None:
                return None
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[family, raw] = known
            found.append(known)
        return found


def _read(family: Family, raw: bytes) -> Declared | None:
    try:
        entry: Any = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    kind = entry.get("type")
    function = entry.get("function") if family == "completions" else entry
    typed = kind not in ((None, "custom") if family == "messages" else ("function",)) or not isinstance(function, dict)
    inner: Json = function if isinstance(function, dict) else {}
    schema = inner.get("input_schema" if family == "messages" else "parameters")
    if not typed and not _is_plain(inner.get("name"), inner.get("description"), schema):
        return None
    marker, callers = entry.get("cache_control"), entry.get("allowed_callers")
    return Declared(
        name=str(inner.get("name") or entry.get("name") or ""),
        raw=raw,
        typed=typed,
        stays=typed or (isinstance(callers, list) and any(each != "direct" for each in callers)),
        # Within a text the quotes would be escaped: here it is a key, at whatever depth.
        defers=b'"defer_loading"' in raw or "tool_search" in str(kind) or kind == "namespace",
        marker=marker if isinstance(marker, dict) else None,
        description=str(inner.get("description") or ""),
        schema=schema if isinstance(schema, dict) else {},
    )


def _is_plain(name: Any, description: Any, schema: Any) -> bool:
    """Whether these are what a function has: whatever is not, its API is to see and to refuse."""
    said = isinstance(description, str | None) and isinstance(schema, dict | None)
    return isinstance(name, str) and bool(name) and said


def moved_markers(tools: Sequence[Declared], hidden: Collection[bytes], first: int, step: int) -> dict[int, list[Json]]:
    """Where the cache markers of tools that are out of sight go: to the last before them that is in sight.

    So they mark the same prefix, and stay in their order. Tools stand from place `first` on, after ours; those out of
    sight take `step` places.
    """
    moved: dict[int, list[Json]] = {}
    last, at = first - 1, first
    for tool in tools:
        if tool.raw not in hidden:
            last, at = at, at + 1
            continue
        if tool.marker:
            moved.setdefault(last, []).append(tool.marker)
        at += step
    return moved


def marked(out: list[msgspec.Raw], markers: Mapping[int, Sequence[Json]]) -> list[msgspec.Raw]:
    """The same tools with these markers, of which the one that lasts longest counts, also against the tool's own."""
    for at, moved in markers.items():
        tool: Json = msgspec.json.decode(out[at])
        own = [tool["cache_control"]] if tool.get("cache_control") else []
        out[at] = msgspec.Raw(msgspec.json.encode({**tool, "cache_control": longest([*own, *moved])}))
    return out


def servers(tools: Sequence[Declared]) -> dict[str, str]:
    """The server of each tool, as far as names tell: what stands before `__`, or before a `_` that several share."""
    heads: dict[str, int] = {}
    for each in tools:
        head = _head(each.name)
        heads[head] = heads.get(head, 0) + 1
    return {
        each.name: _head(each.name) if heads[_head(each.name)] > 1 or "__" in each.name else "other" for each in tools
    }


def _head(name: str) -> str:
    bare = name.removeprefix("mcp__")
    head, found, _ = bare.partition("__")
    if found:
        return head
    return bare.replace("-", "_").replace(".", "_").partition("_")[0]
