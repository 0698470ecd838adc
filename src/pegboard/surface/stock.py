"""A catalog as surfaces are made from it: which tools are pinned and by what, and what each costs to show.

Nothing in here depends on a conversation: it is made once for a catalog, and every surface shares it.
Above: `compose`. Below: `tokens`, the catalog's globs.
"""

from __future__ import annotations

from collections import Counter as Counted
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

import msgspec

from pegboard.catalog.filter import Named, compile_globs, matched, named, near_misses
from pegboard.catalog.permit import Permit
from pegboard.surface.tokens import WORD_PIECES, Counter, tool_tokens
from pegboard.types import Tool

ALWAYS_LOAD = "anthropic/alwaysLoad"
MOST_SELF_PINNED = 32
"""Tools that one server may put on every surface by its own word: it must not be able to crowd out the rest."""
_RANGES_KEPT = 64
_MARK = ALWAYS_LOAD.encode()


class Range(msgspec.Struct, frozen=True, dict=True):
    """What one permit leaves of the stock. Made once, so that no turn goes through all tools."""

    tools: Mapping[str, Tool]
    named: tuple[str, ...]
    """Those that an allowlist calls by name."""
    tokens: Callable[[str], int]

    @cached_property
    def count_by_server(self) -> dict[str, int]:
        """How many tools each server has in it."""
        return dict(Counted(tool.server for tool in self.tools.values()))

    @cached_property
    def tokens_by_server(self) -> dict[str, int]:
        """What all of them would cost to show; takes a while with many thousands."""
        total: dict[str, int] = {}
        for name, tool in self.tools.items():
            total[tool.server] = total.get(tool.server, 0) + self.tokens(name)
        return total


class Stock(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All tools that could be shown."""

    tools: Mapping[str, Tool]
    """By public name, in the catalog's order."""
    pinned: dict[str, str]
    """Those that are always shown, each with what pinned it, in the catalog's order."""
    complete: bool = True
    """Whether every server's tools are known."""
    rules: tuple[str, ...] = ()
    """The configured `pinned` globs."""
    over: dict[str, int] = {}
    """By server, how many tools it wanted to pin beyond what it may."""
    counter: Counter = WORD_PIECES

    def range(self, permit: Permit) -> Range:
        """What this permit leaves of it."""
        known = self._ranges.get(permit)
        if known is None:
            tools = permit.admitted(self.tools)
            known = Range(tools, tuple(permit.names(tools)), self.tokens)
            if len(self._ranges) >= _RANGES_KEPT:
                self._ranges.clear()
            self._ranges[permit] = known
        return known

    def tokens(self, name: str) -> int:
        """What this tool costs to show."""
        found = self._counted.get(name)
        if found is None:
            found = self._counted[name] = tool_tokens(self.tools[name], self.counter)
        return found

    def weigh_more_than(self, limit: int, names: Iterable[str] | None = None) -> bool:
        """Whether these tools, or all, cost more than that; counts no further than it must."""
        total = 0
        for name in self.tools if names is None else names:
            total += self.tokens(name)
            if total > limit:
                return True
        return False

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What the configuration or a server wants and does not get."""
        return (*self._idle_rules(), *self._crowding())

    @cached_property
    def _counted(self) -> dict[str, int]:
        return {}

    @cached_property
    def _ranges(self) -> dict[Permit, Range]:
        return {}

    def _idle_rules(self) -> Iterator[str]:
        if not self.rules or not self.complete:
            return
        known = [_named(tool) for tool in self.tools.values()]
        hit = matched(self.rules, known)
        for rule in self.rules:
            if rule not in hit:
                near = near_misses(rule, known)
                also = f"; near: {', '.join(near)}" if near else ""
                yield f"pinned rule {rule!r} matches none of the {len(known):,} tools{also}"

    def _crowding(self) -> Iterator[str]:
        for server, more in self.over.items():
            yield (
                f"server {server} asks for {MOST_SELF_PINNED + more:,} of its tools to be always shown; "
                f"{MOST_SELF_PINNED} are, the others are deferred (`pinned` or `lazy = false` would show them)"
            )


def stock_of(
    tools: Mapping[str, Tool],
    pinned: tuple[str, ...] = (),
    *,
    complete: bool = True,
    counter: Counter = WORD_PIECES,
    previous: Stock | None = None,
) -> Stock:
    """The stock of a catalog's tools; what `previous` counted of tools that are the same is not counted again."""
    pins, over = _pins(tools, pinned)
    made = Stock(tools=tools, pinned=pins, complete=complete, rules=pinned, over=over, counter=counter)
    if previous is not None and previous.counter is counter:
        made._counted.update(
            (name, count)
            for name, count in previous._counted.copy().items()  # another thread may be counting just now
            if name in tools and tools[name].definition == previous.tools[name].definition
        )
    return made


def _pins(tools: Mapping[str, Tool], rules: tuple[str, ...]) -> tuple[dict[str, str], dict[str, int]]:
    globs = compile_globs(rules)
    pins: dict[str, str] = {}
    asked: dict[str, int] = {}
    for name, tool in tools.items():
        if globs and globs.match(_named(tool)):
            pins[name] = "`pinned` in the configuration"
        elif not tool.lazy:
            pins[name] = "`lazy = false` of its server"
        elif _MARK in tool.definition and _asks_for_it(tool):
            asked[tool.server] = asked.get(tool.server, 0) + 1
            if asked[tool.server] <= MOST_SELF_PINNED:
                pins[name] = f"its `_meta` says {ALWAYS_LOAD}"
    over = {server: count - MOST_SELF_PINNED for server, count in asked.items() if count > MOST_SELF_PINNED}
    return pins, over


def _asks_for_it(tool: Tool) -> bool:
    meta = tool.parsed().get("_meta")
    return isinstance(meta, dict) and meta.get(ALWAYS_LOAD) is True


def _named(tool: Tool) -> Named:
    return named(tool.server, tool.name, tool.public_name)
