"""Who may call what, and that a refusal says who can allow it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pegboard.invoke.facts import effect_of
from pegboard.testing import FakeSource, tool_definition
from pegboard.types import CallContext, Caller, Ending, Json, Tool
from tests.unit.invoke.given import READS, Bench, text_of

ANYBODY = Caller()
SERVERS = {"github": {"scopes": ("repo", "admin")}}


def bench(**more: Any) -> Bench:
    tools: list[Json | str] = [tool_definition("read", annotations=READS), "write", "delete_all"]
    return Bench(FakeSource("github", tools), servers=SERVERS, **more)


def guarded(ask: Any) -> Bench:
    """Where somebody has to approve `write`, and this is how they are asked."""
    return bench(ask=ask, approve=("write", "github__delete_*"))


def refused(board: Bench, name: str, caller: Caller = ANYBODY, **more: Any) -> str:
    calls = len(board.sources["github"].calls)
    result = board.call(name, {}, caller, **more)
    assert result["isError"] is True
    assert board.last.ending is Ending.REFUSED
    assert board.last.tool.startswith("github__")
    assert len(board.sources["github"].calls) == calls
    assert board.activated == []
    return text_of(result)


@pytest.mark.parametrize("via", ["direct", "call_tool", "batch", "code", "proxy", "framework", "cli"])
def test_what_is_denied_is_refused_on_every_way(via: str) -> None:
    assert "`deny` under [tools]" in refused(bench(deny=("delete_*",)), "delete_all", via=via)


@pytest.mark.parametrize("allow", [("github__read",), ("read",), ("*ea*",), ("github__r*", "x")])
def test_an_allowlist_names_public_or_bare_names(allow: tuple[str, ...]) -> None:
    board = bench()
    caller = Caller(allow=allow)
    assert "isError" not in board.call("read", {}, caller)
    board.activated.clear()
    assert "not among the tools that you may use" in refused(board, "github__write", caller)


def test_no_server_is_asked_about_a_name_that_the_caller_may_not_use() -> None:
    board = bench()
    asked: list[str] = []
    find = board.find

    async def asking(name: str) -> Tool:
        asked.append(name)
        return await find(name)

    board.invoker._find = asking
    caller = Caller(allow=("gitlab__*", "read"))
    assert "isError" in board.call("github__unheard_of", {}, caller)
    assert "isError" in board.call("mcp__github__unheard_of", {}, caller)
    assert asked == []
    assert "isError" not in board.call("github__read", {}, caller)
    assert asked == ["github__read"]


def test_an_empty_allowlist_allows_nothing() -> None:
    refused(bench(), "read", Caller(allow=()))


def test_a_miss_does_not_tell_of_tools_that_the_caller_may_not_use() -> None:
    text = text_of(bench().call("github__delete_al", {}, Caller(allow=("read",))))
    assert "delete_all" not in text.replace("delete_al'", "")


def test_a_caller_is_not_told_whose_tool_it_may_not_use() -> None:
    assert "github" not in text_of(bench().call("write", {}, Caller(allow=("read",))))


def test_why_a_tool_is_not_to_be_had_is_told_only_to_whoever_may_use_it() -> None:
    two = [FakeSource(name, ["write"]) for name in ("github", "gitlab")]
    board = Bench(*two)
    assert "2 servers" in text_of(board.call("write", {}, ANYBODY))
    text = text_of(board.call("write", {}, Caller(allow=("github__*",))))
    assert "2 servers" not in text
    assert "github__write" in text
    assert "gitlab" not in text


def test_permissions_that_are_lacking_are_named() -> None:
    board = bench()
    assert "needs the permission admin," in refused(board, "read", Caller(scopes=("repo",)))
    assert "isError" not in board.call("read", {}, Caller(scopes=("repo", "admin", "more")))


def test_what_needs_approval_is_refused_where_nobody_can_be_asked() -> None:
    assert "`approve` under [calls]" in refused(guarded(None), "write")


def test_approval_is_asked_for_what_is_really_sent_and_only_true_allows_it() -> None:
    asked: list[tuple[str, Json]] = []
    answers: list[Any] = [True, False, 1, "yes", None]

    async def approve(tool: Tool, arguments: Json, caller: Caller) -> bool:
        asked.append((tool.public_name, arguments))
        answer: bool = answers.pop(0)
        return answer

    board = guarded(approve)
    assert "isError" not in board.call("write", '{"a": 1}')
    board.activated.clear()
    while answers:
        assert "was not approved" in refused(board, "write")
    assert asked[0] == ("github__write", {"a": 1})
    assert "isError" not in board.call("read")
    assert len(asked) == 5


def test_an_approval_that_fails_is_no_approval() -> None:
    async def approve(tool: Tool, arguments: Json, caller: Caller) -> bool:
        raise ConnectionError

    assert "asking failed (ConnectionError)" in refused(guarded(approve), "write")


def test_how_long_a_person_thinks_is_not_how_long_the_tool_takes() -> None:
    async def approve(tool: Tool, arguments: Json, caller: Caller) -> bool:
        board.time.seconds += 60
        return True

    board = guarded(approve)
    board.call("write")
    assert board.last.duration_ms == 0


def test_a_cancel_while_somebody_is_asked_stays_a_cancel() -> None:
    async def scenario() -> None:
        asked = asyncio.Event()

        async def approve(tool: Tool, arguments: Json, caller: Caller) -> bool:
            asked.set()
            await asyncio.Event().wait()
            return True

        board = guarded(approve)
        task = asyncio.create_task(board.invoker.call("write", {}, Caller(), CallContext(), via="direct"))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert board.last.ending is Ending.CANCELLED
        assert board.sources["github"].calls == []

    asyncio.run(scenario())


def test_a_tool_called_through_the_wrong_platform_tool_is_refused_with_the_right_one() -> None:
    board = bench()
    assert "Call it with call_tool_write" in refused(board, "write", effect="read")
    assert "Call it with call_tool_read" in refused(board, "read", effect="write")
    assert "isError" not in board.call("read", effect="read")
    assert "isError" not in board.call("write", effect="write")


@pytest.mark.parametrize(
    "hints", [None, {}, [], "x", {"readOnlyHint": "true"}, {"readOnlyHint": 1}, {"readOnlyHint": False}]
)
def test_only_a_plain_true_says_that_a_tool_reads(hints: Any) -> None:
    definition = tool_definition("t", **({} if hints is None else {"annotations": hints}))
    board = Bench(FakeSource("s", [definition]))
    assert effect_of(board.catalog.find("t")) == "write"
    assert effect_of(bench().catalog.find("read")) == "read"
