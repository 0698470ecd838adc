"""When Pegboard says that nothing fits: how often rightly, how often wrongly.

`python -m bench.abstention [--queries N] [--embedder NAME] [--json FILE]`. A catalog is asked what it can do (its own
queries) and what it cannot (queries of another set, from domains in which it has no tool). Precision is given as if
as many queries had an answer as had none, whatever the sizes of the samples.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import msgspec

from bench.measure import table
from bench.quality import OWN_SUITE, suite
from bench.rivals.pegboard_itself import finder_of
from bench.texts import labelled, sets
from pegboard.index import index as index_module
from pegboard.index.confidence import FITS
from pegboard.index.evaluate import Query, places_of
from pegboard.index.finder import Finder, Terms
from pegboard.index.intents import SUITE, read_intents
from pegboard.types import Json

QUERIES = 200
THRESHOLDS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
EVERY_QUERY = 1_000_000
"""Foreign queries are chosen by domain before they are counted."""

_FILES_AND_PAGES = ("filesystem::", "playwright::", "puppeteer::")
_OF_THE_HOUSE = (
    "Alarm",
    "Scene",
    "TimedSwitch",
    "Registration",
    "HealthData",
    "OpenBankAccount",
    "Password",
    "Account",
)


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A catalog, and a set whose queries it cannot answer."""

    catalog: str
    foreign: str
    only: tuple[str, ...] = ()
    """Foreign queries all of whose tools have one of these in their ids; none means all queries."""
    without: tuple[str, ...] = ()
    """Foreign queries none of whose tools have these in their ids."""
    less: tuple[str, ...] = ()
    """Servers left out of the catalog: a search of the whole web could answer anything."""


PAIRS = (
    Pair(catalog="restbench", foreign="apibank", without=("PlayMusic", "Wiki", "Search", "History", "DocumentQA")),
    Pair(catalog="restbench", foreign="mcptoolbench_pp", only=(*_FILES_AND_PAGES, "paypal::")),
    Pair(catalog="mcptoolbench_pp", foreign="restbench", less=("google-search", "tavily-mcp")),
    Pair(catalog="mcptoolbench_pp", foreign="apibank", only=_OF_THE_HOUSE, less=("google-search", "tavily-mcp")),
    Pair(catalog="apibank", foreign="mcptoolbench_pp", only=(*_FILES_AND_PAGES, "paypal::")),
    Pair(catalog="toolalpaca", foreign="mcptoolbench_pp", only=(*_FILES_AND_PAGES, "paypal::")),
    Pair(catalog="toolalpaca", foreign="restbench", only=("spotify::",)),
    Pair(catalog="ultratool_en", foreign="mcptoolbench_pp", only=("playwright::", "puppeteer::")),
    Pair(catalog="metatool", foreign="mcptoolbench_pp", only=("filesystem::",)),
    Pair(catalog="metatool", foreign="apibank", only=_OF_THE_HOUSE),
)


class Case(msgspec.Struct, frozen=True):
    """A catalog with queries of both kinds."""

    name: str
    finder: Finder
    answerable: tuple[Query, ...]
    unanswerable: tuple[str, ...]


class Shares(msgspec.Struct, frozen=True):
    """How abstaining went."""

    wrongly: float
    """Share of the answerable that were told that nothing fits."""
    rightly: float
    """Share of the unanswerable that were told so: the recall."""
    withheld: float
    """Share of the answerable that were told so although a right tool would have been among the first five."""

    @property
    def precision(self) -> float | None:
        """Of as many answerable as unanswerable: the share of abstentions that were right; None if there are none."""
        return self.rightly / (self.rightly + self.wrongly) if self.rightly + self.wrongly else None


def run(*, most: int = QUERIES, embedder: str = "static") -> Json:
    """Every pair at the threshold that is shipped, then the average at others."""
    return asyncio.run(_run(most, embedder))


