"""What one conversation is shown this turn, and why: the surface.

First match wins: Pegboard's own, pinned, named by an allowlist, loaded in this conversation (where the wire lets a
list vary by conversation), else deferred and counted. Above: the engine and what shows it. Below: `stock`, `mode`,
`activation`, `permit`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property

import msgspec

from pegboard.catalog.permit import AllowLists, Permit, permit_of
from pegboard.config.model import SurfaceConfig
from pegboard.surface.activation import Activation, Change
from pegboard.surface.mode import Verdict, decide
from pegboard.surface.stock import Range, Stock
from pegboard.surface.tokens import definition_tokens
from pegboard.types import Json, Tool


class Reason(StrEnum):
    """Why a tool is shown, or is not."""

    OWN = "own"
    PINNED = "pinned"
    NAMED = "named"
    """An allowlist calls it by name."""
    ACTIVE = "active"
    PASSED = "passed"
    """Nothing is deferred here."""
    DEFERRED = "deferred"


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One tool that is shown."""

    name: str
    reason: Reason
    tokens: int


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """All that a surface is made from, but for the conversation's own state."""

    stock: Stock
    config: SurfaceConfig
    own: tuple[Json, ...] = ()
    """Definitions of Pegboard's own tools, in their order."""
    always: tuple[Json, ...] = ()
    """Further ones, which are shown even where nothing is deferred."""
    lists: AllowLists = ()
    """Allowlists that the caller is bound by."""
    scopes: tuple[str, ...] | None = None
    list_active: bool = False
    """Whether the wire lets a list vary by conversation, and loaded tools are to be on it."""


