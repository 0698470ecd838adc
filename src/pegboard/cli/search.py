"""`pegboard search`: the tools that can do what you say, best first, from the cache; no server is started."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from pegboard.catalog.catalog import Catalog
from pegboard.cli import output
from pegboard.cli.context import load_with_servers
from pegboard.cli.progress import Progress
from pegboard.engine import Engine
from pegboard.errors import PegboardError, ServerNotFound
from pegboard.index.finder import DEFAULT_LIMIT, MOST_SURFACED, Terms
from pegboard.index.intent import SELECT
from pegboard.index.narrow import Narrow
from pegboard.surface.render import signature, summary
from pegboard.types import Answer, Hit, Json, Match

if TYPE_CHECKING:
    from pegboard.skills.source import Skill

ROUTED = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own flags."""
    parser.add_argument(
        "query", nargs="+", help="what you want to do; `select:a,b` for exact names, `+word` demands it"
    )
    parser.add_argument("--limit", type=_limit, default=DEFAULT_LIMIT, metavar="N", help=f"1 to {MOST_SURFACED}")
    parser.add_argument("--server", action="append", default=[], metavar="NAME", help="only of this server; may repeat")
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="only with this tag; may repeat")
    parser.add_argument("--scope", action="append", metavar="SCOPE", help="a permission you have; others are left out")
    parser.add_argument("--allow", action="append", metavar="GLOB", help="only tools of these names; may repeat")
    parser.add_argument("--max-cost", type=_amount, metavar="USD", help="at most this much for a call, where known")
    parser.add_argument("--max-latency", type=_amount, metavar="MS", help="at most this slow, where known")
    parser.add_argument("--latency", choices=("p95", "p99"), default="p95", help="what --max-latency means")
    parser.add_argument("--explain", action="store_true", help="the parts of each score")
    parser.add_argument("--servers", action="store_true", help="the servers that can best do it, instead of tools")


def run(args: argparse.Namespace) -> int:
    """Searches. Exit code 1 when nothing fits, as grep has it."""
    return asyncio.run(_search(args))


async def _search(args: argparse.Namespace) -> int:
    query = " ".join(args.query)
    if not query.strip():
        raise PegboardError("There is nothing to search for.", hint='Say what you want to do: pegboard search "…"')
    if query.strip().lower() == SELECT:
        raise PegboardError("`select:` needs names.", hint="pegboard search select:github__create_issue,add_note")
    skills_too = not (args.servers or _is_narrowed(args))
    config = load_with_servers(args, or_skills=skills_too)
    async with Engine(config, refresh=False, on_warning=_say_warning) as engine:
        catalog = engine.catalog
        for name in args.server:
            if name not in catalog.servers:
                raise ServerNotFound(name, catalog.nearest_servers(name))
        if not catalog.tools and config.servers:
            unknown = PegboardError("No tools are known yet.", hint="`pegboard refresh` asks the servers for them.")
            if not (skills_too and config.skill_roots):
                raise unknown
            _say_warning(f"{unknown.message} {unknown.hint}")
        with Progress() as progress:
            built = await engine.ready_to_search(progress)
        _warn(engine, "" if args.servers or built is None else built.by_words)
        await engine.office().recall()
        if args.servers:
            return await _route(engine, engine.catalog, query, args)
        answer = await engine.search(query, _terms(args))
        skills = await engine.search_skills(query) if skills_too else []
        catalog = engine.catalog
        if args.json:
            output.emit(_as_json(answer, catalog, explain=args.explain) | _skills_as_json(engine, skills))
        else:
            _print(answer, catalog, explain=args.explain, besides=bool(skills))
            for skill in skills:
                output.say(output.printable(f"skill: {skill.name} — {skill.description}"))
                output.say(f"    pegboard skills show {skill.name}")
        return 0 if answer.hits or skills else 1


def _is_narrowed(args: argparse.Namespace) -> bool:
    """Whether only some tools are asked for; then skills are not."""
    return bool(args.server or args.tag) or args.max_cost is not None or args.max_latency is not None