async def _run(most: int, embedder: str) -> Json:
    there = set(sets())
    pairs = [pair for pair in PAIRS if {pair.catalog, pair.foreign} <= there]
    cases = [await _suite(embedder), *[await _case(pair, most, embedder) for pair in pairs]]
    shipped = [await _measured(case) for case in cases]
    rows = [[case.name, str(len(case.answerable)), str(len(case.unanswerable)), *_cells(each)]
            for case, each in zip(cases, shipped, strict=True)]  # fmt: skip
    headers = ("wrongly abstained", "withheld a find", "rightly abstained (recall)", "precision")
    table(
        f"Abstaining with {embedder}, at the shipped threshold {FITS}, per cent",
        ("catalog ← queries it cannot answer", "answerable", "unanswerable", *headers),
        [*rows, ["mean", "", "", *_cells(_mean(shipped))]],
    )
    others = {}
    for threshold in THRESHOLDS:
        with patch.object(index_module, "FITS", threshold):
            others[str(threshold)] = _mean([await _measured(case) for case in cases])
    table(
        "Abstaining at other thresholds, mean of the same, per cent",
        ("threshold", *headers),
        [[f"{threshold}{' (shipped)' if float(threshold) == FITS else ''}", *_cells(each)]
         for threshold, each in others.items()],
    )  # fmt: skip
    return {
        "threshold": FITS,
        "embedder": embedder,
        "shipped": {case.name: _plain(each) for case, each in zip(cases, shipped, strict=True)},
        "mean": _plain(_mean(shipped)),
        "thresholds": {threshold: _plain(each) for threshold, each in others.items()},
    }


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────────────


async def _suite(embedder: str) -> Case:
    """The suite that comes with Pegboard, part of whose intents nothing fits."""
    tools, fits = suite()
    nothing = [case.ask for case in read_intents(SUITE / "intents.toml") if case.nothing]
    return Case(OWN_SUITE, await finder_of(tools, embedder), tuple(fits), tuple(nothing))


async def _case(pair: Pair, most: int, embedder: str) -> Case:
    tools, own = labelled(pair.catalog, EVERY_QUERY)
    tools = [tool for tool in tools if tool.server not in pair.less]
    left = {tool.public_name for tool in tools}
    answerable = [query for query in own if all(left & set(group) for group in query.groups)]
    foreign = [query.query for query in labelled(pair.foreign, EVERY_QUERY)[1] if _foreign(query, pair)]
    name = f"{pair.catalog} ← {pair.foreign}"
    return Case(name, await finder_of(tools, embedder), tuple(answerable[:most]), tuple(foreign[:most]))


def _foreign(query: Query, pair: Pair) -> bool:
    ids = [each for group in query.groups for each in group]
    inside = not pair.only or all(any(part in each for part in pair.only) for each in ids)
    return inside and not any(part in each for part in pair.without for each in ids)


# ── what comes of it ─────────────────────────────────────────────────────────────────────────────────────────────────


async def _measured(case: Case) -> Shares:
    abstained = [query for query in case.answerable if await _abstains(case.finder, query.query)]
    withheld = [query for query in abstained if await _would_find(case.finder, query)]
    rightly = [query for query in case.unanswerable if await _abstains(case.finder, query)]
    answerable = len(case.answerable)
    return Shares(len(abstained) / answerable, len(rightly) / len(case.unanswerable), len(withheld) / answerable)


async def _abstains(finder: Finder, query: str) -> bool:
    return not (await finder.search(query)).hits


async def _would_find(finder: Finder, query: Query) -> bool:
    hits = (await finder.search(query.query, Terms(always=True))).hits
    return any(place is not None for place in places_of(query.groups, [hit.name for hit in hits]))


def _mean(shares: Sequence[Shares]) -> Shares:
    return Shares(
        statistics.fmean(each.wrongly for each in shares),
        statistics.fmean(each.rightly for each in shares),
        statistics.fmean(each.withheld for each in shares),
    )


def _cells(shares: Shares) -> list[str]:
    every = (shares.wrongly, shares.withheld, shares.rightly, shares.precision)
    return ["-" if each is None else f"{100 * each:.1f}" for each in every]


def _plain(shares: Shares) -> Json:
    return {
        "wrongly_abstained": round(shares.wrongly, 4),
        "withheld": round(shares.withheld, 4),
        "recall": round(shares.rightly, 4),
        "precision": None if shares.precision is None else round(shares.precision, 4),
    }


def main() -> None:
    """These many queries, this embedder."""
    parser = argparse.ArgumentParser(prog="bench.abstention")
    parser.add_argument("--queries", type=int, default=QUERIES, metavar="N", help="of each kind, for each pair")
    parser.add_argument("--embedder", default="static", metavar="NAME", help="static, minilm or none")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    args = parser.parse_args()
    found = run(most=args.queries, embedder=args.embedder)
    if args.json:
        args.json.write_text(json.dumps(found, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
