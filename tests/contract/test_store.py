"""What every store keeps to: the one in SQLite, and the fake that stands for it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pegboard.errors import StoreError
from pegboard.protocols import Store
from pegboard.store.sqlite import SqliteStore
from pegboard.telemetry.upkeep import refresh_priors
from pegboard.testing import FakeStore
from pegboard.types import Ending, Exposure, Lookup, Outcome, Priors, Record, SkillLoad
from tests.loops import in_a_loop

NOW = 1_800_000_000.0
DAY = 86_400.0

OUTCOME = Outcome(
    at=NOW,
    tool="notes__add",
    server="notes",
    conversation="c1",
    caller="ann",
    via="call_tool",
    ending=Ending.TOOL_ERROR,
    duration_ms=12.5,
    request_bytes=10,
    result_bytes=2000,
    result_tokens=300,
    cost_usd=0.25,
    repairs=1,
    cached=True,
    detail="no such note: “ünïcode”\0",
)
LOOKUP = Lookup(
    at=NOW,
    query="add a note",
    conversation="c1",
    caller="ann",
    found=("notes__add", "notes__list"),
    answer_tokens=120,
    request_tokens=30,
    duration_ms=1.5,
)
EXPOSURE = Exposure(
    at=NOW,
    conversation="c1",
    caller="ann",
    shown=3,
    deferred=40,
    shown_tokens=600,
    own_tokens=500,
    deferred_tokens={"notes": 7000, "git": 3000},
    counted="by the byte",
)
LOAD = SkillLoad(at=NOW, skill="pdf-forms", file="reference.md", conversation="c1", caller="ann", tokens=900)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "fake"])
def opened(request, tmp_path: Path, clock: Clock):
    @asynccontextmanager
    async def one() -> AsyncIterator[Store]:
        store: Store = FakeStore(clock=clock)
        if request.param == "sqlite":
            store = SqliteStore(tmp_path / "state" / "pegboard.db", clock=clock)
        try:
            yield store
        finally:
            await store.close()

    return one


async def all_of(store: Store, **asked) -> list[Record]:
    seen: list[Record] = []
    await store.visit(seen.append, **asked)
    return seen


@in_a_loop
async def test_records_come_back_as_they_were(opened):
    async with opened() as store:
        await store.append([OUTCOME, LOAD, LOOKUP, EXPOSURE])
        assert await all_of(store) == [EXPOSURE, LOOKUP, LOAD, OUTCOME]


@in_a_loop
async def test_a_skill_was_used_when_it_was_last_loaded(opened):
    async with opened() as store:
        assert await store.skills_used() == {}
        loads = [SkillLoad(at=NOW + at, skill=skill) for at, skill in ((0, "a"), (5, "b"), (9, "a"), (2, "a"))]
        await store.append(loads)
        assert await store.skills_used() == {"a": NOW + 9, "b": NOW + 5}
        await store.forget_before(NOW + 6)
        assert await store.skills_used() == {"a": NOW + 9}


@in_a_loop
async def test_records_of_defaults_come_back_as_they_were(opened):
    records: list[Record] = [Exposure(at=1.0), Lookup(at=2.0, query=""), Outcome(at=3.0, tool="")]
    async with opened() as store:
        await store.append(records)
        assert await all_of(store) == records


@in_a_loop
async def test_nothing_appended_is_nothing_kept(opened):
    async with opened() as store:
        await store.append([])
        assert await all_of(store) == []


@in_a_loop
async def test_records_are_shown_by_time_and_lists_before_searches_before_calls(opened):
    late, early = Outcome(at=NOW + 2, tool="b"), Outcome(at=NOW - 2, tool="a")
    async with opened() as store:
        await store.append([late, OUTCOME, LOOKUP])
        await store.append([EXPOSURE, early])
        assert await all_of(store) == [early, EXPOSURE, LOOKUP, OUTCOME, late]


@in_a_loop
async def test_since_is_part_of_the_time_and_until_is_not(opened):
    records = [Outcome(at=float(at), tool=str(at)) for at in range(5)]
    async with opened() as store:
        await store.append(records)
        assert await all_of(store, since=1.0, until=3.0) == records[1:3]
        assert await all_of(store, since=4.0, until=math.inf) == records[4:]


@in_a_loop
async def test_one_conversation_can_be_asked_for_and_the_nameless_one_too(opened):
    nameless = Outcome(at=NOW, tool="t")
    async with opened() as store:
        await store.append([OUTCOME, nameless])
        assert await all_of(store, conversation="c1") == [OUTCOME]
        assert await all_of(store, conversation="") == [nameless]
        assert await all_of(store, conversation="c") == []


@in_a_loop
async def test_what_is_older_is_forgotten_and_the_rest_stays(opened):
    records = [*(Outcome(at=float(at), tool="t") for at in range(10)), Lookup(at=3.0, query="q"), Exposure(at=4.0)]
    async with opened() as store:
        await store.append(records)
        assert await store.forget_before(5.0) == 7
        assert [record.at for record in await all_of(store)] == [5.0, 6.0, 7.0, 8.0, 9.0]
        assert await store.forget_before(5.0) == 0


@in_a_loop
async def test_an_activation_is_kept_per_conversation_and_replaced(opened):
    async with opened() as store:
        await store.keep_activation("a", b"1\0", NOW + 10)
        await store.keep_activation("b", b"2", NOW + 10)
        await store.keep_activation("a", b"3\0", NOW + 10)
        assert await store.activation("a") == b"3\0"
        assert await store.activation("b") == b"2"
        assert await store.activation("c") is None


@in_a_loop
async def test_what_the_proxy_remembers_is_kept_apart_from_activations_replaced_and_forgotten(opened, clock):
    async with opened() as store:
        await store.keep_activation("a", b"1", NOW + 20)
        await store.keep_proxied("a", b"2", NOW + 10)
        await store.keep_proxied("a", b"3\0", NOW + 10)
        assert (await store.activation("a"), await store.proxied("a"), await store.proxied("b")) == (b"1", b"3\0", None)
        clock.now = NOW + 10
        assert (await store.activation("a"), await store.proxied("a")) == (b"1", None)
        assert await store.forget_before(0.0) == 1


@in_a_loop
async def test_an_activation_expires_and_is_then_forgotten(opened, clock):
    async with opened() as store:
        await store.keep_activation("a", b"1", NOW + 10)
        clock.now = NOW + 10
        assert await store.activation("a") is None
        assert await store.forget_before(0.0) == 1
        clock.now = NOW
        assert await store.activation("a") is None


@in_a_loop
async def test_priors_are_none_at_first_and_then_replaced_as_a_whole(opened):
    full = Priors(
        calls=3.5, success_rate=0.9, p50_ms=1.0, p95_ms=2.0, p99_ms=3.0, cost_usd=0.1, result_tokens=9.0, last_used=NOW
    )
    async with opened() as store:
        assert await store.priors() == ({}, 0.0)
        await store.keep_priors({"a": full, "b": Priors()}, NOW)
        assert await store.priors() == ({"a": full, "b": Priors()}, NOW)
        await store.keep_priors({"b": full}, NOW + 1)
        assert await store.priors() == ({"b": full}, NOW + 1)


@in_a_loop
async def test_refreshed_priors_are_given_and_kept(opened):
    async with opened() as store:
        await store.append([Outcome(at=NOW - 1, tool="a", duration_ms=100.0), OUTCOME])
        priors = await store.refresh_priors(NOW)
        assert priors["a"].calls == pytest.approx(1.0, abs=1e-3)
        assert priors["a"].success_rate == pytest.approx(2 / 3, abs=1e-3)
        assert priors["a"].p95_ms == pytest.approx(100.0, rel=0.05)
        assert await store.priors() == (priors, NOW)


@in_a_loop
async def test_refreshing_again_changes_nothing(opened):
    async with opened() as store:
        await store.append([Outcome(at=NOW - each, tool="a", duration_ms=float(each)) for each in range(100)])
        assert await store.refresh_priors(NOW) == await store.refresh_priors(NOW)


@in_a_loop
async def test_refreshing_bit_by_bit_is_refreshing_at_once(opened, tmp_path):
    outcomes = [Outcome(at=NOW - each * DAY, tool=f"t{each % 3}", duration_ms=1.0 + each) for each in range(30)]
    async with opened() as store:
        for outcome in outcomes:
            await store.append([outcome])
            by_bits = await store.refresh_priors(NOW)
    at_once = FakeStore()
    await at_once.append(outcomes)
    for tool, priors in (await at_once.refresh_priors(NOW)).items():
        assert by_bits[tool].calls == pytest.approx(priors.calls)
        assert by_bits[tool].p95_ms == priors.p95_ms
        assert by_bits[tool].last_used == priors.last_used


@in_a_loop
async def test_a_refresh_of_a_moment_ago_is_good_enough_for_the_next_window(opened):
    async with opened() as store:
        first = await refresh_priors(store, NOW)
        await store.append([Outcome(at=NOW, tool="a")])
        assert await refresh_priors(store, NOW + 59, unless_younger=60) == first == {}
        assert set(await refresh_priors(store, NOW + 60, unless_younger=60)) == {"a"}


@in_a_loop
async def test_a_refresh_drops_records_only_when_told_how_long_they_are_kept(opened):
    old = Outcome(at=NOW - 10 * DAY, tool="a")
    async with opened() as store:
        await store.append([old])
        await refresh_priors(store, NOW)
        assert await all_of(store) == [old]
        assert set(await refresh_priors(store, NOW, keep_days=9)) == {"a"}
        assert await all_of(store) == []


@in_a_loop
async def test_whoever_stops_waiting_for_a_store_leaves_it_as_it_was_for_all_others(opened):
    async with opened() as store:
        await store.append([OUTCOME])
        for _ in range(20):
            waiting = [asyncio.ensure_future(all_of(store)), asyncio.ensure_future(store.priors())]
            await asyncio.sleep(0)
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        await store.append([LOOKUP])
        assert await all_of(store) == [LOOKUP, OUTCOME]


@in_a_loop
async def test_a_closed_store_says_so_and_closing_twice_is_fine(opened):
    async with opened() as store:
        await store.append([OUTCOME])
        await store.close()
        await store.close()
        with pytest.raises(StoreError, match="closed"):
            await store.append([OUTCOME])
        with pytest.raises(StoreError, match="closed"):
            await store.activation("a")
