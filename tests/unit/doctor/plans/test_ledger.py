"""Plans are applied whole or not at all, and taken back to the byte; nobody's change is ever lost."""

from __future__ import annotations

import json
import os
import stat

import pytest

from pegboard.doctor.plans.journal import actions
from pegboard.errors import ConfigError, PegboardError
from pegboard.store.files import DiskFiles
from tests.unit.doctor.plans.made import Bench, disable, enable, entry, setting, unpin

SETTINGS = '\ufeff{\r\n\t// mine\n\t"env": {"ENABLE_TOOL_SEARCH": "false", /* x */ "A": "1",},\r\n\t"z": [1, 2]}'
STATE = '{"numStartups": 7, "mcpServers": {"gh": {"command": "gh", "alwaysLoad": true, "env": {"TOKEN": "s3cret"}}}}'


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_applying_and_undoing_leaves_every_byte_as_it_was(bench):
    file = bench.put(".claude/settings.json", SETTINGS)
    before = bench.everything()
    action = bench.apply(enable(setting(file)))
    assert file.read_bytes().decode() == SETTINGS.replace('"ENABLE_TOOL_SEARCH": "false",', "")
    assert (action.status, action.kind, action.files) == ("applied", "defer-enable", (str(file),))
    undone = bench.ledger.undo(action)
    assert undone.restored == (file,)
    assert bench.everything() == before
    [kept] = actions(bench.state)
    assert kept.status == "undone"
    assert kept.undone_at is not None
    assert kept.undone_at >= kept.applied_at


def test_a_link_stays_a_link_and_its_target_keeps_its_mode(bench):
    real = bench.put("dotfiles/claude.json", SETTINGS, mode=0o604)
    link = bench.home / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(real)
    before = bench.everything()
    action = bench.apply(enable(setting(link)))
    assert link.is_symlink()
    assert "ENABLE_TOOL_SEARCH" not in real.read_text("utf-8")
    assert stat.S_IMODE(real.stat().st_mode) == 0o604
    bench.ledger.undo(action)
    assert bench.everything() == before


def test_a_file_that_is_made_is_gone_afterwards_with_its_folders(bench):
    mcp = bench.put("code/.mcp.json", '{"mcpServers": {"gh": {"command": "gh"}}}')
    before = bench.everything()
    action = bench.apply(disable(entry(mcp, "mcpServers", "gh", scope="project")))
    made = bench.home / "code/.claude/settings.local.json"
    assert json.loads(made.read_text()) == {"disabledMcpjsonServers": ["gh"]}
    assert bench.ledger.undo(action).removed == (made,)
    assert bench.everything() == before


def test_a_foreign_edit_before_is_refused_and_both_versions_are_kept(bench):
    file = bench.put(".claude/settings.json", SETTINGS)
    plan = bench.plan(enable(setting(file)))
    file.write_text(SETTINGS + "\n")
    before = bench.everything()
    with pytest.raises(PegboardError, match="was changed in the meantime") as caught:
        bench.ledger.apply(plan)
    assert bench.everything() == before
    assert actions(bench.state) == ()
    [kept] = (bench.state / "doctor/backups").iterdir()
    assert str(kept) in caught.value.message
    assert kept.read_bytes().decode() == SETTINGS


def test_a_foreign_edit_between_is_refused_and_both_versions_are_kept(bench):
    file = bench.put(".claude/settings.json", SETTINGS)
    action = bench.apply(enable(setting(file)))
    file.write_bytes(file.read_bytes() + b"\n// theirs\n")
    theirs = file.read_bytes()
    with pytest.raises(PegboardError, match="was changed since, and was left as it is") as caught:
        bench.ledger.undo(action)
    assert file.read_bytes() == theirs
    backup = bench.ledger.kept_at(action.changes[0])
    assert str(backup) in caught.value.message
    assert backup.read_bytes().decode() == SETTINGS
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(backup.parent.stat().st_mode) == 0o700
    assert "env.ENABLE_TOOL_SEARCH" in caught.value.hint
    assert actions(bench.state)[0].status == "applied"


def test_a_file_that_is_gone_is_not_made_again(bench):
    file = bench.put(".claude/settings.json", SETTINGS)
    action = bench.apply(enable(setting(file)))
    file.unlink()
    with pytest.raises(PegboardError, match="was changed since"):
        bench.ledger.undo(action)
    assert not file.exists()


