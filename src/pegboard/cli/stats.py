"""`pegboard stats`: what was saved, net of what searching cost, and how searching goes."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pegboard.catalog.catalog import Catalog
from pegboard.cli import output
from pegboard.cli.context import load_config, time_span
from pegboard.config.model import Config
from pegboard.engine import load_catalog
from pegboard.store.sqlite import open_store, store_path
from pegboard.telemetry.stats import HOW, SHARED, Savings, Stats, Tally, prefix_of

SHOWN = 10
"""Rows of a table, and names of a list, that a person is shown."""
_COLUMNS = ("lists", "not sent", "own tools", "searches", "asked", "answered", "calls", "net")


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own flags."""
    parser.add_argument(
        "--since", type=time_span, default=7 * 86_400.0, metavar="SPAN", help="how far back: 12h, 7d (the default), 4w"
    )
    parser.add_argument("--conversation", metavar="KEY", help="only this one")


def run(args: argparse.Namespace) -> int:
    """Shows the statistics."""
    config = load_config(args)
    catalog = load_catalog(config)
    tally = Tally(lambda name: _server_of(name, catalog))
    if store_path(config).exists():
        asyncio.run(_visit(config, tally, time.time() - args.since, args.conversation))
    stats = tally.stats(catalog.tools)
    if args.json:
        output.emit(_as_json(stats, config))
        return 0
    if not stats.since:
        output.say(
            "Nothing was recorded in that time." + ("" if config.record.enabled else " Recording is turned off.")
        )
        return 0
    _print(stats)
    return 0


def _server_of(name: str, catalog: Catalog) -> str:
    known = catalog.tools.get(name)
    return known.server if known else prefix_of(name)


async def _visit(config: Config, tally: Tally, since: float, conversation: str | None) -> None:
    store = open_store(config, on_warning=output.warn)
    try:
        await store.visit(tally, since=since, conversation=conversation)
    finally:
        await store.close()


# ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────


def _print(stats: Stats) -> None:
    output.say(f"Tokens saved, net: {stats.total.net:,}")
    output.say(f"  schemas not sent   {stats.total.not_sent:>12,}  in {_count(stats.total.lists, 'tool list')}")
    output.say(f"  Pegboard's tools   {-stats.total.own_tools:>12,}")
    output.say(
        f"  searches asked     {-stats.total.asked:>12,}  in {_count(stats.total.searches, 'search', 'searches')}"
    )
    output.say(f"  their answers      {-stats.total.answered:>12,}")
    output.say(f"{HOW} Tokens were counted: {output.printable('; '.join(stats.counted) or 'not said how')}.")
    _savings("conversation", stats.conversations, "(none)")
    _savings("server", stats.servers, "(no one server)")
    _searching(stats)
    _calling(stats)


def _savings(what: str, table: Mapping[str, Savings], nameless: str) -> None:
    if not table:
        return
    output.say()
    best = sorted(table.items(), key=lambda item: (-item[1].net, item[0]))
    output.table((what, *_COLUMNS), [(output.printable(key) or nameless, *_cells(each)) for key, each in best[:SHOWN]])
    if len(best) > SHOWN:
        output.say(f"… and {len(best) - SHOWN:,} more; --json has all of them.")


def _cells(savings: Savings) -> tuple[str, ...]:
    numbers = (
        savings.lists,
        savings.not_sent,
        savings.own_tools,
        savings.searches,
        savings.asked,
        savings.answered,
        savings.calls,
        savings.net,
    )
    return tuple(f"{number:,}" for number in numbers)


def _searching(stats: Stats) -> None:
    searching, adoption = stats.searching, stats.adoption
    output.say()
    output.say(
        f"{_count(searching.searches, 'search', 'searches')}: {searching.followed:,} followed by a call of what they "
        f"found, {searching.not_followed:,} not, {searching.found_nothing:,} found nothing."
    )
    if adoption.conversations:
        output.say(
            f"Adoption: of {_count(adoption.conversations, 'conversation')} with hidden tools, {adoption.searched:,} "
            f"searched and {adoption.called:,} called a tool."
        )
    if stats.never_found:
        output.say(f"Never found and never called: {_names(stats.never_found)}.")


def _calling(stats: Stats) -> None:
    calling = stats.calling
    if not calling.calls:
        return
    output.say(
        f"{_count(calling.calls, 'call')}: {_counts(calling.by_ending)}. By way: {_counts(calling.by_way)}. "
        f"{calling.repaired:,} with mended arguments, {calling.cached:,} answered from the cache."
    )
    if calling.without_search:
        output.say(f"Called without being searched: {_counts(calling.without_search)}.")
    if calling.made_up:
        output.say(f"Called though there is no such tool: {_counts(calling.made_up)}.")


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _counts(counts: Mapping[str, int]) -> str:
    return _names([f"{name} {count:,}" for name, count in counts.items()])


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" … and {len(listed) - SHOWN:,} more" if len(listed) > SHOWN else ""
    return output.printable(", ".join(listed[:SHOWN])) + more


# ── for scripts ──────────────────────────────────────────────────────────────────────────────────────────────────


def _as_json(stats: Stats, config: Config) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(stats)
    return {
        **plain,
        "total": _with_net(stats.total),
        "conversations": {key: _with_net(each) for key, each in stats.conversations.items()},
        "servers": {key: _with_net(each) for key, each in stats.servers.items() if key != SHARED},
        "shared": _with_net(stats.servers.get(SHARED, Savings())),
        "how": HOW,
        "recording": config.record.enabled,
    }


def _with_net(savings: Savings) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(savings)
    return {**plain, "net": savings.net}
