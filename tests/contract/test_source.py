"""What every `Source` keeps to: MCP servers on stdio in both eras, and the fake that stands for them in tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from pegboard.errors import CallTimeout, PegboardError, RemoteError
from pegboard.protocols import Source
from pegboard.testing import FakeSource, text_result
from pegboard.types import CallContext, Json, Progress
from tests.pools import plain, pool_of, run, text_of
from tests.servers.plain import TOOLS, filler

KINDS = ["stdio-legacy", "stdio-modern", "stdio-paged", "fake"]
DEFINITIONS = [*TOOLS, filler("tool_000")]
CALM = CallContext(timeout=30)
ANSWER: Json = {"action": "accept", "content": {"name": "Ada"}}


async def slow(arguments: Json, _context: CallContext) -> Json:
    await asyncio.sleep(arguments["seconds"])
    return text_result(f"waited {arguments['seconds']} s")


def progress(arguments: Json, context: CallContext) -> Json:
    steps = arguments.get("steps", 3)
    for step in range(1, steps + 1) if context.on_progress else ():
        assert context.on_progress is not None
        context.on_progress(Progress(step, steps, f"step {step} of {steps}"))
    return text_result(f"{steps} steps")


async def ask(arguments: Json, context: CallContext) -> Json:
    if context.on_ask is None:
        return text_result("This client cannot be asked.", is_error=True)
    answer = await context.on_ask("elicitation/create", {"message": arguments.get("question", "What is your name?")})
    return text_result(f"{answer['action']} {(answer.get('content') or {}).get('name', '')}".strip())


def fake(name: str) -> FakeSource:
    """A fake with the tools of `plain`."""
    return FakeSource(
        name,
        DEFINITIONS,
        results={
            "echo": lambda arguments, _: text_result(arguments["text"]),
            "fail": lambda arguments, _: text_result(arguments.get("reason", ""), is_error=True),
            "slow": slow,
            "progress": progress,
            "ask": ask,
            "tool_000": lambda arguments, _: text_result(f"tool_000 {json.dumps(arguments, sort_keys=True)}"),
        },
    )


@asynccontextmanager
async def source(kind: str) -> AsyncIterator[Source]:
    """A source of this kind, named `it`."""
    if kind == "fake":
        yield fake("it")
        return
    options = ("--era", "both", "--page", "3") if kind == "stdio-paged" else ("--era", kind.removeprefix("stdio-"))
    async with pool_of(plain("it", "--tools", "1", *options)) as pool:
        yield pool.get("it")


@pytest.fixture(params=KINDS)
def check(request: pytest.FixtureRequest) -> Callable[[Callable[[Source], Awaitable[None]]], None]:
    """Runs a scenario with a source of each kind."""

    def checked(scenario: Callable[[Source], Awaitable[None]]) -> None:
        async def with_source() -> None:
            async with source(request.param) as it:
                await scenario(it)

        run(with_source())

    return checked


def test_its_name_is_the_one_we_gave_it_and_not_its_own(check):
    async def scenario(it: Source) -> None:
        assert it.name == "it"

    check(scenario)


def test_a_listing_has_every_definition_as_it_is_in_order_each_time_it_is_asked(check):
    async def scenario(it: Source) -> None:
        for _ in range(2):
            listing = await it.list_tools()
            assert list(listing.tools) == DEFINITIONS
            assert listing.warnings == ()
        assert listing.server_version == "1.0"
        assert listing.protocol_version
        assert listing.cache_scope == "public"

    check(scenario)


def test_a_tool_can_be_called_without_a_listing_before(check):
    async def scenario(it: Source) -> None:
        assert text_of(await it.call_tool("echo", {"text": "hello"}, CALM)) == "hello"

    check(scenario)


@pytest.mark.parametrize("text", ["", "ä€𝄞", "line\nline\r\n", "\x00\u2028", '"\\', "x" * 200_000])
def test_text_goes_there_and_back_unchanged(check, text: str):
    async def scenario(it: Source) -> None:
        assert text_of(await it.call_tool("echo", {"text": text}, CALM)) == text

    check(scenario)


def test_arguments_arrive_as_they_were_given(check):
    arguments = {"nested": {"list": [1, 2.5, None, True, {"deep": []}]}, "": "empty key", "ключ": "значение"}

    async def scenario(it: Source) -> None:
        answer = text_of(await it.call_tool("tool_000", arguments, CALM))
        assert json.loads(answer.removeprefix("tool_000 ")) == arguments

    check(scenario)


def test_a_tools_own_failure_is_a_result_and_no_exception(check):
    async def scenario(it: Source) -> None:
        result = await it.call_tool("fail", {"reason": "out of paper"}, CALM)
        assert result["isError"] is True
        assert text_of(result) == "out of paper"

    check(scenario)


def test_an_unknown_tool_is_an_error_that_names_source_and_tool(check):
    async def scenario(it: Source) -> None:
        with pytest.raises(RemoteError, match=r"it: .*no_such_tool") as caught:
            await it.call_tool("no_such_tool", {}, CALM)
        assert caught.value.server == "it"
        assert caught.value.code == -32602

    check(scenario)


def test_a_call_ends_when_its_time_is_up_and_the_source_goes_on(check):
    async def scenario(it: Source) -> None:
        await it.call_tool("echo", {"text": "warm"}, CALM)
        with pytest.raises(CallTimeout, match="it: "):
            await it.call_tool("slow", {"seconds": 60}, CallContext(timeout=0.2))
        assert text_of(await it.call_tool("echo", {"text": "on"}, CALM)) == "on"

    check(scenario)


def test_a_call_can_be_cancelled_and_the_others_go_on(check):
    async def scenario(it: Source) -> None:
        await it.call_tool("echo", {"text": "warm"}, CALM)
        doomed = asyncio.create_task(it.call_tool("slow", {"seconds": 60}, CALM))
        other = asyncio.create_task(it.call_tool("slow", {"seconds": 0.2}, CALM))
        await asyncio.wait({doomed}, timeout=0.1)
        doomed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doomed
        assert text_of(await other) == "waited 0.2 s"

    check(scenario)


def test_calls_at_the_same_time_get_each_their_own_answer(check):
    async def scenario(it: Source) -> None:
        answers = await asyncio.gather(*(it.call_tool("echo", {"text": str(n)}, CALM) for n in range(60)))
        assert [text_of(answer) for answer in answers] == [str(n) for n in range(60)]

    check(scenario)


def test_progress_comes_in_order_to_whoever_wants_it(check):
    async def scenario(it: Source) -> None:
        heard: list[Progress] = []
        context = CallContext(timeout=30, on_progress=heard.append)
        assert text_of(await it.call_tool("progress", {"steps": 5}, context)) == "5 steps"
        assert heard == [Progress(step, 5, f"step {step} of 5") for step in range(1, 6)]
        assert text_of(await it.call_tool("progress", {"steps": 5}, CALM)) == "5 steps"
        assert len(heard) == 5

    check(scenario)


def test_a_question_reaches_the_caller_and_the_answer_the_tool(check):
    async def scenario(it: Source) -> None:
        asked: list[tuple[str, str]] = []

        async def answer(method: str, params: Json) -> Json:
            asked.append((method, params["message"]))
            return ANSWER

        context = CallContext(timeout=30, on_ask=answer)
        assert text_of(await it.call_tool("ask", {"question": "Who?"}, context)) == "accept Ada"
        assert asked == [("elicitation/create", "Who?")]

    check(scenario)


def test_a_question_nobody_can_answer_ends_the_call_instead_of_hanging_it(check):
    async def scenario(it: Source) -> None:
        (outcome,) = await asyncio.gather(it.call_tool("ask", {}, CALM), return_exceptions=True)
        if isinstance(outcome, dict):
            assert outcome["isError"] is True
        else:
            assert isinstance(outcome, PegboardError)
            assert not isinstance(outcome, CallTimeout)
            assert outcome.message.startswith("it: ")

    check(scenario)
