"""The board as agents' code uses it: conversations, functions, sub-agents, sync code, other loops."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import Enum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from pegboard import Chat, Pegboard, Result
from pegboard.board.state import merged, names_of
from pegboard.errors import ConfigError, PegboardError, RemoteError
from pegboard.surface.compose import Reason
from pegboard.testing import FakeSource, text_result, tool_definition
from pegboard.types import CallContext, Json, Reveal
from tests.loops import in_a_loop

OWN = ("search_tools", "read_result")


def github() -> FakeSource:
    tools = [
        tool_definition("create_issue", "Open a new issue in a repository"),
        tool_definition("list_issues", "List the issues of a repository"),
        tool_definition("merge_pull_request", "Merge a pull request"),
        tool_definition("broken", "Always fails"),
    ]
    return FakeSource("github", tools, results={"broken": text_result("it broke", is_error=True)})


def slack() -> FakeSource:
    return FakeSource("slack", [tool_definition("send_message", "Send a chat message to a channel")])


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Pegboard]:
    """Boards that keep their files in the test's own folder."""

    def made(*functions: Callable[..., Any], sources: Any = None, **surface: Any) -> Pegboard:
        settings = {
            "store": {"cache_dir": str(tmp_path / "cache"), "state_dir": str(tmp_path / "state")},
            "surface": {"mode": "on", **surface},
            "search": {"embedder": "none"},
        }
        return Pegboard(functions, sources=[github(), slack()] if sources is None else sources, settings=settings)

    return made


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


# ── what is shown ────────────────────────────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_a_search_puts_what_it_finds_at_the_end_of_the_list(make: Callable[..., Pegboard]) -> None:
    async with make() as board:
        chat = board.conversation("user-42")
        assert chat.surface().names == OWN
        found = (await chat.search("open an issue about the login bug", limit=1)).found
        assert found == ("github__create_issue",)
        assert chat.surface().names == (*OWN, "github__create_issue")
        await chat.call("slack__send_message")
        turn = chat.surface()
        assert turn.names == (*OWN, "github__create_issue", "slack__send_message")
        assert turn.reason("slack__send_message") is Reason.ACTIVE
        assert turn.deferred == 3


@in_a_loop
async def test_a_search_says_what_is_loaded_and_does_not_repeat_its_schema(make: Callable[..., Pegboard]) -> None:
    async with make() as board:
        text = (await board.conversation().search("merge a pull request", limit=1)).text
    assert "Loaded; call each by its name:\ngithub__merge_pull_request: Merge a pull request" in text
    assert "call_tool" not in text


@in_a_loop
async def test_where_the_list_must_not_change_call_tool_calls(make: Callable[..., Pegboard]) -> None:
    async with make() as board:
        chat = board.conversation("fixed", reveal="called")
        before = chat.surface().definitions
        assert [each["name"] for each in before] == ["search_tools", "call_tool", "batch_tools", "read_result"]
        assert "call_tool" in (await chat.search("merge a pull request")).text
        assert (await chat.call("call_tool", {"name": "github__list_issues"})).text == "list_issues"
        assert chat.surface().definitions == before
        assert "call_tool" in chat.guidance()


@in_a_loop
async def test_without_the_search_tool_nothing_is_deferred(make: Callable[..., Pegboard]) -> None:
    async with make(add) as board:
        chat = board.conversation("all", search=False)
        turn = chat.surface()
        assert set(turn.names) == set(board.catalog.tools)
        assert turn.deferred == 0
        assert chat.guidance() == ""


@in_a_loop
async def test_guidance_stays_the_same_while_tools_are_loaded(make: Callable[..., Pegboard]) -> None:
    async with make() as board:
        chat = board.conversation("stable")
        before = chat.guidance()
        assert "5 more tools on 2 servers" in before
        await chat.search("open an issue")
        assert chat.guidance() == before


@in_a_loop
async def test_over_the_cap_the_least_recently_used_goes_and_stays_callable(make: Callable[..., Pegboard]) -> None:
    async with make(max_active=2) as board:
        chat = board.conversation("small")
        for name in ("github__create_issue", "github__list_issues", "slack__send_message"):
            await chat.call(name)
        assert chat.surface().names == (*OWN, "github__list_issues", "slack__send_message")
        assert (await chat.call("github__create_issue")).text == "create_issue"


