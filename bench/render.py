"""What a search's answer costs: signatures beside full schemas, for the tools that real searches find.

`python -m bench.render [--data FOLDER] [--sets a,b] [--queries N] [--json FILE]`. Every answer has the five best tools
for a labelled query. Tokens are counted as the product counts them; the table says how.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.measure import bars, table
from bench.quality import OWN_SUITE, suite
from bench.rivals.pegboard_itself import finder_of
from bench.texts import DATA
from pegboard.config.model import SurfaceConfig
from pegboard.index.evaluate import read_queries, read_tools
from pegboard.index.finder import Terms
from pegboard.surface.compose import compose
from pegboard.surface.render import fits, rendered
from pegboard.surface.stock import stock_of
from pegboard.surface.tokens import WORD_PIECES, tool_tokens
from pegboard.types import Json, Tool

QUERIES = 200
LIMIT = 5
LARGE_SET = "mcp_mega"
AIM = 400


class Cost(msgspec.Struct, frozen=True):
    """What one set's answers cost, in tokens."""

    tools: int
    answers: int
    all_definitions: int
    signatures: float
    """Median of an answer."""
    signatures_p95: float
    schemas: float
    definitions: float
    """Median of the same tools' definitions as a model API gets them."""
    dearer: int
    """Answers that cost more than the definitions they stand for."""
    not_on_a_line: float
    """Share of tools whose signature does not say all that a call needs."""
    microseconds: float
    """To write one tool."""
    compose_ms: float
    """To make a surface of all of them, the first time and with nothing counted."""


def run(*, names: Sequence[str] = (), most: int = QUERIES, data: Path = DATA) -> Json:
    """Every set that is there, and the suite."""
    found = sorted(each.parent.name for each in data.glob("*/tools.jsonl")) if data.is_dir() else []
    costs: dict[str, Cost] = {}
    for name in [each for each in names or (OWN_SUITE, *found) if each == OWN_SUITE or each in found]:
        print(f"  {name} …", file=sys.stderr, flush=True)
        tools, queries = _given(name, data)
        random.Random(1).shuffle(queries)
        costs[name] = asyncio.run(_cost(tools, queries[:most]))
    _show(costs)
    return {"counted": WORD_PIECES.name, "sets": msgspec.to_builtins(costs)}


def _given(name: str, data: Path) -> tuple[list[Tool], list[str]]:
    if name == OWN_SUITE:
        tools, cases = suite()
    else:
        tools, cases = read_tools(data / name / "tools.jsonl"), read_queries(data / name / "queries.jsonl")
    return tools, [case.query for case in cases]


async def _cost(tools: list[Tool], queries: list[str]) -> Cost:
    finder = await finder_of(tools, "static")
    answers = []
    for query in queries:
        hits = (await finder.search(query, Terms(limit=LIMIT))).hits
        if hits:
            answers.append([finder.tools[hit.name] for hit in hits])
    start = time.perf_counter()
    for tool in tools:
        rendered(tool)
    microseconds = (time.perf_counter() - start) * 1e6 / len(tools)
    lines, schemas = _tokens(answers, "signature"), _tokens(answers, "schema")
    definitions = [sum(map(tool_tokens, answer)) for answer in answers]
    return Cost(
        tools=len(tools),
        answers=len(answers),
        all_definitions=sum(map(tool_tokens, tools)),
        signatures=statistics.median(lines),
        signatures_p95=sorted(lines)[int(0.95 * (len(lines) - 1))],
        schemas=statistics.median(schemas),
        definitions=statistics.median(definitions),
        dearer=sum(line > full for line, full in zip(lines, definitions, strict=True)),
        not_on_a_line=sum(not fits(tool) for tool in tools) / len(tools),
        microseconds=microseconds,
        compose_ms=_compose_ms(tools),
    )


def _tokens(answers: Sequence[Sequence[Tool]], detail: str) -> list[int]:
    return [
        WORD_PIECES.count("\n".join(rendered(tool, detail) for tool in answer))  # type: ignore[arg-type]
        for answer in answers
    ]


def _compose_ms(tools: Sequence[Tool]) -> float:
    """The time until the list is there, from a catalog of which nothing is known yet."""
    by_name = {tool.public_name: tool for tool in tools}
    own = [{"name": "search_tools", "description": "", "inputSchema": {"type": "object"}}]
    times = []
    for _ in range(5):
        start = time.perf_counter()
        _ = compose(stock_of(by_name), SurfaceConfig(), own).definitions
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def _show(costs: dict[str, Cost]) -> None:
    headers = [
        "tokens", "tools", "all schemas", "answers", "signatures", "p95", "full schemas", "definitions", "saved",
        "dearer", "not on a line", "µs/tool", "compose ms",
    ]  # fmt: skip
    rows = [
        [
            name,
            f"{cost.tools:,}",
            f"{cost.all_definitions:,}",
            str(cost.answers),
            f"{cost.signatures:.0f}",
            f"{cost.signatures_p95:.0f}",
            f"{cost.schemas:.0f}",
            f"{cost.definitions:.0f}",
            f"{1 - cost.signatures / cost.definitions:.0%}",
            str(cost.dearer),
            f"{cost.not_on_a_line:.1%}",
            f"{cost.microseconds:.0f}",
            f"{cost.compose_ms:.1f}",
        ]
        for name, cost in costs.items()
    ]
    table(f"An answer of up to {LIMIT} tools, median; {WORD_PIECES.name}", headers, rows)
    bars([(name, cost.signatures) for name, cost in costs.items()], "tokens")
    if LARGE_SET in costs:
        met = costs[LARGE_SET].signatures <= AIM
        print(f"  aim: median answer on {LARGE_SET} {costs[LARGE_SET].signatures:.0f} tokens, at most {AIM}: "
              f"{'met' if met else 'NOT met'}")  # fmt: skip


def main() -> None:
    """These sets, this many queries."""
    parser = argparse.ArgumentParser(prog="bench.render", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER", help="labelled sets, one folder each")
    parser.add_argument("--sets", default="", metavar="a,b", help="only these")
    parser.add_argument("--queries", type=int, default=QUERIES, metavar="N", help="for each set")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    args = parser.parse_args()
    names = [name for name in args.sets.split(",") if name]
    result = run(names=names, most=args.queries, data=args.data)
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
