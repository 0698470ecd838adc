"""Day by day around a change: what its measure was, for those who want to see it fall.

Above: `outcome`, and `plot` and `page` that draw it. Below: `sides`, `claims` and `samples`.
"""

from __future__ import annotations

import math

import msgspec

from pegboard.doctor.report.change import Change
from pegboard.doctor.report.claims import Claims
from pegboard.doctor.report.samples import DAY, Sample, figures_of
from pegboard.doctor.report.sides import Compared, Sides, mean_of
from pegboard.doctor.report.verdict import INPUT, Measure


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """One day, counted from the change: 0 is the day that begins with it, -1 the one that ends with it."""

    number: int
    sessions: int
    tokens: float
    """By the outcome's measure."""


def days_of(
    change: Change, claims: Claims, sides: Sides, measure: Measure | None, compared: Compared
) -> tuple[Day, ...]:
    """The days of which something is known, oldest first."""
    if measure is None:
        return ()
    groups: dict[int, list[Sample]] = {}
    for each in (*sides.before, *sides.after):
        groups.setdefault(_number(each, change), []).append(each)
    servers = tuple({*compared.before.by_server, *compared.after.by_server})
    days = [_day(number, group, servers, claims, measure) for number, group in sorted(groups.items())]
    return tuple(each for each in days if each is not None)


def _number(sample: Sample, change: Change) -> int:
    return math.floor(((sample.first_at + sample.last_at) / 2 - change.applied_at) / DAY)


def _day(number: int, samples: list[Sample], servers: tuple[str, ...], claims: Claims, measure: Measure) -> Day | None:
    if measure == INPUT:
        figures = figures_of(each for each in samples if claims.counts_usage(each))
        per_reply = figures.input_per_reply
        return None if per_reply is None else Day(number=number, sessions=figures.sessions, tokens=per_reply)
    known = sum(each.known for each in samples)
    means = [mean_of(samples, server, claims) for server in servers]
    if not known or (servers and all(each is None for each in means)):
        return None
    return Day(number=number, sessions=known, tokens=math.fsum(each or 0.0 for each in means))
