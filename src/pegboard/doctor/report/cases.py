"""One change with all that speaks for and against it, before it is judged.

Above: `notes` and `outcome`. Below: `sides`, `claims` and `verdict`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pegboard.doctor.facts import Session
from pegboard.doctor.report.change import Change
from pegboard.doctor.report.claims import Claims
from pegboard.doctor.report.sides import Compared, Sides, compare, sides_of
from pegboard.doctor.report.verdict import DEFINITIONS, INPUT, Measure, amount, told_by


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A change, its two sides, and what is compared."""

    change: Change
    claims: Claims
    sides: Sides
    compared: Compared
    measure: Measure | None
    """None when nothing can be."""
    is_waiting: bool
    """No session began since it was applied."""

    @property
    def had(self) -> float:
        """What was compared, before."""
        return 0.0 if self.measure is None else amount(self.compared.before, self.measure) or 0.0

    @property
    def saved(self) -> float | None:
        """How much less it is since."""
        if self.measure is None:
            return None
        return self.had - (amount(self.compared.after, self.measure) or 0.0)


def case_of(change: Change, claims: Claims, sessions: Sequence[Session], *, now: float) -> Case:
    """The case of one change beside the others."""
    sides = sides_of(change, claims, sessions, now=now)
    compared = compare(sides, claims)
    began = any(each.began_at >= change.applied_at and change.scope.has(each) for each in sessions)
    return Case(
        change=change,
        claims=claims,
        sides=sides,
        compared=compared,
        measure=_measure(compared, claims),
        is_waiting=not sides.after and not began,
    )


def _measure(compared: Compared, claims: Claims) -> Measure | None:
    """Definitions where both sides know them; else what went in, unless another change may claim that too."""
    if told_by(compared.before, DEFINITIONS) and told_by(compared.after, DEFINITIONS):
        return DEFINITIONS
    if claims.has_a_better or compared.before.input_per_reply is None or compared.after.input_per_reply is None:
        return None
    return INPUT
