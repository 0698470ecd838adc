"""What past calls say of a tool."""

from __future__ import annotations

import pytest

from pegboard.telemetry.priors import DAY, ENOUGH, HALF_LIFE, Digest, fold, priors_of
from pegboard.types import Ending, Outcome, Priors

NOW = 1_800_000_000.0


def call(ending: Ending = Ending.OK, *, days_ago: float = 0.0, **more) -> Outcome:
    return Outcome(**{"at": NOW - days_ago * DAY, "tool": "t", "ending": ending, "duration_ms": 100.0, **more})


def told(*outcomes: Outcome, now: float = NOW) -> Priors:
    digests: dict[str, Digest] = {}
    fold(digests, outcomes, now)
    return priors_of(digests, now)["t"]


def test_a_tool_that_always_works_nears_one_and_one_that_never_does_nears_nought():
    assert told(*[call()] * 100).success_rate == pytest.approx(101 / 102)
    assert told(*[call(Ending.TOOL_ERROR)] * 100).success_rate == pytest.approx(1 / 102)


def test_one_failure_does_not_condemn_a_tool():
    assert told(call(Ending.TOOL_ERROR)).success_rate == pytest.approx(1 / 3)


@pytest.mark.parametrize("ending", [Ending.TOOL_ERROR, Ending.SERVER_ERROR, Ending.TIMEOUT])
def test_errors_and_timeouts_count_against_it(ending):
    assert told(call(), call(ending)).success_rate == pytest.approx(0.5)
    assert told(call(), call(ending)).calls == pytest.approx(2)


@pytest.mark.parametrize("ending", [Ending.CANCELLED, Ending.BAD_ARGUMENTS, Ending.REFUSED, Ending.NOT_FOUND])
def test_what_was_not_the_tools_doing_changes_nothing(ending):
    before = told(call(days_ago=1))
    after = told(call(days_ago=1), *[call(ending, days_ago=1, duration_ms=9e9, cost_usd=5.0)] * 50)
    assert after == before


@pytest.mark.parametrize("ending", [Ending.BAD_ARGUMENTS, Ending.REFUSED, Ending.NOT_FOUND])
def test_a_call_that_never_reached_the_tool_is_no_use_of_it(ending):
    digests: dict[str, Digest] = {}
    fold(digests, [call(ending)], NOW)
    assert priors_of(digests, NOW) == {}


def test_names_that_no_tool_has_leave_no_digest():
    digests: dict[str, Digest] = {}
    fold(digests, [call(Ending.NOT_FOUND, tool=f"made_up_{number}") for number in range(100)], NOW)
    assert digests == {}


def test_a_cancelled_call_and_a_cached_answer_are_uses_and_no_more():
    for outcome in (call(Ending.CANCELLED), call(cached=True)):
        priors = told(outcome)
        assert priors.last_used == NOW
        assert (priors.calls, priors.success_rate, priors.p95_ms) == (0.0, 0.5, None)


def test_after_a_half_life_a_call_counts_half():
    assert told(call(days_ago=HALF_LIFE / DAY)).calls == pytest.approx(0.5)
    assert told(call(days_ago=2 * HALF_LIFE / DAY)).calls == pytest.approx(0.25)


def test_recent_calls_outweigh_old_ones():
    mended = told(*[call(Ending.TOOL_ERROR, days_ago=84)] * 20, *[call()] * 5)
    assert mended.success_rate > 0.8


@pytest.mark.parametrize(("share", "field"), [(50, "p50_ms"), (95, "p95_ms"), (99, "p99_ms")])
def test_quantiles_are_within_five_per_cent(share, field):
    durations = [float(each) for each in range(1, 1001)]
    assert getattr(told(*[call(duration_ms=each) for each in durations]), field) == pytest.approx(share * 10, rel=0.05)


def test_quick_errors_do_not_make_a_tool_look_fast_and_timeouts_make_it_look_slow():
    slow = [call(duration_ms=1000.0)] * 10
    assert told(*slow, *[call(Ending.TOOL_ERROR, duration_ms=1.0)] * 90).p50_ms == pytest.approx(1000, rel=0.05)
    assert told(*slow, *[call(Ending.TIMEOUT, duration_ms=30_000.0)] * 2).p95_ms == pytest.approx(30_000, rel=0.05)


@pytest.mark.parametrize("duration", [0.0, -1.0, 1e-9, 1e30, float("inf"), float("nan")])
def test_absurd_durations_do_no_harm(duration):
    assert 0 < (told(call(duration_ms=duration)).p99_ms or 0) < 2e7


def test_cost_is_the_mean_of_the_calls_whose_cost_is_known():
    assert told(call(cost_usd=0.1), call(cost_usd=0.3), call()).cost_usd == pytest.approx(0.2)
    assert told(call()).cost_usd is None
    assert told(call(cost_usd=float("nan"))).cost_usd is None


def test_result_tokens_are_those_of_results_and_not_of_errors():
    assert told(call(result_tokens=100), call(result_tokens=300)).result_tokens == pytest.approx(200)
    assert told(call(result_tokens=100), call(Ending.TOOL_ERROR, result_tokens=9)).result_tokens == pytest.approx(100)
    assert told(call(Ending.TOOL_ERROR)).result_tokens is None


def test_an_old_record_says_nothing_of_latency_or_cost_any_more_so_that_no_filter_starves_a_tool():
    slow = call(duration_ms=60_000.0, cost_usd=3.0, result_tokens=5)
    digests: dict[str, Digest] = {}
    fold(digests, [slow], NOW)
    assert digests["t"].priors(NOW + 27 * DAY).p95_ms == pytest.approx(60_000, rel=0.05)
    later = digests["t"].priors(NOW + 29 * DAY)
    assert (later.p50_ms, later.p95_ms, later.p99_ms, later.cost_usd, later.result_tokens) == (None,) * 5
    assert 0 < later.calls < ENOUGH


def test_a_record_that_has_faded_away_is_dropped():
    digests: dict[str, Digest] = {}
    fold(digests, [call()], NOW)
    assert priors_of(digests, NOW + 90 * DAY)
    assert priors_of(digests, NOW + 120 * DAY) == {}


def test_a_clock_that_ran_ahead_for_one_call_does_not_devalue_the_others():
    ahead = call(days_ago=-3650)
    assert told(ahead, call(), call()).calls == pytest.approx(3)
    assert told(ahead).last_used == NOW
