"""Priors stay in bounds, fade, and do not care how the outcomes were cut up."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.telemetry.priors import DAY, RATIO, Digest, fold, priors_of
from pegboard.types import Ending, Outcome

NOW = 1_800_000_000.0

OUTCOMES = st.builds(
    Outcome,
    at=st.floats(NOW - 200 * DAY, NOW + DAY),
    tool=st.sampled_from(["a", "b", "c"]),
    ending=st.sampled_from(Ending),
    duration_ms=st.floats(0, 1e6),
    result_tokens=st.integers(0, 10**6),
    cost_usd=st.none() | st.floats(0, 100),
    cached=st.booleans(),
)


def digested(outcomes) -> dict[str, Digest]:
    digests: dict[str, Digest] = {}
    fold(digests, outcomes, NOW)
    return digests


@settings(deadline=None)
@given(st.lists(OUTCOMES, max_size=60))
def test_priors_are_in_bounds(outcomes):
    for priors in priors_of(digested(outcomes), NOW).values():
        assert 0 <= priors.calls <= len(outcomes)
        assert 0 < priors.success_rate < 1
        assert priors.last_used <= NOW
        if priors.p50_ms is not None:
            assert 0 < priors.p50_ms <= (priors.p95_ms or 0) <= (priors.p99_ms or 0) <= 1e7
        assert priors.cost_usd is None or -1e-9 <= priors.cost_usd <= 100 + 1e-6
        assert priors.result_tokens is None or priors.result_tokens <= 10**6 + 1e-3


@settings(deadline=None)
@given(st.lists(OUTCOMES, max_size=60), st.randoms(use_true_random=False))
def test_neither_order_nor_portions_nor_writing_them_down_in_between_matter(outcomes, random):
    whole = priors_of(digested(outcomes), NOW)
    shuffled = list(outcomes)
    random.shuffle(shuffled)
    digests: dict[str, Digest] = {}
    while shuffled:
        size = random.randint(1, len(shuffled))
        fold(digests, shuffled[:size], NOW)
        del shuffled[:size]
        digests = {tool: msgspec.json.decode(msgspec.json.encode(each), type=Digest) for tool, each in digests.items()}
    parts = priors_of(digests, NOW)
    assert parts.keys() == whole.keys()
    for tool, priors in whole.items():
        assert parts[tool].calls == pytest.approx(priors.calls, abs=1e-9)
        assert parts[tool].success_rate == pytest.approx(priors.success_rate)
        assert parts[tool].last_used == priors.last_used


@settings(deadline=None)
@given(st.lists(OUTCOMES, min_size=1, max_size=60), st.floats(0, 100))
def test_as_time_passes_a_record_only_fades_and_its_rate_nears_one_half(outcomes, days):
    digests = digested(outcomes)
    for digest in digests.values():
        before, after = digest.priors(NOW), digest.priors(NOW + days * DAY)
        assert after.calls <= before.calls + 1e-9
        assert abs(after.success_rate - 0.5) <= abs(before.success_rate - 0.5) + 1e-9


@settings(deadline=None)
@given(st.lists(st.floats(0.2, 1e6), min_size=1, max_size=80))
def test_quantiles_of_calls_of_one_moment_are_near_the_true_ones(durations):
    outcomes = [Outcome(at=NOW, tool="a", duration_ms=each) for each in durations]
    priors = priors_of(digested(outcomes), NOW)["a"]
    ordered = sorted(durations)
    for share, told in ((0.5, priors.p50_ms), (0.95, priors.p95_ms), (0.99, priors.p99_ms)):
        rank = math.ceil(share * len(ordered) - 1e-9)
        assert told == pytest.approx(ordered[max(rank, 1) - 1], rel=(RATIO - 1) / 2 + 1e-6)


@settings(deadline=None)
@given(st.lists(OUTCOMES, max_size=300))
def test_a_digest_does_not_grow_with_the_number_of_calls(outcomes):
    for digest in digested(outcomes).values():
        assert len(digest.latencies) <= 194
