"""`pegboard refresh`: asks servers for their tools, showing how each one fares."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Container

from pegboard.cli import output
from pegboard.cli.context import load_with_servers
from pegboard.config.model import Config
from pegboard.engine import Engine, Refreshed


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own flags."""
    parser.add_argument("servers", nargs="*", help="which ones; all by default")


def run(args: argparse.Namespace) -> int:
    """Refreshes, and says what changed. Exit code 1 when a server could not be asked."""
    config = load_with_servers(args)
    outcomes, warnings = asyncio.run(_refresh(config, args.servers, quiet=args.json))
    if args.json:
        output.emit({"servers": outcomes, "warnings": warnings})
    return 1 if any(outcome.error for outcome in outcomes) else 0


async def _refresh(config: Config, names: list[str], *, quiet: bool) -> tuple[list[Refreshed], tuple[str, ...]]:
    async with Engine(config, refresh=False) as engine:
        report = _Report(quiet=quiet)
        outcomes = await engine.refresh(names, on_done=report.done)
        report.finish(outcomes, engine, names or config.servers)
        return outcomes, engine.catalog.warnings


class _Report:
    """A line for each server as it comes in, with its time since the start."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._start = time.monotonic()

    def done(self, outcome: Refreshed) -> None:
        if self._quiet:
            return
        took = time.monotonic() - self._start
        if outcome.error:
            output.say(f"{output.symbol('✗', 'x')} {output.printable(outcome.error)}")
            if outcome.hint:
                output.say("    " + output.printable(outcome.hint).replace("\n", "\n    "))
            if outcome.tools:
                stays = "tool stays" if outcome.tools == 1 else "tools stay"
                output.say(f"    Its {outcome.tools} cached {stays}.")
        else:
            good = output.symbol("✓", "+")
            output.say(f"{good} {outcome.server}: {_tools(outcome.tools)}{_changes(outcome)} ({took:.1f} s)")
        for warning in outcome.warnings:
            output.say(f"    warning: {output.printable(warning)}")
        sys.stdout.flush()

    def finish(self, outcomes: list[Refreshed], engine: Engine, wanted: Container[str]) -> None:
        if self._quiet:
            return
        for entry in engine.catalog.servers.values():
            reason = entry.problem or entry.unavailable
            if reason and entry.enabled and entry.name in wanted:
                output.say(f"- {entry.name}: {output.printable(reason)}")
        failed = sum(1 for outcome in outcomes if outcome.error)
        tools = _tools(len(engine.catalog.tools))
        output.say(f"{len(outcomes) - failed} of {len(outcomes)} servers answered; {tools} may be used.")


def _tools(count: int) -> str:
    return "1 tool" if count == 1 else f"{count} tools"


def _changes(outcome: Refreshed) -> str:
    counts = (("+", outcome.added), ("-", outcome.removed), ("~", outcome.changed))
    words = " ".join(f"{sign}{len(names)}" for sign, names in counts if names)
    return f" ({words})" if words else ""
