"""`pegboard eval`: how well tools are found, on labelled queries or on a team's own intents."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from pegboard.cli import output
from pegboard.cli.context import load_config
from pegboard.cli.progress import Progress
from pegboard.config.load import load
from pegboard.config.model import Config
from pegboard.engine import load_catalog
from pegboard.errors import EvaluationError, PegboardError
from pegboard.index.build import assemble, plan
from pegboard.index.embedders.choose import chosen
from pegboard.index.evaluate import CUTS, DEPTH, Figures, evaluate, read_queries, read_tools
from pegboard.index.finder import Finder, Terms
from pegboard.index.index import Index
from pegboard.index.intents import AT_LEAST, SUITE, TOP, Report, read_intents
from pegboard.index.intents import run as run_intents
from pegboard.index.keeper import embedded
from pegboard.types import Answer, Json, Tool

INTENTS = "intents"
DEFAULT_INTENTS = Path("intents.toml")


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own flags."""
    parser.add_argument("what", help="queries.jsonl, or `intents` for a file of intents")
    parser.add_argument("file", nargs="?", type=Path, help=f"with intents: the file (default {DEFAULT_INTENTS})")
    parser.add_argument("--tools", type=Path, metavar="FILE", help="tools.jsonl to search, not your own catalog")
    parser.add_argument("--misses", action="store_true", help="also every query that misses something it needs")
    parser.add_argument(
        "--compare",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="run again with this override, as in search.embedder=none, and show both",
    )
    parser.add_argument("--own", action="store_true", help="with intents: the suite that comes with Pegboard")
    parser.add_argument("--at-least", type=_share, default=AT_LEAST, metavar="SHARE", help="with intents: pass mark")


def run(args: argparse.Namespace) -> int:
    """Measures. With intents the exit code says whether enough of them were found."""
    if args.what == INTENTS:
        return asyncio.run(_intents(args))
    if args.file is not None:
        raise PegboardError(
            f"Only `{INTENTS}` takes a second file.", hint="pegboard eval --tools tools.jsonl queries.jsonl"
        )
    return asyncio.run(_queries(args))


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"expected a share from 0 to 1, got {text!r}")
    return value


# ── labelled queries ─────────────────────────────────────────────────────────────────────────────────────────────────


async def _queries(args: argparse.Namespace) -> int:
    config = load_config(args)
    queries = read_queries(Path(args.what))
    if not queries:
        raise EvaluationError(f"{args.what} has no queries.")
    tools = _tools(args, config)
    unknown = sum(all(name not in tools for name in group) for query in queries for group in query.groups)
    if unknown:
        output.warn(f"warning: {unknown} groups have no tool that is there to be found.")
    runs = {"as configured": config}
    if args.compare:
        runs[", ".join(args.compare)] = load(files=args.config, overrides=[*args.set, *args.compare])
    results: dict[str, Figures] = {}
    with Progress() as progress:
        for name, each in runs.items():
            search = _ranked(await _finder(tools, each, progress))
            results[name] = await evaluate(queries, search, lambda done, total: progress("asking", done, total))
    _show_figures(results, args)
    return 0


def _tools(args: argparse.Namespace, config: Config) -> dict[str, Tool]:
    tools = {tool.public_name: tool for tool in read_tools(args.tools)} if args.tools else load_catalog(config).tools
    if not tools:
        hint = "Name a file with --tools, or `pegboard refresh` to list your own."
        raise EvaluationError("There are no tools to search.", hint=hint)
    return tools


async def _finder(tools: dict[str, Tool], config: Config, progress: Progress) -> Finder:
    embedder = chosen(config.search)
    work = plan(tools.values(), embedder.identity if embedder else "")
    vectors = await embedded(work, embedder, progress) if embedder is not None else None
    index = Index(assemble(work, catalog="", embedder=embedder.identity if embedder else "", vectors=vectors))
    return Finder(tools, index, embedder)