@in_a_loop
async def test_an_answer_tells_what_was_unloaded_and_how_to_call_what_found_no_room(
    make: Callable[..., Pegboard],
) -> None:
    async with make(max_active=1) as board:
        chat = board.conversation("tiny")
        await chat.call("slack__send_message")
        text = (await chat.search("issues of a repository", limit=2)).text
        assert "Unloaded to make room, still callable: slack__send_message." in text
        assert "Not loaded for want of room, still callable: " in text


# ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_a_call_without_a_search_runs_and_loads_the_tool(make: Callable[..., Pegboard]) -> None:
    async with make() as board:
        chat = board.conversation("direct")
        assert (await chat.call("create_issue")).text == "create_issue"
        assert "github__create_issue" in chat.surface().names


@in_a_loop
async def test_a_tool_that_fails_is_a_result_and_is_not_loaded(make: Callable[..., Pegboard]) -> None:
    async with make() as board:
        chat = board.conversation("fails")
        result = await chat.call("github__broken")
        assert (result.is_error, result.text) == (True, "it broke")
        assert "github__broken" not in chat.surface().names


@pytest.mark.parametrize("search", [True, False])
@in_a_loop
async def test_a_call_that_a_server_refuses_is_a_result(search: bool, make: Callable[..., Pegboard]) -> None:
    source = FakeSource("far", [tool_definition("go", "Goes")], results={"go": RemoteError("far", -32602, "no way")})
    async with make(sources=[source]) as board:
        result = await board.conversation(search=search).call("far__go")
    assert result.is_error
    assert "no way" in result.text


@in_a_loop
async def test_a_name_nobody_has_is_answered_with_those_that_are_near(make: Callable[..., Pegboard]) -> None:
    async with make() as board:
        result = await board.conversation().call("github__create_isue")
    assert result.is_error
    assert "github__create_issue" in result.text


@in_a_loop
async def test_a_servers_refusal_is_a_result_also_where_nothing_is_deferred(make: Callable[..., Pegboard]) -> None:
    source = FakeSource("odd", ["poke"], results={"poke": RemoteError("odd", -32602, "no such thing")})
    async with make(sources=[source], mode="off") as board:
        result = await board.conversation().call("odd__poke")
    assert result.is_error
    assert "no such thing" in result.text


@in_a_loop
async def test_a_callers_cancel_stays_a_cancel(make: Callable[..., Pegboard]) -> None:
    started = asyncio.Event()

    async def hang() -> None:
        """Never ends."""
        started.set()
        await asyncio.Event().wait()

    async with make(hang, sources=[]) as board:
        call = asyncio.create_task(board.conversation().call("hang"))
        await started.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


# ── functions ────────────────────────────────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_functions_keep_their_names_and_stand_beside_the_tools_of_servers(make: Callable[..., Pegboard]) -> None:
    async with make(add) as board:
        chat = board.conversation("sums")
        assert (await chat.search("add two numbers", limit=1)).found == ("add",)
        result = await chat.call("add", {"a": 1, "b": "2"})
        assert result.text == "3"
        assert (await chat.call("python__add", {"a": 1, "b": 2})).text == "3"


@in_a_loop
async def test_a_name_that_could_be_taken_for_anothers_gets_its_servers_prefix(make: Callable[..., Pegboard]) -> None:
    def call_tool() -> None: ...

    def github__create_issue() -> None: ...

    async with make(call_tool, github__create_issue) as board:
        own = {tool.public_name for tool in board.catalog.tools.values() if tool.server == "python"}
    assert own == {"python__call_tool", "python__github__create_issue"}


@in_a_loop
async def test_a_function_may_become_a_tool_while_the_board_is_open(make: Callable[..., Pegboard]) -> None:
    async with make() as board:
        chat = board.conversation("late")

        @board.tool(name="total", description="Sums numbers up.", read_only=True)
        def sum_up(numbers: list[int]) -> int:
            return sum(numbers)

        assert (await chat.call("total", {"numbers": [1, 2, 3]})).text == "6"
        assert board.catalog.tools["total"].annotations == {"readOnlyHint": True}
        assert sum_up([1]) == 1


