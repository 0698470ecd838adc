"""What the call path adds to one call: its steps over a tool that does nothing, and what arguments cost to check."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from bench.measure import bars, table
from pegboard.config.model import CallsConfig
from pegboard.invoke.path import Invoker
from pegboard.types import CallContext, Caller, Json, Outcome, Tool

ROUNDS, CALLS = 15, 2000
AIM_CPU_MS = 0.1
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1},
        "labels": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        "count": {"type": "integer", "minimum": 1, "maximum": 100},
        "state": {"enum": ["open", "closed"]},
    },
    "required": ["title"],
    "additionalProperties": False,
}
DEFINITION = {"name": "create", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
TOOL = Tool(
    server="s", name="create", public_name="s__create", definition=msgspec.json.encode(DEFINITION), fingerprint="f"
)
FITS = {"title": "hello", "labels": ["a", "b"], "count": 3, "state": "open"}
NEEDS_MENDING = {"Title": "hello", "labels": "a", "count": "3"}
ME = Caller(identity="me", conversation="c")
PLAIN = CallContext()


def run() -> dict[str, object]:
    """Rounds of calls, one kind after the other, so that all see the same machine."""
    return asyncio.run(_compare())


def _invoker(text: str, **calls: Any) -> Invoker:
    async def find(_: str) -> Tool:
        return TOOL

    async def execute(*_: object) -> Json:
        return {"content": [{"type": "text", "text": text}]}

    outcomes: list[Outcome] = []

    def record(outcome: Outcome) -> None:
        outcomes[:] = [outcome]

    return Invoker(
        find,
        execute,
        calls=CallsConfig(**calls),
        deny=("never_*",),
        record=record,
        activate=lambda *_: None,
        count_tokens=lambda text: len(text) // 4,
    )


def _kinds() -> dict[str, Callable[[], Awaitable[object]]]:
    plain, cached = _invoker("done" * 20), _invoker("done" * 20, cache_seconds=3600.0)
    page, letters, long = _invoker("line of text\n" * 1500), _invoker("日本語の文\n" * 1200), _invoker("x" * 1_000_000)

    def through(invoker: Invoker, arguments: Any) -> Callable[[], Awaitable[object]]:
        return lambda: invoker.call("s__create", arguments, ME, PLAIN, via="call_tool")

    async def bare() -> object:
        tool = await plain._find("s__create")
        return await plain._execute(tool, FITS, PLAIN)

    return {
        "the tool alone": bare,
        "plain call": through(plain, FITS),
        "arguments mended": through(plain, NEEDS_MENDING),
        "arguments refused": through(plain, {"titel": 1}),
        "used again": through(cached, FITS),
        "20 kB of ASCII": through(page, FITS),
        "19 kB of Japanese": through(letters, FITS),
        "1 MB, cut and kept": through(long, FITS),
    }


async def _compare() -> dict[str, object]:
    kinds = _kinds()
    cpu: dict[str, list[float]] = {name: [] for name in kinds}
    for number in range(ROUNDS + 1):
        for name, call in kinds.items():
            calls = CALLS // (100 if "MB" in name else 10 if "kB" in name else 1)
            used = time.process_time()
            for _ in range(calls):
                await call()
            if number:
                cpu[name].append((time.process_time() - used) / calls * 1000)
    median = {name: statistics.median(values) for name, values in cpu.items()}
    base = median["the tool alone"]
    rows = [[name, f"{value:.4f}", f"{value - base:+.4f}"] for name, value in median.items()]
    table("One call through the path, ms of CPU", ("", "CPU", "added"), rows)
    bars([(name, value - base) for name, value in median.items() if name != "the tool alone"], "ms added")
    added = median["plain call"] - base
    print(f"  A plain call: {added:.4f} ms added, aim {AIM_CPU_MS} ms: {'met' if added <= AIM_CPU_MS else 'MISSED'}")
    return {"cpu_ms": median, "plain_added_ms": added}


if __name__ == "__main__":
    run()
