"""What a caller may use at all: the one place where an allowlist meets a tool. It filters before anything is asked.

Above: the index, the surface and the call path. Below: `filter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from pegboard.catalog.filter import Globs, compile_globs, named
from pegboard.types import Tool

AllowLists = tuple[tuple[str, ...], ...]


class Permit(msgspec.Struct, frozen=True):
    """Allowlists that all must admit a tool, and the permissions that the caller has."""

    lists: tuple[Globs, ...] = ()
    scopes: frozenset[str] | None = None

    @property
    def everything(self) -> bool:
        """Whether no tool is left out."""
        return not self.lists and self.scopes is None

    def admits(self, tool: Tool) -> bool:
        """Whether this tool may be seen, found and called."""
        if self.scopes is not None and not self.scopes.issuperset(tool.scopes):
            return False
        names = named(tool.server, tool.name, tool.public_name)
        return all(globs.match(names) for globs in self.lists)

    def admitted(self, tools: Mapping[str, Tool]) -> Mapping[str, Tool]:
        """Of these, what may be used."""
        if self.everything:
            return tools
        return {name: tool for name, tool in tools.items() if self.admits(tool)}

    def names(self, tools: Mapping[str, Tool]) -> Iterable[str]:
        """Of these, which are on an allowlist by name and not just under a pattern."""
        exact = frozenset[str]().union(*(globs.exact for globs in self.lists))
        if exact:
            yield from (name for name, tool in tools.items() if name in exact or tool.name in exact)


@lru_cache(maxsize=256)
def permit_of(lists: AllowLists, scopes: tuple[str, ...] | None = None) -> Permit:
    """The permit of these allowlists (none allows everything) and these permissions (None: all)."""
    return Permit(tuple(map(compile_globs, dict.fromkeys(lists))), None if scopes is None else frozenset(scopes))
