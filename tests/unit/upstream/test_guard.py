"""The guard, program and our end of it: what it kills, what it leaves alone, and that it can be lost."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from pegboard.upstream import guard
from pegboard.upstream.guard_client import Guard
from tests.pools import children, run, still_alive, until

SLEEPER = [sys.executable, "-ISc", "import signal; print(flush=True); signal.pause()"]


@contextmanager
def sleeper(mark: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A process that would sleep on, with a mark in its environment."""
    environ = {guard.MARK: mark} if mark else {}
    process = subprocess.Popen(SLEEPER, stdout=subprocess.PIPE, env=environ, start_new_session=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def program(token: str) -> Iterator[subprocess.Popen[bytes]]:
    """The guard as Pegboard starts it."""
    command = [sys.executable, "-I", "-S", guard.__file__, token]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, bufsize=0)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def tell(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line.encode())


def hang_up(process: subprocess.Popen[bytes]) -> int:
    assert process.stdin is not None
    process.stdin.close()
    return process.wait(timeout=20)


def test_when_the_pipe_closes_known_groups_die_and_so_does_whatever_carries_the_token():
    with program("abc") as watcher, sleeper() as grouped, sleeper("abc.1") as marked, sleeper("abcd.1") as other:
        tell(watcher, f"+{grouped.pid}\n")
        assert hang_up(watcher) == 0
        assert still_alive([grouped.pid, marked.pid]) == []
        assert other.poll() is None


def test_after_a_farewell_stragglers_are_swept_all_the_same():
    with program("abc") as watcher, sleeper() as grouped, sleeper("abc.1") as marked, sleeper("abcd.1") as other:
        tell(watcher, f"+{grouped.pid}\n{guard.FAREWELL}\n")
        assert hang_up(watcher) == 0
        assert grouped.wait(timeout=20) == marked.wait(timeout=20) == -signal.SIGKILL
        assert other.poll() is None


def test_a_group_that_ended_is_forgotten_and_its_stragglers_are_swept_by_their_exact_mark():
    with program("abc") as watcher, sleeper("abc.12") as other, sleeper("abc.1") as straggler:
        tell(watcher, f"+{straggler.pid}\n-{straggler.pid} abc.1\n")
        assert still_alive([straggler.pid]) == []
        assert other.poll() is None
        tell(watcher, "-1\n")  # of no use, but it must not kill anything, nor end the guard
        assert hang_up(watcher) == 0
        assert still_alive([other.pid]) == []


def test_lines_that_make_no_sense_are_ignored():
    with program("abc") as watcher, sleeper() as grouped:
        tell(watcher, f"\nhello\n+x\n-\n+ \n+{grouped.pid}\n")
        assert hang_up(watcher) == 0
        assert still_alive([grouped.pid]) == []


def test_polite_signals_do_not_end_it():
    with program("abc") as watcher, sleeper("abc.1") as marked:
        tell(watcher, "-1 abc.99\n")
        asyncio.run(until(lambda: _ignores(watcher.pid, signal.SIGTERM)))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            watcher.send_signal(number)
        assert hang_up(watcher) == 0
        assert still_alive([marked.pid]) == []


def _ignores(pid: int, number: int) -> bool:
    with open(f"/proc/{pid}/status") as status:  # noqa: PTH123  one line
        mask = next(line for line in status if line.startswith("SigIgn"))
    return bool(int(mask.split()[1], 16) >> (number - 1) & 1)


def test_it_starts_with_the_first_child_and_ends_when_closed():
    async def scenario() -> None:
        ours = Guard()
        assert ours.pid is None
        await ours.close()
        marks = [ours.next_mark(), ours.next_mark()]
        assert len(set(marks)) == 2
        assert [each.pid for each in children()] == [ours.pid]
        await ours.close()
        assert children() == []

    run(scenario())


def test_a_lost_guard_is_replaced_at_once_and_the_new_one_knows_every_group():
    async def scenario() -> None:
        ours = Guard()
        mark = ours.next_mark()
        with sleeper() as unmarked, sleeper(mark) as marked:
            ours.started(unmarked.pid)
            lost = ours.pid or 0
            os.kill(lost, signal.SIGKILL)
            await until(lambda: ours.pid not in (None, lost))
            process = psutil.Process(ours.pid)
            assert process.status() != psutil.STATUS_ZOMBIE
            # As when Pegboard is killed: the pipe closes without a word.
            await ours.close()
            assert still_alive([unmarked.pid, marked.pid]) == []
        assert children() == []

    run(scenario())


def test_without_children_a_lost_guard_is_replaced_only_when_one_starts():
    async def scenario() -> None:
        ours = Guard()
        ours.next_mark()
        os.kill(ours.pid or 0, signal.SIGKILL)
        await until(lambda: ours.pid is None)
        assert children() == []
        ours.next_mark()
        assert ours.pid is not None
        await ours.close()

    run(scenario())


def test_a_guard_that_is_stuck_is_replaced_and_never_blocks_us():
    async def scenario() -> None:
        ours = Guard()
        mark = ours.next_mark()
        with sleeper() as grouped:
            ours.started(grouped.pid)
            stuck = ours.pid or 0
            os.kill(stuck, signal.SIGSTOP)
            for _ in range(20_000):  # more than any pipe holds
                ours.ended(0, mark)
                if ours.pid != stuck:
                    break
                await asyncio.sleep(0)
            await until(lambda: ours.pid not in (None, stuck))
            await ours.close()
            assert still_alive([grouped.pid]) == []

    run(scenario())


def test_it_holds_neither_our_output_nor_our_folder_and_carries_no_mark_of_ours(monkeypatch):
    monkeypatch.setenv(guard.MARK, "outer.1")

    async def scenario() -> None:
        ours = Guard()
        ours.next_mark()
        process = psutil.Process(ours.pid)
        assert guard.MARK not in process.environ()
        assert process.cwd() == "/"
        assert os.path.realpath(f"/proc/{ours.pid}/fd/1") == os.devnull
        assert os.path.realpath(f"/proc/{ours.pid}/fd/2") == os.devnull
        assert os.getsid(process.pid) == process.pid
        await ours.close()

    run(scenario())
