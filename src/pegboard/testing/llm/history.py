"""What a history on the Messages API holds: its turns, the tools it refers to, the searches the API made in it.

Above: the rules of Messages, and its replies. Below: `asked`. Pure.
"""

from __future__ import annotations

from pegboard.testing.llm.asked import blocks, objects
from pegboard.types import Json

SEARCHES = ("tool_search_tool_bm25", "tool_search_tool_regex")
"""The names of the API's own search tools; as a type each may have a date at its end."""


def references(messages: list[Json]) -> list[str]:
    """The tools that a history refers to."""
    found = []
    for block in content_of(messages):
        found += [str(each.get("tool_name")) for each in inside(block) if each.get("type") == "tool_reference"]
        tool = block.get("tool") if block.get("type") == "tool_addition" else None
        found += [str(tool.get("name"))] if isinstance(tool, dict) and tool.get("type") == "tool_reference" else []
    return found


def inline(messages: list[Json]) -> list[Json]:
    """The tools that a history defines itself."""
    added = [block.get("tool") for block in content_of(messages) if block.get("type") == "tool_addition"]
    return objects([each.get("definition") for each in objects(added) if each.get("type") == "tool_definition"])


def content_of(messages: list[Json]) -> list[Json]:
    """All blocks of all messages."""
    return [block for message in messages for block in blocks(message)]


def inside(block: Json) -> list[Json]:
    """What is in a result: blocks, or the references that a search found."""
    content = block.get("content")
    return objects(content.get("tool_references")) if isinstance(content, dict) else objects(content)


def turns(messages: list[Json]) -> list[Json]:
    """Turns of one side in a row are one; what a system message says in between is nobody's turn."""
    made: list[Json] = []
    for message in messages:
        if message.get("role") == "system":
            continue
        if made and made[-1]["role"] == message.get("role"):
            made[-1] = {**made[-1], "content": [*blocks(made[-1]), *blocks(message)]}
        else:
            made.append({"role": message.get("role"), "content": blocks(message)})
    return made


def searches(messages: list[Json]) -> list[Json]:
    """The searches that the API made or began."""
    return [
        each for each in content_of(messages) if each.get("type") == "server_tool_use" and each.get("name") in SEARCHES
    ]


def results(messages: list[Json]) -> list[Json]:
    """The results of the API's searches."""
    return [each for each in content_of(messages) if each.get("type") == "tool_search_tool_result"]


def unfinished(messages: list[Json]) -> list[Json]:
    """The searches that the API began and a history has no result for."""
    ended = {each.get("tool_use_id") for each in results(messages)}
    return [each for each in searches(messages) if each.get("id") not in ended]


def search_tool(tools: list[Json], name: str = "") -> Json | None:
    """The API's own search among the tools, the one of that name if there is one."""
    found = [each for each in tools if str(each.get("type", "")).startswith(SEARCHES)]
    return next((each for each in found if name in ("", each.get("name"))), None)
