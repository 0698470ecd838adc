"""The SQLite file: private, shared, bounded, and never lost without a word."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from pegboard.config.model import Config, StoreConfig
from pegboard.errors import StoreError
from pegboard.store import jobs, sqlite
from pegboard.store.database import APPLICATION_ID, SET_ASIDE_CAP, connect
from pegboard.store.facts import facts_of
from pegboard.store.migrate import Step, queries, steps
from pegboard.store.sqlite import KEY_CAP, STATE_CAP, SqliteStore, open_store, store_path
from pegboard.types import Lookup, Outcome, Record
from tests.loops import in_a_loop

NOW = 1_800_000_000.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "pegboard.db"


def some(count: int = 3) -> list[Record]:
    return [Outcome(at=NOW + number, tool=f"t{number}") for number in range(count)]


async def written(path: Path, records: list[Record]) -> None:
    store = SqliteStore(path)
    await store.append(records)
    await store.close()


async def kept(path: Path, on_warning=None) -> list[Record]:
    store, seen = SqliteStore(path, on_warning=on_warning), list[Record]()
    try:
        await store.visit(seen.append)
    finally:
        await store.close()
    return seen


# ── opening ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_opening_touches_nothing(tmp_path):
    config = Config(store=StoreConfig(state_dir=str(tmp_path / "state")))
    assert open_store(config).path == store_path(config) == tmp_path / "state" / "pegboard.db"
    assert list(tmp_path.iterdir()) == []


@in_a_loop
async def test_the_file_and_its_companions_are_for_their_owner_only(path):
    before = os.umask(0)
    try:
        store = SqliteStore(path)
        await store.append(some())
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
        await store.close()
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(["pegboard.db", "pegboard.db-wal", "pegboard.db-shm"], 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@in_a_loop
async def test_it_is_marked_as_ours_and_keeps_a_log_beside_it(path):
    await written(path, some())
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (steps()[-1].number,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


@in_a_loop
async def test_what_is_no_file_is_refused_in_words(path):
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(StoreError, match="Not a regular file") as caught:
        await kept(path)
    assert "state_dir" in caught.value.hint


@in_a_loop
async def test_a_folder_that_cannot_be_made_is_told_and_the_next_use_tries_again(tmp_path):
    blocker = tmp_path / "state"
    blocker.write_text("in the way")
    store = SqliteStore(blocker / "pegboard.db")
    with pytest.raises(StoreError, match="cannot be used"):
        await store.append(some())
    blocker.unlink()
    await store.append(some())
    await store.close()
    assert await kept(store.path) == some()


@in_a_loop
async def test_any_name_will_do_for_the_folder(tmp_path):
    path = tmp_path / "100% mine? #1 & só" / "pegboard.db"
    await written(path, some())
    assert path.stat().st_size
    assert await kept(path) == some()


@in_a_loop
async def test_a_link_to_another_place_is_followed(path, tmp_path):
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere.db")
    await written(path, some())
    assert (tmp_path / "elsewhere.db").stat().st_size
    assert path.is_symlink()
    assert await kept(path) == some()


# ── other versions, other programs ───────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_a_file_of_a_newer_version_is_refused_in_words_and_left_alone(path):
    await written(path, some())
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="newer Pegboard") as caught:
        await written(path, some())
    assert "Upgrade" in caught.value.hint
    assert path.read_bytes() == before
    facts = facts_of(path)
    assert facts is not None
    assert "newer Pegboard" in facts.problem


@in_a_loop
async def test_a_database_of_another_program_is_refused_and_left_alone(path):
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not one of Pegboard's"):
        await written(path, some())
    assert path.read_bytes() == before


@in_a_loop
async def test_a_file_of_an_older_version_is_brought_up_to_date_and_keeps_its_records(path):
    old = connect(path, steps()[:1])
    jobs.append(old, some())
    old.close()
    store = SqliteStore(path)
    await store.keep_activation("c", b"state", NOW + 1e9)
    assert set(await store.refresh_priors(NOW)) == {"t0", "t1", "t2"}
    await store.close()
    assert await kept(path) == some()


def test_steps_are_numbered_without_gaps_and_every_query_fits_the_tables(path):
    assert [step.number for step in steps()] == list(range(1, len(steps()) + 1))
    connection = connect(path)
    for text in queries().values():
        names = dict.fromkeys(("since", "until", "conversation"))
        values = names if ":since" in text else (None,) * text.count("?")
        connection.execute(f"EXPLAIN {text}", values)
    connection.close()


def test_a_step_that_fails_changes_nothing(path):
    connect(path).close()
    newest = steps()[-1].number
    broken = (*steps(), Step(newest + 1, ("CREATE TABLE half (x)", "CREATE TABLE outcomes (x)")))
    with pytest.raises(StoreError, match="already exists"):
        connect(path, broken)
    connection = connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (newest,)
    assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").fetchone() == (0,)
    connection.close()


@pytest.mark.parametrize("table", ["outcomes", "lookups", "exposures"])
def test_reading_by_time_uses_the_index_and_sorts_nothing(path, table):
    connection = connect(path)
    asked = {"since": 0.0, "until": 1.0, "conversation": None}
    plan = connection.execute(f"EXPLAIN QUERY PLAN {queries()[f'{table}_between']}", asked).fetchall()
    connection.close()
    assert f"USING INDEX {table}_by_time" in str(plan)
    assert "TEMP B-TREE" not in str(plan)


# ── damage ───────────────────────────────────────────────────────────────────────────────────────────────────────


def asides(path: Path) -> list[Path]:
    return sorted(path.parent.glob("pegboard.db.damaged-*[0-9]"))


@pytest.mark.parametrize(
    "content", [b"this is no database at all, but a text of some length" * 50, b"SQLite format 3\0" * 99]
)
def test_a_file_that_is_no_database_is_set_aside_with_a_word_and_a_new_one_begins(path, content):
    @in_a_loop
    async def scenario():
        path.parent.mkdir()
        path.write_bytes(content)
        warnings: list[str] = []
        store = SqliteStore(path, on_warning=warnings.append)
        await store.append(some())
        await store.close()
        [aside] = asides(path)
        assert aside.read_bytes() == content
        [warning] = warnings
        assert str(aside) in warning
        assert await kept(path) == some()

    scenario()


@in_a_loop
async def test_a_file_that_is_cut_short_is_set_aside_and_nothing_is_thrown_away(path):
    await written(path, some(2000))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    warnings: list[str] = []
    store = SqliteStore(path, on_warning=warnings.append)
    await store.append(some(2000))
    await store.refresh_priors(NOW)
    await store.close()
    assert len(asides(path)) == len(warnings) == 1
    assert asides(path)[0].stat().st_size >= len(whole) // 2


@in_a_loop
async def test_damage_that_comes_while_the_file_is_open_is_noticed_and_the_batch_is_kept(path):
    await written(path, some(2000))
    warnings: list[str] = []
    store = SqliteStore(path, on_warning=warnings.append)
    assert await store.activation("c") is None
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    for _ in range(3):
        await store.append([Outcome(at=NOW, tool="after")])
    await store.close()
    assert len(warnings) == 1
    assert [record.tool for record in await kept(path) if isinstance(record, Outcome)][-1] == "after"


@in_a_loop
async def test_a_disk_that_damages_every_file_is_not_filled_with_them(path):
    path.parent.mkdir()
    for _ in range(SET_ASIDE_CAP):
        path.write_bytes(b"rubbish" * 1000)
        await written(path, some())
    path.write_bytes(b"rubbish" * 1000)
    with pytest.raises(StoreError, match="damaged again") as caught:
        await written(path, some())
    assert "disk" in caught.value.hint
    assert path.read_bytes() == b"rubbish" * 1000
    assert len(asides(path)) == SET_ASIDE_CAP


@in_a_loop
async def test_two_that_meet_the_same_damage_set_aside_one_file_and_keep_both_records(path):
    path.parent.mkdir()
    path.write_bytes(b"rubbish" * 1000)
    one, two = SqliteStore(path), SqliteStore(path)
    first, second = some(2)
    await one.append([first])
    await two.append([second])
    await one.close()
    await two.close()
    assert len(asides(path)) == 1
    assert await kept(path) == [first, second]


@in_a_loop
async def test_looking_at_a_damaged_file_changes_nothing(path):
    path.parent.mkdir()
    path.write_bytes(b"rubbish" * 1000)
    facts = facts_of(path)
    assert facts is not None
    assert "damaged" in facts.problem
    assert [each.name for each in path.parent.iterdir()] == ["pegboard.db"]


@in_a_loop
async def test_a_file_that_somebody_deleted_is_made_anew_rather_than_written_to_in_vain(path):
    store = SqliteStore(path)
    await store.append(some(1))
    for each in path.parent.iterdir():
        each.unlink()
    await store.append(some(2))
    await store.close()
    assert await kept(path) == some(2)


# ── whatever a record holds ──────────────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_long_texts_are_cut_and_half_characters_spelled_out(path):
    await written(path, [Lookup(at=1.0, query="q" * 10_000 + "\ud800", found=("\udfff",) * 1000, caller="\ud800")])
    [record] = await kept(path)
    assert isinstance(record, Lookup)
    assert record.query == "q" * 2000
    assert record.found == ("\\udfff",) * 100
    assert record.caller == "\\ud800"


@in_a_loop
async def test_a_row_that_this_version_does_not_understand_is_passed_over(path):
    await written(path, some(3))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE outcomes SET ending = 'exploded' WHERE tool = 't1'")
    connection.close()
    assert await kept(path) == [some(3)[0], some(3)[2]]
    store = SqliteStore(path)
    assert set(await store.refresh_priors(NOW + 10)) == {"t0", "t2"}
    await store.close()


@in_a_loop
async def test_an_endless_state_is_refused_in_words(path):
    store = SqliteStore(path)
    with pytest.raises(StoreError, match="bytes"):
        await store.keep_activation("k", b"s" * (STATE_CAP + 1), NOW)
    await store.close()


@in_a_loop
async def test_endless_keys_are_told_apart(path):
    store = SqliteStore(path, clock=lambda: NOW)
    for key in ("k" * KEY_CAP, "k" * (KEY_CAP + 1), "k" * (KEY_CAP + 1) + "\ud800"):
        assert await store.activation(key) is None
        await store.keep_activation(key, key.encode(errors="replace"), NOW + 1)
        assert await store.activation(key) == key.encode(errors="replace")
    await store.close()


# ── bounds ───────────────────────────────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_more_records_than_are_kept_push_out_the_oldest(path, monkeypatch):
    monkeypatch.setattr(sqlite, "KEPT_ROWS", 10)
    monkeypatch.setattr(jobs, "PAGE", 3)
    store = SqliteStore(path)
    await store.append(some(25))
    assert await store.forget_before(0.0) == 15
    await store.close()
    assert await kept(path) == some(25)[15:]


@in_a_loop
async def test_more_conversations_than_are_kept_push_out_those_that_expire_first(path, monkeypatch):
    monkeypatch.setattr(sqlite, "KEPT_CONVERSATIONS", 2)
    store = SqliteStore(path, clock=lambda: NOW)
    for number in range(5):
        await store.keep_activation(f"c{number}", b"", NOW + 1 + number)
    assert await store.forget_before(0.0) == 3
    assert [await store.activation(f"c{number}") for number in range(5)] == [None, None, None, b"", b""]
    await store.close()


@in_a_loop
async def test_forgetting_gives_room_back(path):
    store = SqliteStore(path)
    await store.append(some(20_000))
    await store.close()
    before = path.stat().st_size
    store = SqliteStore(path)
    assert await store.forget_before(NOW + 19_990) == 19_990
    await store.close()
    assert path.stat().st_size < before / 4


@in_a_loop
async def test_a_refresh_reads_only_what_is_new_and_forgetting_does_not_undo_it(path, monkeypatch):
    monkeypatch.setattr(jobs, "PAGE", 7)
    store = SqliteStore(path)
    await store.append(some(50))
    assert len(await store.refresh_priors(NOW + 50)) == 50
    assert await store.forget_before(NOW + 100) == 50
    assert len(await store.refresh_priors(NOW + 50)) == 50
    await store.append([Outcome(at=NOW + 50, tool="new")])
    assert len(await store.refresh_priors(NOW + 50)) == 51
    await store.close()


@in_a_loop
async def test_digests_of_another_form_are_made_anew_from_the_outcomes(path, monkeypatch):
    store = SqliteStore(path)
    await store.append(some(3))
    before = await store.refresh_priors(NOW + 3)
    monkeypatch.setattr(jobs, "FORM", "another")
    assert await store.refresh_priors(NOW + 3) == before
    await store.close()


@in_a_loop
async def test_a_digest_that_cannot_be_read_is_begun_anew(path):
    store = SqliteStore(path)
    await store.append(some(1))
    await store.refresh_priors(NOW)
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE digests SET state = x'00'")
    connection.close()
    store = SqliteStore(path)
    await store.append(some(1))
    assert (await store.refresh_priors(NOW + 1))["t0"].calls == pytest.approx(1, abs=1e-3)
    await store.close()


@in_a_loop
async def test_a_writer_that_holds_the_file_for_too_long_is_told_of_and_the_next_use_works(path):
    await written(path, some(1))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store = SqliteStore(path, busy_seconds=0.01)
    with pytest.raises(StoreError, match="locked") as caught:
        await store.append(some(1))
    assert "Another process" in caught.value.hint
    other.execute("ROLLBACK")
    other.close()
    await store.append(some(1))
    await store.close()
    assert len(await kept(path)) == 2
