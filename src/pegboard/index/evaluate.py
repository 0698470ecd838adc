"""How well a search finds what it should: queries with the tools they need in, figures out.

A query needs groups of tools; any member of a group will do, and each group counts once, at its best place. Above:
`pegboard eval`, `make bench`. Below: the nouns.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec

from pegboard.errors import EvaluationError
from pegboard.types import Json, Tool

CUTS = (1, 3, 5, 10)
DEPTH = 10

Search = Callable[[str, int], Awaitable[Sequence[str]]]
"""A query and how many in, public names out, best first."""


class Query(msgspec.Struct, frozen=True):
    """What is asked, and the groups of tools it needs."""

    query: str
    groups: tuple[tuple[str, ...], ...]


class Miss(msgspec.Struct, frozen=True):
    """A query that did not get all it needs among the first five."""

    query: str
    missing: tuple[tuple[str, ...], ...]
    found: tuple[str, ...]


class Figures(msgspec.Struct, frozen=True):
    """Averages over all queries, from 0 to 1, and the time one took."""

    queries: int
    recall: dict[int, float]
    ndcg: float
    mrr: float
    latency_ms: dict[str, float]
    misses: tuple[Miss, ...] = ()

    def as_json(self) -> Json:
        """The keys that scripts read."""
        return {
            **{f"recall@{cut}": round(self.recall[cut], 4) for cut in CUTS},
            f"ndcg@{DEPTH}": round(self.ndcg, 4),
            "mrr": round(self.mrr, 4),
            "queries": self.queries,
            "latency_ms": {name: round(value, 3) for name, value in self.latency_ms.items()},
        }


async def evaluate(
    queries: Sequence[Query], search: Search, on_progress: Callable[[int, int], None] | None = None
) -> Figures:
    """Asks every query and scores the answers."""
    found: list[Sequence[str]] = []
    times: list[float] = []
    for number, query in enumerate(queries):
        start = perf_counter()
        found.append(await search(query.query, DEPTH))
        times.append((perf_counter() - start) * 1000)
        if on_progress is not None:
            on_progress(number + 1, len(queries))
    return figures(queries, found, times)


def figures(queries: Sequence[Query], found: Sequence[Sequence[str]], times: Sequence[float]) -> Figures:
    """The averages of answers that are there already."""
    places = [places_of(query.groups, names) for query, names in zip(queries, found, strict=True)]
    misses = (_miss(query, names, where) for query, names, where in zip(queries, found, places, strict=True))
    return Figures(
        queries=len(queries),
        recall={cut: _mean([recall(where, cut) for where in places]) for cut in CUTS},
        ndcg=_mean([ndcg(where) for where in places]),
        mrr=_mean(
            [1 / (1 + min((place for place in where if place is not None), default=math.inf)) for where in places]
        ),
        latency_ms={"p50": _quantile(times, 0.50), "p95": _quantile(times, 0.95)},
        misses=tuple(miss for miss in misses if miss is not None),
    )


def places_of(groups: Iterable[Iterable[str]], names: Sequence[str]) -> list[int | None]:
    """Where the best-placed member of each group stands, counted from 0; None when none does."""
    place = {name: number for number, name in reversed(list(enumerate(names)))}
    return [min((place[name] for name in group if name in place), default=None) for group in groups]


def recall(places: Sequence[int | None], cut: int) -> float:
    """The share of groups with a member among the first `cut`."""
    return sum(place is not None and place < cut for place in places) / len(places) if places else 0.0


def ndcg(places: Sequence[int | None]) -> float:
    """Discounted gain at ten, each group once, against that of a perfect list."""
    gain = sum(1 / math.log2(place + 2) for place in places if place is not None and place < DEPTH)
    perfect = sum(1 / math.log2(place + 2) for place in range(min(DEPTH, len(places))))
    return gain / perfect if perfect else 0.0


def _miss(query: Query, names: Sequence[str], places: Sequence[int | None]) -> Miss | None:
    missing = tuple(group for group, place in zip(query.groups, places, strict=True) if place is None or place >= 5)
    return Miss(query.query, missing, tuple(names[:5])) if missing else None


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_queries(path: Path) -> list[Query]:
    """Rows `{"query", "relevant": [ids], "groups": [[ids], …]}`; without groups each relevant id is one."""
    return [_query(row, path, line) for line, row in _rows(path)]


def read_tools(path: Path) -> list[Tool]:
    """Rows `{"id", "server", "name", "description", "inputSchema"}`; the id is the public name."""
    return [_tool(row, path, line) for line, row in _rows(path)]


def _query(row: Json, path: Path, line: int) -> Query:
    text, groups, relevant = row.get("query"), row.get("groups"), row.get("relevant")
    if not isinstance(text, str):
        raise EvaluationError(f"{path}:{line}: a query needs a text under `query`.")
    if not isinstance(groups, list) or not groups:
        groups = [[name] for name in relevant] if isinstance(relevant, list) else None
    if not groups or not all(
        isinstance(group, list) and group and all(isinstance(each, str) for each in group) for group in groups
    ):
        raise EvaluationError(f"{path}:{line}: a query needs `groups` or `relevant`, lists of tools' ids.")
    return Query(text, tuple(tuple(group) for group in groups))


def _tool(row: Json, path: Path, line: int) -> Tool:
    name = row.get("name") or row.get("id")
    if not isinstance(name, str):
        raise EvaluationError(f"{path}:{line}: a tool needs a `name`.")
    definition: Json = {key: value for key, value in row.items() if key not in ("id", "server", "tags", "scopes")}
    return Tool(
        server=str(row.get("server") or ""),
        name=name,
        public_name=str(row.get("id") or name),
        definition=msgspec.json.encode(definition),
        fingerprint="",
        title=_text(row.get("title")),
        description=_text(row.get("description")),
        tags=_texts(row.get("tags")),
        scopes=_texts(row.get("scopes")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _rows(path: Path) -> Iterable[tuple[int, Json]]:
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, _row(line, path, number)
    except OSError as error:
        raise EvaluationError(f"{path} cannot be read: {error.strerror}.") from None


def _row(line: bytes, path: Path, number: int) -> Json:
    try:
        row = msgspec.json.decode(line)
    except RecursionError:
        raise EvaluationError(f"{path}:{number}: this line is nested too deeply.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path}:{number}: this line is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise EvaluationError(f"{path}:{number}: a row must be a JSON object.")
    return row
