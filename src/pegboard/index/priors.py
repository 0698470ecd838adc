"""What past calls say of a tool, as a bounded factor: it orders what is nearly equal, and nothing else.

Above: `index`. Below: the nouns.
"""

from __future__ import annotations

import math

from pegboard.types import Priors

BOUND = 0.15
"""The most that a perfect or a hopeless record moves a score, in units of the spread of scores. Measured matches of
different worth lie further apart than that."""
NEUTRAL_LATENCY_MS = 1000.0
NEUTRAL_COST_USD = 0.01
HALF_LIFE_DAYS = 14.0
TRUSTED_CALLS = 10.0
"""Calls after which a record weighs half of what it can."""
_DAY = 86400.0


def lift(priors: Priors | None, cost_usd: float | None, now: float) -> float:
    """Between -BOUND and BOUND; 0 for a tool that nothing is known of."""
    cost = priors.cost_usd if priors is not None and priors.cost_usd is not None else cost_usd
    cheap = -math.tanh(math.log(max(cost, 1e-6) / NEUTRAL_COST_USD) / 4) if cost is not None else 0.0
    if priors is None or priors.calls <= 0:
        return BOUND * 0.2 * cheap
    sure = priors.calls / (priors.calls + TRUSTED_CALLS)
    works = 2 * priors.success_rate - 1
    latency = priors.p95_ms if priors.p95_ms is not None else NEUTRAL_LATENCY_MS
    quick = -math.tanh(math.log(max(latency, 1.0) / NEUTRAL_LATENCY_MS) / 4)
    fresh = 0.5 ** (max(now - priors.last_used, 0.0) / _DAY / HALF_LIFE_DAYS) if priors.last_used else 0.0
    return BOUND * (sure * (0.5 * works + 0.15 * quick + 0.15 * fresh) + 0.2 * cheap)
