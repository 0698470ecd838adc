"""What the record needs done to it now and then: priors worked out anew, and what is too old dropped.

Above: the engine does this on a schedule, `pegboard priors refresh` when asked. Below: the `Store` seam.
"""

from __future__ import annotations

from pegboard.protocols import Store
from pegboard.telemetry.priors import DAY
from pegboard.types import Priors

STALE_SECONDS = 26 * 3600.0
"""Priors that were not refreshed for that long deserve a warning: a day, and some grace."""


async def refresh_priors(
    store: Store, now: float, *, unless_younger: float = 0.0, keep_days: float | None = None
) -> dict[str, Priors]:
    """The priors as of now, by public name.

    Those that some process worked out less than `unless_younger` seconds ago are good enough: many windows share one
    store, and one refresh serves them all. `keep_days` says which records are dropped on the occasion; None: none.
    """
    if unless_younger > 0:
        known, at = await store.priors()
        if 0 <= now - at < unless_younger:
            return known
    priors = await store.refresh_priors(now)
    if keep_days is not None:
        await store.forget_before(now - keep_days * DAY)
    return priors
