"""What every driver is measured with: the catalog, the clock, the fresh process, and the two tables."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import msgspec

from bench.measure import BYTECODE, table
from pegboard import Pegboard
from pegboard.index.intents import SUITE
from pegboard.index.live import REBUILDING
from pegboard.surface.tokens import definition_tokens
from pegboard.types import Json

PEGBOARD, OWN_SEARCH, EVERYTHING, NAIVE = "pegboard", "own search", "everything bound", "naive activation"
TURNS = 20
"""Model requests in the session over which the prefix is compared."""

PATIENCE = 240.0
"""Seconds for an index to be built."""

_SERVICES = ("cloud", "desk", "store", "team", "field", "audit", "media", "care", "fleet", "bank", "lab", "school")
_OBJECTS = ("invoice", "ticket", "asset", "shift", "claim", "order", "sensor", "lesson", "visit", "route", "account",
            "sample", "contract", "camera", "parcel", "recipe", "vehicle", "patient", "budget", "survey")  # fmt: skip


class Row(msgspec.Struct, frozen=True):
    """What one step, a model request with all that the framework does around it, costs with so many tools."""

    framework: str
    way: str
    tools: int
    cpu_ms: float
    wall_ms: float
    tokens: int
    """Of the tool definitions that the model is sent, in the request that has the most."""


class Share(msgspec.Struct, frozen=True):
    """How much of a request was, byte for byte, the beginning of the one before it: what a prompt cache can keep."""

    framework: str
    way: str
    share: float


def catalog(count: int) -> list[Json]:
    """So many tools as servers list them, no two alike, always the same ones: the suite's, then variations of them."""
    suite = [json.loads(line) for line in (SUITE / "tools.jsonl").read_text("utf-8").splitlines()]
    return [_definition(suite[number % len(suite)], number, number // len(suite)) for number in range(count)]


def _definition(known: Json, number: int, round_: int) -> Json:
    plain: Json = {key: known[key] for key in ("name", "description", "inputSchema")}
    if not round_:
        return {**plain, "name": known["id"]}
    chance = random.Random(number)
    service, thing = chance.choice(_SERVICES), chance.choice(_OBJECTS)
    said = f"{plain['description']} Works on the {thing} records of {service} area {round_}."
    return {**plain, "name": f"{service}{round_}_{known['id']}_{thing}", "description": said}


def tokens_of(definitions: Iterable[Json]) -> int:
    """What these MCP-shaped definitions cost in a request, counted as Pegboard counts."""
    return sum(definition_tokens(each) for each in definitions)


def prefix_share(requests: Sequence[bytes]) -> float:
    """The mean, over consecutive requests, of the part of the earlier one that the later one begins with."""
    return statistics.fmean(_same_bytes(one, other) / max(1, len(one)) for one, other in pairwise(requests))


def _same_bytes(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


async def settled(board: Pegboard) -> None:
    """Waits until the board's index is built and its tools are counted, which is done once, behind the scenes."""
    deadline = time.monotonic() + PATIENCE
    while REBUILDING in (await board.search("anything")).notes:
        assert time.monotonic() < deadline, "the index is still being built"
        await asyncio.sleep(0.1)
    assert board.conversation().surface().deferred_tokens


async def per_step(work: Callable[[], Awaitable[int]], *, rounds: int = 5) -> tuple[float, float]:
    """CPU and wall milliseconds for one step of `work`, which gives how many steps it made: medians, one warm-up."""
    cpu: list[float] = []
    wall: list[float] = []
    for number in range(rounds + 1):
        gc.collect()
        before, start = time.process_time(), time.perf_counter()
        steps = await work()
        if number:
            cpu.append((time.process_time() - before) * 1000 / steps)
            wall.append((time.perf_counter() - start) * 1000 / steps)
    return statistics.median(cpu), statistics.median(wall)


def apart(measure: Callable[..., Awaitable[Any]], *arguments: int | str, within: float = 60.0) -> Any:
    """What a driver's function gives in a process of its own; None where it takes longer than `within` seconds.

    The function is a module's own, is given `arguments`, and gives a Row, a Share, or a list of them.
    """
    environ = {**os.environ, "PYTHONPYCACHEPREFIX": str(BYTECODE), "OPENBLAS_NUM_THREADS": "1"}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    asked = json.dumps([measure.__module__, measure.__name__, *arguments])
    code = "from bench.frameworks.rows import alone; alone()"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, asked], env=environ, stdout=subprocess.PIPE, check=True, timeout=within
        )
    except subprocess.TimeoutExpired:
        return None
    return _read(json.loads(done.stdout.splitlines()[-1]))


def _read(found: Any) -> Any:
    if isinstance(found, list):
        return [_read(each) for each in found]
    return msgspec.convert(found, Row if "cpu_ms" in found else Share)


def alone() -> None:
    """The other side of `apart`: makes the one measurement and prints it as the last line."""
    module, name, *arguments = json.loads(sys.argv[1])
    found = asyncio.run(getattr(import_module(module), name)(*arguments))
    print(msgspec.json.encode(found).decode())


def print_rows(rows: Sequence[Row]) -> None:
    """The cost of a step, by framework, way and size."""
    cells = [
        [f"{row.framework}: {row.way}", f"{row.tools:,}", f"{row.cpu_ms:.2f}", f"{row.wall_ms:.2f}", f"{row.tokens:,}"]
        for row in rows
    ]
    table("A step inside a framework", ("", "tools", "CPU ms", "wall ms", "tokens of tools"), cells)


def print_shares(shares: Sequence[Share]) -> None:
    """What of a request is the beginning of the one before."""
    cells = [[f"{each.framework}: {each.way}", f"{each.share:.1%}"] for each in shares]
    table(f"Byte-identical prefix of consecutive requests, {TURNS} turns", ("", "share"), cells)
