"""What a tool's record adds to its score: bounded, and in the right direction."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.index.priors import BOUND, lift
from pegboard.types import Priors
from tests.often import often

NOW = 1_790_000_000.0
GOOD = {"calls": 50.0, "success_rate": 0.9, "p95_ms": 1000.0, "last_used": NOW, "cost_usd": 0.01}


def lifted(**more):
    return lift(Priors(**{**GOOD, **more}), None, NOW)


def test_a_tool_that_nothing_is_known_of_is_neither_lifted_nor_lowered():
    assert lift(None, None, NOW) == 0
    assert lift(Priors(), None, NOW) == 0


def test_what_works_is_lifted_and_what_fails_is_lowered():
    assert lifted(success_rate=1.0) > lifted(success_rate=0.6) > lifted(success_rate=0.1)
    assert lifted(success_rate=1.0) > 0 > lifted(success_rate=0.0)


def test_what_is_quick_cheap_and_lately_used_is_lifted():
    assert lifted(p95_ms=50.0) > lifted() > lifted(p95_ms=60_000.0)
    assert lifted(cost_usd=0.0001) > lifted() > lifted(cost_usd=5.0)
    assert lifted(last_used=NOW) > lifted(last_used=NOW - 30 * 86400) > lifted(last_used=NOW - 300 * 86400)


def test_a_record_of_many_calls_weighs_more_than_one_of_few():
    assert lifted(calls=1000.0) > lifted(calls=5.0) > lifted(calls=0.5)
    assert lifted(calls=1000.0, success_rate=0.0) < lifted(calls=5.0, success_rate=0.0)


def test_a_declared_price_counts_until_a_real_one_is_known():
    assert lift(None, 0.0001, NOW) > 0 > lift(None, 5.0, NOW)
    assert lift(msgspec.structs.replace(Priors(**GOOD), cost_usd=None), 5.0, NOW) < lift(Priors(**GOOD), 5.0, NOW)


def test_a_clock_that_was_set_back_does_no_harm():
    assert lifted(last_used=NOW + 1e6) == lifted(last_used=NOW)


figures = st.floats(0, 1e12)


@settings(max_examples=often(300), deadline=None)
@given(
    st.builds(
        Priors,
        calls=figures,
        success_rate=st.floats(0, 1),
        p95_ms=st.none() | figures,
        cost_usd=st.none() | figures,
        last_used=figures,
    )
    | st.none(),
    st.none() | figures,
    figures,
)
def test_no_record_moves_a_score_by_more_than_the_bound(priors, cost, now):
    assert -BOUND - 1e-9 <= lift(priors, cost, now) <= BOUND + 1e-9


def test_a_tool_that_is_free_is_as_good_as_one_that_costs_next_to_nothing():
    assert lift(None, 0.0, NOW) >= lift(None, 0.001, NOW) > 0
