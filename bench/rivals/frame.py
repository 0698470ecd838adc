"""What every script here shares: tools and queries in, rankings and times out. Needs nothing but Python.

`python -m bench.rivals.NAME TOOLS QUERIES OUT [--option WORD] [--seconds N]`: TOOLS has a JSON object on each line
(id, server, name, description, inputSchema), QUERIES is a JSON list of texts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT = 10
WARM_UP = 3

Search = Callable[[str], Awaitable[Sequence[Sequence[str]]]]
"""A query in; out come up to ten places, best first, each with the tool's id and those of copies named beside it."""
Read = Callable[[Path], Any]
"""The file of tools in; what `Build` takes out."""
Build = Callable[[Any, str], Awaitable[Search]]
"""The tools and the script's option in; a search that is ready to be asked out."""


@dataclass(frozen=True)
class Definition:
    """A tool as a rival is told of it."""

    id: str
    name: str
    """Unlike the given name, no other tool has it: it may end in underscores, which no tokenizer here reads."""
    description: str
    parameters: dict[str, Any]


def definitions(path: Path) -> list[Definition]:
    """The tools of a file."""
    taken: dict[str, int] = {}
    found = []
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        name = row.get("name") or row["id"]
        taken[name] = taken.get(name, 0) + 1
        schema = row.get("inputSchema")
        parameters = schema if isinstance(schema, dict) else {"type": "object", "properties": {}}
        found.append(Definition(row["id"], name + "_" * (taken[name] - 1), row.get("description") or "", parameters))
    return found


def main(about: Callable[[str], str], build: Build, read: Read = definitions) -> None:
    """Builds, asks every query for which there is time, and writes what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tools", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--option", default="")
    parser.add_argument("--seconds", type=float, default=600.0)
    args = parser.parse_args()
    queries = json.loads(args.queries.read_text("utf-8"))
    found = asyncio.run(_asked(build, read(args.tools), args.option, queries, args.seconds))
    args.out.write_text(json.dumps({"about": about(args.option), **found}), "utf-8")


async def _asked(build: Build, tools: Any, option: str, queries: list[str], seconds: float) -> dict[str, Any]:
    start, cpu = time.perf_counter(), time.process_time()
    search = await build(tools, option)
    built, built_cpu = time.perf_counter() - start, time.process_time() - cpu
    for query in queries[:WARM_UP]:
        await search(query)
    start = time.perf_counter()
    found: list[Sequence[Sequence[str]]] = []
    wall: list[float] = []
    processor: list[float] = []
    for query in queries:
        if found and time.perf_counter() - start > seconds:
            break
        at, cpu = time.perf_counter(), time.process_time()
        places = await search(query)
        wall.append((time.perf_counter() - at) * 1000)
        processor.append((time.process_time() - cpu) * 1000)
        found.append(places)
    return {
        "build_s": built,
        "build_cpu_s": built_cpu,
        "ms": _quantiles(wall),
        "cpu_ms": _quantiles(processor),
        "found": found,
    }


def _quantiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        name: ordered[min(len(ordered) - 1, int(share * len(ordered)))] for name, share in (("p50", 0.5), ("p95", 0.95))
    }
