"""Several processes and one file, sudden deaths, full disks; and the commands that read what was recorded."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pegboard.store.sqlite import SqliteStore
from pegboard.types import Ending, Exposure, Lookup, Outcome, Record
from tests.flow.shell import Shell

RECORDING = Path(__file__).with_name("recording_process.py")


def command(how: str, path: Path, name: str = "t", count: int = 1) -> list[str]:
    return [sys.executable, str(RECORDING), how, str(path), name, str(count)]


def started(*arguments) -> subprocess.Popen[str]:
    return subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(*processes: subprocess.Popen[str]) -> list[str]:
    outputs = [process.communicate(timeout=50) for process in processes]
    assert [complained for _, complained in outputs if complained] == []
    assert {process.returncode for process in processes} == {0}
    return [said for said, _ in outputs]


def kept(path: Path) -> list[Record]:
    async def read() -> list[Record]:
        store, seen = SqliteStore(path), list[Record]()
        await store.visit(seen.append)
        await store.close()
        return seen

    return asyncio.run(read())


def is_sound(path: Path) -> bool:
    connection = sqlite3.connect(path)
    [(verdict,)] = connection.execute("PRAGMA integrity_check").fetchall()
    connection.close()
    return bool(verdict == "ok")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "pegboard.db"


def test_processes_that_make_the_file_at_once_and_write_to_it_together_lose_nothing(path):
    finished(*[started("write", path, f"p{number}", 40) for number in range(4)])
    tools = Counter(record.tool for record in kept(path) if isinstance(record, Outcome))
    assert tools == {f"p{number}": 40 for number in range(4)}
    assert is_sound(path)


def test_processes_that_meet_a_damaged_file_at_once_set_it_aside_once_and_lose_nothing(path):
    path.parent.mkdir()
    path.write_bytes(b"rubbish" * 1000)
    outputs = finished(*[started("write", path, f"p{number}", 10) for number in range(4)])
    assert sum("warning:" in each for each in outputs) == 1
    [aside] = path.parent.glob("*.damaged-*")
    assert aside.read_bytes() == b"rubbish" * 1000
    assert len(kept(path)) == 40
    assert is_sound(path)


def test_processes_that_refresh_and_write_at_once_count_every_call_once(path):
    finished(
        *[started("write", path, "t", 60) for _ in range(2)], *[started("refresh", path, "t", 20) for _ in range(2)]
    )

    async def refreshed() -> float:
        store = SqliteStore(path)
        priors = await store.refresh_priors(1_800_000_000.0)
        await store.close()
        return priors["t"].calls

    assert asyncio.run(refreshed()) == pytest.approx(120, rel=1e-3)


@pytest.mark.parametrize("after", [1, 2, 7, 30])
def test_what_was_kept_survives_a_kill_and_the_file_stays_sound(path, after):
    with started("write", path, "victim", 100_000) as victim:
        assert victim.stdout is not None
        said = [victim.stdout.readline() for _ in range(after)]
        victim.kill()
        said += victim.stdout.read().splitlines()
    acknowledged = len([line for line in said if line.strip().isdigit()])
    numbers = [record.at - 1_800_000_000.0 for record in kept(path)]
    assert numbers == [float(number) for number in range(len(numbers))]
    assert len(numbers) >= acknowledged >= after
    assert is_sound(path)
    finished(started("write", path, "heir", 3))
    assert len(kept(path)) == len(numbers) + 3


DISK_CALLS = "pwrite64,fdatasync,fsync,ftruncate,unlink,mkdir"


def traced(path: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Four appends to a new file, by a process whose calls that change the disk strace sees, or spoils."""
    tracing = ["strace", "-f", *flags, *command("write", path, "victim", 4)]
    return subprocess.run(tracing, timeout=60, check=False, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("how", ["signal=SIGKILL", "error=ENOSPC", "error=EIO"])
def test_grief_at_any_call_that_changes_the_disk_costs_nothing_that_was_acknowledged(tmp_path, how):
    trace = tmp_path / "trace"
    traced(tmp_path / "whole" / "pegboard.db", "-o", str(trace), "-e", f"trace={DISK_CALLS}")
    calls = sum("(" in line for line in trace.read_text().splitlines())
    told = 0
    for which in range(1, calls + 1):
        path = tmp_path / str(which) / "pegboard.db"
        done = traced(path, "-o", os.devnull, "-e", f"inject={DISK_CALLS}:{how}:when={which}")
        assert "Traceback" not in done.stderr
        told += done.returncode != 0 or "refused:" in done.stdout
        acknowledged = {float(line) for line in done.stdout.splitlines() if line.isdigit()}
        assert acknowledged <= {record.at - 1_800_000_000.0 for record in kept(path)}
        assert is_sound(path)
        asyncio.run(appended(path, Outcome(at=0.0, tool="heir")))
        assert kept(path)[0] == Outcome(at=0.0, tool="heir")
    assert told >= calls / 4, "most of the calls matter"


async def appended(path: Path, record: Record) -> None:
    store = SqliteStore(path)
    await store.append([record])
    await store.close()


def test_a_full_disk_is_told_once_and_nothing_is_lost_when_there_is_room_again(path):
    [said] = finished(started("full", path, "t", 2000))
    under, told = said.splitlines()[-2:]
    assert int(under.split()[-1]) < 2000
    assert told == "written: 2000 dropped: 0"
    warnings = [line for line in said.splitlines() if line.startswith("warning:")]
    assert len(warnings) == 1
    assert "not recorded for now" in warnings[0]
    assert "disk" in warnings[0]
    assert len(kept(path)) == 2000
    assert is_sound(path)


@pytest.fixture
def readable_by_all() -> Iterator[Path]:
    """pytest's own folders are closed to other users."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("exists", [False, True])
def test_a_folder_that_may_not_be_written_is_told_in_words(readable_by_all, exists):
    path = readable_by_all / "pegboard.db"
    if exists:
        finished(started("write", path, "t", 1))
        path.chmod(0o644)
    [said] = finished(started("powerless", path, "t", 1))
    assert said.startswith(f"refused: {path} cannot be used: ")
    assert "state_dir" in said


def test_loading_the_store_and_the_recorder_loads_neither_sqlite_nor_an_event_loop(tmp_path):
    code = (
        "import sys; from pegboard.store.sqlite import SqliteStore; from pegboard.telemetry.recorder import Recorder\n"
        "from pathlib import Path; Recorder(SqliteStore(Path('x.db')))\n"
        "print(*({'sqlite3', 'asyncio', 'concurrent', 'numpy', 'logging'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
    assert list(tmp_path.iterdir()) == []


# ── the commands ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.plain("notes")
    return shell


def recorded(shell: Shell, *records: Record, refreshed_at: float | None = None) -> Path:
    path = shell.folder / "state" / "pegboard.db"

    async def fill() -> None:
        store = SqliteStore(path)
        await store.append(records)
        if refreshed_at is not None:
            await store.refresh_priors(refreshed_at)
        await store.close()

    asyncio.run(fill())
    return path


def a_conversation(now: float) -> list[Record]:
    return [
        Exposure(
            at=now - 30,
            conversation="c1",
            deferred=9,
            own_tokens=600,
            deferred_tokens={"notes": 9000},
            counted="by bytes",
        ),
        Lookup(at=now - 20, query="q", conversation="c1", found=("notes__echo",), request_tokens=40, answer_tokens=360),
        Outcome(at=now - 10, tool="notes__echo", server="notes", conversation="c1", via="call_tool", duration_ms=50.0),
        Outcome(at=now - 9, tool="notes__ecko", conversation="c1", via="call_tool", ending=Ending.NOT_FOUND),
    ]


def test_with_nothing_recorded_every_command_says_so_and_makes_no_file(shell):
    assert "Nothing was recorded" in shell.run("stats").stdout
    assert "never worked out" in shell.run("priors").stdout
    assert "nothing yet" in shell.run("status").stdout
    assert shell.json("stats")["total"]["net"] == 0
    assert shell.json("priors") == {"priors_updated_at": 0.0, "half_life_days": 14.0, "priors": {}}
    assert shell.json("status")["record"] is None
    assert not (shell.folder / "state").exists()
    assert not shell.started("notes")


def test_stats_tell_net_savings_by_conversation_and_server_and_how_searching_goes(shell):
    shell.run("refresh")
    recorded(shell, *a_conversation(time.time()))
    found = shell.json("stats")
    assert found["total"]["net"] == 9000 - 600 - 40 - 360
    assert found["conversations"]["c1"]["net"] == 8000
    assert found["servers"]["notes"]["net"] == 9000 - 400
    assert found["shared"]["net"] == -600
    assert found["counted"] == ["by bytes"]
    assert found["searching"] == {"searches": 1, "followed": 1, "found_nothing": 0, "not_followed": 0}
    assert found["adoption"] == {"conversations": 1, "searched": 1, "called": 1}
    assert found["calling"]["made_up"] == {"notes__ecko": 1}
    assert "notes__echo" not in found["never_found"]
    assert found["never_found"]
    said = shell.run("stats").stdout
    assert "Tokens saved, net: 8,000" in said
    assert "Tokens were counted: by bytes" in said
    assert "Never found and never called: notes__" in said
    assert "Called though there is no such tool: notes__ecko 1" in said


def test_stats_of_a_time_or_a_conversation_leave_out_the_rest(shell):
    now = time.time()
    recorded(shell, *a_conversation(now), *a_conversation(now - 10 * 86_400))
    assert shell.json("stats")["total"]["lists"] == 1
    assert shell.json("stats", "--since", "2w")["total"]["lists"] == 2
    assert shell.json("stats", "--conversation", "other")["total"]["lists"] == 0
    told = shell.run("stats", "--since", "yesterday", code=2).stderr
    assert "expected a length of time, as in 90s, 15min, 12h, 7d or 4w, got 'yesterday'" in told


def test_priors_are_refreshed_and_shown_and_old_records_go(shell):
    now = time.time()
    path = recorded(shell, *a_conversation(now), *a_conversation(now - 100 * 86_400))
    found = shell.json("priors", "refresh")
    assert set(found["priors"]) == {"notes__echo"}
    assert found["priors"]["notes__echo"]["p95_ms"] == pytest.approx(50, rel=0.05)
    assert found["priors_updated_at"] == pytest.approx(now, abs=60)
    assert shell.json("priors", "show") == found
    assert shell.json("priors", "show", "git__*")["priors"] == {}
    said = shell.run("priors").stdout
    assert "notes__echo" in said
    assert "1 tool with a record" in said
    assert len(kept(path)) == 4, "records older than record.keep_days are dropped"


def test_status_shows_it_all_and_warns_of_priors_older_than_26_hours(shell):
    shell.run("refresh")
    now = time.time()
    recorded(shell, *a_conversation(now), refreshed_at=now - 25 * 3600)
    fresh = shell.json("status")
    assert fresh["servers"] == {"idle": 1}
    assert fresh["tools"] > 0
    assert fresh["index"]["state"] == "missing"
    assert fresh["record"]["outcomes"] == 2
    assert fresh["record"]["bytes"] > 0
    assert fresh["priors_updated_at"] == pytest.approx(now - 25 * 3600)
    assert fresh["warnings"] == []
    recorded(shell, refreshed_at=now - 27 * 3600)
    stale = shell.run("status")
    assert "1 idle" in stale.stdout
    assert "2 calls, 1 search, 1 tool list, " in stale.stdout
    assert "warning: Priors were last worked out 1 d ago." in stale.stderr
    off = shell.run("status", "--set", "record.enabled=false")
    assert "recording is turned off" in off.stdout
    assert off.stderr == "", "priors of a record that nobody keeps are as fresh as they can be"


def test_status_warns_of_priors_that_never_were(shell):
    recorded(shell, *a_conversation(time.time()))
    assert "Priors were never worked out" in shell.run("status").stderr


def test_a_damaged_record_is_a_word_of_warning_and_no_command_fails_on_it(shell):
    path = recorded(shell, *a_conversation(time.time()))
    path.write_bytes(b"rubbish" * 1000)
    assert "damaged" in shell.run("status").stderr
    assert path.read_bytes() == b"rubbish" * 1000, "looking changes nothing"
    told = shell.run("stats")
    assert "Nothing was recorded" in told.stdout
    assert "damaged-" in told.stderr


def test_a_record_of_a_newer_version_is_an_error_in_words(shell):
    path = recorded(shell, *a_conversation(time.time()))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    for asked in (("stats",), ("priors",), ("priors", "refresh")):
        assert "newer Pegboard" in shell.run(*asked, code=1).stderr
    assert "newer Pegboard" in shell.run("status").stderr