def test_of_two_changes_to_one_file_the_later_is_undone_first(bench):
    file = bench.put(".claude.json", STATE)
    before = bench.everything()
    first = bench.apply(unpin(entry(file, "mcpServers", "gh")))
    second = bench.apply(disable(entry(file, "mcpServers", "gh")))
    with pytest.raises(PegboardError) as caught:
        bench.ledger.undo(first)
    assert caught.value.hint == f"It was changed by {second.id} too: `pegboard doctor undo {second.id}` first."
    bench.ledger.undo(second)
    bench.ledger.undo(first)
    assert bench.everything() == before


def test_no_file_is_undone_when_one_of_several_was_changed(bench):
    one = bench.put(".claude/settings.json", SETTINGS)
    two = bench.put("code/.claude/settings.json", SETTINGS)
    action = bench.apply(enable(setting(one), setting(two, scope="project")))
    two.write_text("{}")
    before = bench.everything()
    with pytest.raises(PegboardError, match="Nothing was undone"):
        bench.ledger.undo(action)
    assert bench.everything() == before


def test_what_an_agent_rewrites_is_left_alone_while_it_runs(bench):
    file = bench.put(".claude.json", STATE)
    plan = bench.plan(unpin(entry(file, "mcpServers", "gh")))
    before = bench.everything()
    bench.running = {"claude-code", "codex"}
    with pytest.raises(PegboardError, match=r"Claude Code runs, and writes .*\.claude\.json while it does"):
        bench.ledger.apply(plan)
    assert bench.everything() == before
    bench.running = {"codex"}
    action = bench.ledger.apply(plan)
    assert bench.asked >= 3, "it is asked again right before the write"
    bench.running = {"claude-code"}
    with pytest.raises(PegboardError, match=r"Claude Code runs, and writes .*\.claude\.json while it does") as caught:
        bench.ledger.undo(action)
    assert "End every session" in caught.value.hint
    assert "alwaysLoad" not in file.read_text()


def test_an_agent_that_starts_at_the_last_moment_is_seen(bench):
    file = bench.put(".claude.json", STATE)
    plan = bench.plan(unpin(entry(file, "mcpServers", "gh")))
    before = bench.everything()
    answers = iter([set(), {"claude-code"}])
    bench.ledger._running = lambda: next(answers)
    with pytest.raises(PegboardError, match="runs"):
        bench.ledger.apply(plan)
    assert bench.everything() == before
    assert actions(bench.state) == ()
    assert list((bench.state / "doctor/backups").iterdir()) == []


def test_settings_that_no_agent_rewrites_are_changed_while_it_runs(bench):
    file = bench.put(".claude/settings.json", SETTINGS)
    bench.running = {"claude-code"}
    assert bench.apply(enable(setting(file))).status == "applied"


def test_a_read_only_file_is_somebodys_on_purpose(bench):
    file = bench.put(".claude/settings.json", SETTINGS, mode=0o444)
    before = bench.everything()
    with pytest.raises(PegboardError, match="is read-only"):
        bench.apply(enable(setting(file)))
    assert bench.everything() == before


class FailsAt(DiskFiles):
    """A disk that takes so many writes of one file, and no more."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def write(self, path, content):
        if path.name == self.name:
            raise OSError(28, "No space left on device", str(path))
        super().write(path, content)


def test_when_the_second_file_cannot_be_written_the_first_gets_its_bytes_back(bench):
    one = bench.put(".claude/settings.json", SETTINGS)
    two = bench.put("code/.claude/settings.local.json", SETTINGS)
    before = bench.everything()
    bench.ledger._files = FailsAt("settings.local.json")
    with pytest.raises(PegboardError, match="No space left on device"):
        bench.apply(enable(setting(one), setting(two, scope="local")))
    assert bench.everything() == before
    assert actions(bench.state) == ()


class FillsUp(DiskFiles):
    """A disk that is full once so many files were written."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    def write(self, path, content):
        self.left -= 1
        if self.left == 0:
            raise OSError(28, "No space left on device", str(path))
        super().write(path, content)


@pytest.mark.parametrize("left", [1, 2, 3, 4])
def test_what_is_said_not_to_be_applied_is_not(bench, left):
    file = bench.put(".claude/settings.json", SETTINGS)
    before = bench.everything()
    bench.ledger._files = FillsUp(left)
    with pytest.raises(PegboardError, match="No space left on device"):
        bench.apply(enable(setting(file)))
    assert bench.everything() == before, "not even where the journal could not say that it was done"
    assert bench.ledger.recover() == ()
    assert actions(bench.state) == ()
    assert list((bench.state / "doctor").glob("backups/*")) == [], "no copy of somebody's settings is left behind"


