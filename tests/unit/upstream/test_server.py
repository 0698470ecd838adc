"""One supervised server: starts, stops and crashes in every order."""

from __future__ import annotations

import asyncio

import pytest

from pegboard.errors import ServerUnavailable, StartFailed
from pegboard.types import CallContext
from pegboard.upstream.link import Link
from pegboard.upstream.server import Server
from tests.scripted import ScriptedLink, answer
from tests.supervised import ERROR, IDLE, OK, READY, STARTING, House, Sluggish, check, dies_at, mute, now, settle, sober

# ── starting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_many_callers_start_one_process():
    async def scenario() -> House:
        house = House()
        assert await asyncio.gather(*(house.call() for _ in range(50))) == [OK] * 50
        assert len(house.made) == 1
        assert house.states == [STARTING, READY]
        return house

    check(scenario)


def test_a_caller_who_leaves_during_the_start_takes_nobody_along():
    async def scenario() -> House:
        house = House()
        leaver, stayer = house.call(), house.call()
        await asyncio.sleep(0)
        leaver.cancel()
        assert await stayer == OK
        assert leaver.cancelled()
        assert len(house.made) == 1
        return house

    check(scenario)


def test_when_every_caller_has_left_the_start_is_finished_all_the_same():
    async def scenario() -> House:
        house = House()
        leaver = house.call()
        await asyncio.sleep(0)
        leaver.cancel()
        await settle()
        assert house.server.state is READY
        assert await house.call() == OK
        assert len(house.made) == 1
        return house

    check(scenario)


def test_a_server_that_is_not_ready_in_time_fails_with_its_stderr():
    async def scenario() -> House:
        house = House(mute, start_timeout=7)
        house.make = lambda: _with_words(ScriptedLink(mute), "loading model ...")
        error = await house.fails()
        assert isinstance(error, StartFailed)
        assert error.message == "s: it was not ready within 7 s"
        assert "loading model ..." in error.hint
        assert house.server.last_error is error
        assert house.server.state is ERROR
        return house

    check(scenario)


def _with_words(link: ScriptedLink, words: str) -> ScriptedLink:
    link.last_words = words
    return link


def test_no_more_servers_start_at_once_than_there_are_slots():
    async def scenario() -> House:
        house = House(mute, slots=1, start_timeout=10)
        other = Server(house.server.spec, house.server.limits, house.server._around)
        calls = [house.call(), asyncio.ensure_future(other.call_tool("t", {}, CallContext()))]
        await asyncio.wait(calls)
        assert now() == pytest.approx(20)
        assert {type(call.exception()) for call in calls} == {StartFailed}
        await other.close()
        return house

    check(scenario)


def test_a_fault_of_our_own_reaches_whoever_waits_instead_of_hanging_them():
    async def scenario() -> House:
        house = House()

        def broken() -> Link:
            raise RuntimeError("a bug")

        house.make = broken
        error = await house.fails()
        assert isinstance(error, StartFailed)
        assert "a bug" in error.message
        assert isinstance(error.__cause__, RuntimeError)
        house.make = lambda: ScriptedLink(sober)
        assert await house.call() == OK
        return house

    check(scenario)


def test_callers_hear_of_a_failed_start_before_it_is_cleared_away():
    async def scenario() -> House:
        house = House(make=lambda: Sluggish(dies_at("initialize")))
        await house.fails()
        assert now() == 0
        house.make = lambda: ScriptedLink(sober)
        assert await house.call() == OK  # but a new one is not started before the old one is gone
        assert now() >= 4
        return house

    check(scenario)


# ── greeting servers that insist on initialize ───────────────────────────────────────────────────────────────────────


def first_methods(house: House) -> list[str]:
    return [link.methods()[0] for link in house.made]


def test_a_server_that_ends_at_the_probe_is_started_again_at_once_and_greeted_in_the_old_way():
    async def scenario() -> House:
        house = House(dies_at("server/discover"))
        house.known_version = ""
        assert await house.call() == OK
        assert first_methods(house) == ["server/discover", "initialize"]
        assert now() == 0
        await house.server.stop()
        assert await house.call() == OK  # and it is remembered
        assert first_methods(house)[2:] == ["initialize"]
        assert READY in house.states
        assert ERROR not in house.states
        return house

    check(scenario)


