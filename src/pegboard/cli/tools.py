"""`pegboard tools`: everything the cache knows, without starting anything."""

from __future__ import annotations

import argparse
import os
import sys
from fnmatch import fnmatchcase

from pegboard.catalog.catalog import Catalog
from pegboard.cli import output
from pegboard.cli.context import load_with_servers
from pegboard.engine import load_catalog
from pegboard.errors import PegboardError, ServerNotFound
from pegboard.types import Tool


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own flags."""
    parser.add_argument("pattern", nargs="?", default="*", help="glob over public or bare names, as in '*issue*'")
    parser.add_argument("--server", action="append", default=[], metavar="NAME", help="only of this server; may repeat")
    parser.add_argument("--refused", action="store_true", help="also what is left out, and why")


def run(args: argparse.Namespace) -> int:
    """Lists the tools."""
    catalog = load_catalog(load_with_servers(args))
    for name in args.server:
        if name not in catalog.servers:
            raise ServerNotFound(name, catalog.nearest_servers(name))
    tools = [tool for tool in catalog.tools.values() if _wanted(tool, args)]
    if args.json:
        output.emit(_as_json(catalog, tools))
        return 0
    _print(tools)
    if catalog.tools and not tools:
        output.warn(f"None of the {len(catalog.tools)} tools match.")
    if args.refused:
        _print_refused(catalog)
    _print_remarks(catalog)
    return 0


def _wanted(tool: Tool, args: argparse.Namespace) -> bool:
    if args.server and tool.server not in args.server:
        return False
    return args.pattern == "*" or fnmatchcase(tool.public_name, args.pattern) or fnmatchcase(tool.name, args.pattern)


def _print(tools: list[Tool]) -> None:
    width = os.get_terminal_size().columns if sys.stdout.isatty() else 200
    longest = max((len(tool.public_name) for tool in tools), default=0)
    room = max(width - longest - 2, 20)
    for tool in tools:
        summary = output.printable(tool.description.strip().partition("\n")[0] or tool.title)
        shown = summary if len(summary) <= room else summary[: room - 1] + "…"
        output.say(f"{tool.public_name:{longest}}  {shown}".rstrip())


def _print_refused(catalog: Catalog) -> None:
    for part in catalog.slices.values():
        for refusal in (*part.refused, *part.filtered):
            output.say(output.printable(f"left out: {refusal.server} {refusal.tool}: {refusal.reason}"))


def _print_remarks(catalog: Catalog) -> None:
    for warning in catalog.warnings:
        output.warn(f"warning: {output.printable(warning)}")
    unlisted = [entry.name for entry in catalog.servers.values() if entry.usable and entry.listed is None]
    if unlisted:
        output.warn(f"Not listed yet: {', '.join(unlisted)}. `pegboard refresh` asks them for their tools.")
    elif not catalog.tools:
        raise PegboardError("No tools may be used now.", hint="`pegboard servers` says why, server by server.")


def _as_json(catalog: Catalog, tools: list[Tool]) -> dict[str, object]:
    return {
        "version": catalog.version,
        "tools": [
            {
                "name": tool.public_name,
                "server": tool.server,
                "tool": tool.name,
                "title": tool.title,
                "description": tool.description,
                "fingerprint": tool.fingerprint,
            }
            for tool in tools
        ],
        "refused": [refusal for part in catalog.slices.values() for refusal in (*part.refused, *part.filtered)],
        "warnings": catalog.warnings,
        "unlisted": [entry.name for entry in catalog.servers.values() if entry.usable and entry.listed is None],
    }
