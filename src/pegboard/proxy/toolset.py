"""The tools of a request together. An agent sends the same ones every time: what follows from them is worked out once.

Above: `planner`, the editors of requests. Below: `declared`, `decide`. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from pegboard.proxy.decide import split
from pegboard.proxy.declared import Declarations, Declared, Family, marked, moved_markers
from pegboard.proxy.memory import digest
from pegboard.types import Json

MOST_SETS = 32
MOST_OFFERS = 8
"""Ways to offer one set of tools, and to write one offer."""
Known = TypeVar("Known")


class Offer:
    """Which of a set of tools are in sight, and which are deferred."""

    def __init__(self, tools: Sequence[Declared], deferred: Sequence[Declared]) -> None:
        self.tools = tools
        self.deferred = deferred
        self.hidden = frozenset(tool.raw for tool in deferred)
        self.resident = frozenset(tool.name for tool in tools if tool.raw not in self.hidden)
        self._written: dict[bytes, list[msgspec.Raw]] = {}

    def with_ours(self, ours: Sequence[Json]) -> list[msgspec.Raw]:
        """As they are sent where Pegboard searches: ours first, where they stay when an agent gets more tools, then
        those in sight."""
        entries = [msgspec.Raw(msgspec.json.encode(each)) for each in ours]
        return self.written(b"\n".join(map(bytes, entries)), lambda: self._in_sight(entries))

    def written(self, key: bytes, write: Callable[[], list[msgspec.Raw]]) -> list[msgspec.Raw]:
        """What `write` gives, which is the same whenever the key is."""
        return _once(self._written, key, write)

    def _in_sight(self, ours: list[msgspec.Raw]) -> list[msgspec.Raw]:
        stay = [msgspec.Raw(tool.raw) for tool in self.tools if tool.raw not in self.hidden]
        return marked([*ours, *stay], moved_markers(self.tools, self.hidden, len(ours), 0))


class ToolSet:
    """All tools of a request."""

    def __init__(self, tools: list[Declared]) -> None:
        self.tools = tools
        self.names = frozenset(tool.name for tool in tools if tool.name)
        self.known = {tool.name: tool for tool in tools if not tool.typed}
        self.is_sound = len(self.known) == sum(not tool.typed for tool in tools)
        """Whether each name is there once."""
        self.defers = any(tool.defers for tool in tools)
        """Whether the client defers some by itself."""
        self.mark = digest(*(tool.name for tool in tools))
        self._offers: dict[tuple[Any, ...], Offer] = {}

    def offer(self, profile: str, keep: tuple[str, ...], kept: Sequence[str]) -> Offer:
        """What is in sight for an agent of this profile, when these are kept."""
        return _once(
            self._offers,
            (profile, keep, *kept),
            lambda: Offer(self.tools, split(self.tools, profile, keep, kept)[1]),
        )


class ToolSets:
    """Reads the tools of requests, and knows those that came lately."""

    def __init__(self) -> None:
        self._declarations = Declarations()
        self._sets: dict[tuple[Family, bytes], ToolSet] = {}

    def read(self, family: Family, raw: bytes) -> ToolSet | None:
        """The tools of a request, by the bytes they came in; None when these are not what the wire says they are."""
        known = self._sets.pop((family, raw), None)
        if known is None:
            entries = msgspec.json.decode(raw, type=list[msgspec.Raw])
            tools = self._declarations.read(family, map(bytes, entries))
            if tools is None:
                return None
            known = ToolSet(tools)
        self._sets[family, raw] = known
        while len(self._sets) > MOST_SETS:
            del self._sets[next(iter(self._sets))]
        return known


def _once(known: dict[Any, Known], key: Any, make: Callable[[], Known]) -> Known:
    if key not in known:
        while len(known) >= MOST_OFFERS:
            del known[next(iter(known))]
        known[key] = make()
    return known[key]