@in_a_loop
async def test_what_functions_return_and_raise_becomes_a_result(make: Callable[..., Pegboard]) -> None:
    def table(kind: str) -> Any:
        """Gives things of a kind."""
        if kind == "error":
            raise KeyError("gone")
        return {"text": "hello", "dict": {"n": 1}, "list": [1, 2], "none": None, "odd": 3 + 4j}[kind]

    async with make(table) as board:
        chat = board.conversation("kinds")

        async def got(kind: str) -> Result:
            return await chat.call("table", {"kind": kind})

        assert (await got("text")).text == "hello"
        assert ((await got("dict")).structured, (await got("dict")).text) == ({"n": 1}, '{"n":1}')
        assert (await got("list")).text == "[1,2]"
        assert (await got("none")).content == []
        assert (await got("odd")).text == '"(3+4j)"'
        assert (await got("error")).is_error
        assert "KeyError: 'gone'" in (await got("error")).text


@in_a_loop
async def test_a_function_that_blocks_does_not_keep_others_waiting(make: Callable[..., Pegboard]) -> None:
    let_go = threading.Event()

    def block() -> str:
        """Waits."""
        let_go.wait(30)
        return "free"

    async with make(block, add) as board:
        chat = board.conversation("busy")
        blocked = asyncio.create_task(chat.call("block"))
        assert (await chat.call("add", {"a": 1, "b": 1})).text == "2"
        assert not blocked.done()
        let_go.set()
        assert (await blocked).text == "free"


class Name(StrEnum):
    ADA = "ada"


class Grade(str, Enum):  # noqa: UP042 - as older code has them
    GOOD = "good"


class Marked(str):
    __slots__ = ()


def numbers() -> Iterator[int]:
    yield from (1, 2)


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (numbers, "[1,2]"),
        (lambda: map(str, (1, 2)), '["1","2"]'),
        (lambda: range(2), "[0,1]"),
        (lambda: deque([1]), "[1]"),
        (lambda: {1: 2}, '{"1":2}'),
        (lambda: {(1, 2): 3}, "{(1, 2): 3}"),
        (lambda: MappingProxyType({"a": Marked("b")}), '{"a":"b"}'),
        (lambda: ENDLESS, "[[...]]"),
        (lambda: Name.ADA, "ada"),
        (lambda: Grade.GOOD, "good"),
        (lambda: Marked("hi"), "hi"),
        (lambda: 10**30, str(10**30)),
        (lambda: b"a", '"YQ=="'),
    ],
)
@in_a_loop
async def test_whatever_a_function_returns_is_a_result_that_says_it(
    value: Callable[[], Any], text: str, make: Callable[..., Pegboard]
) -> None:
    def odd() -> Any:
        return value()

    async with make(odd) as board:
        result = await board.conversation("odd").call("odd")
    assert (result.text, result.is_error) == (text, False)


@in_a_loop
async def test_an_async_generator_gives_all_it_yields(make: Callable[..., Pegboard]) -> None:
    async def several(count: int) -> AsyncIterator[int]:
        for number in range(count):
            yield number

    async with make(several) as board:
        assert (await board.conversation().call("several", {"count": 3})).text == "[0,1,2]"


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (StopIteration("empty"), "StopIteration"),
        (TimeoutError("the database is slow"), "TimeoutError: the database is slow"),
    ],
)
@in_a_loop
async def test_what_would_end_more_than_the_call_ends_the_call(
    error: BaseException, text: str, is_async: bool, make: Callable[..., Pegboard]
) -> None:
    def fail() -> None:
        raise error

    async def fail_later() -> None:
        raise error

    async with make(fail, fail_later) as board:
        chat = board.conversation()
        result = await asyncio.wait_for(chat.call("fail_later" if is_async else "fail"), 10)
        assert text in result.text
        assert result.is_error


@in_a_loop
async def test_many_functions_that_block_keep_neither_each_other_nor_a_search_waiting(
    make: Callable[..., Pegboard],
) -> None:
    boards: list[Pegboard] = []

    def outer() -> str:
        """Calls another one and waits."""
        (board,) = boards
        return board.wait(board.conversation("inner").call("add", {"a": 1, "b": 1})).text

    async with make(outer, add) as board:
        boards.append(board)
        results = await asyncio.wait_for(asyncio.gather(*(board.conversation().call("outer") for _ in range(80))), 30)
    assert {result.text for result in results} == {"2"}


