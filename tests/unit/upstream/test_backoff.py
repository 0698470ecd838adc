"""Backoff: the figures of patience, with the clock passed in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.upstream.backoff import (
    FAILURES_TO_OPEN,
    FIRST_DELAY,
    LONGEST_DELAY,
    LONGEST_REST,
    SUSTAINED,
    Backoff,
)

NEVER, MIDDLE, ALWAYS = (lambda: 0.0), (lambda: 0.5), (lambda: 1.0)


def failing(times: int, jitter=MIDDLE) -> tuple[Backoff, float]:
    """A record of failures, each as soon as the wait allows; and the time of the last."""
    backoff, now = Backoff(jitter), 1000.0
    for number in range(times):
        now += backoff.wait(now) if number else 0.0
        backoff.failed(now)
    return backoff, now


def test_a_fresh_server_may_start_at_once():
    backoff = Backoff(MIDDLE)
    assert backoff.wait(0.0) == 0.0
    assert not backoff.is_open(0.0)
    assert not backoff.is_refused


def test_each_failure_makes_the_next_try_wait_twice_as_long():
    waits = []
    for times in range(1, FAILURES_TO_OPEN):
        backoff, now = failing(times)
        waits.append(backoff.wait(now))
    assert waits == [FIRST_DELAY, 2 * FIRST_DELAY, 4 * FIRST_DELAY, 8 * FIRST_DELAY]
    assert max(waits) <= LONGEST_DELAY


def test_the_breaker_opens_at_the_fifth_failure_and_not_before():
    backoff, now = failing(FAILURES_TO_OPEN - 1)
    assert not backoff.is_open(now)
    backoff, now = failing(FAILURES_TO_OPEN)
    assert backoff.is_open(now)
    assert backoff.failures == 5
    assert backoff.wait(now) == 60.0


def test_after_the_rest_a_try_is_let_through_and_its_failure_doubles_the_rest():
    backoff, now = failing(FAILURES_TO_OPEN)
    later = now + backoff.wait(now)
    assert not backoff.is_open(later)
    backoff.failed(later)
    assert backoff.is_open(later)
    assert backoff.wait(later) == 120.0


def test_the_rest_has_a_longest():
    backoff, now = failing(40)
    assert backoff.wait(now) == LONGEST_REST


@pytest.mark.parametrize("jitter", [NEVER, MIDDLE, ALWAYS])
def test_a_server_that_dies_in_a_loop_is_started_at_most_eight_times_in_two_minutes(jitter):
    backoff, now, spawns = Backoff(jitter), 0.0, 0
    while now < 120.0:
        spawns += 1
        backoff.started(now)
        backoff.failed(now)
        now += backoff.wait(now)
    assert spawns <= 7  # the first start may take two processes, one for each way of greeting


def test_only_sustained_uptime_wipes_the_slate():
    backoff, now = failing(3)
    backoff.started(now)
    backoff.failed(now + SUSTAINED - 0.1)
    assert backoff.failures == 4
    backoff.started(now)
    backoff.failed(now + SUSTAINED)
    assert backoff.failures == 1


def test_a_clean_end_after_sustained_uptime_wipes_the_slate_and_a_quick_one_does_not():
    backoff, now = failing(3)
    backoff.started(now)
    backoff.ended(now + 1)
    assert backoff.failures == 3
    backoff.started(now)
    backoff.ended(now + SUSTAINED)
    assert backoff.failures == 0


def test_uptime_is_not_counted_twice():
    backoff, now = failing(2)
    backoff.started(now)
    backoff.ended(now + 1)
    backoff.failed(now + 10 * SUSTAINED)
    assert backoff.failures == 3


def test_a_refusal_lasts_until_a_person_asks_for_a_fresh_start():
    backoff = Backoff(MIDDLE)
    backoff.refused()
    assert backoff.is_refused
    backoff.started(0.0)
    backoff.ended(10 * SUSTAINED)
    assert backoff.is_refused
    backoff.reset()
    assert not backoff.is_refused


def test_a_fresh_start_forgets_failures_and_waits():
    backoff, now = failing(7)
    backoff.reset()
    assert backoff.failures == 0
    assert backoff.wait(now) == 0.0
    assert not backoff.is_open(now)


@given(times=st.integers(1, 30), luck=st.floats(0.0, 1.0))
def test_jitter_moves_a_wait_by_a_quarter_at_most(times: int, luck: float):
    exact, now = failing(times)
    jittered = Backoff(lambda: luck)
    for _ in range(times):
        jittered.failed(now)
    assert 0.75 * exact.wait(now) - 1e-6 <= jittered.wait(now) <= 1.25 * exact.wait(now) + 1e-6
