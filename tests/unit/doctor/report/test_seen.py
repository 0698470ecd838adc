"""What reports saw, kept for when the transcripts are gone."""

from pathlib import Path

import pytest

from pegboard.doctor.report.samples import Sample, by_day
from pegboard.doctor.report.seen import Seen
from pegboard.doctor.report.sides import since_of
from tests.unit.doctor.report.stories import at, change, sessions

SAMPLES = by_day(since_of(change(), sessions(30, 0, 10), now=at(10)), until=at(0))


def test_what_was_written_is_read(tmp_path: Path):
    assert Seen.of(tmp_path).write({"a": SAMPLES}) == ""
    assert Seen.of(tmp_path).read() == {"a": SAMPLES}


def test_where_nothing_was_seen_nothing_is_written(tmp_path: Path):
    assert Seen.of(tmp_path).write({}) == ""
    assert list(tmp_path.iterdir()) == []
    assert Seen.of(tmp_path).read() == {}


def test_the_same_again_is_not_written_again(tmp_path: Path):
    Seen.of(tmp_path).write({"a": SAMPLES})
    file = tmp_path / "doctor" / "seen.json"
    written = file.stat()
    Seen.of(tmp_path).write({"a": SAMPLES})
    assert file.stat().st_ino == written.st_ino
    Seen.of(tmp_path).write({})
    assert Seen.of(tmp_path).read() == {}


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff", b"[]", b'{"format":2,"changes":{}}', b'{"format":1,"changes":{"a":[{"x":1}]}}']
)
def test_a_broken_file_is_begun_anew(tmp_path: Path, raw: bytes):
    file = tmp_path / "seen.json"
    file.write_bytes(raw)
    assert Seen(file).read() == {}
    assert Seen(file).write({"a": SAMPLES}) == ""
    assert Seen(file).read() == {"a": SAMPLES}


def test_a_file_that_cannot_be_written_stops_nobody(tmp_path: Path):
    (tmp_path / "doctor").write_text("a file where a folder should be")
    problem = Seen.of(tmp_path).write({"a": SAMPLES})
    assert problem.startswith(f"What was seen could not be kept in {tmp_path / 'doctor' / 'seen.json'}: ")
    assert Seen.of(tmp_path).read() == {}


def test_only_sums_are_kept(tmp_path: Path):
    Seen.of(tmp_path).write({"a": SAMPLES})
    assert len(SAMPLES) <= 11
    assert set(Sample.__struct_fields__) == {
        "first_at", "last_at", "project", "sessions", "known", "counted", "paid", "usage",
    }  # fmt: skip
