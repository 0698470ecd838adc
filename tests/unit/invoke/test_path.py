"""The whole path over a server in memory: what comes back, what is recorded, what is activated."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from pegboard.errors import (
    AuthRequired,
    CallTimeout,
    ConnectionLost,
    LimitExceeded,
    PegboardError,
    ProtocolViolation,
    RemoteError,
    ServerUnavailable,
    StartFailed,
)
from pegboard.testing import FakeSource, text_result, tool_definition
from pegboard.types import CallContext, Caller, Ending, Json
from tests.unit.invoke.given import ISSUE, ME, READS, Bench, text_of

CREATE = tool_definition("create_issue", "Creates one.", inputSchema=ISSUE)
LIST = tool_definition("list", annotations=READS)


def bench(result: Any = None, **more: Any) -> Bench:
    """One server with one tool that takes an issue and gives this."""
    given = text_result("done") if result is None else result
    return Bench(FakeSource("github", [CREATE, LIST], results={"create_issue": given, "list": given}), **more)


def test_a_plain_call_gives_the_very_result_and_is_recorded_and_activated() -> None:
    result = {"content": [{"type": "text", "text": "done", "x": 1}], "structuredContent": {"a": 1}, "new": [1]}
    board = bench(result)
    assert board.call("github__create_issue", {"title": "a"}) is result
    outcome = board.last
    assert (outcome.tool, outcome.server, outcome.ending) == ("github__create_issue", "github", Ending.OK)
    assert (outcome.conversation, outcome.caller, outcome.via) == ("one", "me", "call_tool")
    assert (outcome.at, outcome.request_bytes, outcome.result_tokens) == (1000.0, len('{"title":"a"}'), 1)
    assert outcome.result_bytes > 50
    assert board.activated == [(ME, "github__create_issue")]


def test_a_call_without_arguments_sends_an_empty_object() -> None:
    board = bench()
    board.call("list", None)
    assert board.sent == {}


@pytest.mark.parametrize(
    "name",
    [
        "github__create_issue",
        "create_issue",
        "GITHUB__CREATE_ISSUE",
        "GitHub__createIssue",
        "createIssue",
        "Create-Issue",
        "github.create_issue",
        "github/create_issue",
        "github:create-issue",
        "github-create_issue",
        "mcp__pegboard__github__create_issue",
        "mcp__github__create_issue",
        "functions.github__create_issue",
        " github__create_issue ",
    ],
)
def test_names_are_understood_as_models_write_them(name: str) -> None:
    board = bench()
    assert text_of(board.call(name, {"title": "a"})) == "done"
    assert board.last.tool == "github__create_issue"


def test_a_miss_names_the_nearest_and_how_to_search_and_is_recorded_as_asked() -> None:
    board = bench()
    result = board.call("github__creat_isue", {})
    assert result["isError"] is True
    assert "There is no tool named 'github__creat_isue'" in text_of(result)
    assert "Did you mean github__create_issue?" in text_of(result)
    assert "search_tools" in text_of(result)
    assert (board.last.ending, board.last.tool, board.last.server) == (Ending.NOT_FOUND, "github__creat_isue", "")
    assert board.activated == []


def test_a_bare_name_of_two_servers_is_answered_with_both_and_never_guessed() -> None:
    board = Bench(FakeSource("a", ["list"]), FakeSource("b", ["list"]))
    for name in ("list", "LIST"):
        assert board.call(name)["isError"] is True
    assert "a__list, b__list" in text_of(board.call("list"))
    assert board.sources["a"].calls == board.sources["b"].calls == []


def test_an_excluded_tool_is_not_reached_under_any_spelling_and_its_namesake_is_not_taken_for_it() -> None:
    board = Bench(
        FakeSource("a", ["delete_repo", "x"]),
        FakeSource("b", ["deleteRepo"]),
        servers={"a": {"exclude": ("delete_*",)}},
    )
    for name in ("a__delete_repo", "a.delete_repo", "mcp__a__delete_repo", "delete_repo"):
        assert "is not used" in text_of(board.call(name))
    assert board.sources["a"].calls == board.sources["b"].calls == []


@pytest.mark.parametrize("name", ["", "\x1b[2J\u202e", "x" * 100_000])
def test_any_name_at_all_gets_a_short_visible_answer(name: str) -> None:
    board = bench()
    text = text_of(board.call(name))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(text) < 3000
    assert len(board.last.tool) <= 210


def test_wrong_arguments_are_told_one_by_one_with_the_schema_and_nothing_is_called() -> None:
    board = bench()
    result = board.call("create_issue", {"title": 3, "wat": 1})
    text = text_of(result)
    assert result["isError"] is True
    assert "- title must be of type string, not a number" in text
    assert "- wat is unknown" in text
    assert '"maxAge":{"type":"number"}' in text
    assert board.sources["github"].calls == []
    assert board.last.ending is Ending.BAD_ARGUMENTS
    assert board.activated == []


def test_a_huge_schema_is_cut_in_the_answer() -> None:
    schema = {"type": "object", "required": ["a"], "properties": {f"p{n}": {"type": "string"} for n in range(2000)}}
    board = Bench(FakeSource("s", [tool_definition("t", inputSchema=schema)]))
    assert len(text_of(board.call("t", {}))) < 8_500


def test_mended_arguments_are_sent_and_noted_for_programs_but_cost_the_model_nothing() -> None:
    board = bench()
    result = board.call("create_issue", {"Title": "a", "count": "3"})
    assert board.sent == {"title": "a", "count": 3}
    assert result["_meta"]["pegboard/repairs"] == ["Title: taken as title", "count: text read as a number"]
    assert text_of(result) == "done"
    assert board.last.repairs == 2


def test_a_server_s_own_meta_stays_beside_the_repairs() -> None:
    board = bench({"content": [], "_meta": {"com.example/x": 1}})
    assert board.call("create_issue", '{"title": "a"}')["_meta"] == {
        "com.example/x": 1,
        "pegboard/repairs": ["arguments: text read as an object"],
    }


@pytest.mark.parametrize("result", [text_result("no", is_error=True), CallTimeout("github", "no answer")])
def test_repairs_are_said_in_one_line_when_the_call_then_fails(result: Any) -> None:
    answer = bench(result).call("create_issue", {"title": "a", "count": "3"})
    assert answer["content"][-1]["text"].count("\n") == 0
    assert "count: text read as a number" in answer["content"][-1]["text"]
    assert answer["_meta"]["pegboard/repairs"]


def test_repair_can_be_turned_off() -> None:
    board = bench(repair=False)
    assert board.call("create_issue", {"title": "a", "count": "3"})["isError"] is True


def test_a_tool_that_says_it_failed_is_handed_on_recorded_and_not_activated() -> None:
    board = bench(text_result("no such repository", is_error=True))
    assert board.call("create_issue", {"title": "a"}) == text_result("no such repository", is_error=True)
    assert (board.last.ending, board.last.detail) == (Ending.TOOL_ERROR, "no such repository")
    assert board.activated == []


def test_a_tool_that_fails_without_a_word_is_given_some() -> None:
    board = bench({"content": [], "isError": True})
    assert text_of(board.call("create_issue", {"title": "a"})) == "github__create_issue failed without saying why."


SECRET = "hint: /home/me/.config/token=hunter2"


@pytest.mark.parametrize(
    ("error", "ending", "words"),
    [
        (StartFailed("github", "it ended with code 1", hint=SECRET), Ending.SERVER_ERROR, "other tools still work"),
        (ServerUnavailable("github", "it rests", hint=SECRET), Ending.SERVER_ERROR, "other tools still work"),
        (AuthRequired("github", "it wants a sign-in", hint=SECRET), Ending.SERVER_ERROR, "`pegboard login github`"),
        (ConnectionLost("github", "it went away", hint=SECRET), Ending.SERVER_ERROR, "look before you call it again"),
        (CallTimeout("github", "no answer in 3 s", hint=SECRET), Ending.TIMEOUT, "look before you call it again"),
        (LimitExceeded("github", "20 MB", hint=SECRET), Ending.SERVER_ERROR, "Ask for less"),
        (ProtocolViolation("github", "what?", hint=SECRET), Ending.SERVER_ERROR, "other tools still work"),
        (RemoteError("github", -32000, "rate limited"), Ending.SERVER_ERROR, "rate limited"),
    ],
)
def test_every_failure_is_a_result_that_says_what_to_do_and_gives_nothing_away(
    error: PegboardError, ending: Ending, words: str
) -> None:
    board = bench(error)
    result = board.call("create_issue", {"title": "a"})
    assert result["isError"] is True
    assert result["_meta"]["pegboard/ending"] == ending.value
    assert error.message in text_of(result)
    assert words in text_of(result)
    assert "hunter2" not in text_of(result)
    assert board.last.ending is ending
    assert board.activated == []


def test_arguments_that_the_server_itself_refuses_are_answered_with_the_schema() -> None:
    board = bench(RemoteError("github", -32602, "title is too short"))
    text = text_of(board.call("create_issue", {"title": "a"}))
    assert "title is too short" in text
    assert '"maxAge"' in text
    assert board.last.ending is Ending.BAD_ARGUMENTS


def test_what_a_server_says_in_an_error_is_made_visible_and_cut() -> None:
    text = text_of(bench(RemoteError("github", -1, "\u202e\x1b[31m" + "x" * 100_000)).call("list"))
    assert "\\u202e\\x1b[31m" in text
    assert len(text) < 3000


@pytest.mark.parametrize("answer", [None, [], "text", 7])
def test_an_answer_that_is_no_result_is_told_as_the_server_s_fault(answer: Any) -> None:
    board = bench(lambda arguments, context: answer)
    assert "no result" in text_of(board.call("list"))
    assert board.last.ending is Ending.SERVER_ERROR


def test_a_bug_of_ours_becomes_a_result_a_record_and_a_log_entry(caplog: pytest.LogCaptureFixture) -> None:
    def bug(arguments: Json, context: CallContext) -> Json:
        raise KeyError("hunter2")

    board = bench(bug)
    with caplog.at_level(logging.ERROR):
        result = board.call("list")
    assert "KeyError" in text_of(result)
    assert "hunter2" not in text_of(result) + board.last.detail
    assert board.last.ending is Ending.SERVER_ERROR
    assert "hunter2" in caplog.text


def test_a_record_counter_or_activation_that_fails_costs_no_result(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> Any:
        raise OSError("disk full")

    board = bench()
    board.invoker._record = board.invoker._activate = board.invoker._count_tokens = broken
    assert text_of(board.call("list")) == "done"
    assert caplog.text.count("disk full") >= 3


def test_a_caller_s_cancel_stays_a_cancel_reaches_the_server_and_is_recorded() -> None:
    async def scenario() -> None:
        began, cancelled = asyncio.Event(), asyncio.Event()

        async def wait(arguments: Json, context: CallContext) -> Json:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return {}

        board = bench(wait)
        task = asyncio.create_task(board.invoker.call("list", {}, ME, CallContext(), via="direct"))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cancelled.is_set()
        assert board.last.ending is Ending.CANCELLED
        assert board.activated == []

    asyncio.run(scenario())


def test_a_cancel_that_is_not_the_caller_s_does_not_end_the_turn() -> None:
    def torn(arguments: Json, context: CallContext) -> Json:
        raise asyncio.CancelledError

    board = bench(torn)
    assert "was cancelled" in text_of(board.call("list"))
    assert board.last.ending is Ending.SERVER_ERROR


def test_the_caller_s_context_reaches_the_server_as_it_is() -> None:
    seen: list[CallContext] = []

    def look(arguments: Json, context: CallContext) -> Json:
        seen.append(context)
        return text_result("x")

    context = CallContext(timeout=3, on_progress=lambda _: None, meta={"a": 1})
    bench(look).call("list", context=context)
    assert seen[0] is context


def test_where_disclosure_is_off_neither_arguments_nor_result_are_touched() -> None:
    long = text_result("\u202e" + "x" * 100_000)
    board = bench(long)
    assert board.call("create_issue", {"title": 3, "wat": "1"}, verbatim=True) is long
    assert board.sent == {"title": 3, "wat": "1"}
    assert board.last.ending is Ending.OK


def test_the_cost_of_a_call_is_recorded_when_the_tool_answered() -> None:
    board = bench(servers={"github": {"cost_usd": 0.25}})
    board.call("list")
    board.call("create_issue", {})
    assert [outcome.cost_usd for outcome in board.outcomes] == [0.25, None]


def test_the_record_of_a_call_says_how_long_it_took() -> None:
    def takes_two_seconds(arguments: Json, context: CallContext) -> Json:
        board.time.seconds += 2
        return text_result("x")

    board = bench(takes_two_seconds)
    board.call("list")
    assert board.last.duration_ms == 2000


def test_a_long_result_is_cut_and_read_on_by_its_caller_alone() -> None:
    board = bench(text_result("0123456789" * 10_000))
    text = text_of(board.call("list"))
    assert len(text.encode()) <= 40_000
    handle = text.split('handle="')[1].split('"')[0]
    assert board.invoker.read_result(handle, 1, ME)["content"][0]["text"].startswith("0123456789")
    for other in (Caller(identity="you", conversation="one"), Caller(identity="me", conversation="two")):
        refused = board.invoker.read_result(handle, 1, other)
        assert refused["isError"] is True
        assert "Call the tool again" in text_of(refused)


def test_structured_content_that_was_promised_to_a_direct_caller_stays() -> None:
    big = {"content": [], "structuredContent": {"rows": ["x" * 1000] * 100}}
    tool = tool_definition("rows", outputSchema={"type": "object"})
    board = Bench(FakeSource("db", [tool], results={"rows": big}))
    assert board.call("rows", via="direct")["structuredContent"] == big["structuredContent"]
    assert "structuredContent" not in board.call("rows", via="call_tool")


def test_how_long_a_server_takes_to_start_is_not_how_long_the_tool_takes() -> None:
    board = bench()
    board.start_seconds = 7.0
    board.call("github__create_issue", {"title": "a"})
    assert board.last.duration_ms == 0.0


def test_a_server_that_does_not_start_is_recorded_with_how_long_that_took() -> None:
    board = bench()
    board.start_seconds, board.start_error = 7.0, StartFailed("github", "it died")
    assert board.call("github__create_issue", {"title": "a"})["isError"] is True
    assert (board.last.ending, board.last.duration_ms) == (Ending.SERVER_ERROR, 7000.0)


def test_others_get_their_turn_before_a_large_result_is_cut() -> None:
    recorded: list[int] = []

    async def large(*_: Any) -> Json:
        asyncio.get_running_loop().call_soon(lambda: recorded.append(len(board.outcomes)))
        return text_result("word " * 400_000)

    board = bench(large)
    board.call("github__create_issue", {"title": "a"})
    assert recorded == [0]
