"""Only files, only text, only inside the skill's folder."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pegboard.errors import SkillUnreadable
from pegboard.skills.read import MAX_BYTES, further_files, read_text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "SKILL.md").write_text("another skill")
    skill = tmp_path / "skill"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text("body")
    (skill / "reference.md").write_text("Seite für Seite", "utf-8")
    (skill / "scripts" / "fill.py").write_text("print('x')")
    return skill


@pytest.mark.parametrize("path", ["reference.md", "./reference.md", "scripts/fill.py", "scripts//fill.py", "SKILL.md"])
def test_files_inside_are_read(folder, path):
    assert read_text(folder, path)


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "scripts/../../secret.txt",
        "scripts/../reference.md",
        "/etc/passwd",
        "~/x",
        "..",
        ".",
        "./",
        "/",
    ],
)
def test_paths_that_leave_the_folder_are_refused_without_a_look(folder, path):
    with pytest.raises(SkillUnreadable, match="not a path inside"):
        read_text(folder, path)


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "x" * 2000])
def test_impossible_paths_are_refused(folder, path):
    with pytest.raises(SkillUnreadable, match="not a possible path"):
        read_text(folder, path)


def test_links_that_lead_out_are_not_followed(folder):
    (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "up").symlink_to(folder.parent)
    for path in ("link.txt", "up/secret.txt", "up/other/SKILL.md", "up"):
        with pytest.raises(SkillUnreadable, match="leads out"):
            read_text(folder, path)


def test_links_that_stay_inside_are(folder):
    (folder / "again.md").symlink_to("reference.md")
    (folder / "tools").symlink_to("scripts")
    assert read_text(folder, "again.md") == "Seite für Seite"
    assert read_text(folder, "tools/fill.py") == "print('x')"


def test_a_link_in_a_circle_and_a_link_to_nothing_are_told(folder):
    (folder / "circle").symlink_to("circle")
    (folder / "nothing").symlink_to("gone")
    with pytest.raises(SkillUnreadable, match=r"cannot be read|no file"):
        read_text(folder, "circle")
    with pytest.raises(SkillUnreadable, match="no file"):
        read_text(folder, "nothing")


def test_what_is_no_file_is_refused_and_nobody_waits_for_it(folder):
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        for path in ("pipe", "socket", "scripts"):
            with pytest.raises(SkillUnreadable, match="not a file"):
                read_text(folder, path)


def test_a_device_is_refused(folder):
    with pytest.raises(SkillUnreadable, match="not a file"):
        read_text(Path("/dev"), "null")


@pytest.mark.parametrize(("raw", "told"), [(b"\x89PNG\0\0", "not text"), (b"ok\ncaf\xe9", "line 2 has the byte 0xe9")])
def test_what_is_no_text_is_not_shown(folder, raw, told):
    (folder / "data").write_bytes(raw)
    with pytest.raises(SkillUnreadable, match=told):
        read_text(folder, "data")


def test_a_file_may_be_so_large_and_no_larger(folder):
    (folder / "large.md").write_bytes(b"x" * MAX_BYTES)
    assert len(read_text(folder, "large.md")) == MAX_BYTES
    (folder / "large.md").write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(SkillUnreadable, match=f"{MAX_BYTES + 1:,} bytes"):
        read_text(folder, "large.md")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_told(folder):
    (folder / "reference.md").chmod(0)
    with pytest.raises(SkillUnreadable, match="Permission denied"):
        read_text(folder, "reference.md")


def test_further_files_are_listed_but_not_what_is_hidden_or_leads_out(folder):
    for hidden in (".git", "__pycache__"):
        (folder / hidden).mkdir()
        (folder / hidden / "x").write_text("x")
    (folder / "out").symlink_to(folder.parent)
    (folder / "secret").symlink_to(folder.parent / "secret.txt")
    (folder / "again.md").symlink_to("reference.md")
    os.mkfifo(folder / "pipe")
    found = further_files(folder, "SKILL.md")
    assert [each.path for each in found.files] == ["again.md", "reference.md", "scripts/fill.py"]
    assert found.complete


def test_hidden_files_are_not_read_either(folder):
    (folder / ".git").mkdir()
    for hidden in (".env", ".git/config", "scripts/.key"):
        (folder / hidden).write_text("secret")
        with pytest.raises(SkillUnreadable, match="is hidden"):
            read_text(folder, hidden)


def test_a_link_to_what_is_hidden_is_read_for_mounted_folders_are_made_of_them(folder):
    (folder / "..data").mkdir()
    (folder / "..data" / "style.md").write_text("Plainly.")
    (folder / "style.md").symlink_to("..data/style.md")
    assert read_text(folder, "style.md") == "Plainly."


def test_of_very_many_files_some_are_listed_and_it_is_said(folder):
    for number in range(400):
        (folder / f"{number}.md").write_text("x")
    found = further_files(folder, "SKILL.md")
    assert 0 < len(found.files) <= 200
    assert not found.complete


def test_every_file_that_is_listed_can_be_read(folder):
    for each in further_files(folder, "SKILL.md").files:
        assert len(read_text(folder, each.path).encode()) == each.size