def test_a_board_closes_while_a_function_still_blocks_and_whoever_waits_for_it_hears(
    make: Callable[..., Pegboard],
) -> None:
    began, let_go, ended = threading.Event(), threading.Event(), threading.Event()

    def block() -> None:
        """Blocks."""
        began.set()
        let_go.wait(20)
        ended.set()

    with ThreadPoolExecutor(1) as pool:
        with make(block) as board:
            waiting = pool.submit(lambda: board.wait(board.conversation().call("block")))
            began.wait(20)
        assert not ended.is_set()
        let_go.set()
        with pytest.raises(PegboardError, match="closed before this was done"):
            waiting.result(20)
    assert ended.wait(20)


def test_two_functions_of_one_name_are_refused(make: Callable[..., Pegboard]) -> None:
    with pytest.raises(ConfigError, match="Two functions are tools named 'add'"):
        make(add, add)


def test_two_sources_of_one_name_are_refused(make: Callable[..., Pegboard]) -> None:
    with pytest.raises(ConfigError, match="named 'github'"):
        make(sources=[github(), github()])


def test_settings_that_do_not_exist_are_named() -> None:
    with pytest.raises(ConfigError, match=r"surface\.modus"):
        Pegboard(settings={"surface": {"modus": "on"}})


# ── sub-agents ───────────────────────────────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_a_sub_agent_begins_with_a_snapshot_and_goes_its_own_way(make: Callable[..., Pegboard]) -> None:
    async with make() as board:
        parent = board.conversation("parent")
        await parent.call("github__create_issue")
        child = parent.fork("child")
        assert child.surface().names == (*OWN, "github__create_issue")
        await child.search("send a chat message", limit=1)
        await parent.call("github__list_issues")
        assert child.surface().names == (*OWN, "github__create_issue", "slack__send_message")
        assert parent.surface().names == (*OWN, "github__create_issue", "github__list_issues")
        assert parent.fork("empty", inherit=False).surface().names == OWN


@in_a_loop
async def test_a_sub_agent_can_never_use_more_than_those_above_it(make: Callable[..., Pegboard]) -> None:
    async with make(add) as board:
        child = board.conversation("p").fork("child", allow=["github__*", "slack__*"])
        grandchild = child.fork("grandchild", allow=["*"]).fork("great", allow=["*_issue*", "send_message", "add"])
        assert (await grandchild.call("add", {"a": 1, "b": 1})).is_error
        assert (await grandchild.call("github__merge_pull_request")).is_error
        assert (await grandchild.call("slack__send_message")).text == "send_message"
        everything = await grandchild.search("add numbers, merge a pull request, list issues, send a message", limit=20)
        assert set(everything.found) <= {"github__create_issue", "github__list_issues", "slack__send_message"}
        assert grandchild.knows("add") is None
        assert grandchild.knows("send_message") is not None


@in_a_loop
async def test_what_another_caller_of_the_conversation_was_told_of_is_no_news_to_who_may_not_use_it(
    make: Callable[..., Pegboard],
) -> None:
    async with make() as board:
        await board.conversation("shared").search("open an issue")
        narrow = board.conversation("shared", allow=["github__*"])
        assert "slack" not in (await narrow.search("open an issue")).text


@in_a_loop
async def test_what_an_allowlist_names_is_on_the_list(make: Callable[..., Pegboard]) -> None:
    async with make(add) as board:
        chat = board.conversation("narrow", allow=["github__create_issue", "add", "slack__*"])
        assert set(chat.surface().names) == {*OWN, "github__create_issue", "add"}


# ── state ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_a_conversation_goes_on_after_a_restart_from_the_store(make: Callable[..., Pegboard]) -> None:
    async with make() as board:
        await board.conversation("kept").call("github__create_issue")
    async with make() as board:
        assert board.conversation("kept").surface().names == (*OWN, "github__create_issue")
        assert board.conversation("another").surface().names == OWN


@in_a_loop
async def test_however_long_a_key_is_it_and_all_others_are_kept(make: Callable[..., Pegboard]) -> None:
    keys = {"k" * 2000: "github__create_issue", "k" * 2000 + "2": "github__list_issues", "short": "slack__send_message"}
    async with make() as board:
        for key, name in keys.items():
            await board.conversation(key).call(name)
    async with make() as board:
        assert {key: board.conversation(key).surface().names[2:] for key in keys} == {
            key: (name,) for key, name in keys.items()
        }


