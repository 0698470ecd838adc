"""A file of arrays is mapped as it was written, or refused; and it is replaced whole or not at all."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.errors import IndexDamaged
from pegboard.store import arrays as array_files
from pegboard.store.arrays import open_arrays, write_arrays
from tests.often import often

ROOT = Path(__file__).parents[3]
ARRAYS: dict[str, Any] = {
    "bytes": np.frombuffer(b"github__create_issue", np.uint8),
    "empty": np.empty((0, 7), np.float32),
    "table": np.arange(300, dtype=np.float32).reshape(20, 15),
    "longs": np.array([-(2**62), 0, 2**62], np.int64),
    "hashes": np.array([0, 2**64 - 1], np.uint64),
    "flags": np.array([True, False, True]),
}
ABOUT = b'{"format":1,"tools":3}'


def equal(one, other):
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype
        and one[name].shape == other[name].shape
        and np.array_equal(one[name], other[name])
        for name in one
    )


@pytest.fixture
def path(tmp_path):
    where = tmp_path / "index" / "it.pegboard"
    write_arrays(where, ABOUT, ARRAYS)
    return where


def same_as_written(path):
    """Whether the file is what was written; None when it is refused."""
    try:
        file = open_arrays(path)
    except IndexDamaged:
        return None
    return json.loads(file.about) == json.loads(ABOUT) and equal(file.arrays, ARRAYS)


def test_what_was_written_is_mapped_as_it_was(path):
    file = open_arrays(path)
    assert json.loads(file.about) == json.loads(ABOUT)
    assert list(file.arrays) == list(ARRAYS)
    assert equal(file.arrays, ARRAYS)
    assert file.damaged() == []


def test_the_size_is_that_of_the_file(path):
    assert write_arrays(path, ABOUT, ARRAYS) == path.stat().st_size


def test_arrays_are_read_from_the_disk_in_place_and_cannot_be_changed(path):
    for array in open_arrays(path).arrays.values():
        assert not array.flags.writeable
        assert not array.flags.owndata
        assert array.ctypes.data % 64 == 0 or not array.nbytes


def test_arrays_that_do_not_lie_in_one_piece_are_written_in_their_order(tmp_path):
    table = np.arange(24, dtype=np.int32).reshape(4, 6)
    odd = {"turned": table.T, "sliced": table[::2, ::-1], "fortran": np.asfortranarray(table)}
    write_arrays(tmp_path / "it", b"{}", odd)
    assert equal(open_arrays(tmp_path / "it").arrays, odd)


def test_a_file_of_no_arrays_is_fine(tmp_path):
    write_arrays(tmp_path / "it", b"{}", {})
    assert open_arrays(tmp_path / "it").arrays == {}


def test_a_file_that_is_mapped_stays_as_it_was_while_another_takes_its_place(path):
    before = open_arrays(path)
    write_arrays(path, b"{}", {"other": np.zeros(5000, np.uint8)})
    assert equal(before.arrays, ARRAYS)
    assert list(open_arrays(path).arrays) == ["other"]


# ── damage ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_cut_short_anywhere_is_refused_unless_only_padding_is_gone(path):
    content = path.read_bytes()
    refused = 0
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        found = same_as_written(path)
        assert found in (None, True)
        refused += found is None
    assert refused >= len(content) // 97


def test_every_byte_of_the_header_matters_or_means_the_same(path):
    content = path.read_bytes()
    body = content.index(b"github__create_issue")
    harmless = 0
    for position in range(body):
        for flip in (0x01, 0x20, 0x80, 0xFF):
            altered = bytearray(content)
            altered[position] ^= flip
            path.write_bytes(altered)
            found = same_as_written(path)
            assert found in (None, True)
            harmless += found is True
    assert harmless < 64, "white space and the case of hexadecimal digits are all that may be altered"


def test_every_byte_of_an_array_matters(path):
    content = path.read_bytes()
    start = content.index(b"github__create_issue")
    for position in range(start, start + len(b"github__create_issue")):
        altered = bytearray(content)
        altered[position] ^= 1
        path.write_bytes(altered)
        with pytest.raises(IndexDamaged, match="bytes") as refusal:
            open_arrays(path)
        assert str(path) in refusal.value.message


@settings(max_examples=often(150), deadline=None)
@given(st.data())
def test_any_damage_is_refused_or_without_effect(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "damaged.pegboard"
    write_arrays(path, ABOUT, ARRAYS)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    assert same_as_written(path) in (None, True)


def test_damage_in_a_large_array_is_found_when_someone_asks(path, monkeypatch):
    monkeypatch.setattr(array_files, "CHECKED_AT_ONCE", 100)
    content = bytearray(path.read_bytes())
    at = bytes(content).index(ARRAYS["table"].tobytes())
    content[at + 500] ^= 1
    path.write_bytes(content)
    assert open_arrays(path).damaged() == ["table"]


def test_an_array_over_the_size_is_really_not_read_at_once(tmp_path):
    large = np.zeros(array_files.CHECKED_AT_ONCE + 1, np.uint8)
    write_arrays(tmp_path / "it", b"{}", {"small": np.zeros(10, np.uint8), "large": large})
    with (tmp_path / "it").open("r+b") as file:
        file.seek(-1000, os.SEEK_END)
        file.write(b"\x01")
    assert open_arrays(tmp_path / "it").damaged() == ["large"]


@settings(max_examples=often(100), deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_refused_and_nothing_worse(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "anything.pegboard"
    for start in (b"", b"pegboard-arrays 1 ", b"pegboard-arrays 1 00000010 00000000\n".ljust(64)):
        path.write_bytes(start + content)
        with pytest.raises(IndexDamaged):
            open_arrays(path)


def test_a_file_of_another_version_is_refused(path):
    content = path.read_bytes()
    path.write_bytes(content.replace(b"pegboard-arrays 1", b"pegboard-arrays 2", 1))
    with pytest.raises(IndexDamaged, match="version"):
        open_arrays(path)


def test_what_is_not_there_or_no_file_is_the_plain_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_arrays(tmp_path / "none")
    with pytest.raises(OSError, match="Not a regular file"):
        open_arrays(tmp_path)
    (tmp_path / "blank").touch()
    with pytest.raises(IndexDamaged, match="empty"):
        open_arrays(tmp_path / "blank")


# ── any arrays ───────────────────────────────────────────────────────────────────────────────────────────────────────

kinds = st.sampled_from(["<i4", "<i8", "<u1", "<u2", "<u8", "<f4", "<f8", "|b1", ">i4"])
shapes = st.lists(st.integers(0, 5), min_size=1, max_size=3)


@settings(max_examples=often(100), deadline=None)
@given(st.dictionaries(st.text(max_size=10), st.tuples(kinds, shapes), max_size=6), st.randoms(use_true_random=False))
def test_any_arrays_come_back_as_they_were(tmp_path_factory, described, chance):
    path = tmp_path_factory.getbasetemp() / "any.pegboard"
    made = {
        name: np.frombuffer(chance.randbytes(int(np.prod(shape)) * np.dtype(kind).itemsize), np.uint8)
        .view(kind if kind != "|b1" else np.uint8)
        .astype(np.bool_ if kind == "|b1" else kind)
        .reshape(shape)
        for name, (kind, shape) in described.items()
    }
    write_arrays(path, b'{"a": [1, "\\u00e9"]}', made)
    file = open_arrays(path)
    assert json.loads(file.about) == {"a": [1, "é"]}
    assert file.arrays.keys() == made.keys()
    for name, array in made.items():
        assert file.arrays[name].tobytes() == array.tobytes()
        assert file.arrays[name].shape == array.shape
        assert file.arrays[name].dtype == array.dtype


# ── writers that come to grief ───────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def no_file_may_be_larger_than(size):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_finds_no_room_leaves_the_old_file_and_no_litter(path):
    with no_file_may_be_larger_than(1000), pytest.raises(OSError, match="too large"):
        write_arrays(path, b"{}", {"large": np.zeros(50_000, np.uint8)})
    assert same_as_written(path)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


KILLED_AT_EVERY_CALL = """
import os, sys
from pathlib import Path
import numpy as np
from pegboard.store.arrays import open_arrays, write_arrays
from tests.flow import crashing_writer

