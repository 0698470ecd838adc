"""What sessions were like before a change. It is kept with the change, since agents sweep their transcripts away.

Above: `plans`, when it applies one; `outcome`, when it looks back. Below: `samples` and `scope`.
"""

from __future__ import annotations

import msgspec

from pegboard.doctor.facts import Evidence, Fix
from pegboard.doctor.report.samples import DAY, Figures, Sample, by_day, figures_of, samples_of
from pegboard.doctor.report.scope import Scope, scope_of

BASELINE_DAYS = 14


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The sessions that a change will touch, over the days before it."""

    kind: str
    scope: Scope
    captured_at: float
    days: int = BASELINE_DAYS
    known_since: float = 0.0
    """When the oldest session began that is known of this agent at all; 0 when none is."""
    samples: tuple[Sample, ...] = ()

    @property
    def since(self) -> float:
        """Where the time that was looked at begins."""
        return self.captured_at - self.days * DAY

    @property
    def figures(self) -> Figures:
        """What its sessions come to: definition tokens, cache writes and cache-hit rate."""
        return figures_of(self.samples)


def baseline_of(evidence: Evidence, fix: Fix, *, now: float) -> Baseline:
    """The baseline of a fix that is applied now."""
    scope = scope_of(fix)
    since = now - BASELINE_DAYS * DAY
    samples = samples_of(evidence.sessions, scope, since=since, until=now)
    began = [each.began_at for each in evidence.sessions if each.agent == fix.agent and 0 < each.began_at < now]
    return Baseline(
        kind=fix.kind,
        scope=scope,
        captured_at=now,
        known_since=min(began, default=0.0),
        samples=by_day(samples, until=now),
    )
