"""Files are replaced whole or not at all, and reading refuses what would hurt."""

from __future__ import annotations

import errno
import os
import resource
import stat
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from pegboard.store.files import DiskFiles


@contextmanager
def no_file_may_be_larger_than(size):
    """The kernel refuses to write beyond this, as it does when a disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_what_was_written_is_read_and_folders_are_made(tmp_path):
    path = tmp_path / "a" / "b" / "tools.json"
    DiskFiles().write(path, b"one")
    DiskFiles().write(path, b"two, longer")
    assert DiskFiles().read(path) == b"two, longer"
    assert names(path.parent) == ["tools.json"]


def test_a_new_file_is_only_for_its_owner(tmp_path):
    path = tmp_path / "servers" / "tools.json"
    DiskFiles().write(path, b"x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o400])
def test_the_mode_of_an_existing_file_is_kept(tmp_path, mode):
    path = tmp_path / "tools.json"
    path.write_bytes(b"old")
    path.chmod(mode)
    DiskFiles().write(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path):
    target = tmp_path / "real" / "tools.json"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link = tmp_path / "link.json"
    link.symlink_to(target)
    DiskFiles().write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == ["link.json", "real"]


def test_a_link_to_nothing_makes_its_target(tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "later" / "tools.json")
    DiskFiles().write(link, b"new")
    assert (tmp_path / "later" / "tools.json").read_bytes() == b"new"


@pytest.mark.parametrize("special", ["folder", "fifo"])
def test_what_is_no_regular_file_is_neither_read_nor_replaced(tmp_path, special):
    path = tmp_path / "tools.json"
    path.mkdir() if special == "folder" else os.mkfifo(path)
    with pytest.raises(OSError, match="Not a regular file"):
        DiskFiles().read(path)
    with pytest.raises(OSError, match="Not a regular file"):
        DiskFiles().write(path, b"x")
    assert names(tmp_path) == ["tools.json"]
    assert not path.is_file()


def test_a_file_over_the_cap_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "tools.json"
    path.write_bytes(b"12345")
    assert DiskFiles(read_cap=5).read(path) == b"12345"
    with pytest.raises(OSError, match="too large") as refusal:
        DiskFiles(read_cap=4).read(path)
    assert refusal.value.errno == errno.EFBIG
    assert refusal.value.filename == str(path)


def test_a_sparse_file_of_many_gigabytes_costs_nothing(tmp_path):
    path = tmp_path / "tools.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="too large"):
        DiskFiles().read(path)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_file_that_says_it_is_empty_is_read_to_its_end():
    # Files in /proc have size 0 and content nonetheless.
    assert b"Name:" in DiskFiles().read(Path("/proc/self/status"))


def test_a_missing_file_is_the_plain_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        DiskFiles().read(tmp_path / "none.json")


def test_a_write_that_finds_no_room_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "tools.json"
    DiskFiles().write(path, b"old")
    with no_file_may_be_larger_than(1000), pytest.raises(OSError, match="too large"):
        DiskFiles().write(path, b"n" * 5000)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["tools.json"]


def test_a_parent_that_is_a_file_is_an_error(tmp_path):
    (tmp_path / "servers").write_bytes(b"")
    with pytest.raises(OSError, match=r"exists|directory"):
        DiskFiles().write(tmp_path / "servers" / "tools.json", b"x")


def test_what_a_killed_process_left_is_swept_but_not_what_one_is_writing_now(tmp_path):
    old, young, foreign = (tmp_path / name for name in (".pegboard-0a.tmp", ".pegboard-0b.tmp", "notes.tmp"))
    long_ago = time.time() - 7200
    for path in (old, young, foreign):
        path.write_bytes(b"part")
    os.utime(old, (long_ago, long_ago))
    os.utime(foreign, (long_ago, long_ago))
    DiskFiles().write(tmp_path / "tools.json", b"x")
    assert names(tmp_path) == [".pegboard-0b.tmp", "notes.tmp", "tools.json"]


def test_the_longest_file_name_the_system_allows_can_be_written(tmp_path):
    path = tmp_path / ("n" * 255)
    DiskFiles().write(path, b"x")
    assert path.read_bytes() == b"x"
