"""A connection over a scripted link: requests, answers, what is ignored, and what is told to whom."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
import pytest

from pegboard.errors import (
    CallTimeout,
    ConnectionLost,
    LimitExceeded,
    PegboardError,
    ProtocolViolation,
    RemoteError,
    StartFailed,
)
from pegboard.types import CallContext, Json
from pegboard.upstream.connection import MAX_POSTS, Connection
from pegboard.wire.framing import Oversized
from tests.scripted import DISCOVERED, HELLO, Script, ScriptedLink, answer, refusal, run_jumping

OK: Json = {"content": [{"type": "text", "text": "ok"}]}


def nothing(_link: ScriptedLink, _message: Json) -> Iterable[Json]:
    return ()


async def opened(
    script: Script = nothing, *, era: str = "handshake", changed: list[str] | None = None
) -> tuple[Connection, ScriptedLink]:
    link = ScriptedLink(script, era=era)
    told = changed if changed is not None else []
    connection = Connection("s", link, on_tools_changed=lambda: told.append("changed"))
    await connection.open("")
    return connection, link


def calling(connection: Connection, tool: str = "t", timeout: float = 10.0, **context: Any) -> asyncio.Task[Json]:
    call = connection.use("tools/call", {"name": tool, "arguments": {}}, CallContext(**context), timeout)
    return asyncio.ensure_future(call)


async def error_of(work: Awaitable[Any]) -> PegboardError:
    with pytest.raises(PegboardError) as caught:
        await work
    return caught.value


def last_id(link: ScriptedLink) -> int:
    identity: int = link.sent[-1]["id"]
    return identity


async def settle() -> None:
    """Lets everything that is ready happen."""
    for _ in range(8):
        await asyncio.sleep(0)


def on_call(react: Callable[[Json], list[Json]]) -> Script:
    return lambda _link, message: react(message) if message.get("method") == "tools/call" else ()


# ── agreeing on a version ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_stateless_server_is_agreed_with_in_one_exchange():
    async def scenario() -> None:
        connection, link = await opened(era="stateless")
        assert link.methods() == ["server/discover"]
        assert connection.agreement.version == link.agreed_version == "2026-07-28"
        assert (connection.agreement.server_name, connection.agreement.server_version) == ("scripted", "7")

    run_jumping(scenario())


def test_an_older_server_is_greeted_after_it_refused_the_probe():
    async def scenario() -> None:
        connection, link = await opened()
        assert link.methods() == ["server/discover", "initialize", "notifications/initialized"]
        assert connection.agreement.instructions == HELLO["instructions"]

    run_jumping(scenario())


def test_a_server_that_is_mute_at_the_probe_is_greeted_when_the_time_for_it_is_up():
    async def scenario() -> None:
        link = ScriptedLink(lambda _, message: [{}] if message.get("method") == "server/discover" else ())
        connection = Connection("s", link, on_tools_changed=lambda: None)
        await connection.open("", probe_seconds=3.0)
        assert asyncio.get_running_loop().time() == pytest.approx(3.0)
        assert connection.agreement.version == "2025-11-25"

    run_jumping(scenario())


def test_a_server_that_is_lost_at_the_probe_is_remembered_as_such():
    async def scenario(method: str) -> bool:
        def die(link: ScriptedLink, message: Json) -> Iterable[Json]:
            if message["method"] == method:
                link.die(ConnectionLost("s", "gone"))
            return ()

        connection = Connection("s", ScriptedLink(die), on_tools_changed=lambda: None)
        await error_of(connection.open(""))
        return connection.lost_at_probe

    assert run_jumping(scenario("server/discover"))
    assert not run_jumping(scenario("initialize"))


def test_no_version_in_common_is_a_failed_start_that_says_what_it_offered():
    async def scenario() -> None:
        def refuse(_link: ScriptedLink, message: Json) -> Iterable[Json]:
            return [answer(message, {**HELLO, "protocolVersion": "1999-01-01"})] if "id" in message else ()

        error = await error_of(opened(refuse))
        assert isinstance(error, StartFailed)
        assert "no protocol version in common" in error.message
        assert "1999-01-01" in error.message

    run_jumping(scenario())


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_call_gets_its_own_answer_whatever_the_order():
    async def scenario() -> None:
        connection, link = await opened()
        calls = [calling(connection, str(number)) for number in range(20)]
        await settle()
        for request in reversed(link.sent[-20:]):
            link.say(answer(request, {"name": request["params"]["name"]}))
        assert [result["name"] for result in await asyncio.gather(*calls)] == [str(number) for number in range(20)]

    run_jumping(scenario())


@pytest.mark.parametrize(
    "noise",
    [
        b"Server listening",
        b"{}",
        b"[]",
        b'{"jsonrpc":"2.0","id":9999,"result":{}}',
        b'{"jsonrpc":"2.0","id":"1","result":{}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
        b'{"jsonrpc":"2.0","method":"notifications/unheard-of"}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":[1,2]}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":77,"progress":1}}',
        b"\xff\xfe\x00",
    ],
)
def test_what_answers_nothing_is_ignored(noise: bytes):
    async def scenario() -> None:
        connection, link = await opened()
        call = calling(connection)
        await settle()
        link.say(noise, answer(link.sent[-1], OK), noise)
        assert await call == OK

    run_jumping(scenario())


def test_a_second_answer_changes_nothing():
    async def scenario() -> None:
        connection, _ = await opened(on_call(lambda m: [answer(m, OK), answer(m, {}), refusal(m)]))
        assert await calling(connection) == OK
        assert await calling(connection) == OK

    run_jumping(scenario())


def test_a_refusal_keeps_code_message_and_data():
    async def scenario() -> None:
        error = {"code": -32602, "message": "Unknown tool", "data": {"a": 1}}
        connection, _ = await opened(on_call(lambda m: [{"id": m["id"], "error": error}]))
        caught = await error_of(calling(connection))
        assert isinstance(caught, RemoteError)
        assert (caught.code, caught.remote_message, caught.data) == (-32602, "Unknown tool", {"a": 1})
        assert caught.message.startswith("s: ")

    run_jumping(scenario())


@pytest.mark.parametrize("broken", [b"NaN", b"[" * 100_000 + b"]" * 100_000, b'{"content": [', b'"\x01"'])
def test_an_answer_that_cannot_be_read_fails_its_own_call_at_once(broken: bytes):
    async def scenario() -> None:
        connection, link = await opened()
        bad, good = calling(connection), calling(connection)
        await settle()
        link.say(b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (link.sent[-2]["id"], broken))
        error = await error_of(bad)
        assert isinstance(error, ProtocolViolation)
        assert asyncio.get_running_loop().time() == 0
        link.say(answer(link.sent[-1], OK))
        assert await good == OK

    run_jumping(scenario())


@pytest.mark.parametrize("result", ['"ok"', "[]", "null", "7"])
def test_a_result_that_is_no_object_is_a_violation(result: str):
    async def scenario() -> None:
        connection, _ = await opened(on_call(lambda m: [{"id": m["id"], "result": msgspec.Raw(result.encode())}]))
        assert isinstance(await error_of(calling(connection)), ProtocolViolation)

    run_jumping(scenario())


# ── too much ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def oversized(head: str, tail: str = "") -> Oversized:
    return Oversized(50_000_000, head.encode(), tail.encode())


def test_an_oversized_answer_fails_only_the_call_it_answers():
    async def scenario() -> None:
        connection, link = await opened()
        large, small = calling(connection), calling(connection)
        await settle()
        connection.oversized(oversized(f'{{"jsonrpc":"2.0","id":{link.sent[-2]["id"]},"result":{{"text":"xxx'))
        error = await error_of(large)
        assert isinstance(error, LimitExceeded)
        assert "max_result_bytes" in error.hint
        link.say(answer(link.sent[-1], OK))
        assert await small == OK

    run_jumping(scenario())


@pytest.mark.parametrize(
    "head",
    [
        '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"xxx',
        '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"x":"',
        '{"method":"notifications/message","params":{"data":"xxx',
        '{"jsonrpc":"2.0","id":424242,"result":{"text":"xxx',
    ],
)
def test_an_oversized_message_that_answers_no_call_fails_none(head: str):
    async def scenario() -> None:
        connection, link = await opened()
        call = calling(connection)
        await settle()
        connection.oversized(oversized(head))
        link.say(answer(link.sent[-1], OK))
        assert await call == OK

    run_jumping(scenario())


def test_an_oversized_line_of_unknown_purpose_fails_whoever_waits_rather_than_let_them_hang():
    async def scenario() -> None:
        connection, _ = await opened()
        calls = [calling(connection), calling(connection)]
        await settle()
        connection.oversized(oversized("xxxxxxxx"))
        assert [type(error) for error in await asyncio.gather(*calls, return_exceptions=True)] == [LimitExceeded] * 2

    run_jumping(scenario())


# ── giving up ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_late_answer_is_ignored_and_the_server_was_told_that_nobody_waits():
    async def scenario() -> None:
        connection, link = await opened()
        error = await error_of(calling(connection, timeout=5))
        assert isinstance(error, CallTimeout)
        assert error.message == "s: no answer to tools/call within 5 s"
        await settle()
        request, cancelled = link.sent[-2:]
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["requestId"] == request["id"]
        link.say(answer(request, OK))
        later = calling(connection)
        await settle()
        link.say(answer(link.sent[-1], {"content": []}))
        assert await later == {"content": []}

    run_jumping(scenario())


def test_a_cancelled_call_is_called_off_at_the_server():
    async def scenario() -> None:
        connection, link = await opened()
        call = calling(connection)
        await settle()
        identity = last_id(link)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await settle()
        assert link.sent[-1]["params"] == {"requestId": identity, "reason": "the caller cancelled"}

    run_jumping(scenario())


def test_a_request_that_never_went_out_is_not_called_off():
    async def scenario() -> None:
        connection, link = await opened()
        link.takes.clear()
        error = await error_of(calling(connection, timeout=5))
        assert error.message == "s: it did not take tools/call within 5 s: it reads no input"
        link.takes.set()
        await settle()
        assert link.methods()[-1] == "notifications/initialized"

    run_jumping(scenario())


def test_a_server_that_reads_nothing_gets_no_more_than_so_many_messages_queued_and_callers_time_out():
    async def scenario() -> None:
        connection, link = await opened()
        sent = len(link.sent)
        silent = [calling(connection, timeout=5) for _ in range(200)]
        await settle()
        link.takes.clear()
        stuck = [calling(connection, timeout=5) for _ in range(200)]
        errors = await asyncio.gather(*silent, *stuck, return_exceptions=True)
        assert {type(error) for error in errors} == {CallTimeout}
        assert "reads no input" in str(errors[-1])
        await settle()
        assert len(asyncio.all_tasks()) <= MAX_POSTS + 1
        link.takes.set()
        await settle()
        assert link.methods()[sent:].count("tools/call") == 200
        assert link.methods()[sent:].count("notifications/cancelled") == MAX_POSTS

    run_jumping(scenario())


def test_a_lost_server_fails_every_call_with_the_reason_and_takes_no_more():
    async def scenario() -> None:
        connection, link = await opened()
        calls = [calling(connection), calling(connection)]
        await settle()
        reason = ConnectionLost("s", "its process exited with code 3", hint="It wrote on stderr:\nboom")
        link.die(reason)
        assert await asyncio.gather(*calls, return_exceptions=True) == [reason, reason]
        assert await error_of(calling(connection)) is reason
        assert connection.over.result() is reason
        await settle()
        assert "notifications/cancelled" not in link.methods()

    run_jumping(scenario())


def test_closing_fails_what_is_under_way_and_leaves_no_task():
    async def scenario() -> None:
        connection, link = await opened(era="stateless")
        call = calling(connection)
        await settle()
        await connection.close()
        error = await error_of(call)
        assert isinstance(error, ConnectionLost)
        assert error.message == "s: it was stopped"
        await connection.close()
        assert link.closes == 2
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_jumping(scenario())


def test_the_subscription_of_a_stateless_server_ends_with_the_connection():
    async def scenario() -> None:
        listening = {**DISCOVERED, "capabilities": {"tools": {"listChanged": True}}}

        def script(_link: ScriptedLink, message: Json) -> Iterable[Json]:
            return [answer(message, listening)] if message["method"] == "server/discover" else ()

        changed: list[str] = []
        connection, link = await opened(script, changed=changed)
        await settle()
        assert link.methods()[-1] == "subscriptions/listen"
        link.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        assert changed == ["changed"]
        await connection.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_jumping(scenario())
