"""Recording never hurts a call."""

from __future__ import annotations

import asyncio
import threading

import pytest

from pegboard.errors import StoreError
from pegboard.telemetry import recorder as module
from pegboard.telemetry.recorder import BATCH, Recorder
from pegboard.testing import FakeStore
from pegboard.types import Lookup, Outcome, Record
from tests.loops import in_a_loop

FULL = StoreError("The disk is full.", hint="Make room.")


def outcomes(count: int) -> list[Record]:
    return [Outcome(at=float(number), tool="t") for number in range(count)]


class SlowStore(FakeStore):
    """Holds every append until it is let through, and notes how large each was."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.entered = asyncio.Event()
        self.sizes: list[int] = []

    async def append(self, records) -> None:
        self.entered.set()
        await self.gate.wait()
        self.sizes.append(len(records))
        await super().append(records)


class BrokenStore(FakeStore):
    """Has a defect: the first append raises what no store should."""

    broken = True

    async def append(self, records) -> None:
        if self.broken:
            self.broken = False
            raise ZeroDivisionError("a defect")
        await super().append(records)


@in_a_loop
async def test_what_is_recorded_reaches_the_store_by_itself_and_in_order():
    store = SlowStore()
    store.gate.set()
    recorder = Recorder(store, linger=0.0)
    records = outcomes(3)
    for record in records:
        recorder.record(record)
    await store.entered.wait()
    await recorder.flush()
    assert store.records == records
    assert (recorder.written, recorder.dropped) == (3, 0)
    await recorder.close()


@in_a_loop
async def test_many_records_go_in_batches():
    store = SlowStore()
    store.gate.set()
    recorder = Recorder(store)
    for record in outcomes(2 * BATCH + 1):
        recorder.record(record)
    await recorder.close()
    assert store.sizes == [BATCH, BATCH, 1]
    assert store.records == outcomes(2 * BATCH + 1)


@in_a_loop
async def test_when_there_is_no_room_records_are_dropped_and_counted():
    store = SlowStore()
    warnings: list[str] = []
    recorder = Recorder(store, capacity=10, linger=0.0, on_warning=warnings.append)
    for record in outcomes(25):
        recorder.record(record)
    assert recorder.dropped == 15
    store.gate.set()
    await recorder.close()
    assert store.records == outcomes(10)
    assert warnings == ["15 records of calls and searches were lost; statistics and priors lack them."]


@in_a_loop
async def test_records_that_come_while_a_batch_is_written_follow_it():
    store = SlowStore()
    recorder = Recorder(store, linger=0.0)
    first, second = outcomes(2)
    recorder.record(first)
    await store.entered.wait()
    recorder.record(second)
    store.gate.set()
    await recorder.close()
    assert store.records == [first, second]


@in_a_loop
async def test_a_store_that_fails_is_warned_of_once_and_loses_nothing_when_it_works_again():
    store, warnings = FakeStore(), list[str]()
    store.failure = FULL
    recorder = Recorder(store, on_warning=warnings.append)
    for record in outcomes(3):
        recorder.record(record)
        await recorder.flush()
    assert store.records == []
    assert warnings == ["Calls are not recorded for now: The disk is full. Make room."]
    store.failure = None
    await recorder.flush()
    assert store.records == outcomes(3)
    assert recorder.dropped == 0
    store.failure = FULL
    recorder.record(outcomes(1)[0])
    await recorder.flush()
    assert len(warnings) == 2, "a new failure is news again"
    store.failure = None
    await recorder.close()
    assert len(warnings) == 2


@in_a_loop
async def test_a_store_that_fails_is_tried_again_by_itself(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    store = FakeStore()
    store.failure = FULL
    failed = asyncio.Event()
    recorder = Recorder(store, linger=0.0, on_warning=lambda _: failed.set())
    recorder.record(outcomes(1)[0])
    await failed.wait()
    store.failure = None
    while not store.records:
        await asyncio.sleep(0)
    await recorder.close()
    assert (recorder.written, recorder.dropped) == (1, 0)


@in_a_loop
async def test_a_failing_store_never_holds_more_than_the_capacity():
    store = FakeStore()
    store.failure = FULL
    recorder = Recorder(store, capacity=5)
    for record in outcomes(20):
        recorder.record(record)
        await recorder.flush()
    assert recorder.dropped == 15
    store.failure = None
    await recorder.close()
    assert store.records == outcomes(5)


@in_a_loop
async def test_closing_with_a_store_that_fails_says_what_is_lost():
    store, warnings = FakeStore(), list[str]()
    store.failure = FULL
    recorder = Recorder(store, on_warning=warnings.append)
    recorder.record(outcomes(1)[0])
    await recorder.close()
    assert recorder.dropped == 1
    assert warnings[-1].startswith("1 records of calls and searches were lost")


@in_a_loop
async def test_closing_does_not_wait_for_a_store_that_hangs(monkeypatch):
    monkeypatch.setattr(module, "CLOSING", 0.01)
    store, warnings = SlowStore(), list[str]()
    recorder = Recorder(store, on_warning=warnings.append)
    recorder.record(outcomes(1)[0])
    await recorder.close()
    assert "longer than" in warnings[0]
    assert recorder.dropped == 1
    assert [task for task in asyncio.all_tasks() if task.get_name() == "pegboard recorder"] == []


@in_a_loop
async def test_a_defect_in_the_store_is_told_and_the_next_records_are_kept():
    store, warnings = BrokenStore(), list[str]()
    recorder = Recorder(store, on_warning=warnings.append)
    first, second = outcomes(2)
    recorder.record(first)
    await recorder.flush()
    recorder.record(second)
    await recorder.flush()
    assert store.records == [second]
    assert recorder.dropped == 1
    assert "ZeroDivisionError" in warnings[0]
    await recorder.close()


@in_a_loop
async def test_after_closing_nothing_is_taken_and_it_is_counted():
    store = FakeStore()
    recorder = Recorder(store)
    await recorder.close()
    recorder.record(outcomes(1)[0])
    assert recorder.dropped == 1
    assert store.records == []
    assert not store.is_closed, "the store is its owner's to close"


@in_a_loop
async def test_another_thread_may_record():
    store = FakeStore()
    recorder = Recorder(store)
    thread = threading.Thread(target=recorder.record, args=outcomes(1))
    thread.start()
    thread.join()
    await recorder.close()
    assert store.records == outcomes(1)


def test_recording_before_there_is_a_loop_is_no_trouble():
    store = FakeStore()
    recorder = Recorder(store)
    recorder.record(outcomes(1)[0])
    asyncio.run(recorder.close())
    assert store.records == outcomes(1)


@pytest.mark.parametrize(("keep", "kept"), [(True, "my secret plan"), (False, "")])
def test_the_words_of_searches_are_left_out_where_the_configuration_says_so(keep, kept):
    async def scenario():
        store = FakeStore()
        recorder = Recorder(store, keep_queries=keep)
        recorder.record(Lookup(at=1.0, query="my secret plan", found=("a",), answer_tokens=3))
        await recorder.close()
        assert store.records == [Lookup(at=1.0, query=kept, found=("a",), answer_tokens=3)]

    asyncio.run(scenario())