def test_a_damaged_backup_is_not_put_back(bench):
    file = bench.put(".claude/settings.json", SETTINGS)
    action = bench.apply(enable(setting(file)))
    bench.ledger.kept_at(action.changes[0]).write_text("{}")
    after = file.read_bytes()
    with pytest.raises(PegboardError, match="is not what was written"):
        bench.ledger.undo(action)
    assert file.read_bytes() == after


def test_where_one_backup_is_damaged_no_file_is_touched(bench):
    one = bench.put(".claude/settings.json", SETTINGS)
    two = bench.put("code/.claude/settings.json", SETTINGS + " ")
    action = bench.apply(enable(setting(one), setting(two, scope="project")))
    after = bench.everything()
    bench.ledger.kept_at(action.changes[1]).unlink()
    with pytest.raises(PegboardError, match="is missing"):
        bench.ledger.undo(action)
    assert bench.everything() == after
    assert actions(bench.state)[0].status == "applied"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_with_sudo_a_persons_file_stays_the_persons(bench):
    file = bench.put(".claude/settings.json", SETTINGS, mode=0o640)
    os.chown(file, 1234, 4321)
    action = bench.apply(enable(setting(file)))
    bench.ledger.undo(action)
    found = file.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 4321, 0o640)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_a_file_that_a_group_shares_stays_the_groups(bench, monkeypatch):
    real = os.fchown

    def as_nobody_special(fd, uid, gid):
        if uid != -1:
            raise PermissionError(1, "Operation not permitted")
        real(fd, uid, gid)

    monkeypatch.setattr(os, "fchown", as_nobody_special)
    file = bench.put("code/.claude/settings.json", SETTINGS, mode=0o660)
    os.chown(file, 1234, 4321)
    action = bench.apply(enable(setting(file)))
    assert (file.stat().st_gid, stat.S_IMODE(file.stat().st_mode)) == (4321, 0o660)
    bench.ledger.undo(action)
    assert (file.stat().st_gid, stat.S_IMODE(file.stat().st_mode)) == (4321, 0o660)


def test_two_ways_to_one_file_are_one_edit(bench):
    real = bench.put("work/engine/.claude/settings.json", SETTINGS)
    (bench.home / "code").symlink_to(bench.home / "work")
    again = bench.home / "code/engine/.claude/settings.json"
    before = bench.everything()
    action = bench.apply(enable(setting(again, scope="project"), setting(real, scope="project")))
    assert action.files == (str(again),)
    assert "ENABLE_TOOL_SEARCH" not in real.read_text("utf-8")
    bench.ledger.undo(action)
    assert bench.everything() == before


def test_one_backup_serves_two_actions_until_both_are_undone(bench):
    file = bench.put(".claude/settings.json", SETTINGS)
    first = bench.apply(enable(setting(file)))
    bench.ledger.undo(first)
    second = bench.apply(enable(setting(file)))
    assert bench.ledger.kept_at(second.changes[0]).exists()
    bench.ledger.undo(second)
    assert list((bench.state / "doctor/backups").iterdir()) == []


def test_a_plan_that_may_not_be_applied_is_not(bench):
    file = bench.put(".claude/settings.json", "{}")
    plan = bench.plan(enable(setting(file)))
    assert not plan.is_applicable
    with pytest.raises(PegboardError, match="say so already"):
        bench.ledger.apply(plan)


def test_only_one_writes_at_a_time(bench, tmp_path):
    file = bench.put(".claude/settings.json", SETTINGS)
    other = Bench(tmp_path)
    plan = bench.plan(enable(setting(file)))
    with other.ledger._alone(), pytest.raises(PegboardError, match="Another `pegboard doctor` is changing files"):
        bench.ledger.apply(plan)


@pytest.mark.parametrize("text", ["{", '{"version": 99, "actions": []}', '{"version": 1, "actions": [{}]}'])
def test_a_journal_that_cannot_be_understood_is_never_overwritten(bench, text):
    file = bench.put(".claude/settings.json", SETTINGS)
    plan = bench.plan(enable(setting(file)))
    journal = bench.state / "doctor/actions.json"
    journal.parent.mkdir(parents=True)
    journal.write_text(text)
    with pytest.raises(ConfigError):
        bench.ledger.apply(plan)
    assert journal.read_text() == text
    assert file.read_bytes().decode() == SETTINGS
