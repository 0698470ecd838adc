"""fastmcp's BM25 search: `BM25SearchTransform._search`, which its `search_tools` gives the tools a client may see."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.metadata import version

from fastmcp.server.transforms.search import BM25SearchTransform  # type: ignore[import-not-found]
from fastmcp.tools.base import Tool  # type: ignore[import-not-found]

from bench.rivals.frame import LIMIT, Definition, Search, main


def about(_option: str) -> str:
    """What was asked."""
    return f"fastmcp {version('fastmcp')}, BM25SearchTransform._search"


async def build(known: list[Definition], _option: str) -> Search:
    """A transform whose index is made: it makes it when first asked."""
    logging.disable(logging.WARNING)  # a name that is not to its liking is told on ten lines
    ids = {each.name: each.id for each in known}
    tools = [Tool(name=each.name, description=each.description, parameters=each.parameters) for each in known]
    transform = BM25SearchTransform(max_results=LIMIT)
    await transform._search(tools, "warm up")

    async def search(query: str) -> Sequence[Sequence[str]]:
        return [(ids[tool.name],) for tool in await transform._search(tools, query)]

    return search


if __name__ == "__main__":
    main(about, build)
