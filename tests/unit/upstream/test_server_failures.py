"""A server that fails: how often it is tried, when callers are told at once, and what brings it back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from pegboard.errors import AuthRequired, ConnectionLost, ServerUnavailable, StartFailed
from pegboard.types import Json
from pegboard.upstream.link import SessionExpired
from tests.scripted import ScriptedLink, answer
from tests.supervised import (
    ERROR,
    GONE,
    IDLE,
    OK,
    READY,
    STARTING,
    House,
    check,
    dies_at,
    now,
    settle,
    sober,
)


async def fail_until_open(house: House) -> None:
    """Calls until the breaker is open."""
    for _ in range(5):
        await house.fails()


def test_a_crash_fails_the_call_with_the_reason_and_the_next_one_waits_a_little_and_works():
    async def scenario() -> House:
        house = House(dies_at("tools/call"))
        error = await house.fails()
        assert isinstance(error, ConnectionLost)
        assert error.message == GONE.message
        assert "boom" in error.hint
        house.script = sober
        assert await house.call() == OK
        assert 0.375 <= now() <= 0.625
        assert house.states == [STARTING, READY, ERROR, STARTING, READY]
        assert house.server.last_error is None
        return house

    check(scenario)


@pytest.mark.parametrize("moment", ["initialize", "tools/call"])
def test_one_that_dies_in_a_loop_is_started_at_most_eight_times_in_two_minutes(moment: str):
    async def scenario() -> House:
        house = House(dies_at("server/discover", moment))
        house.known_version = ""
        refused = 0
        while now() < 120:
            refused += isinstance(await house.fails(), ServerUnavailable)
            await asyncio.sleep(0.25)
        assert 5 <= len(house.made) <= 8
        assert refused > 100
        return house

    check(scenario)


def test_after_five_failures_callers_are_told_at_once_how_often_how_long_and_why():
    async def scenario() -> House:
        house = House(dies_at("tools/call"))
        await fail_until_open(house)
        began, made = now(), len(house.made)
        error = await house.fails()
        assert isinstance(error, ServerUnavailable)
        assert "s: it failed 5 times in a row and rests for another" in error.message
        assert "the last time: its process exited with code 1" in error.message
        assert "pegboard refresh s" in error.hint
        assert (now(), len(house.made)) == (began, made)
        return house

    check(scenario)


def test_after_the_rest_one_start_is_let_through_for_all_who_call():
    async def scenario() -> House:
        house = House(dies_at("initialize"))
        await fail_until_open(house)
        made = len(house.made)
        await asyncio.sleep(76)
        errors = await asyncio.gather(*(house.call() for _ in range(20)), return_exceptions=True)
        assert {type(error) for error in errors} == {StartFailed}
        assert len(house.made) == made + 1
        assert isinstance(await house.fails(), ServerUnavailable)
        return house

    check(scenario)


def test_a_server_that_comes_back_but_does_not_stay_rests_longer_and_one_that_stays_is_forgiven():
    async def scenario() -> House:
        house = House(dies_at("initialize"))
        await fail_until_open(house)
        await asyncio.sleep(76)
        house.script = sober
        assert await house.call() == OK
        house.made[-1].die(GONE)
        await settle()
        assert isinstance(await house.fails(), ServerUnavailable)
        await asyncio.sleep(151)
        assert await house.call() == OK
        await asyncio.sleep(61)
        house.made[-1].die(GONE)
        await settle()
        assert await house.call() == OK
        return house

    check(scenario)


def test_a_person_who_asks_for_a_fresh_start_gets_one_at_once():
    async def scenario() -> House:
        house = House(dies_at("initialize"))
        await fail_until_open(house)
        house.script = sober
        assert isinstance(await house.fails(), ServerUnavailable)
        began = now()
        house.server.retry()
        assert await house.call() == OK
        assert now() == began
        return house

    check(scenario)


def test_a_server_that_wants_credentials_is_not_asked_again_until_someone_retries():
    async def scenario() -> House:
        house = House()

        def refusing() -> ScriptedLink:
            link = ScriptedLink(sober)
            link.open_error = AuthRequired("s", "it wants a token", hint="`pegboard login s`")
            return link

        house.make = refusing
        for _ in range(4):
            error = await house.fails()
            assert isinstance(error, AuthRequired)
            assert error.hint == "`pegboard login s`"
            await asyncio.sleep(10_000)
        assert len(house.made) == 1
        house.make = lambda: ScriptedLink(sober)
        house.server.retry()
        assert await house.call() == OK
        return house

    check(scenario)


def test_one_that_ends_by_itself_and_cleanly_is_idle_and_starts_again_without_a_wait():
    async def scenario() -> House:
        house = House()
        for _ in range(20):
            assert await house.call() == OK
            house.made[-1].ended_cleanly = True
            house.made[-1].die(ConnectionLost("s", "its process exited with code 0"))
            await settle()
        assert now() == 0
        assert ERROR not in house.states
        assert house.server.state is IDLE
        return house

    check(scenario)


def test_one_that_ends_with_code_0_during_a_call_has_failed():
    async def scenario() -> House:
        def leaves(link: ScriptedLink, message: Json) -> Iterable[Json]:
            if message.get("method") != "tools/call":
                return ()
            link.ended_cleanly = True
            link.die(ConnectionLost("s", "its process exited with code 0"))
            return [{}]

        house = House(leaves)
        await house.fails()
        await settle()
        assert house.server.state is ERROR
        return house

    check(scenario)


def test_an_expired_session_is_renewed_and_the_call_sent_once_more():
    async def scenario() -> House:
        def forgets(link: ScriptedLink, message: Json) -> Iterable[Json]:
            if message.get("method") == "tools/call" and link is house.made[0]:
                link.die(SessionExpired("s", "its session expired"))
                return [{}]
            return sober(link, message)

        house = House(forgets)
        assert await house.call() == OK
        assert len(house.made) == 2
        assert now() == 0
        return house

    check(scenario)


def test_other_requests_are_relayed_as_they_are():
    async def scenario() -> House:
        house = House(lambda _link, message: [answer(message, {"is": message["params"]})] if _is_odd(message) else ())
        assert await house.server.request("resources/odd", {"uri": "a:b"}) == {"is": {"uri": "a:b"}}
        return house

    check(scenario)


def _is_odd(message: Json) -> bool:
    return message.get("method") == "resources/odd"
