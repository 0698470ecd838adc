"""What a caller may use at all, and what an allowlist calls by name. It filters before anything else is asked.

Above: `compose`. Below: the catalog's globs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from pegboard.catalog.filter import Globs, Named, compile_globs
from pegboard.types import Tool


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
        names = Named(tool.name, tool.public_name, tool.public_name)
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


def permit_of(lists: Iterable[Sequence[str] | None], scopes: Sequence[str] | None = None) -> Permit:
    """The permit of these allowlists (None allows everything) and these permissions (None: all)."""
    said = dict.fromkeys(tuple(each) for each in lists if each is not None)
    return Permit(tuple(compile_globs(each) for each in said), None if scopes is None else frozenset(scopes))
