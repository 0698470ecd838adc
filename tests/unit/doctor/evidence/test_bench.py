"""The benchmark of reading: both of its subjects read the same, and it is wired to the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.__main__ import PARTS
from bench.doctor.subjects import doctor, doctor_again, plain_json
from tests.homes import HomeBuilder
from tests.homes.bulk import write_transcripts


@pytest.mark.parametrize("terse", [False, True])
def test_both_subjects_read_every_byte_and_find_every_reply(tmp_path: Path, terse: bool) -> None:
    home = HomeBuilder(tmp_path)
    size = write_transcripts(home, 3_000_000, session_bytes=500_000, terse=terse)
    assert doctor(home.folder) == plain_json(home.folder)
    assert doctor(home.folder)[0] == size >= 3_000_000
    assert doctor(home.folder)[1] > 100


def test_a_second_reading_finds_the_same_in_no_bytes(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    write_transcripts(home, 1_000_000)
    first = doctor_again(home.folder)
    assert doctor_again(home.folder) == (0, first[1])


def test_made_transcripts_are_the_same_every_time_and_as_large_as_asked(tmp_path: Path) -> None:
    written = [write_transcripts(HomeBuilder(tmp_path / name, now=1.8e9), 800_000) for name in ("a", "b")]
    assert written[0] == written[1] >= 800_000
    assert written[0] < 1_300_000


def test_it_runs_with_the_others() -> None:
    assert "doctor" in PARTS
