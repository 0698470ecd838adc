"""A server on stdio as a link: lines in and out, floods, what its end means, and why it could not start."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pegboard.errors import ConnectionLost, ServerError, StartFailed
from pegboard.upstream.guard_client import Guard
from pegboard.upstream.link import Outgoing
from pegboard.upstream.stdio import FLOOD, LONGEST_LINE, STDERR_LINES, TURN, StdioLink, describe_exit
from pegboard.wire.framing import Oversized
from tests.pools import children, run, server, until

LIMIT = 100_000
ENVIRON = {"PATH": os.environ["PATH"]}


class Box:
    """An inbox that keeps what comes, and can say in how many turns of the loop it came."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.dropped: list[Oversized] = []
        self.ends: list[ServerError] = []
        self.in_one_turn = 0
        self.most_in_one_turn = 0

    def message(self, data: bytes, origin: int | None = None) -> None:
        assert not self.ends
        if not self.in_one_turn:
            asyncio.get_running_loop().call_soon(self._turn)
        self.in_one_turn += 1
        self.messages.append(data)

    def _turn(self) -> None:
        self.most_in_one_turn = max(self.most_in_one_turn, self.in_one_turn)
        self.in_one_turn = 0

    def oversized(self, line: Oversized) -> None:
        self.dropped.append(line)

    def failed(self, request_id: int, error: ServerError) -> None:
        raise AssertionError("stdio cannot know of a request that failed")

    def awaits(self, request_id: int) -> bool:
        return True

    def retired(self, error: ServerError) -> None:
        raise AssertionError("stdio does not retire")

    def closed(self, error: ServerError) -> None:
        self.ends.append(error)


@asynccontextmanager
async def link(script: str, *, environ: dict[str, str] | None = None) -> AsyncIterator[tuple[StdioLink, Box]]:
    """Python code as a server; ended at the end."""
    guard, box = Guard(), Box()
    opened = StdioLink(server("s", [sys.executable, "-ISc", script]), LIMIT, guard, environ or ENVIRON)
    try:
        await opened.open(box)
        yield opened, box
    finally:
        await opened.close()
        await guard.close()
    assert children() == []


def line(data: bytes) -> Outgoing:
    return Outgoing(data=data, version="2025-11-25")


def end_of(script: str, *, agreed: bool = False, **options: Any) -> ServerError:
    """How the end of a script is told."""

    async def scenario() -> ServerError:
        async with link(script, **options) as (opened, box):
            if agreed:
                opened.agreed("2025-11-25")
            await until(lambda: box.ends)
            (error,) = box.ends
            return error

    return run(scenario())


def test_messages_go_out_and_come_in_line_by_line():
    async def scenario() -> None:
        async with link("import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)") as (opened, box):
            for word in (b"one", b"two"):
                await opened.send(line(word))
            await until(lambda: len(box.messages) == 2)
            assert box.messages == [b"ONE", b"TWO"]
        assert [end.message for end in box.ends] == ["s: it was stopped"]

    run(scenario())


def test_a_flood_is_taken_in_turns_and_completely():
    count = FLOOD + 5_000

    async def scenario() -> None:
        async with link(f"import sys\nsys.stdout.write('x\\n' * {count})\nsys.stdout.flush()\nsys.stdin.read()") as (
            _,
            box,
        ):
            await until(lambda: len(box.messages) == count)
            assert box.most_in_one_turn <= 2 * TURN

    run(scenario())


def test_what_a_flooding_server_wrote_before_it_died_arrives_before_its_end():
    async def scenario() -> None:
        async with link("import sys\nsys.stdout.write('x\\n' * 30_000)\nsys.stdout.flush()\nsys.exit(4)") as (_, box):
            await until(lambda: box.ends)
            assert len(box.messages) == 30_000
            assert "exited with code 4" in box.ends[0].message

    run(scenario())


def test_a_line_over_the_limit_is_dropped_and_the_next_one_arrives():
    async def scenario() -> None:
        async with link(f"print('x' * {LIMIT + 1})\nprint('fine', flush=True)\ninput()") as (_, box):
            await until(lambda: box.messages)
            assert box.messages == [b"fine"]
            assert [dropped.size for dropped in box.dropped] == [LIMIT + 1]

    run(scenario())


def test_an_answer_without_end_is_reported_as_soon_as_it_is_over_the_limit_and_only_once():
    script = (
        "import os, signal\n"
        'os.write(1, b\'first\\n{"jsonrpc":"2.0","id":7,"result":{"text":"\')\n'
        f"for _ in range(20): os.write(1, b'x' * {LIMIT})\n"
        "os.write(2, b'done')\n"
        "signal.pause()\n"
    )

    async def scenario() -> None:
        async with link(script) as (opened, box):
            await until(lambda: opened.last_words == "done" and box.dropped)
            assert box.messages == [b"first"]
            assert len(box.dropped) == 1
            assert box.dropped[0].size > LIMIT
            assert box.dropped[0].head.startswith(b'{"jsonrpc":"2.0","id":7,"result"')

    run(scenario())


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_end_says_how_and_shows_the_last_lines_of_stderr():
    error = end_of("import sys\nfor n in range(50): print('note', n, file=sys.stderr)\nsys.exit(3)")
    assert isinstance(error, ConnectionLost)
    assert error.message == "s: its process exited with code 3"
    assert error.hint == "It wrote on stderr:\n" + "\n".join(f"note {n}" for n in range(50 - STDERR_LINES, 50))


def test_stderr_is_shown_without_what_would_play_tricks_on_a_terminal():
    error = end_of(
        r"import os; os.write(2, b'\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b[2Jtext\x00\x08\ttab\r\n' + b'y' * 9999)"
    )
    shown = error.hint.splitlines()
    assert shown[1] == "red text tab"
    assert shown[2] == "y" * LONGEST_LINE


