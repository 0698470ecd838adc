"""From outcomes to priors: pure arithmetic over digests that never grow with the number of calls.

A call weighs half as much for every HALF_LIFE of age. A digest holds weighted sums and a histogram of latencies with
buckets of equal ratio, so that any quantile is within a few per cent; adding a call, or letting time pass, keeps its
size. Above: the store keeps digests and folds new outcomes into them. Below: the nouns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from pegboard.types import Ending, Outcome, Priors

DAY = 86_400.0
HALF_LIFE = 14 * DAY
RATIO = 1.1
"""Between the ends of a latency bucket; a quantile is at most 5 % off."""
ENOUGH = 0.25
"""Weight below which a record is too old to say how long, how dear or how large: one call says so for four weeks. A
tool that a filter left out is found again when its record has faded, rather than never."""
FAINT = 0.01
"""Weight below which nothing is left to remember."""
FORM = f"1/{HALF_LIFE:.0f}/{RATIO}"
"""How digests are made: those of another form are made anew from the outcomes."""
PRIOR_SUCCESSES = 1.0
PRIOR_FAILURES = 1.0
"""Beta(1, 1): a tool nobody called stands at one half, and one call does not make or break it."""

_FAILED = frozenset({Ending.TOOL_ERROR, Ending.SERVER_ERROR, Ending.TIMEOUT})
_LOWEST, _HIGHEST = -24, 169  # a tenth of a millisecond, and about three hours
_LOG = math.log(RATIO)


class Digest(msgspec.Struct):
    """What is remembered of one tool's calls. Every sum is as of `as_of`; later, all of them have faded alike."""

    as_of: float = 0.0
    worked: float = 0.0
    failed: float = 0.0
    priced: float = 0.0
    """Weight of the calls whose cost is known."""
    spent_usd: float = 0.0
    tokens: float = 0.0
    """Of the results of the calls that worked."""
    latencies: dict[int, float] = {}
    """Weights by bucket."""
    last_used: float = 0.0

    def add(self, outcome: Outcome, now: float) -> None:
        """Takes one call into account, whatever order they come in."""
        # A clock that was wrong for a while must not make all later calls look ancient.
        at = min(outcome.at, now)
        if outcome.ending not in _FAILED and outcome.ending not in (Ending.OK, Ending.CANCELLED):
            return  # it never reached the tool, and says nothing of it
        self.last_used = max(self.last_used, at)
        if outcome.cached or outcome.ending is Ending.CANCELLED:
            return  # a use, but the tool had no part in how it ended
        self._fade(at)
        weight = _weight(self.as_of - at)
        if outcome.ending is Ending.OK:
            self.worked += weight
            self.tokens += weight * max(outcome.result_tokens, 0)
        else:
            self.failed += weight
        if outcome.cost_usd is not None and math.isfinite(outcome.cost_usd):
            self.priced += weight
            self.spent_usd += weight * max(outcome.cost_usd, 0.0)
        # An error is quick to give and would make a broken tool look fast. A timeout took at least that long.
        if outcome.ending in (Ending.OK, Ending.TIMEOUT):
            bucket = _bucket(outcome.duration_ms)
            self.latencies[bucket] = self.latencies.get(bucket, 0.0) + weight

    def _fade(self, to: float) -> None:
        if to <= self.as_of:
            return
        factor = _weight(to - self.as_of)
        self.as_of = to
        self.worked *= factor
        self.failed *= factor
        self.priced *= factor
        self.spent_usd *= factor
        self.tokens *= factor
        self.latencies = {bucket: weight * factor for bucket, weight in self.latencies.items()}

    def priors(self, now: float) -> Priors:
        """What it says of the tool now."""
        fade = _weight(now - self.as_of)
        worked, calls = self.worked * fade, (self.worked + self.failed) * fade
        p50, p95, p99 = (self._quantile(share, fade) for share in (0.5, 0.95, 0.99))
        return Priors(
            calls=calls,
            success_rate=(worked + PRIOR_SUCCESSES) / (calls + PRIOR_SUCCESSES + PRIOR_FAILURES),
            p50_ms=p50,
            p95_ms=p95,
            p99_ms=p99,
            cost_usd=self.spent_usd / self.priced if self.priced * fade >= ENOUGH else None,
            result_tokens=self.tokens / self.worked if worked >= ENOUGH else None,
            last_used=self.last_used,
        )

    def is_faint(self, now: float) -> bool:
        """Whether it has faded so far that it can be dropped."""
        return (self.worked + self.failed) * _weight(now - self.as_of) < FAINT and _weight(now - self.last_used) < FAINT

    def _quantile(self, share: float, fade: float) -> float | None:
        total = math.fsum(self.latencies.values())
        if total * fade < ENOUGH:
            return None
        below = 0.0
        ordered = sorted(self.latencies.items())
        for bucket, weight in ordered:
            below += weight
            if below >= share * total:
                return _middle(bucket)
        return _middle(ordered[-1][0])  # only by rounding


def fold(digests: dict[str, Digest], outcomes: Iterable[Outcome], now: float) -> None:
    """Adds the outcomes to the digests of their tools, by public name."""
    for outcome in outcomes:
        if outcome.ending is not Ending.NOT_FOUND:  # its name is whatever somebody made up
            digests.setdefault(outcome.tool, Digest()).add(outcome, now)


def priors_of(digests: dict[str, Digest], now: float) -> dict[str, Priors]:
    """What the digests say of their tools now; those that were never used, or long ago, are left out."""
    return {
        tool: digest.priors(now) for tool, digest in digests.items() if digest.last_used and not digest.is_faint(now)
    }


def _weight(age: float) -> float:
    return 0.5 ** (age / HALF_LIFE) if age > 0 else 1.0


def _bucket(duration_ms: float) -> int:
    if not duration_ms > 0:
        return _LOWEST
    return max(_LOWEST, min(math.ceil(math.log(min(duration_ms, 1e12)) / _LOG), _HIGHEST))


def _middle(bucket: int) -> float:
    """The value whose distance to both ends of the bucket is the same share."""
    return float(2 * RATIO**bucket / (RATIO + 1))
