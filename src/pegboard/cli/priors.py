"""`pegboard priors [show | refresh]`: what past calls say of each tool, which searches take into account."""

from __future__ import annotations

import argparse
import asyncio
import time
from fnmatch import fnmatchcase

from pegboard.cli import output
from pegboard.cli.context import load_config
from pegboard.config.model import Config
from pegboard.store.sqlite import open_store, store_path
from pegboard.telemetry.priors import HALF_LIFE
from pegboard.telemetry.upkeep import refresh_priors
from pegboard.types import Priors

_DAY = 86_400.0


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument(
        "action",
        nargs="?",
        choices=("show", "refresh"),
        default="show",
        help="show: as they were last worked out; refresh: work them out now, and drop records that are too old",
    )
    parser.add_argument("pattern", nargs="?", default="*", help="glob over public names, as in 'github__*'")


def run(args: argparse.Namespace) -> int:
    """Shows the priors, worked out anew when asked."""
    config = load_config(args)
    priors, at = asyncio.run(_priors(config, refresh=args.action == "refresh"))
    shown = {tool: each for tool, each in priors.items() if fnmatchcase(tool, args.pattern)}
    if args.json:
        output.emit({"priors_updated_at": at, "half_life_days": HALF_LIFE / _DAY, "priors": shown})
        return 0
    if not at:
        output.say(
            "Priors were never worked out. `pegboard priors refresh` does; so does `pegboard serve`, now and then."
        )
        return 0
    if shown:
        _print(shown)
    told = f"{len(shown):,} of {len(priors):,} tools with a record" if len(shown) != len(priors) else _tools(priors)
    output.say(
        f"{told}, worked out {output.age(time.time() - at)} ago. A call counts half after {HALF_LIFE / _DAY:.0f} days."
    )
    return 0


async def _priors(config: Config, *, refresh: bool) -> tuple[dict[str, Priors], float]:
    if not store_path(config).exists() and not refresh:
        return {}, 0.0
    store = open_store(config, on_warning=output.warn)
    try:
        if refresh:
            now = time.time()
            return await refresh_priors(store, now, keep_days=config.record.keep_days), now
        return await store.priors()
    finally:
        await store.close()


def _print(priors: dict[str, Priors]) -> None:
    ordered = sorted(priors.items(), key=lambda item: (-item[1].calls, item[0]))
    headers = ("tool", "calls", "works", "p50 ms", "p95 ms", "p99 ms", "USD", "tokens", "last used")
    output.table(headers, [_cells(tool, each) for tool, each in ordered])


def _cells(tool: str, priors: Priors) -> tuple[str, ...]:
    return (
        output.printable(tool),
        f"{priors.calls:.1f}",
        f"{priors.success_rate:.0%}",
        _number(priors.p50_ms),
        _number(priors.p95_ms),
        _number(priors.p99_ms),
        "-" if priors.cost_usd is None else f"{priors.cost_usd:.4f}",
        _number(priors.result_tokens),
        f"{output.age(time.time() - priors.last_used)} ago",
    )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _tools(priors: dict[str, Priors]) -> str:
    return "1 tool with a record" if len(priors) == 1 else f"{len(priors):,} tools with a record"
