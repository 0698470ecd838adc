"""What a server says on its own during a call: progress, questions, floods of either."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from pegboard.errors import CallTimeout, ProtocolViolation
from pegboard.types import CallContext, Json, Progress
from pegboard.upstream.connection import MAX_POSTS, MAX_ROUNDS, Connection
from pegboard.upstream.questions import MAX_QUESTIONS
from tests.scripted import Script, ScriptedLink, answer, run_jumping

OK: Json = {"content": []}
ASK: Json = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "Name?"}}


async def opened(script: Script = lambda _link, _message: (), *, era: str = "handshake"):
    link = ScriptedLink(script, era=era)
    connection = Connection("s", link, on_tools_changed=lambda: None)
    await connection.open("")
    return connection, link


def calling(connection: Connection, timeout: float = 10.0, **context: Any) -> asyncio.Task[Json]:
    return asyncio.ensure_future(
        connection.use("tools/call", {"name": "t", "arguments": {}}, CallContext(**context), timeout)
    )


async def settle() -> None:
    for _ in range(12):
        await asyncio.sleep(0)


def progress(token: object, **params: object) -> Json:
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, **params}}


class Person:
    """Answers questions when told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Json]] = []
        self.answers: asyncio.Queue[Json] = asyncio.Queue()

    async def __call__(self, method: str, params: Json) -> Json:
        self.asked.append((method, params))
        return await self.answers.get()


# ── progress ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_progress_reaches_the_caller_it_belongs_to_and_nobody_else():
    async def scenario() -> None:
        connection, link = await opened()
        first: list[Progress] = []
        second: list[Progress] = []
        calls = [calling(connection, on_progress=first.append), calling(connection, on_progress=second.append)]
        await settle()
        tokens = [message["params"]["_meta"]["progressToken"] for message in link.sent[-2:]]
        link.say(progress(tokens[0], progress=1, total=3, message="one"), progress(tokens[1], progress=0.5))
        link.say(*(answer(message, OK) for message in link.sent[-2:]))
        await asyncio.gather(*calls)
        assert (first, second) == ([Progress(1, 3, "one")], [Progress(0.5)])

    run_jumping(scenario())


def test_a_call_that_wants_no_progress_asks_for_none():
    async def scenario() -> None:
        connection, link = await opened()
        call = calling(connection)
        await settle()
        assert "_meta" not in link.sent[-1]["params"]
        link.say(progress(link.sent[-1]["id"], progress=1), answer(link.sent[-1], OK))
        assert await call == OK

    run_jumping(scenario())


def test_progress_extends_the_deadline_but_not_for_ever():
    async def scenario() -> None:
        connection, link = await opened()
        call = calling(connection, timeout=10, on_progress=lambda _: None)
        await settle()
        token = link.sent[-1]["id"]
        while not call.done():
            link.say(progress(token, progress=1))
            await asyncio.wait({call}, timeout=9)
        assert isinstance(call.exception(), CallTimeout)
        assert "within 100 s" in str(call.exception())
        assert asyncio.get_running_loop().time() == pytest.approx(100)

    run_jumping(scenario())


@pytest.mark.parametrize("params", [{"progress": "half"}, {}, {"progress": None}, {"progress": [1]}])
def test_progress_that_makes_no_sense_is_ignored(params: Json):
    async def scenario() -> None:
        connection, link = await opened()
        heard: list[Progress] = []
        call = calling(connection, on_progress=heard.append)
        await settle()
        link.say(progress(link.sent[-1]["id"], **params), answer(link.sent[-1], OK))
        assert await call == OK
        assert heard == []

    run_jumping(scenario())


def test_a_listener_that_raises_fails_its_own_call_and_no_other():
    async def scenario() -> None:
        connection, link = await opened()
        calls = [calling(connection, on_progress=lambda _: 1 / 0), calling(connection)]
        await settle()
        link.say(progress(link.sent[-2]["id"], progress=1), answer(link.sent[-1], OK))
        assert await calls[1] == OK
        with pytest.raises(ZeroDivisionError):
            await calls[0]

    run_jumping(scenario())


# ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_question_goes_to_the_one_who_calls_and_holds_the_clock_until_it_is_answered():
    async def scenario() -> None:
        connection, link = await opened()
        person = Person()
        call = calling(connection, timeout=10, on_ask=person)
        await settle()
        request = link.sent[-1]
        link.say(ASK)
        await asyncio.sleep(3600)
        assert person.asked == [("elicitation/create", {"message": "Name?"})]
        person.answers.put_nowait({"action": "accept", "content": {"name": "Ada"}})
        await settle()
        assert link.replies() == [answer({"id": "q"}, {"action": "accept", "content": {"name": "Ada"}})]
        link.say(answer(request, OK))
        assert await call == OK

    run_jumping(scenario())


def test_a_question_that_could_be_for_two_callers_is_put_to_neither():
    async def scenario() -> None:
        connection, link = await opened()
        people = [Person(), Person()]
        calls = [calling(connection, on_ask=person) for person in people]
        await settle()
        link.say(ASK)
        await settle()
        assert [person.asked for person in people] == [[], []]
        assert "not clear which call" in link.replies()[0]["error"]["message"]
        for request in [message for message in link.sent if message.get("method") == "tools/call"]:
            link.say(answer(request, OK))
        await asyncio.gather(*calls)

    run_jumping(scenario())


