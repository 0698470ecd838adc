"""Whether tools are deferred at all in this conversation: off, on, or by how much they weigh.

Above: `compose`. Below: the configuration.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pegboard.config.model import SurfaceConfig

NO_ROOM = (
    "max_active = 0 leaves no room for tools that are loaded on demand, so nothing is deferred; "
    'say mode = "off" if that is meant, or give it room.'
)
NO_SEARCH = "No tool that searches is offered, so nothing is deferred: what is hidden could not be found."


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided, and by which rule."""

    deferring: bool
    rule: str
    """The settings it was decided under; other settings are another question."""
    why: str = ""
    warning: str = ""
    final: bool = True
    """False while not all tools are known: few tools may become many."""

    @property
    def passing(self) -> bool:
        """Whether the configuration asks for every tool as it is, whatever they weigh."""
        return not self.deferring and not self.rule.startswith("auto")


def threshold_tokens(config: SurfaceConfig) -> int:
    """Where `auto` begins to defer, in tokens."""
    said = config.threshold
    if isinstance(said, int):
        return said
    return int(float(said.removesuffix("%")) * config.context_window / 100)


def decide(
    config: SurfaceConfig,
    weigh_more_than: Callable[[int], bool],
    *,
    before: Verdict | None = None,
    complete: bool = True,
    searchable: bool = True,
    empty: bool = False,
) -> Verdict:
    """Off, on, or by weight; what was once decided by weight stays for the conversation.

    `complete` says whether every server's tools are known, `empty` that none is. A client that starts us for the first
    time and asks only once must not be left without anything: it gets our own tools, and finds the rest with them.
    """
    if config.mode == "off":
        return Verdict(deferring=False, rule="off", why='mode = "off"')
    if config.max_active == 0:
        return Verdict(deferring=False, rule="no room", why="max_active = 0", warning=NO_ROOM)
    if not searchable:
        return Verdict(deferring=False, rule="no search", why="nothing searches", warning=NO_SEARCH)
    if config.mode == "on":
        return Verdict(deferring=True, rule="on", why='mode = "on"')
    limit = threshold_tokens(config)
    rule = f"auto above {limit}"
    if before is not None and before.final and before.rule == rule:
        return before
    if empty and not complete:
        return Verdict(deferring=True, rule=rule, why="no server has been asked for its tools yet", final=False)
    if weigh_more_than(limit):
        return Verdict(deferring=True, rule=rule, why=f"the tools weigh more than {limit:,} tokens")
    return Verdict(deferring=False, rule=rule, why=f"the tools weigh no more than {limit:,} tokens", final=complete)
