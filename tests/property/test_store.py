"""Whatever is recorded can be written down, and comes back as far as it fits."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.store.rows import CAPS, NAME_CAP, row_of, text
from pegboard.store.sqlite import SqliteStore
from pegboard.telemetry.recorder import Recorder
from pegboard.testing import FakeStore
from pegboard.types import Ending, Exposure, Lookup, Outcome, Record
from tests.often import often

TEXTS = st.text(st.characters(exclude_categories=()), max_size=20) | st.just("x" * 5000)
NUMBERS = st.floats() | st.floats(0, 1e10)
WHOLE = st.integers() | st.integers(0, 1000)
RECORDS: st.SearchStrategy[Record] = st.one_of(
    st.builds(
        Outcome,
        at=st.floats(0, 1e10),
        tool=TEXTS,
        server=TEXTS,
        conversation=TEXTS,
        caller=TEXTS,
        via=st.sampled_from(["direct", "call_tool", "batch", "code", "proxy", "framework", "cli"]),
        ending=st.sampled_from(Ending),
        duration_ms=NUMBERS,
        request_bytes=WHOLE,
        result_bytes=WHOLE,
        result_tokens=WHOLE,
        cost_usd=st.none() | NUMBERS,
        repairs=WHOLE,
        cached=st.booleans(),
        detail=TEXTS,
    ),
    st.builds(
        Lookup,
        at=st.floats(0, 1e10),
        query=TEXTS,
        conversation=TEXTS,
        caller=TEXTS,
        found=st.lists(TEXTS, max_size=120).map(tuple),
        answer_tokens=WHOLE,
        request_tokens=WHOLE,
        duration_ms=NUMBERS,
    ),
    st.builds(
        Exposure,
        at=st.floats(0, 1e10),
        conversation=TEXTS,
        caller=TEXTS,
        shown=WHOLE,
        deferred=WHOLE,
        shown_tokens=WHOLE,
        own_tokens=WHOLE,
        deferred_tokens=st.dictionaries(TEXTS, WHOLE, max_size=5),
        counted=TEXTS,
    ),
)


@settings(deadline=None, max_examples=often(60))
@given(st.lists(RECORDS, max_size=20))
def test_every_record_is_kept_and_reads_as_what_fits_of_it(records):
    async def scenario() -> list[Record]:
        with tempfile.TemporaryDirectory() as folder:
            store, seen = SqliteStore(Path(folder) / "pegboard.db"), list[Record]()
            await store.append(records)
            await store.visit(seen.append)
            await store.close()
            return seen

    seen = asyncio.run(scenario())
    assert sorted(map(row_of, seen), key=repr) == sorted(map(row_of, records), key=repr)


@settings(deadline=None)
@given(TEXTS, st.integers(1, 300))
def test_text_that_fits_is_not_changed_and_what_does_not_can_be_encoded(value, cap):
    short = text(value, cap)
    short.encode("utf-8")
    if len(value) <= cap and not any("\ud800" <= each <= "\udfff" for each in value):
        assert short == value


def test_every_field_of_text_has_a_cap():
    row = row_of(Outcome(at=0.0, tool="x" * 5000, detail="x" * 5000))
    assert max(len(value) for value in row if isinstance(value, str)) == max(NAME_CAP, CAPS["detail"])


@settings(deadline=None)
@given(st.lists(st.booleans(), max_size=80), st.integers(1, 10))
def test_a_recorder_loses_only_what_it_says_it_lost_and_keeps_the_order(fails, capacity):
    """For each step, whether the store fails while one more record comes in."""

    async def scenario() -> None:
        from pegboard.errors import StoreError

        store = FakeStore()
        recorder = Recorder(store, capacity=capacity, linger=3600.0)
        for number, failing in enumerate(fails):
            store.failure = StoreError("no") if failing else None
            recorder.record(Outcome(at=float(number), tool="t"))
            if number % 3:
                await recorder.flush()
        store.failure = None
        await recorder.close()
        assert len(store.records) == recorder.written == len(fails) - recorder.dropped
        assert [record.at for record in store.records] == sorted({record.at for record in store.records})

    asyncio.run(scenario())
