"""How fast the same searches are, one after the other on the same machine, each alone in its process."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.measure import table
from bench.rivals.environment import OTHERS, OWN, Entry, Outcome, ask, write_tools
from bench.texts import asked, multiplied, real_tools
from pegboard.types import Json

SIZES = (1_000, 10_000)
QUERIES = 200
ENTRIES = tuple(entry for entry in (*OWN, *OTHERS) if entry.most_tools is None)
"""Without the sentence model: what it takes is the time of the model."""


def run(sizes: Sequence[int] = SIZES, seconds: float = 240.0) -> Json:
    """Builds and asks each size with every search."""
    return {str(size): _one_size(size, seconds) for size in sizes}


def _one_size(size: int, seconds: float) -> Json:
    outcomes: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tools.jsonl")
        write_tools(list(multiplied(size)), path)
        for entry in ENTRIES:
            print(f"  {size:,} tools: {entry.name} …", file=sys.stderr, flush=True)
            outcomes[entry.name] = ask(entry, path, asked(QUERIES), seconds)
    own = outcomes[OWN[0].name]
    headers = ("", "build s", "p50 ms", "p95 ms", "CPU p50 ms", "CPU p95 ms", "CPU p50, times Pegboard's", "queries")
    table(
        f"Speed at {size:,} tools ({real_tools()[1]}, ten names a query, embedding of the query included)",
        headers,
        [_row(entry, outcomes[entry.name], own) for entry in ENTRIES],
    )
    return {name: _plain(outcome) for name, outcome in outcomes.items()}


def _row(entry: Entry, found: Outcome, own: Outcome) -> list[str]:
    if found.failed:
        return [f"{entry.name} ({found.failed})", *["-"] * 7]
    times = f"{found.cpu_ms['p50'] / own.cpu_ms['p50']:.2f}" if not own.failed else "-"
    figures = (found.build_s, found.ms["p50"], found.ms["p95"], found.cpu_ms["p50"], found.cpu_ms["p95"])
    return [entry.name, *(f"{each:.2f}" for each in figures), times, str(len(found.found))]


def _plain(found: Outcome) -> Json:
    plain: Json = msgspec.to_builtins(found)
    return {key: value for key, value in plain.items() if key != "found"} | {"queries": len(found.found)}
