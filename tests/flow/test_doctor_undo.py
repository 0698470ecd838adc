"""`pegboard doctor undo`: the very bytes come back, nobody's change is lost, and the next run settles crashes."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from pegboard.doctor.checks import causes
from tests.flow.doctor_clinic import Clinic
from tests.homes import causes as homes

EDIT, GATEWAY, PROXY = causes.ENV, causes.CODEX_MODEL, causes.NO_DEFERRAL
FILES = {EDIT: ".claude/settings.json", GATEWAY: ".codex/config.toml", PROXY: ".config/kilo/kilo.json"}
MOST = 40


@pytest.fixture
def clinic(tmp_path, monkeypatch, capsys):
    def opened(cause, name="", **about):
        return Clinic(homes.HOMES[cause](tmp_path / name, **about), monkeypatch, capsys)

    return opened


@pytest.mark.parametrize("cause", FILES)
def test_a_file_that_was_changed_since_is_refused_and_both_versions_are_kept(cause, clinic):
    there = clinic(cause)
    file = there.home.folder / FILES[cause]
    before = there.files()
    old = file.read_bytes()
    [row] = there.json("apply", cause, "--yes")
    ours = file.read_bytes()
    theirs = ours + b"\n"
    file.write_bytes(theirs)
    after = there.files()
    assert "was changed since" in there.run("undo", "--dry-run", code=1)[1]
    _, err = there.run("undo", code=1)
    assert f"{file} was changed since, and was left as it is." in err
    [kept] = re.findall(r"it is kept in (\S+)\. Nothing was undone", err)
    assert Path(kept).read_bytes() == old
    assert kept in row["backups"]
    assert Path(kept).stat().st_mode & 0o077 == 0, "for the owner's eyes only"
    assert there.files() == after
    assert {EDIT: "Change env.ENABLE_TOOL_SEARCH back by hand", GATEWAY: "`pegboard uninstall codex` takes",
            PROXY: "`pegboard proxy uninstall kilo` takes"}[cause] in err  # fmt: skip
    assert there.json("undo", "--list")[0]["status"] == "applied"
    file.write_bytes(ours)
    there.run("undo")
    assert there.files() == before


@pytest.mark.parametrize("cause", [GATEWAY, PROXY])
def test_what_the_installers_took_back_themselves_is_only_written_down(cause, clinic):
    from pegboard.cli.main import main

    there = clinic(cause)
    before = there.files()
    there.json("apply", cause, "--yes")
    assert main(["uninstall", "codex"] if cause == GATEWAY else ["proxy", "uninstall", "kilo"]) == 0
    assert there.files() == before
    out, _ = there.run("undo")
    assert "The install had been taken back already." in out
    assert there.files() == before


def test_undoing_an_install_says_what_left_the_configuration(clinic):
    there = clinic(GATEWAY)
    there.json("apply", GATEWAY, "--yes")
    config = there.home.folder / ".config/pegboard/pegboard.toml"
    assert config.exists()
    out, _ = there.run("undo")
    assert f"{there.home.codex_folder / 'config.toml'} is what it was before, to the byte." in out
    assert f"Taken out of {config}: github." in out
    assert not config.exists()


def test_an_action_is_found_by_the_beginning_of_its_id(clinic):
    there = clinic(EDIT)
    [row] = there.json("apply", EDIT, "--yes")
    identity = row["applied"]
    before = there.files()
    out, _ = there.run("undo", identity[:8], "--dry-run")
    assert f"would be what it was before {identity}" in out
    assert there.files() == before
    assert there.json("undo", identity[:8])["id"] == identity
    assert f"{identity} was undone already." in there.run("undo", identity, code=1)[1]
    assert "No action is called 'zzz'." in there.run("undo", "zzz", code=1)[1]
    out, _ = there.run("undo", "--list")
    assert re.search(rf"{identity}\s+undone", out)


def test_a_backup_that_is_gone_is_named_and_nothing_is_touched(clinic):
    there = clinic(EDIT)
    [row] = there.json("apply", EDIT, "--yes")
    [backup] = row["backups"]
    Path(backup).unlink()
    before = there.files()
    _, err = there.run("undo", code=1)
    assert f"The backup {backup} is missing." in err
    assert "Change env.ENABLE_TOOL_SEARCH back by hand." in err
    assert there.files() == before
    _, err = there.run("undo", code=1)
    assert f"The backup {backup} is missing." in err


# ── crashes ──────────────────────────────────────────────────────────────────────────────────────────────────────


def killed_at_each_write(there, words, kill, before, after):
    """Kills a command at its first write, then at its second, …; each time the next run settles what is left."""
    for number in range(1, MOST):
        done = there.process(*words, kill=f"{kill}:{number}")
        if done.returncode == 0:
            return number - 1
        assert done.returncode == -signal.SIGKILL, done.stderr
        found = there.files()
        for name, each in found.items():
            assert each in (before.get(name), after.get(name)), f"{name} is torn"
        yield number
    raise AssertionError("there are more writes than were tried")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kill", ["before", "after"])
@pytest.mark.parametrize("cause", FILES)
def test_a_kill_at_any_write_is_settled_by_the_next_run(cause, kill, clinic):
    there = clinic(cause)
    before = there.files()
    there.json("apply", cause, "--yes")
    after = there.files()
    there.run("undo")
    seen = set()
    for _ in killed_at_each_write(there, ["apply", cause, "--yes"], kill, before, after):
        there.process("apply", "--yes", "nothing")  # any run that may write settles what is left first
        standing = [each for each in there.json("undo", "--list") if each["status"] != "undone"]
        assert there.files() == (after if standing else before)
        assert [each["status"] for each in standing] in ([], ["applied"])
        seen.add(bool(standing))
        if standing:
            there.run("undo")
        assert there.files() == before
    assert seen == {True, False}, "some were taken back and some finished"
    for _ in killed_at_each_write(there, ["undo"], kill, after, before):
        there.process("apply", "--yes", "nothing")
        if all(each["status"] == "undone" for each in there.json("undo", "--list")):
            assert there.files() == before
            there.json("apply", cause, "--yes")
        assert there.files() == after


def test_undo_after_a_crash_undoes_what_was_cut_short_and_nothing_else(clinic):
    there = clinic(EDIT)
    there.home.env(CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS="1")
    first = next(row["applied"] for row in there.json("apply", "--yes") if row["applied"])
    between = there.files()
    journal = (there.state / "doctor/actions.json").read_text()
    # The second write is the journal's "applying": what it is about has not been touched.
    for number in range(1, MOST):
        done = there.process("apply", "--yes", kill=f"after:{number}")
        assert done.returncode == -signal.SIGKILL
        if '"applying"' in (there.state / "doctor/actions.json").read_text():
            break
    assert there.files() == between
    assert journal != (there.state / "doctor/actions.json").read_text()
    out, err = there.run("undo")
    assert "had been cut short; it was taken back whole." in err
    assert "Nothing else was undone." in out
    assert there.files() == between, "the one before still stands"
    assert [(each["id"], each["status"]) for each in there.json("undo", "--list")] == [(first, "applied")]


def test_a_look_after_a_crash_says_so_and_settles_nothing(clinic):
    there = clinic(EDIT)
    for number in range(1, MOST):
        there.process("apply", "--yes", kill=f"after:{number}")
        journal = there.state / "doctor/actions.json"
        if journal.exists():
            break
    left = journal.read_bytes()
    found = there.json("report")
    assert found["changes"] == [], "nobody has reverted what never came about"
    assert "A change was interrupted halfway and is not in this report" in found["problems"][-1]
    _, err = there.run("plan")
    assert "A command was cut short earlier; `pegboard doctor apply` or `undo` will settle what it left." in err
    assert journal.read_bytes() == left
