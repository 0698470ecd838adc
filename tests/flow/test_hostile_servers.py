"""The hostile-server matrix, stdio: whatever one server does, its callers hear why and everybody else's calls flow on.

One pool holds the hostile server and a good one. While the hostile one is asked for its tools and called, calls to the
good one must keep completing. Then the pool is closed, and no child, task or descriptor may be left.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from pegboard.errors import (
    CallTimeout,
    ConnectionLost,
    LimitExceeded,
    PegboardError,
    ProtocolViolation,
    RemoteError,
    StartFailed,
)
from pegboard.types import CallContext, Json, Listing
from pegboard.upstream.server import Server
from tests.pools import PLAIN_CALL, hostile, plain, pool_of, run, still_alive, text_of
from tests.servers import HOSTILE_MODES

MEBIBYTE = 1 << 20


class Row(NamedTuple):
    """How a mode ends: the error of listing and of calling, each with words of its message or hint; None is success."""

    listing: tuple[type[PegboardError], str] | None = None
    call: tuple[type[PegboardError], str] | None = None
    warns: str = ""
    """What the listing's warnings say."""
    start_timeout: float = 30.0
    call_timeout: float = 40.0
    """Only rows that are to be late have little time: a busy machine must not make the others late."""
    max_result_bytes: int = MEBIBYTE
    hangs: bool = False
    """It keeps a caller waiting until the time is up: long enough for many calls elsewhere."""


def never_ready(kind: type[PegboardError], words: str, *, hangs: bool = False) -> Row:
    return Row(listing=(kind, words), call=(kind, words), hangs=hangs, start_timeout=2 if hangs else 30)


def late(method: str) -> tuple[type[PegboardError], str]:
    return CallTimeout, f"no answer to {method} within 1 s"


FINE = Row()
ROWS: dict[str, Row] = {
    "hang_at_start": never_ready(StartFailed, "not ready within 2 s.*start_timeout", hangs=True),
    "exit_at_start": never_ready(StartFailed, "exited with code 3 before it was ready.*no licence found"),
    "crash_at_initialize": never_ready(StartFailed, "exited with code 134 before it was ready.*assertion failed"),
    "unsupported_version": never_ready(StartFailed, "no protocol version in common: it speaks only 2099-01-01"),
    "wrong_version_answer": never_ready(StartFailed, "no protocol version in common.*1999-12-31"),
    "dies_in_a_loop": Row(
        listing=(ConnectionLost, "exited with code 1.*hostile: bye"), call=(ConnectionLost, "exited with code 1")
    ),
    "mute_at_probe": Row(start_timeout=10),
    "dies_at_probe": FINE,
    "hang_at_list": Row(listing=late("tools/list"), call_timeout=1, hangs=True),
    "list_not_array": Row(listing=(ProtocolViolation, "no list of tools")),
    "lies_about_capabilities": Row(listing=(RemoteError, "Method not found")),
    "endless_pages": Row(warns="only the first 100 pages"),
    "repeated_cursor": Row(warns="repeats a cursor"),
    "huge_list": Row(warns="only the first 10000 tools", max_result_bytes=16 * MEBIBYTE),
    "tools_missing_name": Row(warns="entries of its list are not tools"),
    "duplicate_tools": FINE,
    "control_characters": FINE,
    "reserved_names": FINE,
    "ref_bomb": FINE,
    "redos_pattern": FINE,
    "hang_at_call": Row(call=late("tools/call"), call_timeout=1, hangs=True),
    "stops_reading": Row(call=late("tools/call"), call_timeout=1, hangs=True),
    "crash_mid_call": Row(call=(ConnectionLost, "exited with code 139.*segmentation fault")),
    "exit_after_each_call": FINE,
    "wrong_id": Row(call=late("tools/call"), call_timeout=1, hangs=True),
    "answer_without_id": Row(call=late("tools/call"), call_timeout=1, hangs=True),
    "duplicate_answers": FINE,
    "answers_twice": FINE,
    "not_an_object_result": Row(call=(ProtocolViolation, "expected an object")),
    "error_without_message": Row(call=(RemoteError, "gave no message")),
    "asks_back": FINE,
    "request_flood": FINE,
    "notification_flood": FINE,
    "log_flood": FINE,
    "slow_drip": FINE,
    "garbage_lines": FINE,
    "bad_utf8": FINE,
    "nul_bytes": FINE,
    "crlf_lines": FINE,
    "line_separators": FINE,
    "lone_surrogate": FINE,
    "not_a_number": Row(call=(ProtocolViolation, "not JSON-RPC")),
    "huge_line": Row(call=(LimitExceeded, "bytes, over its limit.*max_result_bytes")),
    "huge_line_no_newline": Row(call=late("tools/call"), call_timeout=1, hangs=True),
    "deep_json": Row(call=(ProtocolViolation, "nested too deeply")),
    "stdout_closed_but_alive": Row(call=(ConnectionLost, "closed its stdout but went on running")),
    "stdin_closed_but_alive": Row(call=(ConnectionLost, "closed its stdin but went on running")),
    "grandchild_holds_stdout": Row(call=(ConnectionLost, "exited with code 1.*still holds your pipe")),
    "ignores_sigterm_and_eof": FINE,
    "forks_daemon": FINE,
}