def _skills_as_json(engine: Engine, skills: Sequence[Skill]) -> Json:
    """Nothing is said of skills where there are to be none."""
    if not engine.config.skill_roots:
        return {}
    return {"skills": [{"name": skill.name, "description": skill.description} for skill in skills]}


def _say_warning(message: str) -> None:
    output.warn(f"warning: {output.printable(message)}")


def _warn(engine: Engine, told: str) -> None:
    """What is odd about the catalog's aliases and the index, except what the answer has a note of."""
    aliases = [warning for warning in engine.catalog.warnings if "alias" in warning]
    for warning in dict.fromkeys((*aliases, *engine.index().warnings)):
        if warning != told:
            _say_warning(warning)


async def _route(engine: Engine, catalog: Catalog, query: str, args: argparse.Namespace) -> int:
    names = await engine.index().servers(catalog, query, min(args.limit, ROUTED), _terms(args).narrow)
    if args.json:
        output.emit({"servers": names})
    else:
        output.table(("server", "tools"), ((name, str(catalog.servers[name].tool_count)) for name in names))
    return 0 if names else 1


def _terms(args: argparse.Namespace) -> Terms:
    narrow = Narrow(
        servers=tuple(args.server),
        tags=tuple(args.tag),
        scopes=tuple(args.scope) if args.scope is not None else None,
        allow=tuple(args.allow) if args.allow is not None else None,
        max_cost_usd=args.max_cost,
        max_latency_ms=args.max_latency,
        latency=args.latency,
    )
    return Terms(limit=args.limit, narrow=narrow)


def _print(answer: Answer, catalog: Catalog, *, explain: bool, besides: bool) -> None:
    for number, hit in enumerate(answer.hits, 1):
        tool = catalog.tools[hit.name]
        output.say(f"{number:2}. {output.printable(signature(tool))}")
        output.say(f"    {output.printable(summary(tool))}".rstrip())
        output.say(f"    {hit.server} · {_reason(hit)}")
        if hit.also:
            output.say(f"    also: {', '.join(hit.also)}")
        if explain:
            _explain(hit.match)
    if answer.unknown:
        output.warn(f"No tool is named {', '.join(map(output.printable, answer.unknown))}.")
    elif not answer.hits:
        nearest = f" The nearest servers: {', '.join(answer.nearest_servers)}." if answer.nearest_servers else ""
        output.warn(f"{'No tool' if besides else 'Nothing'} fits.{nearest}")
    for note in answer.notes:
        output.warn(f"note: {output.printable(note)}")


def _reason(hit: Hit) -> str:
    """In one line why it was found."""
    if hit.exact:
        return "by its name"
    words = ", ".join(output.printable(word.lstrip("=")) for word in list(hit.match.words)[:6])
    return f"{hit.confidence:.0%} sure · {f'says {words}' if words else 'by its meaning'}"


def _explain(match: Match) -> None:
    for word, fields in match.words.items():
        output.say(f"      {output.printable(word.lstrip('=')):16} in {', '.join(fields)}")
    parts = {
        "words": match.lexical,
        "meaning": match.dense,
        "fused": match.fused,
        "best step": match.clause,
        "name covered": match.name_covered,
        "query covered": match.query_covered,
        "server named": match.server_named,
        "verb agrees": match.verb_agrees,
        "record": match.prior,
        "final": match.score,
    }
    output.say("      " + "  ".join(f"{name} {value:.2f}" for name, value in parts.items()))


def _as_json(answer: Answer, catalog: Catalog, *, explain: bool) -> Json:
    hits = []
    for hit in answer.hits:
        tool = catalog.tools[hit.name]
        row: Json = {
            "name": hit.name,
            "server": hit.server,
            "signature": signature(tool),
            "description": tool.description,
            "confidence": hit.confidence,
            "exact": hit.exact,
            "also": hit.also,
        }
        hits.append(row | ({"match": msgspec.to_builtins(hit.match)} if explain else {}))
    return {
        "hits": hits,
        "nearest_servers": answer.nearest_servers,
        "unknown": answer.unknown,
        "notes": answer.notes,
    }


def _limit(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= MOST_SURFACED:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to {MOST_SURFACED}, got {text!r}")
    return int(text)


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number that is not negative, got {text!r}")
    return value
