"""Supervision of real processes: nothing outlives what started it, however that ended, and nobody's answers mix."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from pegboard.config.model import GatewayConfig
from pegboard.errors import ConnectionLost, ServerUnavailable
from pegboard.types import CallContext, ServerState
from tests.pools import (
    DESCRIPTORS,
    PLAIN_CALL,
    Seen,
    children,
    lines,
    plain,
    pool_of,
    run,
    server,
    starts,
    still_alive,
    text_of,
    until,
)
from tests.servers import plain_command

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SIGN = "TEST_SIGN"


# ── start and stop ───────────────────────────────────────────────────────────────────────────────────────────────────


async def start_and_stop(cycles: int) -> None:
    """Every process of every cycle is gone at its end, but for the guard; and nothing piles up."""
    async with pool_of(plain("one"), plain("two", "--era", "legacy")) as pool:
        descriptors = []
        for _ in range(cycles):
            used = [pool.get("one"), pool.get("two")]
            pids = await asyncio.gather(*(each.call_tool("pid", {}, PLAIN_CALL) for each in used))
            assert len({text_of(pid) for pid in pids}) == 2
            await asyncio.gather(*(each.stop() for each in used))
            assert len(children()) == 1
            assert {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("pegboard")} == set()
            descriptors.append(len(list(DESCRIPTORS.iterdir())))
        assert len(set(descriptors)) == 1


def test_50_start_stop_cycles_leave_no_zombie_no_orphan_and_no_descriptor():
    run(start_and_stop(25))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_1000_start_stop_cycles_leave_no_zombie_no_orphan_and_no_descriptor():
    run(start_and_stop(500), seconds=850)


def test_a_stop_takes_the_whole_group_along():
    command = ["sh", "-c", 'sleep 300 & exec "$@"', "sh", *plain_command()]

    async def scenario() -> None:
        async with pool_of(server("s", command), plain("other")) as pool:
            await pool.get("other").list_tools()
            pid = int(text_of(await pool.get("s").call_tool("pid", {}, PLAIN_CALL)))
            family = [pid, *(each.pid for each in psutil.Process(pid).children())]
            assert len(family) == 2
            await pool.get("s").stop()
            assert still_alive(family) == []
            assert text_of(await pool.get("other").call_tool("echo", {"text": "here"}, PLAIN_CALL)) == "here"

    run(scenario())


def test_many_servers_never_start_more_at_once_than_allowed(tmp_path: Path):
    log, most, count = tmp_path / "log", 4, 50
    specs = [plain(f"n{number}", "--log", str(log), "--delay-start", "0.05") for number in range(count)]

    async def scenario() -> None:
        async with pool_of(*specs, gateway=GatewayConfig(max_starting=most)) as pool:
            listings = await asyncio.gather(*(pool.get(spec.name).list_tools() for spec in specs))
            assert all(listing.tools for listing in listings)

    run(scenario())
    under_way = most_under_way = 0
    for line in lines(log):
        under_way += line.startswith("start ") - (line == "server/discover")
        most_under_way = max(most_under_way, under_way)
    assert len(starts(log)) == count
    assert 1 < most_under_way <= most


def test_500_calls_at_once_on_one_server_get_each_their_own_answer():
    async def scenario() -> None:
        async with pool_of(plain()) as pool:

            async def call(number: int) -> str:
                if number % 5:
                    return text_of(await pool.get("plain").call_tool("echo", {"text": f"<{number}>"}, PLAIN_CALL))
                seconds = (number * 7 % 100) / 1000  # answers come back in another order than the calls went out
                return text_of(await pool.get("plain").call_tool("slow", {"seconds": seconds}, PLAIN_CALL))

            answers = await asyncio.gather(*map(call, range(500)))
        for number, answer in enumerate(answers):
            assert answer == (f"<{number}>" if number % 5 else f"waited {(number * 7 % 100) / 1000} s")

    run(scenario())


# ── crashes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_killed_server_fails_its_calls_with_the_signal_and_the_next_call_starts_it_again(tmp_path: Path):
    log, seen = tmp_path / "log", Seen()

    async def scenario() -> None:
        async with pool_of(plain("p", "--log", str(log)), seen=seen) as pool:
            first = int(text_of(await pool.get("p").call_tool("pid", {}, PLAIN_CALL)))
            slow = asyncio.create_task(pool.get("p").call_tool("slow", {"seconds": 60}, PLAIN_CALL))
            await until(lambda: "tools/call slow" in lines(log))
            os.kill(first, signal.SIGKILL)
            with pytest.raises(ConnectionLost, match="p: its process was killed by SIGKILL"):
                await slow
            second = int(text_of(await pool.get("p").call_tool("pid", {}, PLAIN_CALL)))
            assert [first, second] == starts(log)

    run(scenario())
    ready = [ServerState.STARTING, ServerState.READY]
    assert seen.of("p") == [*ready, ServerState.ERROR, *ready, ServerState.IDLE]


def test_an_idle_server_is_stopped_and_a_busy_one_is_not(tmp_path: Path):
    log, seen = tmp_path / "log", Seen()

    async def scenario() -> None:
        async with pool_of(plain("p", "--log", str(log), idle_timeout=0.3), seen=seen) as pool:
            await pool.get("p").call_tool("slow", {"seconds": 1}, PLAIN_CALL)
            assert starts(log) == [int(text_of(await pool.get("p").call_tool("pid", {}, PLAIN_CALL)))]
            await until(lambda: seen.of("p")[-1] is ServerState.IDLE and not pool.get("p").is_running)
            assert lines(log)[-1] == "end"
            await pool.get("p").call_tool("pid", {}, PLAIN_CALL)
            assert len(starts(log)) == 2

    run(scenario())


def test_calls_that_arrive_while_an_idle_server_is_being_stopped_are_all_answered(tmp_path: Path):
    log = tmp_path / "log"

    async def scenario() -> None:
        async with pool_of(plain("p", "--log", str(log), idle_timeout=0.02)) as pool:
            for pause in range(30):  # some of these hit the very moment of the stop
                answer = await pool.get("p").call_tool("echo", {"text": str(pause)}, PLAIN_CALL)
                assert text_of(answer) == str(pause)
                await asyncio.sleep(0.018 + pause / 5000)
        assert len(starts(log)) > 1

    run(scenario())


def test_a_call_that_times_out_or_is_cancelled_is_called_off_at_the_server(tmp_path: Path):
    log = tmp_path / "log"

    async def scenario() -> None:
        async with pool_of(plain("p", "--log", str(log))) as pool:
            doomed = asyncio.create_task(pool.get("p").call_tool("slow", {"seconds": 60}, PLAIN_CALL))
            await until(lambda: "tools/call slow" in lines(log))
            doomed.cancel()
            await asyncio.wait({doomed})
            await until(lambda: lines(log).count("slow cancelled") == 1)
            slow = pool.get("p").call_tool("slow", {"seconds": 60}, CallContext(timeout=0.1))
            assert isinstance((await asyncio.gather(slow, return_exceptions=True))[0], Exception)
            await until(lambda: lines(log).count("slow cancelled") == 2)
            assert lines(log).count("notifications/cancelled") == 2
            assert text_of(await pool.get("p").call_tool("echo", {"text": "well"}, PLAIN_CALL)) == "well"

    run(scenario())


# ── kill -9 ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def holder(plan: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    """How to start a process that holds servers, which all carry a sign of this test in their environment."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    command = [sys.executable, str(HERE / "holds_servers.py"), plan, str(folder)]
    return command, {SIGN: uuid.uuid4().hex, "PYTHONPATH": paths}


