"""Calls that ask on the way, in the era in which only results can ask."""

from __future__ import annotations

import asyncio

import pytest

from pegboard.errors import PegboardError
from pegboard.gateway.errand import Errand, WaitingRoom
from pegboard.gateway.refusals import Refused
from pegboard.testing import text_result
from pegboard.types import CallContext, Caller, Json, Progress

ADA = Caller(identity="ada")
CALL: Json = {"name": "t", "arguments": {"a": 1}}


def anything(_method: str, _params: Json) -> None:
    """Every question may be put."""


def asking(*questions: str, ends: list[str] | None = None) -> Errand:
    """An errand that asks these at the same time, and answers with what it heard."""
    errand = Errand(ADA, CALL)

    async def work(context: CallContext) -> Json:
        assert context.on_ask is not None
        try:
            replies = await asyncio.gather(*(context.on_ask("elicitation/create", {"q": each}) for each in questions))
        except asyncio.CancelledError:
            if ends is not None:
                ends.append("cancelled")
            raise
        return text_result(" ".join(str(reply["r"]) for reply in replies))

    errand.begin(work, CallContext(on_ask=errand.asking(anything)))
    return errand


def test_a_call_without_questions_is_one_step() -> None:
    async def scenario() -> None:
        errand = asking()
        assert await errand.step() == text_result("")

    asyncio.run(scenario())


def test_a_question_without_an_answer_is_put_again() -> None:
    async def scenario() -> None:
        room = WaitingRoom()
        errand = asking("one", "two")
        assert await errand.step() is None
        await asyncio.sleep(0)
        result = room.leave(errand)
        first, second = result["inputRequests"]
        again = room.fetch(
            result["requestState"], ADA, {**CALL, "requestState": "x", "inputResponses": {}, "_meta": {}}
        )
        again.answer({first: {"r": 1}, second: "no answer", "unknown": {"r": 3}})
        assert await again.step() is None
        assert list(again.questions()) == [second]
        again.answer({second: {"r": 2}})
        assert await again.step() == text_result("1 2")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("caller", "params"),
    [(Caller(identity="eve"), CALL), (ADA, {**CALL, "name": "u"}), (ADA, {**CALL, "arguments": {}})],
)
def test_only_who_was_asked_finds_the_call_again_and_only_that_call(caller: Caller, params: Json) -> None:
    async def scenario() -> None:
        room = WaitingRoom()
        errand = asking("one")
        await errand.step()
        state = room.leave(errand)["requestState"]
        with pytest.raises(Refused):
            room.fetch(state, caller, params)
        assert room.fetch(state, ADA, CALL) is errand
        room.close()
        errand.cancel()

    asyncio.run(scenario())


@pytest.mark.parametrize("state", ["nothing", "", None, 5, {}, ["x"]])
def test_a_state_that_nobody_was_given_finds_nothing(state: object) -> None:
    async def scenario() -> None:
        with pytest.raises(Refused):
            WaitingRoom().fetch(state, ADA, CALL)

    asyncio.run(scenario())


def test_whoever_does_not_come_back_is_not_waited_for_for_ever() -> None:
    async def scenario() -> list[str]:
        room, ends = WaitingRoom(seconds=0.001), list[str]()
        errand = asking("one", ends=ends)
        await errand.step()
        room.leave(errand)
        while not ends:
            await asyncio.sleep(0.001)
        assert len(room) == 0
        return ends

    assert asyncio.run(asyncio.wait_for(scenario(), 10)) == ["cancelled"]


def test_a_full_room_ends_the_call_instead_of_growing() -> None:
    async def scenario() -> None:
        room = WaitingRoom(most=1)
        first, second = asking("one"), asking("one")
        await first.step()
        await second.step()
        room.leave(first)
        with pytest.raises(PegboardError, match="wait for answers already"):
            room.leave(second)
        room.close()

    asyncio.run(scenario())


def test_progress_reaches_the_request_that_waits_now_and_nobody_in_between() -> None:
    errand, heard = Errand(ADA, CALL), list[Progress]()
    errand.told(Progress(1))
    errand.hear = heard.append
    errand.told(Progress(2))
    errand.hear = None
    errand.told(Progress(3))
    assert heard == [Progress(2)]


def test_a_cancelled_step_cancels_the_call() -> None:
    async def scenario() -> list[str]:
        ends = list[str]()
        errand = Errand(ADA, CALL)

        async def work(_: CallContext) -> Json:
            try:
                await asyncio.Event().wait()
            finally:
                ends.append("ended")
            return {}

        errand.begin(work, CallContext())
        step = asyncio.ensure_future(errand.step())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        step.cancel()
        await asyncio.wait({step})
        while not ends:
            await asyncio.sleep(0)
        return ends

    assert asyncio.run(asyncio.wait_for(scenario(), 10)) == ["ended"]