def test_a_server_that_ends_whatever_it_is_asked_is_tried_both_ways_in_turns():
    async def scenario() -> House:
        house = House(dies_at("server/discover", "initialize"))
        house.known_version = ""
        for _ in range(4):
            assert isinstance(await house.fails(), StartFailed)
        probe, greeting = "server/discover", "initialize"
        assert first_methods(house) == [probe, greeting, probe, greeting, probe]
        return house

    check(scenario)


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_stop_during_the_start_ends_it_at_once():
    async def scenario() -> House:
        house = House(mute)
        call = house.call()
        await settle()
        await asyncio.gather(house.server.stop(), house.server.stop())
        assert now() == 0
        with pytest.raises(ServerUnavailable, match="s: it was stopped before it was ready"):
            await call
        assert house.server.state is IDLE
        assert not house.server.is_running
        return house

    check(scenario)


def test_a_stop_before_the_start_has_even_begun_leaves_nobody_waiting():
    async def scenario() -> House:
        house = House()
        call = house.call()
        await asyncio.sleep(0)  # the caller waits, the keeper has not run yet
        await house.server.stop()
        with pytest.raises(ServerUnavailable):
            await call
        assert not house.server.is_running
        return house

    check(scenario)


def test_a_second_stop_does_not_cut_the_first_one_short():
    async def scenario() -> House:
        house = House(make=lambda: Sluggish(mute))
        call = house.call()
        await settle()
        stops = [asyncio.ensure_future(house.server.stop())]
        await settle()
        stops.append(asyncio.ensure_future(house.server.stop()))
        await asyncio.wait([call, *stops])
        assert house.made[0].closes == 1
        assert now() == 4
        return house

    check(scenario)


def test_a_stop_ends_the_wait_after_a_failure():
    async def scenario() -> House:
        house = House(dies_at("initialize"))
        await house.fails()
        call = house.call()
        await settle()
        await house.server.stop()
        await asyncio.wait({call})
        assert now() == 0
        assert isinstance(call.exception(), ServerUnavailable)
        return house

    check(scenario)


def test_calls_under_way_at_a_stop_fail_and_later_ones_start_it_again():
    async def scenario() -> House:
        house = House(lambda link, message: [{}] if message.get("method") == "tools/call" else ())
        under_way = house.call()
        await settle()
        stop = asyncio.ensure_future(house.server.stop())
        await asyncio.wait({under_way})
        assert str(under_way.exception()) == "s: it was stopped"
        house.script = sober
        assert await house.call() == OK
        await stop
        assert len(house.made) == 2
        return house

    check(scenario)


def test_a_closed_server_refuses_calls_even_those_that_waited_for_its_end():
    async def scenario() -> House:
        house = House(make=lambda: Sluggish(sober))
        await house.call()
        closing = asyncio.ensure_future(house.server.close())
        await settle()
        waiting = house.call()
        await settle()
        assert not waiting.done()
        await closing
        await asyncio.wait({waiting})
        assert isinstance(waiting.exception(), ServerUnavailable)
        assert isinstance(await house.fails(), ServerUnavailable)
        assert len(house.made) == 1
        return house

    check(scenario)


def test_an_idle_server_is_stopped_when_its_time_is_up_and_not_while_it_works():
    async def scenario() -> House:
        house = House(lambda link, message: [{}] if message.get("method") == "tools/call" else (), idle_timeout=60)
        call = house.call(timeout=1000)
        await asyncio.sleep(500)
        assert house.states == [STARTING, READY]
        (request,) = [each for each in house.made[0].sent if each.get("method") == "tools/call"]
        house.made[0].say(answer(request, OK))
        assert await call == OK
        await asyncio.sleep(59)
        assert house.states == [STARTING, READY]
        await asyncio.sleep(62)
        assert house.states == [STARTING, READY, IDLE]
        assert not house.server.is_running
        return house

    check(scenario)
