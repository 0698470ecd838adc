"""Filters: which tools may be found at all. They apply before ranking, so that the list stays full.

A tool that a filter has no figures for is never left out by it. Above: `index`. Below: the nouns.
"""

from __future__ import annotations

import msgspec

from pegboard.catalog.permit import Permit, permit_of
from pegboard.types import Priors, Tool


class Narrow(msgspec.Struct, frozen=True, kw_only=True):
    """What a search is narrowed to; the default narrows nothing."""

    servers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """All of these."""
    scopes: tuple[str, ...] | None = None
    """Permissions the caller has: tools that need others are left out."""
    allow: tuple[str, ...] | None = None
    """Globs of public or bare names, a tenant's allowlist: nothing else is found."""
    within: tuple[tuple[str, ...], ...] = ()
    """More allowlists, all of which must admit a tool too."""
    max_cost_usd: float | None = None
    max_latency_ms: float | None = None
    latency: str = "p95"
    """Which latency `max_latency_ms` means: `p95` or `p99`."""

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self == Narrow()

    def admits(self, tool: Tool, priors: Priors | None) -> bool:
        """Whether this tool may be found."""
        return (
            (not self.servers or tool.server in self.servers)
            and (not self.tags or set(self.tags) <= set(tool.tags))
            and self._permit.admits(tool)
            and self._affordable(tool, priors)
            and self._quick(priors)
        )

    @property
    def _permit(self) -> Permit:
        return permit_of(self.within if self.allow is None else (*self.within, self.allow), self.scopes)

    def _affordable(self, tool: Tool, priors: Priors | None) -> bool:
        if self.max_cost_usd is None:
            return True
        known = priors.cost_usd if priors is not None and priors.cost_usd is not None else tool.cost_usd
        return known is None or known <= self.max_cost_usd

    def _quick(self, priors: Priors | None) -> bool:
        if self.max_latency_ms is None or priors is None:
            return True
        known = priors.p99_ms if self.latency == "p99" else priors.p95_ms
        return known is None or known <= self.max_latency_ms
