"""What became of each applied change: its state, what it brought per session, and how sure that is.

Above: the command, `table`, `plot` and `page`. Below: `cases`, `verdict`, `notes` and `days`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from pegboard.doctor.facts import Session
from pegboard.doctor.report.cases import Case, case_of
from pegboard.doctor.report.change import Change, in_order
from pegboard.doctor.report.claims import Claims, Moments
from pegboard.doctor.report.days import Day, days_of
from pegboard.doctor.report.notes import notes_of
from pegboard.doctor.report.samples import Figures
from pegboard.doctor.report.verdict import Confidence, Measure, hurt_the_cache, is_notable, trust


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
    case = case_of(change, claims, sessions, now=now)
    compared, measure = case.compared, case.measure
    sure = None if measure is None else trust(compared, case.sides, measure)
    return Outcome(
        change=change,
        state=state_of(case),
        cache_hurt=hurt_the_cache(compared),
        measure=measure,
        before=compared.before,
        after=compared.after,
        saved=case.saved,
        saved_in_all=math.floor(round(compared.saved_in_all, 3)),
        confidence=sure.confidence if sure else None,
        doubts=sure.doubts if sure else (),
        notes=notes_of(case),
        days=tuple(days_of(change, claims, case.sides, measure, compared)),
    )


def state_of(case: Case) -> State:
    """How a change stands: what somebody did about it counts before what was measured."""
    if case.change.undone_at is not None:
        return State.UNDONE
    if case.change.stands is False:
        return State.REVERTED
    if case.is_waiting:
        return State.PENDING
    if hurt_the_cache(case.compared):
        return State.WORSE
    if case.measure is None or case.saved is None:
        return State.UNKNOWN
    if not is_notable(case.saved, case.had, case.measure):
        return State.NO_EFFECT
    return State.MEASURED if case.saved > 0 else State.WORSE


def _difference(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before
