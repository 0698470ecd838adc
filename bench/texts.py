"""Tools and queries to measure with: real ones where they lie beside the checkout, made ones otherwise."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pegboard.index.evaluate import Query, read_queries, read_tools
from pegboard.index.intents import SUITE, read_intents
from pegboard.types import Tool

DATA = Path(
    os.environ.get("PEGBOARD_BENCH_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data" / "retrieval"
)
LARGE = DATA / "mcp_mega"


def sets() -> list[str]:
    """The names of the labelled sets that are there."""
    return (
        sorted(folder.name for folder in DATA.iterdir() if (folder / "tools.jsonl").exists()) if DATA.exists() else []
    )


def labelled(name: str, most: int, seed: int = 1) -> tuple[list[Tool], list[Query]]:
    """A set: all of its tools, and up to `most` of its queries, the same ones every time."""
    tools, queries = read_tools(DATA / name / "tools.jsonl"), read_queries(DATA / name / "queries.jsonl")
    random.Random(seed).shuffle(queries)
    return tools, queries[:most]


def real_tools() -> tuple[list[Tool], str]:
    """As many real definitions as there are, and what they are."""
    if LARGE.exists():
        return read_tools(LARGE / "tools.jsonl"), "real definitions"
    return read_tools(SUITE / "tools.jsonl"), "the suite's definitions"


def asked(most: int) -> list[str]:
    """Queries as people write them."""
    if LARGE.exists():
        found = [query.query for name in sets() for query in labelled(name, most // 8 + 1)[1]]
    else:
        found = [case.ask for case in read_intents(SUITE / "intents.toml")]
    random.Random(3).shuffle(found)
    return (found * (most // len(found) + 1))[:most]


def multiplied(count: int) -> Iterator[Tool]:
    """`count` tools: the real ones, then variations of them in which words are exchanged."""
    source, _ = real_tools()
    chance = random.Random(11)
    bag = [word for tool in source for word in tool.description.split()[:40]]
    for number in range(count):
        tool = source[number % len(source)]
        yield tool if number < len(source) else _varied(tool, number, chance, bag)


def _varied(tool: Tool, number: int, chance: random.Random, bag: list[str]) -> Tool:
    definition = json.loads(tool.definition)
    said = tool.description.split()
    for _ in range(max(1, len(said) // 4)):
        if said:
            said[chance.randrange(len(said))] = chance.choice(bag)
    definition["description"] = " ".join(said)
    definition["name"] = f"{tool.name}_{chance.choice(bag)[:12]}"
    server = f"{tool.server}-{number // 17_000}"
    return Tool(
        server=server,
        name=definition["name"],
        public_name=f"{server}__{definition['name']}_{number}",
        definition=msgspec.json.encode(definition),
        fingerprint="",
        description=definition["description"],
    )