@pytest.mark.parametrize("method", ["roots/list", "sampling/createMessage", "elicitation/create", "no/such"])
def test_a_question_nobody_can_answer_is_refused_at_once(method: str):
    async def scenario() -> None:
        connection, link = await opened()
        call = calling(connection)
        await settle()
        request = link.sent[-1]
        link.say({**ASK, "method": method})
        await settle()
        assert link.replies()[0]["error"]["code"] == -32601
        link.say(answer(request, OK))
        assert await call == OK

    run_jumping(scenario())


def test_a_ping_is_answered():
    async def scenario() -> None:
        _, link = await opened()
        link.say({"jsonrpc": "2.0", "id": 5, "method": "ping"})
        await settle()
        assert link.replies() == [answer({"id": 5}, {})]

    run_jumping(scenario())


def test_a_person_whose_code_fails_is_an_error_to_the_server_and_not_the_end_of_the_call():
    async def scenario() -> None:
        connection, link = await opened()

        async def broken(_method: str, _params: Json) -> Json:
            raise ValueError("no keyboard")

        call = calling(connection, on_ask=broken)
        await settle()
        request = link.sent[-1]
        link.say(ASK)
        await settle()
        assert "no keyboard" in link.replies()[0]["error"]["message"]
        link.say(answer(request, OK))
        assert await call == OK

    run_jumping(scenario())


@pytest.mark.parametrize("ending", ["answered", "cancelled"])
def test_a_question_whose_call_is_over_is_withdrawn(ending: str):
    async def scenario() -> None:
        connection, link = await opened()
        person = Person()
        call = calling(connection, on_ask=person)
        await settle()
        request = link.sent[-1]
        link.say(ASK)
        await settle()
        if ending == "answered":
            link.say(answer(request, OK))
        else:
            call.cancel()
        await asyncio.wait({call})
        await settle()
        assert "over" in link.replies()[0]["error"]["message"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_jumping(scenario())


def test_a_flood_of_questions_is_bounded_in_people_asked_and_in_replies_queued():
    async def scenario() -> None:
        connection, link = await opened()
        person = Person()
        call = calling(connection, on_ask=person)
        await settle()
        link.takes.clear()
        for number in range(5_000):
            link.say({**ASK, "id": number})
        await settle()
        assert len(person.asked) == MAX_QUESTIONS
        assert len(asyncio.all_tasks()) <= 2 + 2 * MAX_POSTS
        await connection.close()
        await asyncio.wait({call})
        link.takes.set()
        await settle()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_jumping(scenario())


# ── input in the stateless era ───────────────────────────────────────────────────────────────────────────────────────


def needs_input(requests: Any, **more: Any) -> Json:
    return {"resultType": "input_required", "inputRequests": requests, **more}


def asking(*results: Json) -> Script:
    """Answers successive calls with these results."""
    left = list(results)

    def script(_link: ScriptedLink, message: Json) -> Iterable[Json]:
        return [answer(message, left.pop(0) if len(left) > 1 else left[0])] if message["method"] == "tools/call" else ()

    return script


NAME: Json = {"name": {"method": "elicitation/create", "params": {"message": "Name?"}}}


def test_input_is_asked_for_and_sent_with_the_state_of_the_request():
    async def scenario() -> None:
        connection, link = await opened(asking(needs_input(NAME, requestState="s1"), OK), era="stateless")
        person = Person()
        person.answers.put_nowait({"action": "decline"})
        assert await calling(connection, on_ask=person) == OK
        params = link.sent[-1]["params"]
        assert params["inputResponses"] == {"name": {"action": "decline"}}
        assert params["requestState"] == "s1"
        assert link.sent[-1]["id"] != link.sent[-2]["id"]

    run_jumping(scenario())


def test_input_that_nobody_can_give_ends_the_call():
    async def scenario() -> None:
        connection, _ = await opened(asking(needs_input(NAME)), era="stateless")
        with pytest.raises(ProtocolViolation, match="nobody is there to give it"):
            await calling(connection)

    run_jumping(scenario())


def test_a_server_that_never_has_enough_input_is_stopped():
    async def scenario() -> None:
        connection, link = await opened(asking(needs_input(None, requestState="again")), era="stateless")
        with pytest.raises(ProtocolViolation, match=f"{MAX_ROUNDS} times"):
            await calling(connection)
        assert link.methods().count("tools/call") == MAX_ROUNDS

    run_jumping(scenario())


@pytest.mark.parametrize(
    "requests",
    [
        "x",
        7,
        ["x"],
        {"a": "x"},
        {"a": None},
        {"a": {}},
        {"a": {"method": 3}},
        {"a": {"method": "m", "params": "p"}},
        {str(number): {"method": "m"} for number in range(MAX_QUESTIONS + 1)},
    ],
)
def test_input_requests_that_make_no_sense_are_a_violation(requests: Any):
    async def scenario() -> None:
        connection, _ = await opened(asking(needs_input(requests)), era="stateless")
        with pytest.raises(ProtocolViolation, match="cannot be understood"):
            await calling(connection, on_ask=Person())

    run_jumping(scenario())
