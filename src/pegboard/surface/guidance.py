"""The few words for a prompt: that there is more than is listed, and, once, that the tools have changed.

Above: whoever writes into a prompt. Below: `compose`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from pegboard.surface.compose import Surface
from pegboard.surface.visible import one_line
from pegboard.types import Tool

MOST_NAMES = 12
_LONGEST_NAME = 72


def guidance(surface: Surface, *, search: str = "search_tools", call: str = "call_tool") -> str:
    """One paragraph while something is deferred, else nothing; the same text as long as nothing changes.

    Without a `call`, what is found is put on the list: the paragraph then speaks of the list as it is at first, for it
    must not change with every tool that is loaded.
    """
    hidden = surface.hidden(at_first=not call)
    count = sum(hidden.values())
    if not count:
        return ""
    more = "1 more tool" if count == 1 else f"{count:,} more tools"
    where = "1 server" if len(hidden) == 1 else f"{len(hidden):,} servers"
    can = f"{more} on {where} can be used but {'is' if count == 1 else 'are'} not listed"
    first = "search before you say that something cannot be done"
    if call:
        return (
            f"{can} here. When no listed tool fits, {first}: {search} takes what you want to do in plain words and "
            f"answers with how to call what it finds; {call} calls it, in the same turn."
        )
    return (
        f"{can} until {'it is' if count == 1 else 'they are'} found. When no listed tool fits, {first}: {search} takes "
        "what you want to do in plain words and loads what it finds; then call that by its name."
    )


class News(msgspec.Struct, frozen=True):
    """What a conversation has not been told yet of tools that came and went. Once told, begin with `News()`."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    def then(self, later: News) -> News:
        """Both together: what came and went again, or went and came back, is no news."""
        return News(
            added=_minus((*_minus(self.added, later.removed), *_minus(later.added, self.removed)), ()),
            removed=_minus((*_minus(self.removed, later.added), *_minus(later.removed, self.added)), ()),
        )

    def notice(self) -> str:
        """What to tell; empty when there is nothing."""
        if not self:
            return ""
        parts = ["The tools have changed."]
        if self.added:
            parts.append(f"Now available: {_listed(self.added)}.")
        if self.removed:
            parts.append(f"No longer available: {_listed(self.removed)}.")
        if self.added:
            parts.append("Earlier refusals, and conclusions that something cannot be done, may no longer hold.")
        return " ".join(parts)


def news(before: Mapping[str, Tool], after: Mapping[str, Tool], admits: Callable[[Tool], bool] | None = None) -> News:
    """What changed from one catalog to the next, as far as the caller may use it."""

    def fresh(tools: Mapping[str, Tool], others: Mapping[str, Tool]) -> tuple[str, ...]:
        return tuple(name for name, tool in tools.items() if name not in others and (admits is None or admits(tool)))

    return News(fresh(after, before), fresh(before, after))


def _minus(names: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    out = set(others)
    return tuple(dict.fromkeys(name for name in names if name not in out))


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(one_line(name, _LONGEST_NAME) for name in names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{shown} and {more:,} more" if more > 0 else shown
