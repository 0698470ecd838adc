"""opencode's and Kilo's databases: read while they are written, and never touched."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pegboard.doctor.evidence.gather import with_servers
from pegboard.doctor.facts import Usage
from tests.homes import HomeBuilder, Tokens
from tests.unit.doctor.evidence.reading import only_session, read, read_on

USED = Tokens(input=10, output=20, cache_read=300, cache_write=40)


@pytest.fixture
def home(tmp_path: Path) -> HomeBuilder:
    return HomeBuilder(tmp_path, now=1_795_000_000.0)


@pytest.fixture
def writer(home: HomeBuilder) -> Iterator[sqlite3.Connection]:
    """An agent that has its database open."""
    home.opencode_session(calls={"github_tool_1": 1})
    with closing(sqlite3.connect(database(home), isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint=0")
        yield connection


def database(home: HomeBuilder) -> Path:
    return home.data_folder / "opencode" / "opencode.db"


def everything(folder: Path) -> dict[str, bytes]:
    """What is there, but for SQLite's scratch file that readers take turns in."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")}


@pytest.mark.parametrize("agent", ["opencode", "kilo"])
def test_a_session_tells_calls_and_tokens(home: HomeBuilder, agent: str) -> None:
    make = home.opencode_session if agent == "opencode" else home.kilo_session
    identity = make(calls={"github_tool_1": 2, "bash": 1}, turns=3, usage=USED)
    session = only_session(home)
    assert (session.agent, session.id, session.project) == (agent, identity, str(home.project))
    assert (session.calls, session.server_calls) == ({"github_tool_1": 2, "bash": 1}, {"github": 2})
    assert session.usage == Usage(input=30, output=60, cache_read=900, cache_write=120, messages=3)
    assert session.models == ("claude-sonnet-5",)
    assert 0 < session.began_at < session.ended_at


def test_servers_with_a_joint_in_their_name_are_known_by_the_settings(home: HomeBuilder) -> None:
    home.opencode_session(calls={"my_git_hub_search": 2, "my_files_read": 1, "other_tool": 1})
    [found] = with_servers(read(home).sessions, {"opencode": {"my.git_hub", "my", "git"}})
    assert found.server_calls == {"my_git_hub": 2, "my": 1, "other": 1}


def test_own_tools_are_no_servers(home: HomeBuilder) -> None:
    home.opencode_session(calls={"bash": 1, "apply_patch": 2, "todowrite": 1})
    assert only_session(home).server_calls == {}


def test_sessions_of_sub_agents_count_for_the_one_that_started_them(home: HomeBuilder) -> None:
    parent = home.opencode_session(turns=2)
    home.opencode_session(turns=3, parent=parent)
    session = only_session(home)
    assert (session.id, session.usage.messages) == (parent, 5)


def test_what_an_agent_wrote_a_moment_ago_is_read_while_it_goes_on(
    home: HomeBuilder, writer: sqlite3.Connection
) -> None:
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE message SET data = json_set(data, '$.tokens.input', 1000) WHERE id LIKE '%_0'")
    writer.execute("COMMIT")
    before = everything(database(home).parent)
    writer.execute("BEGIN IMMEDIATE")  # and it is at it again
    writer.execute("DELETE FROM message")
    session = only_session(home)
    assert session.usage.input == 1030
    writer.execute("ROLLBACK")
    assert everything(database(home).parent) == before


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_nothing_is_changed_or_left_beside_a_database_that_nobody_has_open(home: HomeBuilder, mode: str) -> None:
    home.opencode_session()
    with closing(sqlite3.connect(database(home))) as connection:
        connection.execute(f"PRAGMA journal_mode={mode}")
    folder = database(home).parent
    before, stamp = everything(folder), database(home).stat()
    names = sorted(each.name for each in folder.iterdir())
    assert len(read(home).sessions) == 1
    assert everything(folder) == before
    assert sorted(each.name for each in folder.iterdir()) == names
    assert database(home).stat().st_mtime_ns == stamp.st_mtime_ns


def test_changes_that_cannot_be_read_without_writing_are_said(home: HomeBuilder, writer: sqlite3.Connection) -> None:
    writer.execute("DELETE FROM part")
    copy = HomeBuilder(home.root / "copy")
    target = database(copy)
    target.parent.mkdir(parents=True)
    for ending in ("", "-wal"):
        Path(f"{target}{ending}").write_bytes(Path(f"{database(home)}{ending}").read_bytes())
    gathered = read(copy)
    assert "until opencode runs again" in gathered.notes[0]
    assert sorted(each.name for each in target.parent.iterdir()) == ["opencode.db", "opencode.db-wal"]


def test_broken_rows_are_counted_and_stop_nothing(home: HomeBuilder) -> None:
    home.opencode_session(calls={"github_tool_1": 2}, turns=3)
    with closing(sqlite3.connect(database(home))) as connection, connection:
        connection.execute("UPDATE message SET data = '{\"role\":\"assis' WHERE id LIKE '%_0'")
        connection.execute("UPDATE part SET data = x'fffe00' WHERE id LIKE '%_0_0'")
        connection.execute("UPDATE message SET data = '[]' WHERE id LIKE '%_1u'")
    session = only_session(home)
    assert (session.usage.messages, session.broken_lines, session.unknown_records) == (2, 2, 1)
    assert session.server_calls == {"github": 2}


def test_a_number_that_nothing_can_hold_stops_nothing(home: HomeBuilder) -> None:
    home.opencode_session(turns=3)
    with closing(sqlite3.connect(database(home))) as connection, connection:
        larger = "replace(data, '\"input\": 10', '\"input\": 1e999')"
        connection.execute(f"UPDATE message SET data = {larger} WHERE id LIKE '%_0'")
    session = only_session(home)
    assert (session.usage.messages, session.unknown_records) == (2, 1)


@pytest.mark.parametrize("content", [b"", b"no database at all", b"SQLite format 3\0" + bytes(200)])
def test_a_file_that_is_no_database_is_noted(home: HomeBuilder, content: bytes) -> None:
    home.claude_session()
    database(home).parent.mkdir(parents=True)
    database(home).write_bytes(content)
    gathered = read(home)
    assert len(gathered.sessions) == 1
    assert "opencode.db cannot be read" in gathered.notes[0]


def test_only_what_changed_is_read_again(home: HomeBuilder) -> None:
    home.opencode_session(turns=2)
    first = read_on(home)
    assert (first.read_files, read_on(home).read_files) == (1, 0)
    home.opencode_session(turns=3)
    later = read_on(home)
    assert later.read_files == 1
    assert sorted(each.usage.messages for each in later.sessions) == [2, 3]
    assert later.sessions == read(home).sessions


def test_a_session_that_went_on_is_read_again(home: HomeBuilder) -> None:
    identity = home.opencode_session(turns=2)
    read_on(home)
    with closing(sqlite3.connect(database(home))) as connection, connection:
        copied = "SELECT id || 'x', session_id, time_created, time_updated + 1, data FROM message"
        connection.execute(f"INSERT INTO message {copied} WHERE session_id = ?", (identity,))
    (session,) = read_on(home).sessions
    assert session.usage.messages == 4


def test_a_database_that_is_gone_tells_nothing_any_more(home: HomeBuilder) -> None:
    home.opencode_session()
    assert len(read_on(home).sessions) == 1
    for file in database(home).parent.iterdir():
        file.unlink()
    assert read_on(home).sessions == ()