folder, old, new = Path(sys.argv[1]), {"a": np.zeros(9)}, {"a": np.ones(100), "b": np.ones((3, 3)), "c": np.empty(0)}
for how in ("kill-before", "kill-half", "kill-after"):
    seen = []
    for which in range(1, 60):
        path = folder / how / str(which) / "index"
        write_arrays(path, b"{}", old)
        child = os.fork()
        if not child:
            crashing_writer._arm(how, which)
            write_arrays(path, b"{}", new)
            os._exit(0)
        ended = os.waitpid(child, 0)[1]
        seen.append(len(open_arrays(path).arrays))
        if not ended:
            break
    print(how, ended, *seen)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_at_every_call_that_changes_the_disk_leaves_old_or_new(tmp_path):
    command = [sys.executable, "-c", KILLED_AT_EVERY_CALL, str(tmp_path)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50, check=True).stdout.splitlines()
    assert len(told) == 3
    for line in told:
        _, ended, *seen = line.split()
        switch = seen.index("3")
        assert ended == "0", "the writer never finished: there are more calls than were tried"
        assert seen == ["1"] * switch + ["3"] * (len(seen) - switch), "once new, it stays new"
        assert switch >= 4


BUSY = """
import sys
from pathlib import Path
import numpy as np
from pegboard.store.arrays import write_arrays
while True:
    for value in (1, 2):
        write_arrays(Path(sys.argv[1]), b"{}", {"a": np.full(50_000, value), "b": np.full(50_000, value)})
        print(flush=True)
"""


def test_a_reader_beside_a_busy_writer_that_is_killed_never_sees_a_torn_file(tmp_path):
    path = tmp_path / "index"
    with subprocess.Popen([sys.executable, "-c", BUSY, str(path)], stdout=subprocess.PIPE) as busy:
        assert busy.stdout is not None
        for _ in range(40):
            busy.stdout.readline()
            arrays = open_arrays(path).arrays
            assert np.array_equal(arrays["a"], arrays["b"])
            assert arrays["a"][0] == arrays["a"][-1]
        busy.send_signal(signal.SIGKILL)
    assert open_arrays(path).damaged() == []


def test_a_pipe_in_its_place_is_refused_at_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="Not a regular file"):
        open_arrays(pipe)
