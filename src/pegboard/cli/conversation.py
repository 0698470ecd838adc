"""`pegboard context [conversation]`: what a conversation has loaded, what is pinned, what is deferred, in tokens."""

from __future__ import annotations

import argparse
import asyncio
import time

import msgspec

from pegboard.cli import output
from pegboard.cli.context import load_with_servers
from pegboard.cli.output import age
from pegboard.config.model import Config
from pegboard.engine import Engine
from pegboard.surface.compose import Reason, Surface
from pegboard.types import Caller, Json


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("conversation", nargs="?", default="", help="its key; without one, all that have tools loaded")


def run(args: argparse.Namespace) -> int:
    """Shows it. Nothing is started and nothing is changed."""
    config = load_with_servers(args)
    if args.conversation:
        return asyncio.run(_one(config, args))
    return asyncio.run(_all(config, args))


async def _all(config: Config, args: argparse.Namespace) -> int:
    async with Engine(config, refresh=False) as engine:
        store = engine.office().store()
        known = await store.conversations() if store is not None else {}
        surfaces = {key: await engine.desk().context(Caller(conversation=key)) for key in known}
    now, ttl = time.time(), config.surface.activation_ttl
    rows = {
        key: {"active": len(surface.activation.names), "last_used": known[key] - ttl}
        for key, surface in surfaces.items()
        if surface.activation.names
    }
    if args.json:
        output.emit({"conversations": rows})
        return 0
    if not rows:
        output.say("No conversation has tools loaded.")
        return 0
    cap = config.surface.max_active
    table = (
        (output.printable(key), f"{row['active']}/{cap}", f"{age(now - row['last_used'])} ago")
        for key, row in rows.items()
    )
    output.table(("conversation", "active", "last used"), table)
    return 0


async def _one(config: Config, args: argparse.Namespace) -> int:
    async with Engine(config, refresh=False) as engine:
        surface = await engine.desk().context(Caller(conversation=args.conversation))
        report = _report(surface, config)
    if args.json:
        output.emit(report)
    else:
        _print(report)
    return 0


def _report(surface: Surface, config: Config) -> Json:
    stock, now = surface.basis.stock, time.time()
    active = [
        {"tool": use.name, "age_s": round(max(now - use.at, 0)), "tokens": stock.tokens(use.name)}
        for use in surface.activation.uses
        if use.name in surface.permitted
    ]
    shown = [msgspec.to_builtins(entry) | {"tool": entry.name} for entry in surface.shown]
    return {
        "deferring": surface.verdict.deferring,
        "why": surface.verdict.why,
        "active": active,
        "cap": config.surface.max_active,
        "pinned": [entry for entry in shown if entry["reason"] in (Reason.PINNED, Reason.NAMED)],
        "own_tokens": surface.tokens(Reason.OWN),
        "shown_tokens": surface.tokens(),
        "deferred": surface.deferred,
        "deferred_tokens": surface.deferred_tokens,
        "counted": surface.counted,
        "warnings": surface.warnings,
    }


def _print(report: Json) -> None:
    state = "deferred" if report["deferring"] else "passed through as they are"
    output.say(f"Tools are {state}: {output.printable(report['why'])}" if report["why"] else f"Tools are {state}.")
    rows = [(f"active {len(report['active'])}/{report['cap']}", "", "", "")]
    rows += [("", each["tool"], f"{each['tokens']:,}", f"{age(each['age_s'])} ago") for each in report["active"]]
    rows.append((f"pinned {len(report['pinned'])}", "", "", ""))
    rows += [("", each["tool"], f"{each['tokens']:,}", "") for each in report["pinned"]]
    rows.append(("own tools", "", f"{report['own_tokens']:,}", ""))
    rows.append((f"deferred {report['deferred']:,}", "", f"{sum(report['deferred_tokens'].values()):,}", ""))
    rows += [("", server, f"{tokens:,}", "") for server, tokens in report["deferred_tokens"].items()]
    output.table(("", "tool", "tokens", "last used"), rows)
    output.say(f"Tokens were counted: {report['counted']}.")
    for warning in report["warnings"]:
        output.warn(f"warning: {output.printable(warning)}")
