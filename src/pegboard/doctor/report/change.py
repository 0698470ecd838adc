"""One applied change as the report sees it, whoever keeps the journal.

Above: `claims` and `outcome`. Below: `baseline` and `scope`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pegboard.doctor.report.baseline import Baseline
from pegboard.doctor.report.samples import Sample
from pegboard.doctor.report.scope import Scope

_RANKS = ("server-disable", "defer-alwaysload", "gateway-install", "defer-threshold", "defer-enable", "proxy-install")
"""The more specific first: a removal says more of a server than a deferral of everything."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, when, to what, and whether it still stands."""

    id: str
    kind: str
    scope: Scope
    applied_at: float
    finding: str = ""
    """The finding it was to mend."""
    files: tuple[str, ...] = ()
    undone_at: float | None = None
    stands: bool | None = True
    """Whether its files still say what it made them say; None when nobody could tell."""
    baseline: Baseline | None = None
    since: tuple[Sample, ...] = ()
    """What earlier reports saw after it, should the transcripts be gone by now."""

    @property
    def rank(self) -> tuple[int, float, str]:
        """Who comes first where two claim the same: the more specific, then the earlier."""
        kind = _RANKS.index(self.kind) if self.kind in _RANKS else len(_RANKS)
        return kind, self.applied_at, self.id

    @property
    def moments(self) -> tuple[float, ...]:
        """When it began to count, and when it ceased to."""
        return (self.applied_at,) if self.undone_at is None else (self.applied_at, self.undone_at)


def overlapping(one: Scope, other: Scope) -> bool:
    """Whether two scopes share a definition of some session."""
    if one.agent != other.agent or not share_a_folder(one, other):
        return False
    return (one.own and other.own) or not one.servers or not other.servers or bool({*one.servers} & {*other.servers})


def in_order(changes: Iterable[Change]) -> list[Change]:
    """The oldest first."""
    return sorted(changes, key=lambda each: (each.applied_at, each.id))


def share_a_folder(one: Scope, other: Scope) -> bool:
    """Whether some session may be about both."""
    if not one.projects or not other.projects:
        return True
    return any(map(other.holds_in, one.projects)) or any(map(one.holds_in, other.projects))
