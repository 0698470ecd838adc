"""`pegboard servers`: the roster, as the cache and the last tries left it; `--live` asks every server now."""

from __future__ import annotations

import argparse
import time

import msgspec

from pegboard.catalog.catalog import Catalog
from pegboard.catalog.shelf import Shelf
from pegboard.catalog.slices import ServerEntry
from pegboard.cli import output
from pegboard.cli.context import load_with_servers
from pegboard.config.model import Config
from pegboard.engine import Engine, Refreshed, load_catalog
from pegboard.store.files import DiskFiles
from pegboard.types import ServerState


class Row(msgspec.Struct, kw_only=True):
    """One server of the roster."""

    name: str
    state: ServerState
    tools: int
    listed: int | None
    source: str
    """`cache`, `live`, or empty when it was never listed."""
    age_seconds: float | None
    transport: str
    reason: str = ""
    hint: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own flags."""
    parser.add_argument("--live", action="store_true", help="start and ask every server, rather than read the cache")


def run(args: argparse.Namespace) -> int:
    """Shows the roster."""
    config = load_with_servers(args)
    rows, found = _live(config) if args.live else _cached(config)
    warnings = (*config.warnings, *found)
    if args.json:
        output.emit({"servers": rows, "warnings": warnings})
        return 0
    output.table(("server", "state", "tools", "from", "age", "transport"), [_cells(row) for row in rows])
    for row in rows:
        if row.reason:
            output.say(f"\n{row.name}: {output.printable(row.reason)}")
        if row.hint:
            output.say("  " + output.printable(row.hint).replace("\n", "\n  "))
    for warning in warnings:
        output.warn(f"warning: {output.printable(warning)}")
    return 0


def _cells(row: Row) -> tuple[str, ...]:
    count = "?" if row.listed is None else str(row.tools)
    if row.listed is not None and row.listed != row.tools:
        count += f" of {row.listed}"
    aged = "" if row.age_seconds is None else output.age(row.age_seconds)
    return row.name, row.state, count, row.source or "-", aged or "-", row.transport


def _cached(config: Config) -> tuple[list[Row], tuple[str, ...]]:
    catalog = load_catalog(config)
    shelf = Shelf(config, DiskFiles())
    rows = []
    for entry in catalog.servers.values():
        row = _row(config, entry)
        failure = shelf.error_of(config.servers[entry.name]) if entry.usable else None
        if failure is not None:
            row.state, row.hint = ServerState.ERROR, failure.hint
            row.reason = (
                f"{failure.message.removeprefix(entry.name + ': ')} ({output.age(time.time() - failure.at)} ago)"
            )
        rows.append(row)
    return rows, catalog.warnings


def _row(config: Config, entry: ServerEntry, source: str = "cache") -> Row:
    row = Row(
        name=entry.name,
        state=entry.resting_state,
        tools=entry.tool_count,
        listed=entry.listed,
        source="" if entry.listed is None else source,
        age_seconds=None if entry.cached_at is None else time.time() - entry.cached_at,
        transport=config.servers[entry.name].transport,
        reason=entry.problem or entry.unavailable,
    )
    if entry.problem:
        row.hint = "`pegboard config check` shows where."
    elif entry.usable and entry.listed is None:
        row.reason, row.hint = "not listed yet", f"`pegboard refresh {entry.name}` asks it for its tools."
    return row


def _live(config: Config) -> tuple[list[Row], tuple[str, ...]]:
    import asyncio

    async def ask() -> tuple[Catalog, list[Refreshed]]:
        async with Engine(config, refresh=False) as engine:
            outcomes = await engine.refresh()
            return engine.catalog, outcomes

    catalog, outcomes = asyncio.run(ask())
    failures = {outcome.server: outcome for outcome in outcomes if outcome.error}
    answered = {outcome.server for outcome in outcomes if not outcome.error}
    rows = []
    for entry in catalog.servers.values():
        row = _row(config, entry, "live" if entry.name in answered else "cache")
        if entry.name in failures:
            failure = failures[entry.name]
            row.state, row.hint = ServerState.ERROR, failure.hint
            row.reason = failure.error.removeprefix(f"{entry.name}: ")
        rows.append(row)
    return rows, catalog.warnings