@in_a_loop
async def test_a_state_that_the_caller_kept_is_gone_on_from_exactly(make: Callable[..., Pegboard]) -> None:
    async with make() as board:
        chat = board.conversation("travel")
        await chat.call("github__create_issue")
        early = chat.state()
        await chat.call("slack__send_message")
        assert names_of(chat.state()) == ("slack__send_message", "github__create_issue")
        assert board.conversation("travel", state=early).surface().names == (*OWN, "github__create_issue")
        assert board.conversation("travel", state=b"").surface().names == OWN
        assert board.conversation("travel", state=b"no state at all").surface().names == OWN


@pytest.mark.parametrize("state", [b"", None], ids=["nothing", "earlier"])
@in_a_loop
async def test_a_state_that_was_gone_back_to_is_what_the_store_has_from_then_on(
    state: bytes | None, make: Callable[..., Pegboard]
) -> None:
    async with make() as board:
        chat = board.conversation("travel")
        await chat.call("github__create_issue")
        early = chat.state() if state is None else state
        await chat.call("slack__send_message")
    async with make() as board:
        board.conversation("travel", state=early)
    async with make() as board:
        assert names_of(board.conversation("travel").state()) == names_of(early)


@pytest.mark.parametrize("reveal", ["listed", "called"])
@in_a_loop
async def test_after_a_restart_whatever_is_asked_first_knows_what_the_store_has(
    reveal: Reveal, make: Callable[..., Pegboard]
) -> None:
    async with make() as board:
        await board.conversation("kept", reveal=reveal).call("github__create_issue")
    for look in (Chat.state, lambda chat: chat.fork("child").state()):
        async with make() as board:
            assert names_of(look(board.conversation("kept", reveal=reveal))) == ("github__create_issue",)


@in_a_loop
async def test_guidance_that_is_asked_for_first_after_a_restart_leaves_the_list_in_its_order(
    make: Callable[..., Pegboard],
) -> None:
    async with make() as board:
        chat = board.conversation("kept")
        for name in ("slack__send_message", "github__create_issue"):
            await chat.call(name)
            before = chat.surface().names
    async with make() as board:
        chat = board.conversation("kept")
        assert chat.guidance()
        assert chat.surface().names == before


@in_a_loop
async def test_states_of_two_calls_at_once_are_put_together(make: Callable[..., Pegboard]) -> None:
    async with make() as board:
        start = board.conversation("both").state()
        states = []
        for name in ("github__create_issue", "slack__send_message"):
            chat = board.conversation("both", state=start)
            await chat.call(name)
            states.append(chat.state())
        assert set(names_of(merged(*states))) == {"github__create_issue", "slack__send_message"}
        assert merged(states[0], b"") == states[0]
        assert merged(b"", states[0]) == states[0]


def test_a_board_may_be_opened_again_on_another_loop_and_keeps_what_is_loaded_each_time(
    make: Callable[..., Pegboard],
) -> None:
    board, seen = make(add, max_active=5), []

    @in_a_loop
    async def used(name: str) -> None:
        async with board:
            seen.append(board.conversation("again").surface().names[2:])
            assert not (await board.conversation("again").call(name)).is_error
            assert (await board.conversation().search("add two numbers", limit=1)).found == ("add",)

    used("github__create_issue")
    used("slack__send_message")
    with board:
        seen.append(board.conversation("again").surface().names[2:])
    with board:
        assert board.wait(board.conversation("again").call("add", {"a": 1, "b": 1})).text == "2"
    assert seen == [(), ("github__create_issue",), ("github__create_issue", "slack__send_message")]


class Slow(FakeSource):
    """Says what it has when it is let."""

    def __init__(self) -> None:
        super().__init__("slow", [tool_definition("wait", "Waits")])
        self.let_go = asyncio.Event()

    async def list_tools(self) -> Any:
        await self.let_go.wait()
        if self.fails:
            raise PegboardError("It has nothing.")
        return await super().list_tools()

    fails = False


@in_a_loop
async def test_a_board_that_is_being_opened_is_not_opened_again(make: Callable[..., Pegboard]) -> None:
    source = Slow()
    board = make(sources=[source])
    opening = asyncio.create_task(board.__aenter__())
    await asyncio.sleep(0)
    with pytest.raises(PegboardError, match="open already"):
        await board.__aenter__()
    source.let_go.set()
    await opening
    await board.__aexit__()


@in_a_loop
async def test_a_board_that_could_not_be_opened_can_be_opened_later(make: Callable[..., Pegboard]) -> None:
    source = Slow()
    source.let_go.set()
    source.fails = True
    board = make(sources=[source])
    with pytest.raises(PegboardError, match="It has nothing"):
        await board.__aenter__()
    source.fails = False
    async with board:
        assert "slow__wait" in board.catalog.tools


