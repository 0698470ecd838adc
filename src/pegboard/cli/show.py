"""`pegboard show`: one tool, wholly."""

from __future__ import annotations

import argparse

import msgspec

from pegboard.cli import output
from pegboard.cli.context import load_with_servers
from pegboard.engine import load_catalog
from pegboard.types import Tool


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own flags."""
    parser.add_argument("tool", help="public name, or bare name when only one server has it")


def run(args: argparse.Namespace) -> int:
    """Shows the tool."""
    catalog = load_catalog(load_with_servers(args))
    tool = catalog.find(args.tool)
    if args.json:
        output.emit(_as_json(tool))
        return 0
    output.say(tool.public_name + (f"  ({output.printable(tool.title)})" if tool.title else ""))
    output.say(f"server       {tool.server}")
    output.say(f"its own name {output.printable(tool.name)}")
    for label, values in (("tags", tool.tags), ("scopes", tool.scopes)):
        if values:
            output.say(f"{label:12} {', '.join(values)}")
    if tool.cost_usd is not None:
        output.say(f"cost         ${tool.cost_usd:g} a call")
    output.say(f"fingerprint  {tool.fingerprint}")
    if tool.description:
        output.say("\n" + output.printable(tool.description.strip()))
    for label, value in _schemas(tool):
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        output.say(f"\n{label}\n{output.printable(text)}")
    return 0


def _schemas(tool: Tool) -> list[tuple[str, object]]:
    parts = [
        ("takes", tool.input_schema),
        ("returns", tool.output_schema),
        ("annotations (the server's own claims)", tool.annotations),
        ("_meta", tool.meta),
    ]
    return [(label, value) for label, value in parts if value]


def _as_json(tool: Tool) -> dict[str, object]:
    return {
        "name": tool.public_name,
        "server": tool.server,
        "fingerprint": tool.fingerprint,
        "tags": tool.tags,
        "scopes": tool.scopes,
        "cost_usd": tool.cost_usd,
        "lazy": tool.lazy,
        "definition": msgspec.Raw(tool.definition),
    }
