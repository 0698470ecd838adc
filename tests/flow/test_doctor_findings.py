"""`pegboard doctor` as a person runs it, in homes as agents leave them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pegboard.cli.doctor_examine import examine
from pegboard.doctor.checks.causes import CODEX_MODEL, DENIED, ENV, NO_DEFERRAL
from tests.homes import HomeBuilder
from tests.homes import causes as homes


def doctor(home: HomeBuilder, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    source = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "pegboard", "doctor", *words],
        cwd=home.project,
        env={**home.environ, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **source},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def answer(home: HomeBuilder, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(doctor(home, "--json", *words).stdout)
    return found


def test_findings_are_told_with_what_to_do_next(tmp_path: Path) -> None:
    home = homes.off_by_variable(tmp_path)
    shown = doctor(home).stdout
    assert "Deferral is off: ENABLE_TOOL_SEARCH=false" in shown
    assert "~/.claude/settings.json, line" in shown
    assert "confidence high" in shown
    assert "pegboard doctor plan deferral-off-env" in shown
    assert "github" in shown
    assert "Nothing was changed." in shown


def test_lines_are_as_long_as_a_narrow_terminal_is_wide(tmp_path: Path) -> None:
    home = homes.off_by_variable(tmp_path).process(COLUMNS="60")
    lines = doctor(home).stdout.splitlines()
    assert max(map(len, lines)) <= 60
    assert "   confidence high · deferral-off-env" in lines


def test_a_script_gets_everything_as_json(tmp_path: Path) -> None:
    found = answer(homes.off_by_variable(tmp_path))
    [finding] = found["findings"]
    assert finding["cause"] == ENV
    assert finding["fix"]["kind"] == "defer-enable"
    assert finding["fix"]["settings"][0]["file"].endswith("/.claude/settings.json")
    assert finding["tokens_per_session"]["github"] > 4_000
    assert finding["claims"]
    assert found["sessions"]["claude-code"] == 7
    assert found["saving"] > 0
    assert found["cost"] > 0
    assert found["days"] == 30


def test_nothing_wrong_is_said_plainly(tmp_path: Path) -> None:
    assert "Nothing is wrong" in doctor(homes.healthy(tmp_path)).stdout


def test_nothing_to_look_at_is_said_plainly(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    assert "nothing to look at" in doctor(home).stdout
    assert answer(home)["findings"] == []


def test_settings_alone_are_looked_at_when_no_session_is_left(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).server("github").server("docs", agent="opencode")
    assert "only settings were looked at" in doctor(home).stdout


@pytest.mark.parametrize(("words", "causes"), [
    ([], {NO_DEFERRAL, CODEX_MODEL}), (["--agent", "codex"], {CODEX_MODEL}), (["--agent", "kilo"], {NO_DEFERRAL}),
    (["--agent", "claude-code"], set()),
])  # fmt: skip
def test_only_the_agent_that_is_asked_for_is_told_of(words: list[str], causes: set[str], tmp_path: Path) -> None:
    home = homes.unknown_model(tmp_path)
    for name in ("github", "docs", "wiki"):
        home.server(name, agent="kilo")
    assert {each["cause"] for each in answer(home, *words)["findings"]} == causes


def test_only_what_was_skipped_of_the_agent_that_is_asked_for_is_counted(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    home.claude_session(broken_lines=2, unknown_records=1)
    home.codex_session()
    read = {agent: answer(home, "--agent", agent)["read"] for agent in ("claude-code", "codex")}
    assert (read["claude-code"]["broken_lines"], read["claude-code"]["unknown_records"]) == (2, 1)
    assert (read["codex"]["broken_lines"], read["codex"]["unknown_records"]) == (0, 0)


def test_only_the_project_that_is_asked_for_is_told_of(tmp_path: Path) -> None:
    home = homes.off_by_permission(tmp_path)
    other = home.folder / "code" / "other"
    other.mkdir()
    assert [each["cause"] for each in answer(home, "--project", str(home.project))["findings"]] == [DENIED]
    assert answer(home, "--project", str(other))["findings"] == []


def test_a_project_that_is_nowhere_is_not_taken_for_a_healthy_one(tmp_path: Path) -> None:
    home = homes.off_by_variable(tmp_path)
    told = doctor(home, "--project", "code/enigne", code=1).stderr
    assert f"{home.project}/code/enigne" in told
    gone = home.folder / "code" / "gone"
    home.claude_session(project=gone)
    assert answer(home, "--project", str(gone))["sessions"] == {"claude-code": 1}


def test_sessions_further_back_than_asked_for_do_not_count(tmp_path: Path) -> None:
    home = homes.off_by_variable(tmp_path)
    assert answer(home, "--days", "3")["sessions"]["claude-code"] < 7


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    home = homes.off_by_variable(tmp_path)
    first, second = answer(home), answer(home)
    assert first["read"]["bytes"] > 100_000
    assert second["read"]["bytes"] < first["read"]["bytes"] / 10
    assert second["findings"] == first["findings"]


def test_broken_files_stop_nobody_and_are_named(tmp_path: Path) -> None:
    home = homes.healthy(tmp_path)
    (home.folder / ".claude" / "settings.json").write_text("{ oops")
    done = doctor(home)
    assert "settings.json" in done.stderr
    assert "not valid JSON" in done.stderr
    assert "Looked at 8 sessions" in done.stdout


def test_the_doctor_writes_nothing_but_what_it_keeps_for_the_next_time(tmp_path: Path) -> None:
    home = homes.off_by_variable(tmp_path)
    before = {path: path.read_bytes() for path in home.folder.rglob("*") if path.is_file() and path.suffix == ".json"}
    files = {path for path in home.root.rglob("*") if path.is_file() and "opencode.db" not in path.name}
    doctor(home)
    new = {path for path in home.root.rglob("*") if path.is_file() and "opencode.db" not in path.name} - files
    assert [path for path in new if "pegboard" not in path.parts] == []
    assert {path: path.read_bytes() for path in before} == before


def test_words_of_a_conversation_are_not_kept(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    home.claude_session(text="the-secret-word", calls={"Bash": 1})
    doctor(home)
    kept = [path for path in home.folder.rglob("*") if path.is_file() and "pegboard" in path.parts]
    assert kept
    assert [path for path in kept if b"the-secret-word" in path.read_bytes()] == []


def test_who_gives_up_waits_for_no_further_transcript(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    for _ in range(9):
        home.claude_session()
    told: list[int] = []
    over = threading.Event()

    async def give_up_at_once() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        task.add_done_callback(lambda _: over.set())

        def tell(_what: str, done: int, _total: int) -> None:
            told.append(done)
            loop.call_soon_threadsafe(task.cancel)
            over.wait(30)

        await examine(home.machine, progress=tell, now=home.now)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(give_up_at_once())
    assert len(told) == 1


@pytest.mark.parametrize("words", [["--days", "0"], ["--days", "x"], ["--agent", "nobody"], ["unheard-of"]])
def test_flags_that_make_no_sense_are_refused(words: list[str], tmp_path: Path) -> None:
    assert "pegboard doctor" in doctor(HomeBuilder(tmp_path), *words, code=2).stderr
