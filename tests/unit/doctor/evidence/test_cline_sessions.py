"""Cline's documents: one for each session, written anew every time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pegboard.doctor.evidence.cline import DOCUMENT_CAP
from pegboard.doctor.facts import Usage
from tests.homes import HomeBuilder, Tokens
from tests.unit.doctor.evidence.reading import only_session, read, read_on

USED = Tokens(input=10, output=20, cache_read=300, cache_write=40)


@pytest.fixture
def home(tmp_path: Path) -> HomeBuilder:
    return HomeBuilder(tmp_path, now=1_795_000_000.0)


def test_a_document_tells_calls_and_tokens(home: HomeBuilder) -> None:
    identity = home.cline_session(calls={"github__search": 2, "read_file": 1}, turns=3, usage=USED)
    session = only_session(home)
    assert (session.agent, session.id, session.project) == ("cline", identity, str(home.project))
    assert (session.version, session.models) == ("3.0.65", ("claude-sonnet-5",))
    assert (session.calls, session.server_calls) == ({"github__search": 2, "read_file": 1}, {"github": 2})
    assert session.usage == Usage(input=30, output=60, cache_read=900, cache_write=120, messages=3)


def test_a_document_that_is_cut_is_one_broken_line(home: HomeBuilder) -> None:
    file = home.transcripts[home.cline_session()]
    file.write_bytes(file.read_bytes()[:-40])
    gathered = read(home)
    assert (gathered.sessions, gathered.broken_lines) == ((), 1)


def test_a_message_of_the_wrong_kind_is_unknown(home: HomeBuilder) -> None:
    file = home.transcripts[home.cline_session(turns=2)]
    document = json.loads(file.read_bytes())
    document["messages"] += [7, {"role": "assistant", "metrics": []}, {"role": "robot"}]
    file.write_text(json.dumps(document))
    session = only_session(home)
    assert (session.usage.messages, session.unknown_records) == (2, 3)


def test_a_document_that_is_too_large_is_passed_over(home: HomeBuilder) -> None:
    file = home.transcripts[home.cline_session()]
    with file.open("r+b") as opened:
        opened.truncate(DOCUMENT_CAP + 1)
    gathered = read(home)
    assert (gathered.sessions, gathered.broken_lines, gathered.read_bytes) == ((), 1, 0)


def test_only_documents_that_changed_are_read_again(home: HomeBuilder) -> None:
    home.cline_session(turns=2)
    changed = home.transcripts[home.cline_session(turns=3)]
    assert (read_on(home).read_files, read_on(home).read_files) == (2, 0)
    document = json.loads(changed.read_bytes())
    document["messages"] *= 2
    changed.write_text(json.dumps(document))
    later = read_on(home)
    assert later.read_files == 1
    assert sorted(each.usage.messages for each in later.sessions) == [2, 6]


def test_another_folder_of_clines_is_respected(home: HomeBuilder, tmp_path: Path) -> None:
    home.cline_session()
    home.process(CLINE_DATA_DIR=str(tmp_path / "elsewhere"))
    assert read(home).sessions == ()
