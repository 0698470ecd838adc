"""What the answers of `search_tools` cost on the largest catalog there is: the text as a model gets it."""

from __future__ import annotations

import asyncio
import statistics

from bench.measure import table
from bench.quality import suite
from bench.rivals.pegboard_itself import finder_of
from bench.texts import labelled, sets
from pegboard.index.evaluate import Query
from pegboard.platform_tools.asked import Asked
from pegboard.platform_tools.search import answer_text, terms_of
from pegboard.surface.render import Detail
from pegboard.surface.tokens import WORD_PIECES
from pegboard.types import Caller, Json, Tool

LARGE_SET = "mcp_mega"
QUERIES = 200
AIM = 400
DETAILS: tuple[Detail, ...] = ("signature", "schema", "names")


def suite_queries() -> list[Query]:
    """The suite's own, where no other set is there."""
    return suite()[1]


def run() -> Json:
    """All queries, in each of the forms an answer can have."""
    if LARGE_SET in sets():
        tools, queries = labelled(LARGE_SET, QUERIES)
    else:
        tools, queries = suite()
    counts = asyncio.run(_counts(tools, [each.query for each in queries[:QUERIES]]))
    rows = [
        [detail, f"{statistics.median(each):.0f}", f"{sorted(each)[int(0.95 * (len(each) - 1))]}", f"{max(each)}"]
        for detail, each in counts.items()
    ]
    title = f"An answer of search_tools as it is sent, {len(tools):,} tools, {len(queries)} queries; {WORD_PIECES.name}"
    table(title, ("tokens", "median", "p95", "most"), rows)
    median = statistics.median(counts["signature"])
    print(f"  aim: median answer {median:.0f} tokens, at most {AIM}: {'met' if median <= AIM else 'NOT met'}")
    return {"tools": len(tools), **{detail: statistics.median(each) for detail, each in counts.items()}}


async def _counts(tools: list[Tool], queries: list[str]) -> dict[str, list[int]]:
    finder = await finder_of(tools, "static")
    found: dict[str, list[int]] = {detail: [] for detail in DETAILS}
    for query in queries:
        answer = await finder.search(query, terms_of(Asked(query=query), Caller()))
        for detail in DETAILS:
            asked = Asked(query=query, detail=detail)
            found[detail].append(
                WORD_PIECES.count(answer_text(asked, answer, finder.tools, call=lambda _: "call_tool"))
            )
    return found
