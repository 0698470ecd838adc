"""How well tools are found, and how fast, beside other people's search: same tools, same queries, same run.

`python -m bench.quality [--queries N] [--sets a,b] [--all] [--seconds N] [--json FILE]`. Every search runs in a process
of its own and gives up to ten names for a query; all are scored alike, by groups of tools that do equally well.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.measure import table
from bench.rivals import speed
from bench.rivals.environment import OTHERS, OWN, Entry, Outcome, ask, write_tools
from bench.texts import labelled, sets
from pegboard.index.evaluate import Figures, Query, figures, read_tools
from pegboard.index.intents import SUITE, read_intents
from pegboard.types import Json, Tool

QUERIES = 300
SECONDS = 240.0
"""What one search may take for one set; one that is slower answers fewer queries, and the table says so."""
OWN_SUITE = "suite"
DEFAULT, EXTRA, BASE, BASE_MORE = OWN[0].name, OWN[1].name, OTHERS[0].name, OTHERS[1].name
COPIES = "  copies named beside a hit count"
LARGE_SET = "mcp_mega"

AIM_DEFAULT, AIM_EXTRA, AIM_WORST, AIM_LARGE = 6.0, 9.0, -1.0, 1.3


class Cell(msgspec.Struct, frozen=True):
    """One search on one set, in per cent."""

    ndcg: float
    recall: float
    queries: int
    fewer: bool = False
    """Whether it had no time for all of them."""


Cells = dict[str, dict[str, Cell]]
"""By search, then by set."""


class Result(msgspec.Struct):
    """Everything that was found out."""

    sets: list[str]
    cells: Cells
    about: dict[str, str]
    failed: dict[str, dict[str, str]]


def run(
    *,
    names: Sequence[str] = (),
    most: int = QUERIES,
    seconds: float = SECONDS,
    everything: bool = False,
    sizes: Sequence[int] = speed.SIZES,
) -> Json:
    """Quality on every set, then speed at two sizes."""
    there = sets()
    result = Result([name for name in names or there if name in there] or [OWN_SUITE], {}, {}, {})
    for name in result.sets:
        _one_set(result, name, most, seconds, everything)
    _show(result)
    if result.sets == [OWN_SUITE]:
        print("  these are the intents that come with Pegboard; the aims are about other sets, which are not here")
    aims = _aims(result) if result.sets != [OWN_SUITE] else {}
    return {"quality": _plain(result), "aims": aims, "speed": speed.run(sizes, seconds)}


# ── quality ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def suite() -> tuple[list[Tool], list[Query]]:
    """The tools that come with Pegboard, and its intents that one of them fits."""
    tools = read_tools(SUITE / "tools.jsonl")
    called: dict[str, list[str]] = {}
    for tool in tools:
        called.setdefault(tool.name, []).append(tool.public_name)
    cases = [case for case in read_intents(SUITE / "intents.toml") if not case.nothing]
    groups = [
        [[full for name in group for full in called.get(name, [name])] for group in case.groups] for case in cases
    ]
    return tools, [Query(case.ask, tuple(map(tuple, each))) for case, each in zip(cases, groups, strict=True)]


def _one_set(result: Result, name: str, most: int, seconds: float, everything: bool) -> None:
    tools, queries = labelled(name, most) if name != OWN_SUITE else suite()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tools.jsonl")
        write_tools(tools, path)
        for entry in (*OWN, *OTHERS):
            if entry.most_tools is not None and len(tools) > entry.most_tools and not everything:
                continue
            print(f"  {name} ({len(tools):,} tools): {entry.name} …", file=sys.stderr, flush=True)
            outcome = ask(entry, path, [query.query for query in queries], seconds)
            _note(result, name, entry, outcome, queries)


def _note(result: Result, name: str, entry: Entry, outcome: Outcome, queries: Sequence[Query]) -> None:
    if outcome.failed:
        result.failed.setdefault(entry.name, {})[name] = outcome.failed
        return
    result.about[entry.name] = outcome.about
    some = queries[: len(outcome.found)]
    listed = [[place[0] for place in places] for places in outcome.found]
    result.cells.setdefault(entry.name, {})[name] = _cell(figures(some, listed, ()), len(queries))
    if entry.name == DEFAULT:
        counted = [_as_listed(query, places) for query, places in zip(some, outcome.found, strict=True)]
        result.cells.setdefault(COPIES, {})[name] = _cell(figures(counted, listed, ()), len(queries))


def _as_listed(query: Query, places: Sequence[Sequence[str]]) -> Query:
    """The query with each copy called by the name of the hit it stands beside."""
    called = {copy: place[0] for place in reversed(places) for copy in place}
    listed = {place[0] for place in places}
    return Query(
        query.query,
        tuple(tuple(each if each in listed else called.get(each, each) for each in group) for group in query.groups),
    )


def _cell(found: Figures, wanted: int) -> Cell:
    return Cell(100 * found.ndcg, 100 * found.recall[5], found.queries, found.queries < wanted)


def _common(result: Result) -> list[str]:
    """The sets that every search which works at all was asked."""
    return [name for name in result.sets if all(name in cells for cells in result.cells.values())]


def _macro(cells: dict[str, Cell], names: Sequence[str], measure: str) -> float | None:
    if not names or any(name not in cells for name in names):
        return None
    return statistics.fmean(getattr(cells[name], measure) for name in names)


def _show(result: Result) -> None:
    common = _common(result)
    headers = ["", *result.sets, "macro", f"macro of {len(common)}"]
    for title, measure in (("nDCG@10", "ndcg"), ("recall@5", "recall")):
        rows = [[_label(result, name), *_row(result, name, measure, common)] for name in _order()]
        table(f"{title}, per cent", headers, rows)
    if len(common) < len(result.sets):
        print(f"  -: not asked or failed. The last column is over the {len(common)} sets that all were asked")
    if any(cell.fewer for cells in result.cells.values() for cell in cells.values()):
        print("  *: too slow for all queries in the time that each has; over the first of them")
    for about in dict.fromkeys(result.about.values()):
        print(f"  {'; '.join(name for name in result.about if result.about[name] == about)}: {about}")
    for name, why in result.failed.items():
        said = {reason: [each for each in why if why[each] == reason] for reason in dict.fromkeys(why.values())}
        for reason, where in said.items():
            print(f"  {name}: {reason}" + ("" if len(where) == len(result.sets) else f" ({', '.join(where)})"))


def _order() -> list[str]:
    own = [entry.name for entry in OWN]
    return [own[0], COPIES, *own[1:], *(entry.name for entry in OTHERS)]


def _label(result: Result, name: str) -> str:
    """The search's name; that of one which never worked says so."""
    if name in result.cells or name not in result.failed:
        return name
    return f"{name} ({next(iter(result.failed[name].values())).partition(':')[0]})"


