"""Codex's rollouts: calls, searches, tokens; threads that others have started belong to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pegboard.doctor.facts import Deferral, Proof, Usage
from tests.homes import HomeBuilder, Tokens
from tests.unit.doctor.evidence.reading import append, only_session, read, sessions

USED = Tokens(input=10, output=20, cache_read=300, cache_write=40)


@pytest.fixture
def home(tmp_path: Path) -> HomeBuilder:
    return HomeBuilder(tmp_path, now=1_795_000_000.0)


@pytest.mark.parametrize("records", [True, False], ids=["records", "running totals"])
def test_a_rollout_tells_calls_and_tokens(home: HomeBuilder, records: bool) -> None:
    calls = {"mcp__github__tool_1": 2, "shell": 3}
    identity = home.codex_session(calls=calls, searches=2, turns=4, usage=USED, records=records)
    session = only_session(home)
    assert (session.agent, session.id, session.project) == ("codex", identity, str(home.project))
    assert (session.version, session.models) == ("0.166.0", ("gpt-5.5",))
    assert (session.calls, session.server_calls, session.searches) == (calls, {"github": 2}, 2)
    assert session.usage == Usage(input=40, output=80, cache_read=1200, cache_write=160, messages=4)
    assert (session.deferral, session.proof) == (Deferral.ON, Proof.SEARCHES)


def test_no_search_proves_nothing(home: HomeBuilder) -> None:
    home.codex_session(calls={"mcp__github__tool_1": 2})
    session = only_session(home)
    assert (session.deferral, session.definitions, session.announced) == (Deferral.UNKNOWN, (), ())


def test_a_running_total_that_is_told_again_adds_nothing(home: HomeBuilder) -> None:
    file = home.transcripts[home.codex_session(turns=2, usage=USED, records=False)]
    last = json.loads(file.read_bytes().splitlines()[-1])
    append(file, last, last)
    assert only_session(home).usage.messages == 2


def test_totals_alone_are_enough(home: HomeBuilder) -> None:
    file = home.transcripts[home.codex_session(turns=3, usage=USED, records=False)]
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    for line in lines:
        line["payload"].get("info", {}).pop("last_token_usage", None)
    file.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    assert only_session(home).usage == Usage(input=30, output=60, cache_read=900, cache_write=120, messages=3)


def test_a_thread_that_went_on_in_a_newer_version_counts_both_ways(home: HomeBuilder) -> None:
    old = home.transcripts[home.codex_session(turns=2, usage=USED, records=False)]
    new = home.transcripts[home.codex_session(turns=3, usage=USED, records=True)]
    lines = [line for line in new.read_bytes().splitlines(keepends=True) if b"session_meta" not in line]
    new.unlink()
    old.write_bytes(old.read_bytes() + b"".join(lines))
    assert only_session(home).usage.messages == 5


def test_threads_of_sub_agents_count_for_the_one_that_started_them(home: HomeBuilder) -> None:
    parent = home.codex_session(calls={"shell": 1}, turns=2)
    child = home.codex_session(calls={"mcp__a__b": 1}, turns=2, parent=parent)
    home.codex_session(calls={"mcp__a__b": 1}, turns=2, parent=child)
    session = only_session(home)
    assert (session.id, session.usage.messages) == (parent, 6)
    assert session.server_calls == {"a": 2}


def test_a_thread_whose_starter_is_gone_stands_alone(home: HomeBuilder) -> None:
    child = home.codex_session(parent="gone")
    assert only_session(home).id == child


def test_a_forked_thread_does_not_count_what_it_copied(home: HomeBuilder) -> None:
    first = home.codex_session(calls={"shell": 2}, turns=3)
    second = home.codex_session(calls={"mcp__a__b": 1}, turns=2)
    head, *rest = home.transcripts[second].read_bytes().splitlines(keepends=True)
    copied = home.transcripts[first].read_bytes()
    home.transcripts[second].write_bytes(head + copied + b"".join(rest))
    found = sessions(home)
    assert (found[first].usage.messages, found[second].usage.messages) == (3, 2)
    assert (found[first].calls, found[second].calls) == ({"shell": 2}, {"mcp__a__b": 1})
    assert found[second].resumed


def test_another_home_of_codex_is_respected(home: HomeBuilder, tmp_path: Path) -> None:
    home.codex_session()
    home.process(CODEX_HOME=str(tmp_path / "elsewhere"))
    there = home.codex_session()
    assert only_session(home).id == there


def test_unknown_and_broken_lines_are_counted(home: HomeBuilder) -> None:
    file = home.transcripts[home.codex_session()]
    file.write_bytes(file.read_bytes() + b'{"type":"of_tomorrow","payload":{}}\n{"type":"event_m\n\xff\xfe\n')
    append(file, {"type": "response_item", "payload": "none"}, {"type": "compacted", "payload": {}})
    gathered = read(home)
    assert (gathered.unknown_records, gathered.broken_lines) == (2, 2)
    assert gathered.sessions[0].compactions == 1