def _ranked(finder: Finder) -> Callable[[str, int], Awaitable[list[str]]]:
    """Searches that always give the best there is: ranking and abstaining are two questions."""

    async def search(query: str, limit: int) -> list[str]:
        answer = await finder.search(query, Terms(limit=limit, always=True))
        return [hit.name for hit in answer.hits]

    return search


def _show_figures(results: dict[str, Figures], args: argparse.Namespace) -> None:
    plain = {name: _plain(figures, misses=args.misses) for name, figures in results.items()}
    if args.json:
        first = next(iter(plain.values()))
        output.emit(first if len(plain) == 1 else {**first, "compared": plain})
        return
    rows = [[name, *_cells(figures)] for name, figures in results.items()]
    if len(results) == 2:
        rows.append(["difference", *_difference(*results.values())])
    headers = ("", *(f"recall@{cut}" for cut in CUTS), f"ndcg@{DEPTH}", "mrr", "p50 ms", "p95 ms")
    output.table(headers, rows)
    output.say(f"{next(iter(results.values())).queries} queries")
    if args.misses:
        for name, figures in results.items():
            for miss in figures.misses:
                output.say(f"\n[{name}] {output.printable(miss.query)}")
                output.say(f"  needs  {'; '.join(' or '.join(group) for group in miss.missing)}")
                output.say(f"  found  {', '.join(miss.found)}")


def _plain(figures: Figures, *, misses: bool) -> Json:
    more = {"misses": msgspec.to_builtins(figures.misses)} if misses else {}
    return figures.as_json() | more


def _shares(figures: Figures) -> list[float]:
    return [*(figures.recall[cut] for cut in CUTS), figures.ndcg, figures.mrr]


def _cells(figures: Figures) -> list[str]:
    return [f"{100 * share:.1f}" for share in _shares(figures)] + [f"{ms:.2f}" for ms in figures.latency_ms.values()]


def _difference(before: Figures, after: Figures) -> list[str]:
    pairs = zip(_shares(before), _shares(after), strict=True)
    times = zip(before.latency_ms.values(), after.latency_ms.values(), strict=True)
    return [f"{100 * (b - a):+.1f}" for a, b in pairs] + [f"{b - a:+.2f}" for a, b in times]


# ── intents ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _intents(args: argparse.Namespace) -> int:
    config = load_config(args)
    if args.own:
        args.tools = SUITE / "tools.jsonl"
    cases = read_intents(SUITE / "intents.toml" if args.own else args.file or DEFAULT_INTENTS)
    tools = _tools(args, config)
    with Progress() as progress:
        finder = await _finder(tools, config, progress)

    async def search(query: str, limit: int) -> Answer:
        return await finder.search(query, Terms(limit=limit))

    report = await run_intents(cases, search, tools)
    _show_report(report, args)
    found = report.share(nothing=False)
    return 0 if found is None or found >= args.at_least else 1


def _show_report(report: Report, args: argparse.Namespace) -> None:
    found, nothing = report.share(nothing=False), report.share(nothing=True)
    failed = [verdict for verdict in report.verdicts if not verdict.passed]
    if args.json:
        output.emit(
            {
                "intents": len(report.verdicts),
                f"top{TOP}": found,
                "nothing_fits": nothing,
                "at_least": args.at_least,
                "ok": found is None or found >= args.at_least,
                "kinds": report.by_kind(),
                "failed": msgspec.to_builtins(failed),
            }
        )
        return
    for verdict in failed:
        wanted = "; ".join(" or ".join(group) for group in verdict.case.groups) or "nothing"
        output.say(
            f"✗ {output.printable(verdict.case.ask)}\n    wants {wanted}; got {', '.join(verdict.found) or 'nothing'}"
        )
    rows = ((kind or "-", f"{passed} of {every}") for kind, (passed, every) in report.by_kind().items())
    output.table(("kind", "passed"), rows)
    if found is not None:
        judged = "enough" if found >= args.at_least else f"NOT enough, {args.at_least:.0%} are needed"
        output.say(f"{found:.1%} found among the first {TOP}: {judged}")
    if nothing is not None:
        output.say(f"{nothing:.1%} of those that nothing fits were told so")
