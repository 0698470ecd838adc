"""From a finding to its fix and back, through the command line: every kind of plan, in a home that has its cause."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from typing import get_args

import pytest

from pegboard.doctor.checks import causes
from pegboard.doctor.plans.actions import Kind
from tests.flow.doctor_clinic import Clinic
from tests.homes import HomeBuilder
from tests.homes import causes as homes

KINDS = {
    causes.ENV: "defer-enable",
    causes.BETAS: "defer-enable",
    causes.DENIED: "defer-enable",
    causes.AUTO: "defer-enable",
    causes.PINNED_SERVER: "defer-alwaysload",
    causes.PINNED_TOOLS: "defer-alwaysload",
    causes.THRESHOLD: "defer-threshold",
    causes.NEVER_CALLED: "server-disable",
    causes.DUPLICATE: "server-disable",
    causes.CODEX_MODEL: "gateway-install",
    causes.NO_DEFERRAL: "proxy-install",
}
"""Causes that a change of settings mends at once, and how."""


@pytest.fixture
def clinic(tmp_path, monkeypatch, capsys):
    def opened(cause, **about):
        return Clinic(homes.HOMES[cause](tmp_path, **about), monkeypatch, capsys)

    return opened


def test_every_kind_of_plan_is_among_them():
    assert set(KINDS.values()) == set(get_args(Kind))


@pytest.mark.parametrize(("cause", "kind"), KINDS.items())
def test_a_finding_is_planned_applied_gone_and_undone_to_the_byte(cause, kind, clinic):
    there = clinic(cause)
    before = there.files()
    [finding] = there.json()["findings"]
    assert finding["fix"]["kind"] == kind
    [plan] = there.json("plan", finding["id"])
    assert plan["applicable"], plan
    assert plan["files"]
    assert plan["effect"].startswith("From the next session on")
    assert there.files() == before, "looking changes nothing"
    [row] = there.json("apply", finding["id"], "--yes")
    assert row["applied"], row
    assert row["diff"] == plan["diff"]
    changed = {name for name, each in there.files().items() if before.get(name) != each}
    assert {str(there.home.root / name) for name in changed} == set(plan["files"])
    assert there.json()["findings"] == []
    undone = there.json("undo")
    assert undone["status"] == "undone"
    assert there.files() == before


def test_a_file_with_a_second_name_is_said_to_have_one(clinic):
    there = clinic(causes.ENV)
    file = there.home.claude_folder / "settings.json"
    other = there.home.folder / "dotfiles.json"
    other.hardlink_to(file)
    old = other.read_bytes()
    out, _ = there.run("plan")
    assert f"{file} has another name on this disk (hard links), under which the old text stays." in out
    there.run("apply", causes.ENV, "--yes")
    assert other.read_bytes() == old != file.read_bytes()
    there.run("undo")
    assert file.read_bytes() == old


def test_what_it_was_like_before_is_kept_of_every_folder_that_the_change_holds_in(clinic):
    there = clinic(causes.ENV)
    other = there.home.folder / "code" / "other"
    other.mkdir()
    there.home.claude_session(tools=homes.TOOLS, deferral=False, project=other)
    [row] = there.json("apply", causes.ENV, "--yes", "--project", str(other))
    assert row["applied"]
    [journal] = there.state.rglob("actions.json")
    [action] = json.loads(journal.read_bytes())["actions"]
    assert {each["project"] for each in action["baseline"]["samples"]} == {str(there.home.project), str(other)}


def test_an_install_into_a_projects_file_says_that_it_is_everybodys(tmp_path, monkeypatch, capsys):
    home = HomeBuilder(tmp_path).installed("claude-code", homes.LATEST).env(ANTHROPIC_BASE_URL=homes.ELSEWHERE)
    home.server("github", scope="project").settings(scope="local", enableAllProjectMcpServers=True)
    for number in range(4):
        home.claude_session(tools=homes.TOOLS, calls=homes.CALLS, refused=True, days_ago=2 - number / 100)
    there = Clinic(home, monkeypatch, capsys)
    before = there.files()
    [plan] = there.json("plan", causes.REFUSED)
    assert (plan["kind"], plan["applicable"]) == ("gateway-install", True)
    assert [each for each in plan["risks"] if each.startswith(f"{home.project / '.mcp.json'} belongs to the project")]
    there.run("apply", causes.REFUSED, "--yes")
    there.run("undo")
    assert there.files() == before


# ── what is not edited ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("place", "said"), [
    ("managed", "etc/claude-code/managed-settings.json"),
    ("shell", "/home/ada/.zshrc"),
    ("environment", "ENABLE_TOOL_SEARCH"),
])  # fmt: skip
def test_policies_and_shells_are_never_touched_but_shown_with_what_to_change(place, said, clinic):
    there = clinic(causes.ENV, place=place)
    before = there.files()
    out, _ = there.run("plan")
    told = " ".join(out.split())
    assert "By hand: " in told
    assert said in told
    assert "remove ENABLE_TOOL_SEARCH" in told.replace("Remove", "remove")
    there.run("apply", "--yes")
    [row] = there.json("apply", causes.ENV, "--yes", code=1)
    assert row["refused"]
    assert row["by_hand"]
    assert there.files() == before


def test_where_a_file_and_a_shell_both_say_so_the_file_is_edited_and_the_line_is_shown(clinic):
    there = clinic(causes.ENV, place="shell")
    there.home.env(ENABLE_TOOL_SEARCH="false")
    profile = there.home.folder / ".zshrc"
    before = profile.read_bytes()
    [row] = there.json("apply", causes.ENV, "--yes")
    assert row["applied"]
    assert row["files"] == [str(there.home.claude_folder / "settings.json")]
    assert [text for text in row["by_hand"] if ".zshrc, line 2" in text]
    assert profile.read_bytes() == before


def test_a_file_that_an_agent_rewrites_waits_until_none_runs(clinic):
    there = clinic(causes.PINNED_SERVER)
    there.home.runs("claude", "--resume")
    before = there.files()
    [plan] = there.json("plan")
    file = there.home.folder / ".claude.json"
    assert plan["refusal"] == f"Claude Code runs, and writes {file} while it does."
    assert plan["hint"] == "End every session of Claude Code before `pegboard doctor apply`."
    there.json("apply", plan["finding"], "--yes", code=1)
    assert there.files() == before
    [process] = (there.home.root / "proc").iterdir()
    process.rename(there.home.root / "ended")
    [row] = there.json("apply", plan["finding"], "--yes")
    after = file.read_bytes()
    (there.home.root / "ended").rename(process)
    _, err = there.run("undo", code=1)
    assert f"Claude Code runs, and writes {file} while it does; nothing was changed." in err
    assert "End every session of Claude Code" in err
    assert file.read_bytes() == after
    assert row["applied"] in there.run("undo", "--list")[0]


def test_a_process_that_really_runs_is_seen(clinic, tmp_path):
    there = clinic(causes.PINNED_SERVER)
    before = there.files()
    program = tmp_path / "claude"
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen([program, "60"]) as process:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pegboard", "doctor", "apply", "always-load:wiki", "--yes"],
                cwd=there.home.project,
                env=there.variables(),
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        finally:
            process.kill()
    assert done.returncode == 1
    assert "Claude Code runs, and writes" in done.stdout
    program.unlink()
    assert there.files() == before


def test_settings_that_no_agent_rewrites_are_edited_while_it_runs(clinic):
    there = clinic(causes.ENV)
    there.home.runs("claude", "--resume")
    assert there.json("apply", causes.ENV, "--yes")[0]["applied"]


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("answer", "is_applied"), [("y\n", True), ("n\n", False), ("q\n", False), ("\x04", False)])
def test_each_change_is_shown_and_asked_about(answer, is_applied, clinic):
    there = clinic(causes.ENV)
    before = there.files()
    code, shown = there.at_terminal("apply", typed=[("[q]uit: ", answer)])
    assert code == 0
    assert '-    "ENABLE_TOOL_SEARCH": "false"' in shown
    assert ("Applied as " in shown) == is_applied
    assert ("Nothing was changed." in shown) != is_applied
    assert (there.files() != before) == is_applied


def test_nothing_is_written_where_nobody_can_be_asked(clinic):
    there = clinic(causes.ENV)
    before = there.files()
    assert "There is nobody to ask, so nothing was written" in there.run("apply", code=1)[1]
    out, _ = there.run("apply", "--dry-run")
    assert '-    "ENABLE_TOOL_SEARCH": "false"' in out
    assert "Nothing was written." in out
    assert there.files() == before
    assert not (there.state / "doctor/actions.json").exists()


def test_whoever_agrees_to_all_gets_no_install_that_was_not_named(clinic):
    there = clinic(causes.NO_DEFERRAL)
    before = there.files()
    _, err = there.run("apply", "--yes")
    assert "proxy-install is made only when it is named: no-native-deferral:kilo" in err
    assert there.files() == before


def test_whoever_answers_all_is_asked_of_an_install_by_itself(clinic):
    there = clinic(causes.ENV)
    names = ("github", "docs", "wiki", "mail")
    for name in names:
        there.home.server(name, agent="kilo")
    for number in range(6):
        there.home.kilo_session(calls={f"{name}_tool_1": 1 for name in names}, days_ago=2 + number)
    kilo = there.home.folder / ".config/kilo/kilo.json"
    os.utime(kilo, (1e9, 1e9))
    old = kilo.read_bytes()
    asked = "[q]uit: "
    code, shown = there.at_terminal("apply", causes.ENV, causes.NO_DEFERRAL, typed=[(asked, "n\n"), (asked, "n\n")])
    assert (code, shown.count(asked)) == (0, 2)
    code, shown = there.at_terminal("apply", typed=[(asked, "a\n"), (asked, "n\n")])
    assert (code, shown.count("Applied as")) == (0, 1)
    assert "ENABLE_TOOL_SEARCH" not in (there.home.claude_folder / "settings.json").read_text()
    assert kilo.read_bytes() == old, "it was shown after the word was given"


def test_several_fixes_of_one_file_are_made_one_after_another_and_undone_backwards(clinic):
    there = clinic(causes.ENV)
    there.home.env(CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS="1")
    there.home.settings(permissions={"deny": ["ToolSearch"]})
    before = there.files()
    applied = []
    for _ in range(3):
        rows = [row for row in there.json("apply", "--yes") if row["applied"]]
        applied += [row["applied"] for row in rows]
    assert len(applied) == 3, "each of the three is found once the one before is mended"
    assert there.json()["findings"] == []
    _, err = there.run("undo", applied[0], code=1)
    assert f"`pegboard doctor undo {applied[2]}` first" in err
    for _ in applied:
        there.run("undo")
    assert there.files() == before
    assert "There is nothing to undo." in there.run("undo", code=1)[1]


def test_a_change_that_a_later_one_replaced_was_not_reverted_by_hand(clinic):
    there = clinic(causes.THRESHOLD)
    there.json("apply", causes.THRESHOLD, "--yes")
    fewer = [tool for tool in homes.TOOLS if tool.server != "github"]
    for number in range(1, 7):
        there.home.claude_session(
            tools=fewer, deferral=False, announce=True, models=("claude-haiku-4-5",), days_ago=-number / 100
        )
    [row] = there.json("apply", causes.THRESHOLD, "--yes")
    assert row["applied"]
    assert [each["stands"] for each in there.json("report")["changes"]] == [True, True]


def test_a_server_that_an_install_moved_is_not_turned_off_where_it_no_longer_is(clinic):
    there = clinic(causes.CODEX_MODEL)
    there.home.server("idle", agent="codex")
    for number in range(6):
        there.home.codex_session(model="house-coder-70b", calls={"mcp__github__tool_1": 2}, days_ago=-number / 100)
    config = there.home.codex_folder / "config.toml"
    os.utime(config, (1e9, 1e9))
    before = there.files()
    ids = [each["id"] for each in there.json()["findings"]]
    assert set(ids) == {"codex-unknown-model:codex", "never-called:codex:idle"}
    plans = {each["finding"]: each for each in there.json("plan")}
    assert [each["applicable"] for each in plans.values()] == [True, False]
    assert f"A plan above changes {config} too." in [each["refusal"] for each in plans.values()]
    rows = there.json("apply", *ids, "--yes", code=1)
    assert [bool(row["applied"]) for row in rows] == [True, False]
    assert "no longer there" in rows[1]["refused"]
    assert list(tomllib.loads(config.read_text())["mcp_servers"]) == ["pegboard"]
    there.run("undo")
    assert there.files() == before


# ── bad input ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_unknown_finding_is_named_with_those_that_there_are(clinic):
    there = clinic(causes.ENV)
    for action in ("plan", "apply"):
        _, err = there.run(action, "deferral-of-env", *(["--yes"] if action == "apply" else []), code=1)
        assert "There is no finding 'deferral-of-env'." in err
        assert "Did you mean deferral-off-env?" in err


@pytest.mark.parametrize("broken", ["a folder", "a pipe", "no UTF-8", "no JSON"])
def test_settings_that_cannot_be_read_are_left_alone_and_named(broken, clinic):
    there = clinic(causes.ENV)
    there.home.env(scope="project", ENABLE_TOOL_SEARCH="false")
    file = there.home.project / ".claude/settings.json"
    file.unlink()
    if broken == "a folder":
        file.mkdir()
    elif broken == "a pipe":
        os.mkfifo(file)
    else:
        file.write_bytes(b"\xff\xfe{" if broken == "no UTF-8" else b'{"env": {')
    before = there.files()
    there.json("plan")
    [row] = there.json("apply", causes.ENV, "--yes")
    assert row["files"] == [str(there.home.claude_folder / "settings.json")]
    there.run("undo")
    assert there.files() == before


@pytest.mark.parametrize("text", ["{oops", '{"version": 99, "actions": []}', "\x00", ""])
def test_a_journal_that_cannot_be_understood_stops_every_write_and_no_look(text, clinic):
    there = clinic(causes.ENV)
    before = there.files()
    journal = there.state / "doctor/actions.json"
    journal.parent.mkdir(parents=True)
    journal.write_text(text)
    assert there.json()["findings"]
    _, err = there.run("plan")
    assert "Nothing can be applied until that is mended" in err
    for words in (["apply", "--yes"], ["undo"], ["undo", "--list"]):
        _, err = there.run(*words, code=1)
        assert str(journal) in err
        assert "Move it away to start anew" in err or "Use that version" in err
    assert journal.read_text() == text
    assert there.files() == before


def test_a_state_folder_that_cannot_be_written_is_told_in_words(clinic):
    there = clinic(causes.ENV)
    before = there.files()
    there.state.parent.mkdir(parents=True)
    there.state.write_text("in the way")
    for words in (["apply", "--yes", causes.ENV], ["undo"]):
        _, err = there.run(*words, code=1)
        assert str(there.state) in err
    there.state.unlink()
    assert there.files() == before