class Elsewhere(NamedTuple):
    """What everybody else noticed meanwhile."""

    calls: int
    longest_stall: float


async def keep_calling(good: Server, trouble: asyncio.Task[None]) -> Elsewhere:
    """Calls the good server until the trouble is over; counts the calls that completed before that."""
    loop = asyncio.get_running_loop()
    stalls = [0.0]

    def tick(since: float) -> None:
        stalls.append(loop.time() - since)
        if not trouble.done():
            loop.call_later(0.001, tick, loop.time())

    tick(loop.time())
    calls = 0
    while not trouble.done():
        assert text_of(await good.call_tool("echo", {"text": str(calls)}, PLAIN_CALL)) == str(calls)
        calls += not trouble.done()
        await asyncio.wait({trouble}, timeout=0.002)
    return Elsewhere(calls, max(stalls))


def check_error(error: PegboardError | None, expected: tuple[type[PegboardError], str] | None) -> None:
    if expected is None:
        assert error is None, f"{error}\n{error.hint}" if error else ""
        return
    kind, words = expected
    assert type(error) is kind, error
    assert error.message.startswith("hostile: ")
    assert re.search(words, f"{error.message}\n{error.hint}", re.DOTALL), (error.message, error.hint)


async def outcome(work) -> tuple[Json | Listing | None, PegboardError | None]:
    try:
        return await work, None
    except PegboardError as error:
        return None, error


async def trouble_with(bad: Server, row: Row) -> None:
    listing, error = await outcome(bad.list_tools())
    check_error(error, row.listing)
    if isinstance(listing, Listing):
        assert "poke" in [tool.get("name") for tool in listing.tools]
        assert row.warns in "\n".join(listing.warnings)
    result, error = await outcome(bad.call_tool("poke", {}, CallContext(timeout=row.call_timeout)))
    check_error(error, row.call)
    if isinstance(result, dict):
        assert text_of(result).startswith("ok")


async def one_mode(mode: str, row: Row, pid_file: Path) -> None:
    bad = hostile(
        mode,
        str(pid_file),
        start_timeout=row.start_timeout,
        call_timeout=row.call_timeout if row.listing else FINE.call_timeout,
        max_result_bytes=row.max_result_bytes,
    )
    async with pool_of(plain("good"), bad) as pool:
        good = pool.get("good")
        await good.call_tool("echo", {"text": "warm"}, PLAIN_CALL)
        trouble = asyncio.create_task(trouble_with(pool.get("hostile"), row))
        elsewhere = await keep_calling(good, trouble)
        await trouble
    print(f"{mode}: {elsewhere.calls} calls elsewhere, longest stall {1000 * elsewhere.longest_stall:.0f} ms")
    assert elsewhere.calls >= (3 if row.hangs else 1)


def pids_in(*files: Path) -> list[int]:
    return [int(file.read_text()) for file in files if file.exists()]


def test_every_mode_has_its_row():
    assert set(ROWS) == set(HOSTILE_MODES)
    assert len(ROWS) >= 30


@pytest.mark.parametrize("mode", sorted(ROWS))
def test_a_hostile_server_hurts_nobody_but_its_callers_who_hear_why(mode: str, tmp_path: Path):
    pid_file = tmp_path / "daemon"
    run(one_mode(mode, ROWS[mode], pid_file))
    assert still_alive(pids_in(pid_file)) == []


def test_rows_agree_with_what_the_modes_promise():
    """The table of modes says roughly what to expect; the rows say it exactly, and the two may not part ways."""
    for mode, row in ROWS.items():
        promise = HOSTILE_MODES[mode].expect
        if promise in ("start_fails", "list_fails"):
            assert row.listing is not None, mode
        elif promise == "call_fails":
            assert (row.listing, bool(row.call)) == (None, True), mode
        elif promise in ("list_ok", "call_ok"):
            assert (row.listing, row.call) == (None, None), mode


@pytest.mark.slow
@pytest.mark.timeout(330)
def test_all_hostile_servers_at_once_leave_the_good_one_alone(tmp_path: Path):
    async def scenario() -> None:
        specs = [
            hostile(mode, str(tmp_path / mode), name=mode, call_timeout=20, max_result_bytes=MEBIBYTE) for mode in ROWS
        ]
        async with pool_of(plain("good"), *specs) as pool:
            good = pool.get("good")
            await good.call_tool("echo", {"text": "warm"}, PLAIN_CALL)
            bad = [pool.get(mode) for mode in ROWS]

            async def all_of_them() -> None:
                await asyncio.gather(*(outcome(each.call_tool("poke", {}, PLAIN_CALL)) for each in bad))

            elsewhere = await keep_calling(good, asyncio.create_task(all_of_them()))
        print(f"{elsewhere.calls} calls elsewhere, longest stall {1000 * elsewhere.longest_stall:.0f} ms")
        assert elsewhere.calls >= 100

    run(scenario(), seconds=300)
    assert still_alive(pids_in(*tmp_path.iterdir())) == []
