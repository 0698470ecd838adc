"""What recording costs: `record()` on the way of a call, the writer behind it, and a refresh of the priors."""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from bench.measure import table
from pegboard.store.sqlite import SqliteStore
from pegboard.telemetry.recorder import BATCH, Recorder
from pegboard.telemetry.stats import Tally
from pegboard.types import Ending, Outcome

AIM_US = 5.0
"""Microseconds of CPU that one `record()` may cost the call; a whole call through the gateway may cost 250."""
ROUNDS = 7
CALLS = 5_000
HISTORY = 100_000
TOOLS = 500


def run(folder: Path) -> dict[str, object]:
    """Measures in this process, on a real file."""
    return asyncio.run(_run(folder))


async def _run(folder: Path) -> dict[str, object]:
    outcomes = _outcomes(HISTORY)
    hot = [await _hot_path(folder / f"hot{number}.db", outcomes[:CALLS]) for number in range(ROUNDS + 1)][1:]
    record_us, all_us = (statistics.median(column) for column in zip(*hot, strict=True))
    store = SqliteStore(folder / "history.db")
    append_wall, append_cpu = await _timed(lambda: _append_all(store, outcomes))
    refresh_wall, refresh_cpu = await _timed(lambda: store.refresh_priors(time.time()))
    await store.append(outcomes[:1000])
    again_wall, again_cpu = await _timed(lambda: store.refresh_priors(time.time()))
    tally = Tally()
    visit_wall, visit_cpu = await _timed(lambda: store.visit(tally))
    await store.close()
    size = store.path.stat().st_size
    rows = [
        ["record(), the caller's thread", f"{record_us:.2f} µs", f"{record_us:.2f} µs"],
        ["record() and all that follows from it", "", f"{all_us:.2f} µs"],
        [f"append, batches of {BATCH}", _each(append_wall, HISTORY), _each(append_cpu, HISTORY)],
        [f"first refresh, of {HISTORY:,} calls", f"{refresh_wall * 1e3:.0f} ms", f"{refresh_cpu * 1e3:.0f} ms"],
        ["refresh after 1,000 more", f"{again_wall * 1e3:.0f} ms", f"{again_cpu * 1e3:.0f} ms"],
        [f"statistics over {HISTORY + 1000:,}", f"{visit_wall * 1e3:.0f} ms", f"{visit_cpu * 1e3:.0f} ms"],
    ]
    table(f"Recording: {TOOLS} tools, {size / HISTORY:.0f} bytes a call on disk", ("", "wall", "CPU"), rows)
    print(f"  {HISTORY / append_wall:,.0f} records a second")
    print(f"  aim: record() within {AIM_US} µs: {'met' if record_us <= AIM_US else 'NOT met'}")
    return {
        "record_us": record_us,
        "record_and_write_cpu_us": all_us,
        "appended_per_second": HISTORY / append_wall,
        "bytes_per_call": size / HISTORY,
        "first_refresh_ms": refresh_wall * 1e3,
        "refresh_ms": again_wall * 1e3,
        "statistics_ms": visit_wall * 1e3,
    }


def _outcomes(count: int) -> list[Outcome]:
    random.seed(4)
    now = time.time()
    return [
        Outcome(
            at=now - random.uniform(0, 30 * 86_400),
            tool=f"server{number % 20}__tool_number_{number % TOOLS}",
            server=f"server{number % 20}",
            conversation=f"conversation-{number % 300}",
            via="call_tool",
            ending=random.choices([Ending.OK, Ending.TOOL_ERROR, Ending.TIMEOUT], [95, 4, 1])[0],
            duration_ms=random.lognormvariate(4, 1),
            request_bytes=200,
            result_bytes=4000,
            result_tokens=900,
        )
        for number in range(count)
    ]


async def _hot_path(path: Path, outcomes: list[Outcome]) -> tuple[float, float]:
    """Microseconds for each call: of `record()` alone, and of CPU in all threads until everything is written."""
    store = SqliteStore(path)
    await store.append(outcomes[:1])  # the file is open before the clock runs
    recorder = Recorder(store)
    gc.collect()
    used, start = time.process_time(), time.perf_counter()
    for outcome in outcomes:
        recorder.record(outcome)
    alone = time.perf_counter() - start
    await recorder.close()
    used = time.process_time() - used
    await store.close()
    assert recorder.dropped == 0
    return alone / len(outcomes) * 1e6, used / len(outcomes) * 1e6


async def _append_all(store: SqliteStore, outcomes: list[Outcome]) -> None:
    for start in range(0, len(outcomes), BATCH):
        await store.append(outcomes[start : start + BATCH])


async def _timed(work: Callable[[], object]) -> tuple[float, float]:
    used, start = time.process_time(), time.perf_counter()
    await work()  # type: ignore[misc]
    return time.perf_counter() - start, time.process_time() - used


def _each(seconds: float, count: int) -> str:
    return f"{seconds / count * 1e6:.2f} µs"