@contextmanager
def holding(plan: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Such a process, when it has carried out its plan; and its sign."""
    command, environ = holder(plan, folder)
    sign = environ[SIGN]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environ})
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process, sign
    finally:
        process.kill()
        process.communicate()


def bearing(sign: str) -> list[psutil.Process]:
    """Every living process that carries the sign."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(SIGN) == sign and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_kill_9_leaves_no_server_no_grandchild_no_daemon_and_no_guard(tmp_path: Path):
    with holding("all_sorts", tmp_path) as (process, sign):
        held = [each.pid for each in bearing(sign) if each.pid != process.pid]
        daemon = int((tmp_path / "daemon").read_text())
        assert daemon in held
        assert len(held) == 8  # five servers, a sibling in a group, a daemon, the guard
        process.kill()
        process.wait()
        assert still_alive(held) == []
    assert bearing(sign) == []


@pytest.mark.parametrize("running", [0, 1, 3, 7])
def test_kill_9_in_the_middle_of_starting_leaves_nothing(running: int, tmp_path: Path):
    with holding("starting", tmp_path) as (process, sign):
        while len(bearing(sign)) < running:
            assert process.poll() is None
        process.kill()
        process.wait()
        asyncio.run(until(lambda: bearing(sign) == []))


def test_a_guard_that_was_killed_is_replaced_by_one_that_knows_of_every_child(tmp_path: Path):
    with holding("guard", tmp_path) as (process, sign):
        held = [each.pid for each in bearing(sign) if each.pid != process.pid]
        assert len(held) == 3
        process.kill()
        process.wait()
        assert still_alive(held) == []


def test_a_pegboard_inside_a_pegboard_is_ended_with_everything_it_held(tmp_path: Path):
    """The outer one kills the inner one at once; the inner one's guard must live to clean up after it."""
    command, environ = holder("all_sorts", tmp_path)

    async def scenario() -> None:
        async with pool_of(server("inner", command, env=environ)) as pool:
            start = asyncio.create_task(pool.get("inner").list_tools())
            await until(lambda: len(bearing(environ[SIGN])) == 9)
            held = [each.pid for each in bearing(environ[SIGN])]
            await pool.get("inner").stop()
            await asyncio.wait({start})
            assert isinstance(start.exception(), ServerUnavailable)
            assert still_alive(held) == []

    run(scenario())
