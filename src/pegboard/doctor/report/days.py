"""Day by day around a change: its measure and the cache, for those who want to see it fall.

Above: `outcome`, and `plot` and `charts` that draw it. Below: `sides`, `claims` and `samples`.
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
    tokens: float | None = None
    """By the outcome's measure; None when its sessions do not tell."""
    cache_write: float | None = None
    """Tokens per session."""
    hit_rate: float | None = None


def days_of(change: Change, claims: Claims, sides: Sides, measure: Measure | None, compared: Compared) -> list[Day]:
    """The days on which there were sessions, oldest first."""
    groups: dict[int, list[Sample]] = {}
    for each in (*sides.before, *sides.after):
        groups.setdefault(_number(each, change), []).append(each)
    servers = sorted({*compared.before.by_server, *compared.after.by_server})
    return [_day(number, group, servers, claims, measure) for number, group in sorted(groups.items())]


def _number(sample: Sample, change: Change) -> int:
    """By the middle of its sessions: rows of the baseline may begin a moment before their day."""
    return math.floor(((sample.first_at + sample.last_at) / 2 - change.applied_at) / DAY)


def _day(number: int, samples: list[Sample], servers: list[str], claims: Claims, measure: Measure | None) -> Day:
    usage = figures_of(each for each in samples if claims.counts_usage(each))
    by_input = measure == INPUT
    return Day(
        number=number,
        sessions=sum(each.sessions for each in samples),
        tokens=usage.input_per_reply if by_input else _definitions(samples, servers, claims, measure),
        cache_write=usage.cache_write,
        hit_rate=usage.hit_rate,
    )


def _definitions(samples: list[Sample], servers: list[str], claims: Claims, measure: Measure | None) -> float | None:
    if measure is None or not any(each.known for each in samples):
        return None
    means = [mean_of(samples, server, claims) for server in servers]
    if means and all(each is None for each in means):
        return None
    return math.fsum(each or 0.0 for each in means)
