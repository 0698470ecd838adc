"""What is to be said of a change besides its figures. What hurt comes first.

Above: `outcome`. Below: `cases` and `verdict`.
"""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.doctor.report.cases import Case
from pegboard.doctor.report.change import Change, in_order
from pegboard.doctor.report.sides import Compared
from pegboard.doctor.report.verdict import hit_rate_fell, hurt_the_cache


def notes_of(case: Case) -> tuple[str, ...]:
    """Sentences, in the order in which they matter."""
    return (*_of_the_cache(case.compared), *_of_what_is_missing(case), *_of_others(case))


def _of_the_cache(compared: Compared) -> Iterable[str]:
    rates = f"from {compared.before.hit_rate or 0:.0%} to {compared.after.hit_rate or 0:.0%}"
    if hurt_the_cache(compared):
        yield f"It hurt the cache: the hit rate fell {rates}, and more is sent anew for each reply."
    elif hit_rate_fell(compared):
        yield f"The cache-hit rate fell {rates}, but no more is sent anew: what went was cached."


def _of_what_is_missing(case: Case) -> Iterable[str]:
    is_over = case.change.undone_at is not None
    if case.change.stands is None and not is_over:
        yield "Whether its files still say so could not be told."
    if not case.sides.after and not case.is_waiting and not is_over:
        yield "The sessions of the days after it are gone from this machine, and no report saw them."
    if case.sides.after and not case.sides.before:
        yield "No sessions before it are known to compare with."


def _of_others(case: Case) -> Iterable[str]:
    if case.claims.yields_to:
        yield f"What {_ids(case.claims.yields_to)} changed at the same time is counted there, not here."
    if case.claims.together and case.measure is not None:
        yield f"Applied together with {_ids(case.claims.together)}: the cache figures are of all of them."


def _ids(changes: Iterable[Change]) -> str:
    return ", ".join(each.id[:8] for each in in_order(changes))