# ── loops and threads ────────────────────────────────────────────────────────────────────────────────────────────────


def test_code_that_is_not_async_opens_the_board_with_a_plain_with(make: Callable[..., Pegboard]) -> None:
    with make(add) as board:
        chat = board.conversation("sync")
        assert chat.surface().names == OWN
        assert board.wait(chat.call("add", {"a": 2, "b": 3})).text == "5"
        assert chat.surface().names == (*OWN, "add")
    assert not any(thread.name == "pegboard" for thread in threading.enumerate())


def test_a_call_may_be_awaited_on_another_loop(make: Callable[..., Pegboard]) -> None:
    with make(add) as board:
        chat = board.conversation("elsewhere")
        assert asyncio.run(chat.call("add", {"a": 2, "b": 3})).text == "5"
        assert chat.surface().names == (*OWN, "add")


def test_a_cancel_on_another_loop_reaches_the_tool(make: Callable[..., Pegboard]) -> None:
    started, ended = threading.Event(), threading.Event()

    async def hang() -> None:
        """Never ends."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def scenario(chat: Chat) -> None:
        call = asyncio.create_task(chat.call("hang"))
        await asyncio.to_thread(started.wait, 30)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(ended.wait, 30)

    with make(hang, sources=[]) as board:
        asyncio.run(scenario(board.conversation()))


@in_a_loop
async def test_many_threads_may_look_at_once(make: Callable[..., Pegboard]) -> None:
    async with make(add) as board:

        def look(number: int) -> tuple[str, ...]:
            chat = board.conversation(f"thread-{number % 3}")
            board.wait(chat.call("add", {"a": 1, "b": number}))
            return chat.surface().names

        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(8) as pool:
            seen = await asyncio.gather(*(loop.run_in_executor(pool, look, number) for number in range(40)))
    assert set(seen) == {(*OWN, "add")}


@in_a_loop
async def test_waiting_on_the_boards_own_loop_is_refused_at_once(make: Callable[..., Pegboard]) -> None:
    async with make(add) as board:
        with pytest.raises(PegboardError, match="cannot wait for itself"):
            board.wait(board.conversation().call("add", {"a": 1, "b": 1}))


def test_a_board_that_is_not_open_says_so(make: Callable[..., Pegboard]) -> None:
    board = make(add)
    with pytest.raises(PegboardError, match="not open"):
        board.conversation().surface()
    with pytest.raises(PegboardError, match="not open"):
        asyncio.run(board.conversation().call("add"))
    with board, pytest.raises(PegboardError, match="open already"):
        board.__enter__()


def test_a_board_that_fails_to_open_leaves_no_thread(make: Callable[..., Pegboard]) -> None:
    broken = github()
    broken.listing_error = PegboardError("no tools today")
    with pytest.raises(PegboardError, match="no tools today"):
        make(sources=[broken]).__enter__()
    assert not any(thread.name == "pegboard" for thread in threading.enumerate())


# ── search without a conversation ────────────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_a_search_of_the_board_loads_nothing(make: Callable[..., Pegboard]) -> None:
    async with make(add) as board:
        await board.ready()
        answer = await board.search("send a chat message", limit=3)
        assert answer.hits[0].name == "slack__send_message"
        assert answer.notes == ()
        assert [hit.name for hit in (await board.search("issues", server="slack")).hits] == []


@in_a_loop
async def test_a_source_that_has_new_tools_is_asked_again_on_request(make: Callable[..., Pegboard]) -> None:
    source = slack()
    async with make(sources=[source]) as board:
        source.tools.append(tool_definition("list_channels", "List all channels"))
        await board.refresh("slack")
        assert "slack__list_channels" in board.catalog.tools


@in_a_loop
async def test_a_servers_context_reaches_the_source(make: Callable[..., Pegboard]) -> None:
    seen: list[CallContext] = []

    def note(arguments: Json, context: CallContext) -> Json:
        seen.append(context)
        return text_result("noted")

    source = FakeSource("notes", [tool_definition("note", "Takes a note")], results={"note": note})
    async with make(sources=[source]) as board:
        await board.conversation().call("note", {}, CallContext(timeout=7, meta={"trace": "1"}))
    assert (seen[0].timeout, seen[0].meta) == (7, {"trace": "1"})