class Surface(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What a model sees this turn. Tokens and definitions are worked out when they are asked for."""

    basis: Basis
    range: Range
    """Every tool this caller may use, shown or not."""
    reasons: dict[str, Reason]
    """Why each tool that is shown is shown, in the order of the list."""
    verdict: Verdict
    activation: Activation
    """What to keep for the next turn; the very one that came in when nothing changed."""

    @property
    def permitted(self) -> Mapping[str, Tool]:
        """Every tool this caller may use, shown or not, by public name."""
        return self.range.tools

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that are shown, in their order."""
        return tuple(self.reasons)

    @property
    def deferred(self) -> int:
        """How many tools are not shown, all of them callable."""
        return len(self.permitted) - sum(reason is not Reason.OWN for reason in self.reasons.values())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know of how it came about."""
        return (*([self.verdict.warning] if self.verdict.warning else []), *self.basis.stock.warnings)

    def reason(self, name: str) -> Reason | None:
        """Why this tool is shown or not; None when there is no such tool for this caller."""
        return self.reasons.get(name) or (Reason.DEFERRED if name in self.permitted else None)

    @cached_property
    def pinned(self) -> frozenset[str]:
        """Tools that are shown whatever is loaded: they take no places."""
        shown = (Reason.OWN, Reason.PINNED, Reason.NAMED)
        return frozenset(name for name, reason in self.reasons.items() if reason in shown)

    @cached_property
    def mark(self) -> str:
        """Another one for another list: its names in their order, what of our own changes, and the definitions."""
        own = "".join(each["description"] for each in (*self.basis.own[:1], *self.basis.always))
        pins = [self.permitted[name].fingerprint for name in self.reasons if name in self.permitted]
        return "\0".join((*self.reasons, own, *pins))

    @cached_property
    def definitions(self) -> tuple[Json, ...]:
        """The list itself: each definition as its server sent it, under its public name."""
        own = {str(definition["name"]): definition for definition in (*self.basis.own, *self.basis.always)}
        return tuple(
            own[name] if reason is Reason.OWN else {**self.permitted[name].parsed(), "name": name}
            for name, reason in self.reasons.items()
        )

    @cached_property
    def shown(self) -> tuple[Entry, ...]:
        """Each tool on the list with its reason and what it costs."""
        stock = self.basis.stock
        ours = (*self.basis.own, *self.basis.always)
        own = {str(each["name"]): definition_tokens(each, stock.counter) for each in ours}
        return tuple(
            Entry(name, reason, own[name] if reason is Reason.OWN else stock.tokens(name))
            for name, reason in self.reasons.items()
        )

    @cached_property
    def deferred_tokens(self) -> dict[str, int]:
        """What the tools that are not shown would cost, by server."""
        if not self.deferred:
            return {}
        spared = dict(self.range.tokens_by_server)
        for name in self.reasons:
            if tool := self.permitted.get(name):
                spared[tool.server] -= self.basis.stock.tokens(name)
        return {server: spared[server] for server in self.hidden()}

    def hidden(self, *, at_first: bool = False) -> dict[str, int]:
        """How many tools are not shown, by server; `at_first`: as if this conversation had loaded none."""
        left = dict(self.range.count_by_server)
        for name, reason in self.reasons.items():
            if (tool := self.permitted.get(name)) and not (at_first and reason is Reason.ACTIVE):
                left[tool.server] -= 1
        return {server: count for server, count in left.items() if count}

    def tokens(self, *reasons: Reason) -> int:
        """What is shown for these reasons costs; without any, all that is shown."""
        return sum(entry.tokens for entry in self.shown if not reasons or entry.reason in reasons)

    @property
    def counted(self) -> str:
        """How tokens were counted."""
        return self.basis.stock.counter.name

    def carried(self, activation: Activation) -> Surface | None:
        """The same for a later state of the conversation that changes nothing on the list; None when it might."""
        mine = self.activation
        if activation is mine:
            return self
        if (activation.listed, activation.verdict) != (mine.listed, mine.verdict):
            return None
        if (activation.allow, activation.cap) != (mine.allow, mine.cap):
            return None
        if self.basis.list_active and activation.names != mine.names:
            return None
        later = msgspec.structs.replace(self, activation=activation)
        later.__dict__.update(self.__dict__)  # what was worked out of the list holds for the same list
        return later

    def activated(self, names: Iterable[str], now: float) -> Change:
        """What finding these, best first, does to the conversation; none that the caller may not use is loaded."""
        return self.activation.activated((name for name in names if name in self.permitted), now, self.pinned)

    def used(self, name: str, now: float) -> Change:
        """What a good call of this tool does to the conversation."""
        return self.activated((name,), now)

    def fork(self, *, inherit: bool = True, allow: Sequence[str] | None = None) -> Surface:
        """The surface of a sub-agent: a snapshot or an empty one, independent of this one from here on."""
        child = self.activation.fork(inherit=inherit, allow=allow)
        permit = _permit(self.basis, child)
        refused = {name for name in child.names if (tool := self.permitted.get(name)) and not permit.admits(tool)}
        return composed(self.basis, child.without(refused))


def compose(
    stock: Stock,
    config: SurfaceConfig,
    own: Sequence[Json] = (),
    activation: Activation | None = None,
    *,
    always: Sequence[Json] = (),
    lists: AllowLists = (),
    scopes: Sequence[str] | None = None,
    list_active: bool = False,
) -> Surface:
    """The surface of one conversation now.

    Give no activation where a list must not vary by conversation: it is then a function of the catalog alone.
    """
    basis = Basis(
        stock=stock,
        config=config,
        own=tuple(own),
        always=tuple(always),
        lists=lists,
        scopes=None if scopes is None else tuple(scopes),
        list_active=list_active,
    )
    return composed(basis, activation if activation is not None else Activation(cap=config.max_active))


def composed(basis: Basis, activation: Activation) -> Surface:
    """The surface of one conversation on this basis."""
    activation = activation.capped(basis.config.max_active)
    stock, permit = basis.stock, _permit(basis, activation)
    available = stock.range(permit)
    permitted = available.tools
    verdict = decide(
        basis.config,
        lambda limit: stock.weigh_more_than(limit, permitted),
        before=activation.verdict,
        # Without a single tool there is nothing to decide yet.
        complete=stock.complete and bool(permitted),
        searchable=bool(basis.own),
        empty=not stock.tools and not stock.complete,
    )
    wanted = _wanted(basis, available, activation) if verdict.deferring else _everything(basis, permitted)
    reasons = wanted if verdict.passing else _in_order(wanted, activation.listed)
    return Surface(
        basis=basis,
        range=available,
        reasons=reasons,
        verdict=verdict,
        activation=activation.after(() if verdict.passing else tuple(reasons), verdict if verdict.final else None),
    )


def _permit(basis: Basis, activation: Activation) -> Permit:
    return permit_of((*basis.lists, *activation.allow), basis.scopes)


def _wanted(basis: Basis, available: Range, activation: Activation) -> dict[str, Reason]:
    """What is to be shown, as it would be ordered if nothing had been shown before."""
    wanted = {str(definition["name"]): Reason.OWN for definition in (*basis.own, *basis.always)}
    permitted = available.tools
    for name in basis.stock.pinned:
        if name in permitted:
            wanted.setdefault(name, Reason.PINNED)
    for name in available.named:
        wanted.setdefault(name, Reason.NAMED)
    for name in activation.names if basis.list_active else ():
        if name in permitted:
            wanted.setdefault(name, Reason.ACTIVE)
    return wanted


def _everything(basis: Basis, permitted: Mapping[str, Tool]) -> dict[str, Reason]:
    always = {str(definition["name"]): Reason.OWN for definition in basis.always}
    return {**dict.fromkeys(permitted, Reason.PASSED), **always}


def _in_order(wanted: dict[str, Reason], listed: Sequence[str]) -> dict[str, Reason]:
    """What was on the last list keeps its place there; all else comes after it.

    That is the longest beginning that two lists of these tools can share: where the old list has a tool that is
    gone, nothing can be the same from there on. One that comes back is new, and comes last.
    """
    ordered = {name: wanted[name] for name in listed if name in wanted}
    return {**ordered, **wanted}
