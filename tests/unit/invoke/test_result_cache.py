"""Results that are used again: whose, of what, how long, and never after a write."""

from __future__ import annotations

import asyncio
from typing import Any

from pegboard.invoke.result_cache import ENTRY_BYTES, ResultCache
from pegboard.testing import FakeSource, text_result, tool_definition
from pegboard.types import CallContext, Caller, Json
from tests.unit.invoke.given import ME, READS, Bench, Time, text_of

TOOLS = [
    tool_definition("read", annotations=READS),
    tool_definition("set", annotations={"idempotentHint": True}),
    tool_definition("write"),
]


def counting() -> Any:
    count = iter(range(1000))
    return lambda arguments, context: text_result(str(next(count)))


def bench(**more: Any) -> Bench:
    sources = [FakeSource(name, TOOLS, results={tool["name"]: counting() for tool in TOOLS}) for name in ("a", "b")]
    return Bench(*sources, **{"cache_seconds": 60.0, **more})


def test_nothing_is_used_again_unless_configured() -> None:
    board = bench(cache_seconds=0.0)
    assert [text_of(board.call("a__read")) for _ in range(2)] == ["0", "1"]


def test_the_same_read_is_used_again_until_it_expires_and_is_recorded_as_such() -> None:
    board = bench(servers={"a": {"cost_usd": 1.0}})
    texts = [text_of(board.call("a__read", arguments)) for arguments in ({"x": 1, "y": 2}, {"y": 2, "x": 1}, {"x": 2})]
    assert texts == ["0", "0", "1"]
    assert [outcome.cached for outcome in board.outcomes] == [False, True, False]
    assert [outcome.cost_usd for outcome in board.outcomes] == [1.0, None, 1.0]
    assert len(board.activated) == 3
    board.time.seconds += 60
    assert text_of(board.call("a__read", {"x": 1, "y": 2})) == "2"


def test_another_caller_and_the_same_tool_of_another_server_have_results_of_their_own() -> None:
    board = bench()
    board.call("a__read")
    assert text_of(board.call("a__read", {}, Caller(identity="you"))) == "1"
    board.call("b__read")
    assert len(board.sources["b"].calls) == 1


def test_a_write_forgets_what_its_server_said_and_no_other() -> None:
    board = bench()
    for name in ("a__read", "b__read", "a__write", "a__read", "b__read"):
        board.call(name)
    assert [tool for tool, _ in board.sources["a"].calls] == ["read", "write", "read"]
    assert [tool for tool, _ in board.sources["b"].calls] == ["read"]


def test_an_idempotent_change_is_made_again_after_another_change() -> None:
    board = bench()
    for value in ("open", "open", "closed", "open"):
        board.call("a__set", {"to": value})
    assert [arguments["to"] for _, arguments in board.sources["a"].calls] == ["open", "closed", "open"]


def test_what_was_read_while_something_was_written_is_not_kept() -> None:
    async def scenario() -> None:
        reading, go_on = asyncio.Event(), asyncio.Event()

        async def read(arguments: Json, context: CallContext) -> Json:
            reading.set()
            await go_on.wait()
            return text_result("old")

        board = bench()
        board.sources["a"].results["read"] = read
        task = asyncio.create_task(board.invoker.call("a__read", {}, ME, CallContext(), via="direct"))
        await reading.wait()
        await board.invoker.call("a__write", {}, ME, CallContext(), via="direct")
        go_on.set()
        await task
        board.sources["a"].results["read"] = text_result("new")
        assert text_of(await board.invoker.call("a__read", {}, ME, CallContext(), via="direct")) == "new"

    asyncio.run(scenario())


def test_errors_and_answers_to_questions_are_never_kept() -> None:
    async def asks(arguments: Json, context: CallContext) -> Json:
        assert context.on_ask is not None
        return text_result(str(await context.on_ask("elicitation/create", {})))

    async def answer(method: str, params: Json) -> Json:
        return {"action": "accept"}

    board = bench()
    for given in (text_result("no", is_error=True), asks):
        board.sources["a"].results["read"] = given
        for _ in range(2):
            board.call("a__read", context=CallContext(on_ask=answer))
    assert len(board.sources["a"].calls) == 4


def test_whoever_changes_a_result_changes_only_a_copy() -> None:
    board = bench()
    board.call("a__read")
    board.call("a__read")["content"].clear()
    assert text_of(board.call("a__read")) == "0"


def test_a_caller_who_may_not_use_the_tool_gets_no_kept_result() -> None:
    board = bench()
    board.call("a__read")
    assert board.call("a__read", {}, Caller(identity="me", allow=("b__*",)))["isError"] is True


def test_memory_is_bounded_and_what_was_used_longest_ago_goes_first() -> None:
    board = bench()
    tool = board.catalog.find("a__read")
    cache = ResultCache(60, Time(), total_bytes=5000)
    keys = [cache.key(tool, {"n": n}, ME) for n in range(10)]
    cache.put(keys[0], b'{"a":"' + b"x" * 900 + b'"}', 0)
    for key in keys[1:]:
        cache.put(key, b'{"a":"' + b"x" * 900 + b'"}', 0)
        assert cache.get(keys[0]) is not None
        assert cache.weight <= 5000
    assert cache.get(keys[1]) is None
    cache.put(keys[1], b" " * ENTRY_BYTES, 0)
    assert cache.get(keys[1]) is None