@pytest.mark.parametrize(("signal", "words"), [(9, "was killed by SIGKILL"), (11, "was killed by SIGSEGV")])
def test_a_signal_is_called_by_its_name(signal: int, words: str):
    assert words in end_of(f"import os; os.kill(os.getpid(), {signal})").message


def test_variables_that_were_withheld_are_named_when_it_dies_before_it_is_ready():
    environ = {**ENVIRON, "GITHUB_TOKEN": "x", "OPENAI_API_KEY": "y", "EDITOR": "vi"}
    hint = end_of("import sys; sys.exit('no token')", environ=environ).hint
    assert "no token" in hint
    assert "GITHUB_TOKEN, OPENAI_API_KEY" in hint
    assert "inherit_env" in hint
    assert "EDITOR" not in hint
    many = {**ENVIRON, **{f"SECRET_{number}": "x" for number in range(10)}}
    assert "and 4 more" in end_of("raise SystemExit(1)", environ=many).hint


def test_variables_that_were_withheld_are_no_explanation_once_it_was_ready():
    script = "import sys; sys.stdin.readline(); sys.exit(1)"

    async def scenario() -> str:
        async with link(script, environ={**ENVIRON, "GITHUB_TOKEN": "x"}) as (opened, box):
            opened.agreed("2025-11-25")
            await opened.send(line(b"go"))
            await until(lambda: box.ends)
            return box.ends[0].hint

    assert run(scenario()) == ""


def test_only_a_server_that_ended_by_itself_without_error_ended_cleanly():
    async def scenario(script: str) -> bool:
        async with link(script) as (opened, box):
            assert not opened.ended_cleanly
            await until(lambda: box.ends)
            return opened.ended_cleanly

    assert run(scenario("raise SystemExit(0)"))
    assert not run(scenario("raise SystemExit(1)"))


def test_exits_in_words():
    assert describe_exit(None) == "is running"
    assert describe_exit(0) == "exited with code 0"
    assert describe_exit(-15) == "was killed by SIGTERM"
    assert describe_exit(-99) == "was killed by signal 99"


# ── why it could not start ───────────────────────────────────────────────────────────────────────────────────────────


def cannot_start(command: list[str], environ: dict[str, str] | None = None, **config: Any) -> StartFailed:
    async def scenario() -> StartFailed:
        guard = Guard()
        opened = StdioLink(server("s", command, **config), LIMIT, guard, environ or ENVIRON)
        with pytest.raises(StartFailed) as caught:
            await opened.open(Box())
        await opened.close()
        await guard.close()
        assert children() == []
        return caught.value

    return run(scenario())


def test_a_command_that_is_not_on_path_says_so_and_what_to_do():
    error = cannot_start(["no-such-mcp-server"])
    assert error.message == "s: the command 'no-such-mcp-server' was not found on PATH"
    assert "full path" in error.hint


def test_path_is_the_one_the_server_would_get(tmp_path: Path):
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert "not found on PATH" in cannot_start(["mine"]).message

    async def scenario() -> None:
        guard, box = Guard(), Box()
        opened = StdioLink(server("s", ["mine"], env={"PATH": f"{tmp_path}:{ENVIRON['PATH']}"}), LIMIT, guard, ENVIRON)
        await opened.open(box)
        await until(lambda: box.ends)
        await opened.close()
        await guard.close()

    run(scenario())


def test_a_path_that_does_not_exist_and_one_that_is_not_executable_are_told_apart(tmp_path: Path):
    assert "does not exist" in cannot_start([str(tmp_path / "no")]).message
    (tmp_path / "yes").write_text("#!/bin/sh\n")
    error = cannot_start([str(tmp_path / "yes")])
    assert "is not executable" in error.message
    assert "chmod +x" in error.hint


def test_a_relative_path_is_meant_from_the_working_directory_of_the_server(tmp_path: Path):
    program = tmp_path / "run.sh"
    program.write_text("#!/bin/sh\npwd\n")
    program.chmod(0o755)

    async def scenario() -> None:
        guard, box = Guard(), Box()
        opened = StdioLink(server("s", ["./run.sh"], cwd=str(tmp_path)), LIMIT, guard, ENVIRON)
        await opened.open(box)
        await until(lambda: box.ends)
        assert box.messages == [str(tmp_path).encode()]
        await opened.close()
        await guard.close()

    run(scenario())


def test_a_working_directory_that_does_not_exist_is_named(tmp_path: Path):
    error = cannot_start(["true"], cwd=str(tmp_path / "gone"))
    assert f"its working directory {tmp_path / 'gone'} does not exist" in error.message
    assert "cwd" in error.hint


def test_a_file_that_is_no_program_is_told_as_the_system_tells_it(tmp_path: Path):
    program = tmp_path / "noise"
    program.write_bytes(b"\x00\x01\x02")
    program.chmod(0o755)
    assert "could not be started: Exec format error" in cannot_start([str(program)]).message


@pytest.mark.parametrize("config", [{"args": ("a\0b",)}, {"env": {"A=B": "c"}}, {"env": {"A": "b\0c"}}])
def test_arguments_no_process_can_have_are_an_error_and_not_a_crash(config: dict[str, Any]):
    async def scenario() -> None:
        guard = Guard()
        spec = server("s", ["true"])
        spec = replace(spec, config=replace(spec.config, **config))
        opened = StdioLink(spec, LIMIT, guard, ENVIRON)
        with pytest.raises(StartFailed, match=r"s: its command .* could not be started"):
            await opened.open(Box())
        await guard.close()

    run(scenario())
