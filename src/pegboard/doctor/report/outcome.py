"""What became of each applied change: its state, what it brought per session, and how sure that is.

Above: the command, `table`, `plot` and `page`. Below: `verdict`, `sides`, `claims` and `days`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from pegboard.doctor.facts import Session
from pegboard.doctor.report.change import Change, in_order
from pegboard.doctor.report.claims import Claims, Moments
from pegboard.doctor.report.days import Day, days_of
from pegboard.doctor.report.samples import Figures
from pegboard.doctor.report.sides import Compared, Sides, compare, sides_of
from pegboard.doctor.report.verdict import (
    DEFINITIONS,
    INPUT,
    Confidence,
    Measure,
    amount,
    hit_rate_fell,
    hurt_the_cache,
    is_notable,
    told_by,
    trust,
)


class State(StrEnum):
    """How a change stands."""

    PENDING = "pending"
    """Not in effect yet: no session began since."""
    MEASURED = "measured"
    NO_EFFECT = "no effect"
    WORSE = "worse"
    REVERTED = "reverted by hand"
    UNDONE = "undone"
    UNKNOWN = "unknown"
    """Sessions began since, but nothing tells what it was like without it."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One change, both its sides, and what is to be said of it."""

    change: Change
    state: State
    cache_hurt: bool = False
    measure: Measure | None = None
    """What was compared; None when nothing could be."""
    before: Figures
    after: Figures
    saved: float | None = None
    """By that measure; less than nothing when it grew."""
    saved_in_all: int = 0
    """Definition tokens, over the sessions since; rounded down."""
    confidence: Confidence | None = None
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What hurt comes first."""
    days: tuple[Day, ...] = ()

    @property
    def hit_rate_change(self) -> float | None:
        """How far the cache-hit rate moved, in shares of one."""
        return _difference(self.after.hit_rate, self.before.hit_rate)

    @property
    def cache_write_change(self) -> float | None:
        """How many more tokens a session writes to the cache."""
        return _difference(self.after.cache_write, self.before.cache_write)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All changes; what hurt the cache first, then what made it worse, then the latest."""

    at: float
    outcomes: tuple[Outcome, ...] = ()

    @property
    def saved_in_all(self) -> int:
        """Definition tokens that were not sent, no definition counted for two changes."""
        return sum(each.saved_in_all for each in self.outcomes)

    @property
    def hurt(self) -> tuple[Outcome, ...]:
        """Those that hurt the cache."""
        return tuple(each for each in self.outcomes if each.cache_hurt)


def report_of(changes: Iterable[Change], sessions: Sequence[Session], *, now: float) -> Report:
    """What became of all of them."""
    listed = in_order(changes)
    moments = Moments(sessions, listed)
    outcomes = [outcome_of(each, Claims(each, listed, moments), sessions, now=now) for each in listed]
    outcomes.sort(key=lambda each: (not each.cache_hurt, each.state != State.WORSE, -each.change.applied_at))
    return Report(at=now, outcomes=tuple(outcomes))


def outcome_of(change: Change, claims: Claims, sessions: Sequence[Session], *, now: float) -> Outcome:
    """What became of one, beside the others."""
    sides = sides_of(change, claims, sessions, now=now)
    compared = compare(sides, claims)
    measure = _measure(compared, claims)
    saved = None if measure is None else _saved(compared, measure)
    hurt = hurt_the_cache(compared)
    sure = None if measure is None else trust(compared, sides, measure)
    return Outcome(
        change=change,
        state=_state(change, sides, compared, measure, saved),
        cache_hurt=hurt,
        measure=measure,
        before=compared.before,
        after=compared.after,
        saved=saved,
        saved_in_all=math.floor(round(compared.saved_in_all, 3)),
        confidence=sure.confidence if sure else None,
        doubts=sure.doubts if sure else (),
        notes=tuple(_notes(change, sides, compared, claims, measure)),
        days=tuple(days_of(change, claims, sides, measure, compared)),
    )


def _measure(compared: Compared, claims: Claims) -> Measure | None:
    """Definitions where both sides know them; else what went in, unless another change may claim that too."""
    if told_by(compared.before, DEFINITIONS) and told_by(compared.after, DEFINITIONS):
        return DEFINITIONS
    if claims.has_a_better or compared.before.input_per_reply is None or compared.after.input_per_reply is None:
        return None
    return INPUT


def _saved(compared: Compared, measure: Measure) -> float:
    return (amount(compared.before, measure) or 0.0) - (amount(compared.after, measure) or 0.0)


def _state(change: Change, sides: Sides, compared: Compared, measure: Measure | None, saved: float | None) -> State:
    if change.undone_at is not None:
        return State.UNDONE
    if change.stands is False:
        return State.REVERTED
    if not sides.after:
        return State.PENDING
    if hurt_the_cache(compared):
        return State.WORSE
    if measure is None or saved is None:
        return State.UNKNOWN
    if not is_notable(saved, amount(compared.before, measure) or 0.0, measure):
        return State.NO_EFFECT
    return State.MEASURED if saved > 0 else State.WORSE


def _notes(change: Change, sides: Sides, compared: Compared, claims: Claims, measure: Measure | None) -> list[str]:
    notes = []
    if hurt_the_cache(compared):
        notes.append(f"It hurt the cache: the hit rate fell {_rates(compared)}, and more is sent anew for each reply.")
    elif hit_rate_fell(compared):
        notes.append(f"The cache-hit rate fell {_rates(compared)}, but no more is sent anew: what went was cached.")
    if change.stands is None and change.undone_at is None:
        notes.append("Whether its files still say so could not be told.")
    if sides.after and not sides.before:
        notes.append("No sessions before it are known to compare with.")
    if claims.yields_to:
        notes.append(f"What {_ids(claims.yields_to)} changed at the same time is counted there, not here.")
    if claims.together and measure is not None:
        notes.append(f"Applied together with {_ids(claims.together)}: the cache figures are of all of them.")
    return notes


def _rates(compared: Compared) -> str:
    return f"from {compared.before.hit_rate or 0:.0%} to {compared.after.hit_rate or 0:.0%}"


def _ids(changes: Iterable[Change]) -> str:
    return ", ".join(each.id[:8] for each in in_order(changes))


def _difference(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before
