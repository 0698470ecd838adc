"""Roots of skills as people have them, and what is noticed when they change."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pegboard.config.model import SkillRoot
from pegboard.errors import SkillNotFound
from pegboard.skills.read import MAX_BYTES
from pegboard.skills.source import LOOK_SECONDS, SkillSource
from tests.unit.skills.given import look, source, write


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_skills_lie_one_or_two_levels_below_a_root_or_are_the_root(tmp_path):
    write(tmp_path, "one")
    write(tmp_path, "two", folder="group/two")
    write(tmp_path, "three", folder="a/b/three")
    assert list(look(tmp_path).skills) == ["one", "two"]
    assert list(look(tmp_path / "one").skills) == ["one"]


def test_folders_of_a_skill_are_its_own_and_hold_no_other(tmp_path):
    folder = write(tmp_path, "outer")
    write(folder, "inner", folder="examples")
    assert list(look(tmp_path).skills) == ["outer"]


def test_hidden_folders_and_loose_files_are_passed_over(tmp_path):
    write(tmp_path, "one", folder=".git")
    (tmp_path / "README.md").write_text("x")
    (tmp_path / "empty").mkdir()
    assert look(tmp_path).skills == {}
    assert look(tmp_path).problems == ()


def test_the_later_root_wins(tmp_path):
    write(tmp_path / "user", description="Mine.")
    write(tmp_path / "user", "only-here")
    write(tmp_path / "project", description="Ours.", folder="elsewhere")
    skills = look(tmp_path / "user", tmp_path / "project").skills
    assert (skills["pdf-forms"].description, list(skills)) == ("Ours.", ["only-here", "pdf-forms"])
    assert look(tmp_path / "project", tmp_path / "user").skills["pdf-forms"].description == "Mine."


def test_a_malformed_file_in_the_later_root_does_not_hide_the_earlier(tmp_path):
    write(tmp_path / "user", description="Mine.")
    write(tmp_path / "project", description="''")
    found = look(tmp_path / "user", tmp_path / "project")
    assert found.skills["pdf-forms"].description == "Mine."
    assert "has no description" in found.problems[0]


def test_of_two_in_one_root_the_first_stands_and_it_is_told(tmp_path):
    write(tmp_path, description="First.", folder="a")
    write(tmp_path, description="Second.", folder="b")
    found = look(tmp_path)
    assert found.skills["pdf-forms"].description == "First."
    assert "has the name pdf-forms too" in found.problems[0]


def test_what_is_malformed_is_skipped_with_file_and_reason_and_costs_nothing_else(tmp_path):
    write(tmp_path, "good")
    write(tmp_path, "My Skill", folder="bad-name")
    for name, raw in (
        ("empty", b""),
        ("latin", b"---\nname: x\ndescription: \xe9\n---\n"),
        ("huge", b"x" * (MAX_BYTES + 1)),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_bytes(raw)
    found = look(tmp_path)
    assert list(found.skills) == ["good"]
    told = dict(problem.split(": skipped: ") for problem in found.problems)
    assert {Path(path).parent.name: reason.split(",")[0] for path, reason in told.items()} == {
        "bad-name": "its name 'My Skill' has other characters than letters",
        "empty": "it does not begin with a line ---",
        "huge": f"it has {MAX_BYTES + 1:,} bytes".split(",")[0],
        "latin": "its header is not UTF-8 text",
    }


def test_a_skill_that_is_a_pipe_a_folder_or_a_link_out_is_skipped(tmp_path):
    (tmp_path / "secret.md").write_text("---\nname: s\ndescription: d\n---\n")
    root = tmp_path / "root"
    for name in ("pipe", "folder", "link", "nothing"):
        (root / name).mkdir(parents=True)
    os.mkfifo(root / "pipe" / "SKILL.md")
    (root / "folder" / "SKILL.md").mkdir()
    (root / "link" / "SKILL.md").symlink_to(tmp_path / "secret.md")
    (root / "nothing" / "SKILL.md").symlink_to("gone")
    found = look(root)
    assert found.skills == {}
    reasons = [problem.partition(": skipped: ")[2] for problem in found.problems]
    assert [reason.partition("'SKILL.md' ")[2] or reason for reason in reasons] == [
        "is not a file",
        "leads out of the skill's folder, and is not read",
        "The skill has no file 'SKILL.md'",
        "is not a file",
    ]


def test_a_skills_folder_may_be_a_link_for_installers_make_them_so(tmp_path):
    write(tmp_path / "store")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "pdf").symlink_to(tmp_path / "store" / "pdf-forms")
    assert look(tmp_path / "root").skills["pdf-forms"].body() == "Do it so."


def test_a_skill_that_links_lead_to_twice_is_one_skill_and_no_trouble(tmp_path):
    write(tmp_path, folder="skill")
    (tmp_path / "again").symlink_to("skill")
    (tmp_path / "all").symlink_to(".")
    found = look(tmp_path)
    assert list(found.skills) == ["pdf-forms"]
    assert found.problems == ()


def test_a_link_in_a_circle_costs_no_other_skill(tmp_path):
    write(tmp_path)
    (tmp_path / "circle").symlink_to("circle")
    found = look(tmp_path)
    assert list(found.skills) == ["pdf-forms"]
    assert found.problems == (f"{tmp_path}/circle: skipped: {os.strerror(errno.ELOOP)}",)


def test_a_problem_is_one_line_whatever_a_folder_is_called(tmp_path):
    write(tmp_path, "My Skill", folder="one\nwarning: two")
    [problem] = look(tmp_path).problems
    assert problem.startswith(f"{tmp_path}/one\\nwarning: two/SKILL.md: skipped: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission_is_told(tmp_path):
    folder = write(tmp_path)
    folder.chmod(0)
    assert look(tmp_path).problems == (f"{folder}: skipped: Permission denied",)
    folder.chmod(0o700)


def test_a_root_that_is_named_must_be_there_and_one_that_is_built_in_need_not(tmp_path):
    gone = tmp_path / "gone"
    assert look(gone).problems == (f"{gone}: no skills were looked for here: there is no such folder",)
    assert SkillSource([SkillRoot(gone)]).look().problems == ()
    (tmp_path / "file").write_text("x")
    assert "Not a directory" in look(tmp_path / "file").problems[0]


def test_the_body_is_read_when_it_is_asked_for(tmp_path):
    folder = write(tmp_path, body="First.")
    skill = look(tmp_path).skills["pdf-forms"]
    write(tmp_path, body="Second.")
    assert skill.body() == "Second."
    (folder / "SKILL.md").write_bytes(b"---\nname: x\ndescription: y\n---\n\xff\n")
    assert list(look(tmp_path).skills) == ["x"]


@pytest.mark.parametrize("asked", ["pdf-forms", " pdf-forms ", "PDF-Forms", "pdf forms", "pdf_forms"])
def test_a_name_is_found_however_its_words_are_joined(tmp_path, asked):
    write(tmp_path)
    assert look(tmp_path).find(asked).name == "pdf-forms"


def test_an_unknown_name_is_answered_with_the_nearest_or_with_all(tmp_path):
    write(tmp_path)
    write(tmp_path, "release-notes")
    with pytest.raises(SkillNotFound) as near:
        look(tmp_path).find("pdf-form")
    assert near.value.nearest == ("pdf-forms",)
    with pytest.raises(SkillNotFound) as far:
        look(tmp_path).find("zzz")
    assert far.value.hint == "There are pdf-forms, release-notes."
    with pytest.raises(SkillNotFound, match="no skill named"):
        look(tmp_path / "none").find("zzz")


# ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_disk_is_looked_at_again_after_a_moment_and_not_before(tmp_path):
    clock = Clock()
    live = source(tmp_path, clock=clock)
    assert live.known.skills == {}
    write(tmp_path)
    clock.now += LOOK_SECONDS / 2
    assert live.look().skills == {}
    clock.now += LOOK_SECONDS
    assert live.is_due
    assert list(live.look().skills) == ["pdf-forms"]


def test_nothing_changed_is_the_very_same_value(tmp_path):
    write(tmp_path)
    live = source(tmp_path)
    assert live.look(at_once=True) is live.look(at_once=True) is live.known


def test_what_did_not_change_is_not_read_again(tmp_path):
    write(tmp_path)
    live = source(tmp_path)
    live.look()
    path = tmp_path / "pdf-forms" / "SKILL.md"
    about = path.stat()
    before = live._read[path]
    live.look(at_once=True)
    assert live._read[path][1] is before[1]
    path.write_text(path.read_text().replace("Fills in", "Reads in"))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))  # as careful programs do: size and mtime are as before
    assert live.look(at_once=True).skills["pdf-forms"].description == "Reads in PDF forms."


def test_a_skill_may_come_go_and_be_mended(tmp_path):
    live = source(tmp_path)
    folder = write(tmp_path, description="''")
    assert len(live.look(at_once=True).problems) == 1
    write(tmp_path, description="Mended.")
    mended = live.look(at_once=True)
    assert (mended.problems, mended.skills["pdf-forms"].description) == ((), "Mended.")
    (folder / "SKILL.md").unlink()
    assert live.look(at_once=True).skills == {}


def test_the_version_changes_with_what_is_shown_and_not_with_the_body(tmp_path):
    write(tmp_path, body="One.")
    live = source(tmp_path)
    first = live.look().version
    write(tmp_path, body="Two, which is longer.")
    assert live.look(at_once=True).version == first
    write(tmp_path, description="Another.")
    assert live.look(at_once=True).version != first
