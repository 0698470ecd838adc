"""`pegboard doctor report` as a person runs it: six changes in one home, each of which became something else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.homes import HomeBuilder
from tests.homes.builder import DAY
from tests.homes.causes import CALLS, TOOLS
from tests.homes.claude_records import Tokens

PASSED = 14.0
"""Days between applying and looking back."""
DAYS = (13.5, 11.5, 9.5, 7.5, 5.5, 3.5, 1.5)
PER_DAY = 3
STATES = ("worse", "measured", "no effect", "pending", "reverted by hand", "undone")
SECRET = "the-word-of-a-conversation"
COLD = Tokens(input=10, output=120, cache_read=4_000, cache_write=14_000)
CHROMIUM = Path("/usr/bin/chromium")


def doctor(home: HomeBuilder, *words: str, code: int = 0, **environ: str) -> subprocess.CompletedProcess[str]:
    source = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "pegboard", "doctor", *words],
        cwd=home.project,
        env={**home.environ, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **source, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def answer(home: HomeBuilder, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(doctor(home, "report", "--json", *words).stdout)
    return found


class Story:
    """A home with one project for each state, and the change that was applied in each."""

    def __init__(self, folder: Path) -> None:
        self.home = HomeBuilder(folder)
        self.home.installed("claude-code", "2.1.325").server("github").server("docs")
        self.ids: dict[str, str] = {}

    def project(self, state: str) -> Path:
        """The folder in which a change became this."""
        return self.home.folder / "code" / state.replace(" ", "-")

    def settings(self, state: str) -> Path:
        """The file that was changed."""
        return self.project(state) / ".claude/settings.json"

    def sessions(self, state: str, **about: Any) -> None:
        """Two weeks of them, up to today."""
        for day in DAYS:
            for number in range(PER_DAY):
                usual = {"tools": TOOLS, "calls": CALLS, "text": SECRET, "project": self.project(state)}
                self.home.claude_session(**{**usual, **about}, days_ago=day - number / 10)

    def apply(self, state: str) -> None:
        """Mends what is wrong in one project alone."""
        self.home.json(self.settings(state), {"env": {"ENABLE_TOOL_SEARCH": "false"}})
        self.sessions(state, deferral=False)
        words = ("apply", "deferral-off-env", "--yes", "--json", "--project", str(self.project(state)))
        [row] = json.loads(doctor(self.home, *words).stdout)
        self.ids[state] = row["applied"]

    def let_time_pass(self) -> None:
        """Two weeks: what was written down is that much older, and the agent has swept its transcripts away."""
        [journal] = self.home.folder.rglob("actions.json")
        journal.write_text(json.dumps(_older(json.loads(journal.read_text("utf-8")))), "utf-8")
        shutil.rmtree(self.home.claude_folder / "projects")


def _older(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _older(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_older(each) for each in value]
    is_moment = key.endswith("_at") or key == "known_since"
    return value - PASSED * DAY if is_moment and value is not None else value


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    told = Story(tmp_path_factory.mktemp("report"))
    for state in STATES:
        told.project(state).mkdir(parents=True)
        told.apply(state)
    told.let_time_pass()
    told.sessions("worse", usage=COLD)
    told.sessions("measured")
    told.sessions("no effect", deferral=False)
    told.sessions("undone")
    told.home.json(told.settings("reverted by hand"), {"env": {"ENABLE_TOOL_SEARCH": "false"}})
    doctor(told.home, "undo", told.ids["undone"])
    return told


def test_every_change_is_in_the_state_that_it_came_to(story: Story) -> None:
    found = {each["id"]: each["state"] for each in answer(story.home)["changes"]}
    assert found == {story.ids[state]: state for state in STATES}


def test_a_change_is_compared_with_the_two_weeks_before_it_though_those_transcripts_are_gone(story: Story) -> None:
    [change] = answer(story.home, story.ids["measured"])["changes"]
    before, after = change["before"], change["after"]
    assert (before["sessions"], after["sessions"]) == (len(DAYS) * PER_DAY, len(DAYS) * PER_DAY)
    assert before["sessions_counted"] == before["sessions_with_definitions"] == before["sessions"]
    assert change["saved"] == before["definition_tokens"] - after["definition_tokens"] > 5_000
    assert change["saved_in_all"] == int(change["saved"] * after["sessions"])
    assert before["by_server"]["github"] > 4_000 > after["by_server"].get("github", 0)
    assert (change["confidence"], change["doubts"]) == ("high", [])
    assert (before["cache_write_tokens"], before["cache_hit_rate"]) == pytest.approx(
        (after["cache_write_tokens"], 0.93), rel=0.01
    )


def test_what_hurt_the_cache_is_said_before_anything_else(story: Story) -> None:
    found = answer(story.home)["changes"]
    assert [each["cache_hurt"] for each in found] == [True, *[False] * 5]
    assert found[0]["id"] == story.ids["worse"]
    assert found[0]["cache_hit_rate_change"] < -0.5
    assert found[0]["saved"] > 0, "it did what it should, and yet it hurt"
    first, second = doctor(story.home, "report", COLUMNS="200").stdout.splitlines()[:2]
    assert first.startswith(f"! {story.ids['worse'][:8]} defer-enable")
    assert "It hurt the cache: the hit rate fell from 93% to 22%" in first
    assert f"pegboard doctor undo {story.ids['worse'][:8]}" in second


def test_the_table_has_a_row_for_each_change_with_its_figures(story: Story) -> None:
    shown = doctor(story.home, "report", "--no-plot", COLUMNS="160").stdout
    for state in STATES:
        [row] = [line for line in shown.splitlines() if line.startswith(story.ids[state][:8]) and " → " in line]
        assert f"  {state}  " in row
    assert "definition tokens were not sent in the sessions seen since" in shown
    assert "█" not in shown


def test_the_plots_show_the_days_around_each_change(story: Story) -> None:
    shown = doctor(story.home, "report", story.ids["measured"]).stdout
    plot = shown[shown.index(f"{story.ids['measured'][:8]}: definition tokens per session") :]
    assert "█" in plot
    assert "applied" in plot
    assert "-14 d" in plot
    plain = doctor(story.home, "report", story.ids["measured"], LANG="C", PYTHONIOENCODING="ascii").stdout
    assert plain.isascii()
    assert "#" in plain


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_no_line_is_wider_than_the_terminal(story: Story, width: str) -> None:
    shown = doctor(story.home, "report", COLUMNS=width).stdout
    assert max(map(len, shown.splitlines())) <= int(width)


def test_the_page_has_every_change_and_asks_nobody_for_anything(story: Story, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    said = doctor(story.home, "report", "--html", str(file)).stdout
    assert f"The page is in {file}." in said
    page = file.read_text("utf-8")
    for state in STATES:
        assert story.ids[state][:8] in page
        assert state in page
    assert re.findall(r"https?://|//[a-z]|url\(|@import|<script|<link|<img|<iframe|\bsrc=|\bhref=", page) == []
    assert page.index("It hurt the cache") < page.index("<table")
    assert page.count("<svg") >= 10


def test_no_word_of_a_conversation_is_shown_or_kept(story: Story, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    shown = doctor(story.home, "report", "--json", "--html", str(file)).stdout
    assert SECRET not in shown + file.read_text("utf-8")
    kept = [path for path in story.home.folder.rglob("*") if path.is_file() and "pegboard" in path.parts]
    assert any(path.name == "seen.json" for path in kept)
    assert [path for path in kept if SECRET.encode() in path.read_bytes()] == []


def test_only_what_is_asked_for_is_told(story: Story) -> None:
    folder = str(story.project("measured"))
    assert [each["id"] for each in answer(story.home, "--project", folder)["changes"]] == [story.ids["measured"]]
    assert answer(story.home, "--agent", "codex")["changes"] == []
    assert "none that was asked for" in doctor(story.home, "report", "--agent", "codex").stdout
    assert "No applied change has an id" in doctor(story.home, "report", "zzz", code=1).stderr


def test_a_report_does_not_change_what_it_reports_on(story: Story) -> None:
    files = [path for path in story.home.folder.rglob("*.json") if "pegboard" not in path.parts]
    before = {path: path.read_bytes() for path in files}
    first, second = answer(story.home), answer(story.home)
    assert {path: path.read_bytes() for path in files} == before
    assert first["changes"] == second["changes"]


def test_what_was_seen_once_is_told_when_the_transcripts_are_gone(story: Story, tmp_path: Path) -> None:
    shutil.copytree(story.home.root, tmp_path / "copy", symlinks=True)
    later = HomeBuilder(tmp_path / "copy")
    first = answer(later)
    shutil.rmtree(later.claude_folder / "projects")
    states = {each["id"]: (each["state"], each["saved_in_all"]) for each in answer(later)["changes"]}
    [measured] = [each for each in first["changes"] if each["state"] == "measured"]
    assert states[measured["id"]] == ("measured", measured["saved_in_all"])


def test_where_nothing_was_applied_it_is_said_what_to_do(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    assert "Nothing was applied yet. `pegboard doctor plan`" in doctor(home, "report").stdout
    assert answer(home)["changes"] == []


def test_a_page_that_cannot_be_written_is_said_plainly(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    (tmp_path / "file").write_text("")
    assert "cannot be written" in doctor(home, "report", "--html", str(tmp_path / "file" / "page.html"), code=1).stderr


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no browser here")
@pytest.mark.parametrize("scheme", [0, 1], ids=["dark", "light"])
def test_a_browser_shows_the_page_without_a_complaint(story: Story, tmp_path: Path, scheme: int) -> None:
    page, picture = tmp_path / "report.html", tmp_path / "page.png"
    doctor(story.home, "report", "--html", str(page))
    look = (f"--blink-settings=preferredColorScheme={scheme}", "--window-size=1100,2400", "--hide-scrollbars")
    said = browser(tmp_path, *look, f"--screenshot={picture}", page.as_uri())
    assert picture.stat().st_size > 50_000, said.stderr
    assert "CONSOLE" not in said.stderr
    shown = browser(tmp_path, "--dump-dom", page.as_uri()).stdout
    assert shown.count("<svg") == page.read_text("utf-8").count("<svg")


def browser(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    flags = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        f"--user-data-dir={folder / 'u'}",
    )
    return subprocess.run([CHROMIUM, *flags, *words], capture_output=True, text=True, timeout=120, check=True)
