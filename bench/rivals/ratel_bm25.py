"""ratel-ai's search: `ToolRegistry.search`, BM25 in Rust. Its other methods need a model that must be downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from ratel_ai import Tool, ToolRegistry  # type: ignore[import-not-found]

from bench.rivals.frame import LIMIT, Definition, Search, main


def about(_option: str) -> str:
    """What was asked."""
    return f"ratel-ai {version('ratel-ai')}, ToolRegistry.search (bm25)"


async def build(known: list[Definition], _option: str) -> Search:
    """A registry with every tool in it."""

    registry = ToolRegistry()
    await registry.register(
        [Tool(id=each.id, name=each.name, description=each.description, input_schema=each.parameters) for each in known]
    )
    registry.search("warm up", LIMIT)

    async def search(query: str) -> Sequence[Sequence[str]]:
        return [(hit.tool_id,) for hit in registry.search(query, LIMIT)]

    return search


if __name__ == "__main__":
    main(about, build)
