"""All findings of all checks, the largest saving first, and what they come to when nothing is counted twice.

Above: the command line. Below: the checks.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pegboard.doctor.checks import (
    deferral_lost,
    deferral_off,
    duplicates,
    other_agents,
    pins,
    thresholds,
    unused,
)
from pegboard.doctor.facts import Agent, Evidence, Finding

_SURE = {"high": 0, "medium": 1, "low": 2}


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong, and how much that is."""

    findings: tuple[Finding, ...] = ()
    sessions: dict[Agent, int] = {}
    """Looked at, by agent."""
    saving: int = 0
    """Tokens of definitions in all sessions looked at, each counted once a session and for one finding alone."""
    cost: float = 0.0
    """US dollars that these cost, at list prices, as far as those are known."""


def diagnose(evidence: Evidence, *, now: float) -> Diagnosis:
    """Everything that the evidence shows."""
    found = (
        *deferral_off.check(evidence),
        *deferral_lost.check(evidence),
        *thresholds.check(evidence),
        *pins.check(evidence),
        *unused.check(evidence, now=now),
        *duplicates.check(evidence),
        *other_agents.check(evidence),
    )
    findings = sorted(found, key=_weight)
    saving, cost = total(findings)
    return Diagnosis(findings=tuple(findings), sessions=_counts(evidence), saving=saving, cost=cost)


def _weight(finding: Finding) -> tuple[int, int, str]:
    return -finding.saving_per_session * finding.sessions, _SURE[finding.confidence], finding.id


def total(findings: Iterable[Finding]) -> tuple[int, float]:
    """Tokens and dollars in all sessions; of findings about the same definitions only the largest counts."""
    largest: dict[tuple[str, str], tuple[float, float]] = {}
    for finding in findings:
        for claim, part in _shares(finding).items():
            largest[claim] = max(largest.get(claim, (0.0, 0.0)), part)
    return round(sum(tokens for tokens, _ in largest.values())), sum(cost for _, cost in largest.values())


def _shares(finding: Finding) -> dict[tuple[str, str], tuple[float, float]]:
    """A finding's saving and what it costs, over all its sessions, by what it claims."""
    paid = sum(finding.tokens_per_session.values())
    if not paid:
        return {}
    saved = finding.saving_per_session * finding.sessions
    cost = finding.cost_per_session * finding.sessions * finding.saving_per_session / paid
    return {
        (agent, server): (saved * part, cost * part)
        for agent, server in finding.claims
        if (part := finding.tokens_per_session.get(server, 0) / paid)
    }


def _counts(evidence: Evidence) -> dict[Agent, int]:
    counts: dict[Agent, int] = {}
    for session in evidence.sessions:
        counts[session.agent] = counts.get(session.agent, 0) + 1
    return dict(sorted(counts.items()))
