"""One child process and its pipes, with real processes: what it writes, what it does not read, and how it ends."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import psutil
import pytest

from pegboard.upstream.guard import MARK
from pegboard.upstream.guard_client import Guard
from pegboard.upstream.process import STDERR_BYTES, Child
from pegboard.upstream.watch import Watch, watch_by_pidfd, watch_by_thread
from tests.pools import children, run, still_alive, until

Script = str
ECHO = "import os\nwhile data := os.read(0, 65536): os.write(1, data)\n"


class Held(Child):
    """A child that remembers what it said."""

    def __init__(self, guard: Guard, watch: Watch | None = None) -> None:
        self.said = b""
        self.ends = 0
        if watch is None:
            super().__init__(self._hear, self._end, guard)
        else:
            super().__init__(self._hear, self._end, guard, watch)

    def _hear(self, data: bytes) -> None:
        self.said += data

    def _end(self) -> None:
        self.ends += 1


@asynccontextmanager
async def child(
    script: Script, *, watch: Watch | None = None, environ: dict[str, str] | None = None
) -> AsyncIterator[Held]:
    """Python code as a child; stopped at the end, whatever happened."""
    guard = Guard()
    held = Held(guard, watch)
    try:
        held.start([sys.executable, "-ISc", script], environ or {}, None)
        yield held
    finally:
        await held.stop()
        await guard.close()
    assert children() == []


def holding(script: Script, check: Callable[[Held], object], **options) -> Held:
    """Runs the script as a child, lets the check watch it, and gives the child after its end."""

    async def scenario() -> Held:
        async with child(script, **options) as held:
            result = check(held)
            if asyncio.iscoroutine(result):
                await result
        return held

    return run(scenario())


async def the_end(held: Held) -> None:
    await until(lambda: held.ends)


# ── what it writes ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("watch", [watch_by_pidfd, watch_by_thread])
def test_all_it_wrote_before_it_died_arrives_with_the_exit_code(watch: Watch):
    held = holding("import os; os.write(1, b'x' * 60000); os.write(2, b'sorry'); os._exit(7)", the_end, watch=watch)
    assert (held.said, held.stderr, held.returncode, held.ends) == (b"x" * 60000, "sorry", 7, 1)


def test_what_lies_in_the_pipe_when_it_dies_arrives_although_reading_was_paused():
    async def check(held: Held) -> None:
        held.pause()
        await until(lambda: held.ends)
        assert held.said == b"x" * 60000

    holding("import os; os.write(1, b'x' * 60000)", check)


def test_a_signal_is_a_negative_code():
    assert holding("import os; os.kill(os.getpid(), 9)", the_end).returncode == -9


def test_of_a_flood_on_stderr_the_end_is_kept():
    held = holding(
        "import os\nfor n in range(200_000): os.write(2, b'line %d\\n' % n)\n", lambda held: until(lambda: held.ends)
    )
    assert held.stderr.endswith("line 199999\n")
    assert len(held.stderr) <= STDERR_BYTES


def test_stderr_that_is_no_text_is_shown_as_well_as_can_be():
    assert holding(r"import os; os.write(2, b'caf\xe9')", the_end).stderr == "caf�"


def test_a_paused_child_meets_a_full_pipe_and_goes_on_when_read_again():
    async def check(held: Held) -> None:
        held.pause()
        await until(lambda: held.stderr == "65536")  # a pipe holds no more, and its next write waits
        await asyncio.sleep(0)
        assert held.said == b""
        held.resume()
        await until(lambda: len(held.said) == 1_000_000)

    holding(
        "import os\nos.set_blocking(1, False)\nn = os.write(1, b'y' * 1_000_000)\nos.write(2, b'%d' % n)\n"
        "os.set_blocking(1, True)\nwhile n < 1_000_000: n += os.write(1, b'y' * (1_000_000 - n))\n",
        check,
    )


# ── what it reads ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_written_arrives_whole_and_in_order_however_large():
    async def check(held: Held) -> None:
        parts = [bytes([65 + number]) * 300_000 for number in range(8)]
        await asyncio.gather(*(held.write(part) for part in parts))
        await until(lambda: len(held.said) == 2_400_000)
        assert held.said == b"".join(parts)

    holding(ECHO, check)


def test_one_that_does_not_read_holds_up_its_writers_and_never_more_than_one_message():
    async def check(held: Held) -> None:
        writers = [asyncio.create_task(held.write(b"x" * 100_000)) for _ in range(50)]
        done, waiting = await asyncio.wait(writers, timeout=0.2)
        assert (len(done), len(waiting)) == (1, 49)
        assert held._unsent is not None
        assert len(held._unsent) < 100_000
        await held.stop()
        await asyncio.wait(writers, timeout=10)
        assert all(writer.done() for writer in writers)

    holding("import signal; signal.pause()", check)


def test_a_writer_that_gives_up_waiting_leaves_no_part_of_its_message():
    async def check(held: Held) -> None:
        process = psutil.Process(held.pid)
        process.suspend()
        await held.write(b"a" * 200_000)
        writer = asyncio.create_task(held.write(b"b" * 10))
        await asyncio.sleep(0)
        writer.cancel()
        await asyncio.wait({writer})
        process.resume()
        await held.write(b"c" * 10)
        await until(lambda: held.said.endswith(b"c" * 10))
        assert held.said == b"a" * 200_000 + b"c" * 10

    holding(ECHO, check)


# ── how it ends ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_end_of_input_ends_a_sober_child_by_itself():
    async def check(held: Held) -> None:
        await held.stop()
        assert held.returncode == 0

    holding("import sys; sys.stdin.read()", check)


def test_one_that_ignores_the_end_of_input_is_terminated():
    async def check(held: Held) -> None:
        await held.stop()
        assert held.returncode == -signal.SIGTERM

    holding("import signal; signal.pause()", check)


def test_one_that_ignores_that_too_is_killed_with_its_group():
    script = "import os, signal\nsignal.signal(15, signal.SIG_IGN)\nprint(os.fork(), flush=True)\nsignal.pause()\n"

    async def check(held: Held) -> None:
        await until(lambda: held.said.count(b"\n") == 2)
        forked = max(int(line) for line in held.said.split())
        await held.stop()
        assert held.returncode == -signal.SIGKILL
        assert still_alive([forked]) == []

    holding(script, check)


def test_its_death_is_noticed_although_a_grandchild_holds_its_pipes_and_the_grandchild_goes_too():
    # Its environment is empty, so that no mark but the group alone tells that it belongs here.
    script = (
        "import os\nif pid := os.fork():\n    print(pid, flush=True)\n    os._exit(3)\n"
        "os.execve('/bin/sleep', ['sleep', '300'], {})\n"
    )

    async def check(held: Held) -> None:
        await until(lambda: held.ends)
        assert held.returncode == 3
        assert still_alive([int(pid) for pid in held.said.split()]) == []

    holding(script, check)


@pytest.mark.parametrize(("descriptor", "name"), [(1, "stdout"), (0, "stdin")])
def test_one_that_closes_a_pipe_and_lives_on_is_given_up(descriptor: int, name: str):
    async def check(held: Held) -> None:
        await until(lambda: held.said)
        while not held.ends:
            await held.write(b"are you there?\n")
            await asyncio.sleep(0.01)
        assert held.fault == f"closed its {name} but went on running"
        assert held.returncode is None

    held = holding(f"import os, signal\nos.write(1, b'hello')\nos.close({descriptor})\nsignal.pause()\n", check)
    assert held.returncode == -signal.SIGTERM
    assert held.ends == 1


def test_writing_to_one_that_has_ended_is_quietly_dropped():
    async def check(held: Held) -> None:
        await until(lambda: held.ends)
        await held.write(b"x")

    holding("pass", check)


def test_stopping_twice_at_once_and_again_later_is_fine():
    async def check(held: Held) -> None:
        await asyncio.gather(held.stop(), held.stop())
        await held.stop()

    assert holding("import signal; signal.pause()", check).ends == 1


def test_one_that_was_never_started_is_stopped_already():
    async def scenario() -> None:
        await Held(Guard()).stop()

    run(scenario())


def test_a_stop_that_is_cut_short_kills():
    async def check(held: Held) -> None:
        stop = asyncio.create_task(held.stop())
        await asyncio.sleep(0)
        stop.cancel()
        await asyncio.wait({stop})
        await until(lambda: held.ends)
        assert held.returncode == -signal.SIGKILL

    holding("import signal\nsignal.signal(15, signal.SIG_IGN)\nsignal.pause()", check)


@pytest.mark.parametrize(
    ("command", "error"), [(["/no/such/program"], FileNotFoundError), (["true", "a\0b"], ValueError)]
)
def test_a_command_that_cannot_run_raises_and_leaves_nothing(command: list[str], error: type[Exception]):
    async def scenario() -> None:
        guard = Guard()
        held = Held(guard)
        with pytest.raises(error):
            held.start(command, {}, None)
        await held.stop()
        await guard.close()

    run(scenario())


def test_it_gets_the_environment_it_was_given_and_a_mark_of_its_own():
    script = "import os; print(sorted(os.environ))"
    held = holding(script, the_end, environ={"A": "1", "LC_CTYPE": "C.UTF-8"})
    assert held.said.decode().strip() == str(sorted(["A", "LC_CTYPE", MARK]))
