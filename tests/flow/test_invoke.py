"""The call path over a real engine and real servers: what starts, what comes back, what is left behind."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pegboard.config.model import CallsConfig, Config, GatewayConfig, ServerConfig, ServerSpec, StoreConfig
from pegboard.engine import Engine
from pegboard.invoke.path import Invoker
from pegboard.types import CallContext, Caller, Ending, Json, Outcome, Progress, ServerState
from tests.pools import until
from tests.servers import example_command, plain_command

ME = Caller(identity="me", conversation="flow")


class Board:
    """An engine with the call path on it."""

    def __init__(self, engine: Engine, calls: CallsConfig) -> None:
        self.engine = engine
        self.outcomes: list[Outcome] = []
        self.activated: list[str] = []
        self.invoker = Invoker(
            engine.find,
            lambda tool, arguments, context: engine.call(tool.public_name, arguments, context),
            calls=calls,
            record=self.outcomes.append,
            activate=lambda caller, tool: self.activated.append(tool.public_name),
            count_tokens=lambda text: len(text) // 4,
        )

    async def call(self, name: str, arguments: Any = None, **context: Any) -> Json:
        return await self.invoker.call(name, arguments, ME, CallContext(**context), via="call_tool")


def spec(name: str, command: list[str]) -> ServerSpec:
    return ServerSpec(name=name, config=ServerConfig(command=command[0], args=tuple(command[1:])))


@pytest.fixture
def on_board(tmp_path: Path) -> Callable[..., None]:
    """Runs a scenario on a board over these servers, whose tools are known from an earlier run."""

    def run(work: Callable[[Board], Awaitable[None]], *, calls: CallsConfig | None = None, **servers: Any) -> None:
        config = Config(
            servers={name: spec(name, command) for name, command in servers.items()},
            gateway=GatewayConfig(start_timeout=20, call_timeout=20),
            store=StoreConfig(cache_dir=str(tmp_path / "cache"), state_dir=str(tmp_path / "state")),
        )

        async def scenario() -> None:
            async with asyncio.timeout(50):
                async with Engine(config, refresh=False) as engine:
                    await engine.refresh()
                async with Engine(config, refresh=False) as engine:
                    await work(Board(engine, calls or CallsConfig()))

        asyncio.run(scenario())

    return run


def text_of(result: Json) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_a_tool_that_was_never_searched_is_called_by_name_starts_its_server_and_is_activated(on_board) -> None:
    async def work(board: Board) -> None:
        assert board.engine.server("plain").state is ServerState.IDLE
        result = await board.call("plain__echo", {"text": "hello"})
        assert (text_of(result), result.get("isError")) == ("hello", None)
        assert board.activated == ["plain__echo"]
        (outcome,) = board.outcomes
        assert (outcome.tool, outcome.ending, outcome.via) == ("plain__echo", Ending.OK, "call_tool")
        assert outcome.duration_ms > 0
        assert outcome.result_bytes > 0

    on_board(work, plain=plain_command())


def test_a_real_server_is_called_with_arguments_that_needed_mending(on_board) -> None:
    async def work(board: Board) -> None:
        added = await board.call("notes.add_note", {"Text": "milk", "tags": "shopping"})
        assert added["structuredContent"]["tags"] == ["shopping"]
        assert len(added["_meta"]["pegboard/repairs"]) == 2
        found = await board.call("searchNotes", '{"query": "milk", "limit": "5"}')
        assert [note["text"] for note in found["structuredContent"]["notes"]] == ["milk"]
        missing = await board.call("delete_note", {"note_id": "7"})
        assert missing["isError"] is True
        assert "There is no note 7" in text_of(missing)
        assert "note_id: text read as a number" in text_of(missing)
        assert [outcome.ending for outcome in board.outcomes] == [Ending.OK, Ending.OK, Ending.TOOL_ERROR]
        assert board.activated == ["notes__add_note", "notes__search_notes"]

    on_board(work, notes=example_command("notes"))


def test_a_call_that_cannot_be_right_starts_no_server(on_board) -> None:
    async def work(board: Board) -> None:
        result = await board.call("echo", {"txt": "x"})
        assert "- text is missing" in text_of(result)
        assert '"required":["text"]' in text_of(result)
        assert board.engine.server("plain").state is ServerState.IDLE
        assert text_of(await board.call("echo", {"text": "x"})) == "x"

    on_board(work, plain=plain_command())


def test_a_server_that_cannot_start_is_told_without_its_stderr_and_the_others_work(on_board) -> None:
    broken = [sys.executable, "-c", "import sys; sys.exit('token=hunter2 in /home/me')"]

    async def work(board: Board) -> None:
        result = await board.call("broken__anything", {})
        assert result["isError"] is True
        assert "broken" in text_of(result)
        assert "hunter2" not in text_of(result)
        assert "All other tools still work." in text_of(result)
        assert board.outcomes[-1].ending is Ending.SERVER_ERROR
        assert text_of(await board.call("echo", {"text": "still here"})) == "still here"

    on_board(work, plain=plain_command(), broken=broken)


def test_a_cancel_stays_a_cancel_and_reaches_the_server(on_board, tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def work(board: Board) -> None:
        doomed = asyncio.create_task(board.call("slow", {"seconds": 60}))
        await until(lambda: "tools/call slow" in lines(log))
        doomed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doomed
        await until(lambda: "slow cancelled" in lines(log))
        assert board.outcomes[-1].ending is Ending.CANCELLED
        assert text_of(await board.call("echo", {"text": "well"})) == "well"

    on_board(work, plain=plain_command("--log", str(log)))


def test_a_call_that_takes_too_long_is_a_result_and_the_server_goes_on(on_board) -> None:
    async def work(board: Board) -> None:
        result = await board.call("slow", {"seconds": 60}, timeout=0.1)
        assert "look before you call it again" in text_of(result)
        assert board.outcomes[-1].ending is Ending.TIMEOUT
        assert text_of(await board.call("echo", {"text": "well"})) == "well"

    on_board(work, plain=plain_command())


def test_one_slow_call_keeps_no_other_waiting(on_board, tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def work(board: Board) -> None:
        slow = asyncio.create_task(board.call("slow", {"seconds": 60}))
        await until(lambda: "tools/call slow" in lines(log))
        answers = await asyncio.gather(*(board.call("echo", {"text": str(n)}) for n in range(20)))
        assert [text_of(answer) for answer in answers] == [str(n) for n in range(20)]
        assert not slow.done()
        slow.cancel()
        await asyncio.wait({slow})

    on_board(work, plain=plain_command("--log", str(log)))


def test_a_server_killed_during_a_call_is_a_result_and_is_started_anew(on_board, tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def work(board: Board) -> None:
        pid = int(text_of(await board.call("pid")))
        slow = asyncio.create_task(board.call("slow", {"seconds": 60}))
        await until(lambda: "tools/call slow" in lines(log))
        os.kill(pid, signal.SIGKILL)
        assert "started anew" in text_of(await slow)
        assert int(text_of(await board.call("pid"))) != pid

    on_board(work, plain=plain_command("--log", str(log)))


def test_progress_and_questions_reach_the_caller(on_board) -> None:
    steps: list[Progress] = []

    async def answer(method: str, params: Json) -> Json:
        return {"action": "accept", "content": {next(iter(params["requestedSchema"]["properties"])): "Ada"}}

    async def work(board: Board) -> None:
        await board.call("progress", {"steps": 3}, on_progress=steps.append)
        assert len(steps) == 3
        assert "Ada" in text_of(await board.call("ask", {"question": "Who?"}, on_ask=answer))

    on_board(work, plain=plain_command())


def test_a_large_result_is_read_to_its_end_in_pages(on_board) -> None:
    async def work(board: Board) -> None:
        whole = text_of(await board.engine.call("big", {"n": 300_000}))
        shown = text_of(await board.call("big", {"n": 300_000}))
        assert len(shown.encode()) <= 40_000
        marker = re.search(r'\n\[… [^\n]*handle="(\w+)"[^\n]*…\]\n', shown)
        assert marker is not None
        middle, page = "", 1
        while page:
            answer = board.invoker.read_result(marker[1], page, ME)
            middle += answer["content"][0]["text"]
            page = answer["_meta"]["pegboard/page"]["next"]
        assert shown[: marker.start()] + middle + shown[marker.end() :] == whole

    on_board(work, plain=plain_command())


def test_what_a_server_says_is_used_again_where_configured(on_board, tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def work(board: Board) -> None:
        for _ in range(3):
            assert text_of(await board.call("echo", {"text": "once"})) == "once"
        assert [outcome.cached for outcome in board.outcomes] == [False, True, True]
        assert lines(log).count("tools/call echo") == 1

    on_board(work, calls=CallsConfig(cache_seconds=60), plain=plain_command("--log", str(log)))
