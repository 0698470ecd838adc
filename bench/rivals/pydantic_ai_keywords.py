"""pydantic-ai's keyword search: the `search_tools` that its `ToolSearchToolset` offers for deferred tools."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from pydantic_ai.toolsets._tool_search import ToolSearchToolset
from pydantic_ai.usage import RunUsage

from bench.rivals.frame import LIMIT, Definition, Search, main

SEARCH = "search_tools"


def about(_option: str) -> str:
    """What was asked."""
    return f"pydantic-ai-slim {version('pydantic-ai-slim')}, ToolSearchToolset.call_tool({SEARCH!r})"


async def build(known: list[Definition], _option: str) -> Search:
    """A toolset whose postings are made: it makes them when first asked."""

    ids = {each.name: each.id for each in known}
    deferred = [
        ToolDefinition(
            name=each.name,
            description=each.description,
            parameters_json_schema=each.parameters,
            defer_loading=True,
        )
        for each in known
    ]
    toolset = ToolSearchToolset(ExternalToolset(deferred), max_results=LIMIT)
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    offered = (await toolset.get_tools(context))[SEARCH]

    async def search(query: str) -> Sequence[Sequence[str]]:
        answer = await toolset.call_tool(SEARCH, {"queries": [query]}, context, offered)
        return [(ids[each["name"]],) for each in answer["discovered_tools"]]

    await search("warm up")
    return search


if __name__ == "__main__":
    main(about, build)
