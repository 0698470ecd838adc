"""How long a request may take: the clock of one call, with time passing as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pegboard.types import CallContext
from pegboard.upstream.pending import LONGEST_CALL, Pending
from tests.scripted import run_jumping

TIMEOUT = 10.0


async def ended_after(events: Sequence[tuple[float, str]], timeout: float | None = TIMEOUT) -> float:
    """Waits for an answer that never comes, while things happen at their times; the time it was given up."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    pending = Pending(loop.create_future(), CallContext(), timeout, began)
    for when, event in events:
        loop.call_at(began + when, getattr(pending, event), began + when)
    try:
        async with asyncio.timeout(timeout) as pending.clock:
            await pending.future
    except TimeoutError:
        return round(loop.time() - began, 3)
    raise AssertionError("it was answered")


def test_without_a_sign_of_life_a_call_ends_when_its_time_is_up():
    assert run_jumping(ended_after([])) == 10


def test_progress_begins_the_wait_anew():
    assert run_jumping(ended_after([(8, "extend"), (16, "extend")])) == 26


def test_progress_keeps_a_call_alive_up_to_ten_times_its_timeout():
    signs = [(float(second), "extend") for second in range(1, 500, 3)]
    assert run_jumping(ended_after(signs)) == LONGEST_CALL * TIMEOUT == 100


def test_an_open_question_stops_the_clock():
    assert run_jumping(ended_after([(5, "hold"), (3600, "release")])) == 3610


def test_the_time_of_a_question_is_not_counted_against_the_longest_a_call_may_last():
    events = [(5, "hold"), (3600, "release"), *((3600.0 + 3 * n, "extend") for n in range(1, 500))]
    assert run_jumping(ended_after(events)) == 100 + 3595


def test_the_clock_stands_still_until_the_last_question_is_answered():
    events = [(5, "hold"), (6, "hold"), (100, "release"), (200, "extend"), (3600, "release")]
    assert run_jumping(ended_after(events)) == 3610


def test_a_question_that_outlives_its_call_does_no_harm():
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        pending = Pending(loop.create_future(), CallContext(), TIMEOUT, loop.time())
        async with asyncio.timeout(TIMEOUT) as pending.clock:
            pending.hold(loop.time())
            pending.future.cancel()
        pending.release(loop.time())
        pending.extend(loop.time())

    run_jumping(scenario())


def test_the_limit_that_was_not_kept_is_the_timeout_or_the_longest_call():
    async def scenario() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        pending = Pending(loop.create_future(), CallContext(), TIMEOUT, 0.0)
        return pending.limit(10.0), pending.limit(100.0)

    assert run_jumping(scenario()) == (10, 100)


def test_a_call_without_a_timeout_waits_for_ever():
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        pending = Pending(loop.create_future(), CallContext(), None, loop.time())
        async with asyncio.timeout(None) as pending.clock:
            loop.call_at(5.0, lambda: pending.extend(loop.time()))
            loop.call_at(1e6, lambda: pending.future.cancel())
            await asyncio.wait({pending.future})
        assert loop.time() >= 1e6

    run_jumping(scenario())