def _row(result: Result, name: str, measure: str, common: Sequence[str]) -> list[str]:
    cells = result.cells.get(name, {})
    row = [
        f"{getattr(cells[each], measure):.1f}{'*' if cells[each].fewer else ''}" if each in cells else "-"
        for each in result.sets
    ]
    macros = (_macro(cells, result.sets, measure), _macro(cells, common, measure))
    return [*row, *("-" if macro is None else f"{macro:.1f}" for macro in macros)]


def _aims(result: Result) -> dict[str, bool]:
    """What the search is meant to reach, against plain BM25 of the same run."""
    base, default = result.cells.get(BASE, {}), result.cells.get(DEFAULT, {})
    both = [name for name in result.sets if name in base and name in default]
    if not both:
        print(f"  aims: cannot be judged without {BASE}")
        return {}
    gain, (least, worst) = _gain(default, base, both), _least(default, base, both)
    said = {
        f"macro nDCG@10 of the default {gain:+.1f} against {BASE}, at least {AIM_DEFAULT:+.0f}": gain >= AIM_DEFAULT,
        f"worst set {worst} {least:+.1f}, none below {AIM_WORST:+.0f}": least >= AIM_WORST,
    }
    extra = result.cells.get(EXTRA, {})
    where = [name for name in both if name in extra]
    if where:
        gain = _gain(extra, base, where)
        more = f"macro nDCG@10 of {EXTRA} {gain:+.1f} over {len(where)} sets, at least {AIM_EXTRA:+.0f}"
        said[more] = gain >= AIM_EXTRA
    if LARGE_SET in both and base[LARGE_SET].recall:
        times = default[LARGE_SET].recall / base[LARGE_SET].recall
        said[f"{LARGE_SET} recall@5 {times:.2f} times that of {BASE}, at least {AIM_LARGE}"] = times >= AIM_LARGE
    for label, met in said.items():
        print(f"  aim: {label}: {'met' if met else 'NOT met'}")
    _beside(default, result.cells.get(BASE_MORE, {}), both)
    return said


def _beside(ours: dict[str, Cell], theirs: dict[str, Cell], names: Sequence[str]) -> None:
    """The same against the stronger plain search, which no aim is about."""
    if all(name in theirs for name in names):
        least, worst = _least(ours, theirs, names)
        print(f"  against {BASE_MORE} it would be macro {_gain(ours, theirs, names):+.1f}, worst {worst} {least:+.1f}")


def _least(ours: dict[str, Cell], theirs: dict[str, Cell], names: Sequence[str]) -> tuple[float, str]:
    return min((ours[name].ndcg - theirs[name].ndcg, name) for name in names)


def _gain(ours: dict[str, Cell], theirs: dict[str, Cell], names: Sequence[str]) -> float:
    return statistics.fmean(ours[name].ndcg - theirs[name].ndcg for name in names)


def _plain(result: Result) -> Json:
    macros = {
        name: {measure: _macro(cells, result.sets, measure) for measure in ("ndcg", "recall")}
        for name, cells in result.cells.items()
    }
    found: Json = msgspec.to_builtins(result)
    return {**found, "common": _common(result), "macro": macros}


def main() -> None:
    """These sets, this many queries."""
    parser = argparse.ArgumentParser(prog="bench.quality")
    parser.add_argument("--queries", type=int, default=QUERIES, metavar="N", help="of each set; always the same ones")
    parser.add_argument("--sets", default="", metavar="A,B", help="these only")
    parser.add_argument("--all", action="store_true", help=f"{EXTRA} also on large sets, which takes it minutes")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="N", help="for one search on one set")
    parser.add_argument(
        "--sizes", default=",".join(map(str, speed.SIZES)), metavar="A,B", help="for speed; may be empty"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    args = parser.parse_args()
    found = run(
        names=[name for name in args.sets.split(",") if name],
        most=args.queries,
        seconds=args.seconds,
        everything=args.all,
        sizes=[int(size) for size in args.sizes.split(",") if size],
    )
    if args.json:
        args.json.write_text(json.dumps(found, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
