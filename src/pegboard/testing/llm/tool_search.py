"""The search that the Messages API makes itself: by words or by pattern, over the definitions that are deferred.

Simple, but it does search: a reply refers to what the query really finds. Above: `messages`. Below: `history`. Pure.
"""

from __future__ import annotations

import re

from pegboard.testing.script import Search
from pegboard.types import Json

FINDS = 5
"""How many a search finds at most, unless it says."""
MOST_FINDS = 10_000
LONGEST = {"query": 500, "pattern": 200}
"""How long what is searched for may be, by words and by pattern."""


def search_block(tool: Json, call_id: str, wanted: Search) -> Json:
    """The block in which the API says what it searches for."""
    given: Json = {"pattern" if "regex" in str(tool["name"]) else "query": wanted.query}
    given |= {"limit": wanted.limit} if wanted.limit else {}
    return {"type": "server_tool_use", "id": call_id, "name": tool["name"], "input": given}


def result_block(search: Json, tools: list[Json], error: str = "") -> Json:
    """The block that answers it: references to what was found, maybe to nothing, or an error."""
    code = error or problem(search["input"])
    content: Json = {"type": "tool_search_tool_result_error", "error_code": code, "error_message": "no search was made"}
    if not code:
        found = [{"type": "tool_reference", "tool_name": name} for name in _found(search["input"], tools)]
        content = {"type": "tool_search_tool_search_result", "tool_references": found}
    return {"type": "tool_search_tool_result", "tool_use_id": search["id"], "content": content}


def problem(given: Json) -> str:
    """The code of the error that a search comes to which cannot be made."""
    key = "pattern" if "pattern" in given else "query"
    wanted, limit = given.get(key), given.get("limit", FINDS)
    if not isinstance(wanted, str) or not 1 <= len(wanted) <= LONGEST[key]:
        return "invalid_tool_input"
    if not isinstance(limit, int) or not 1 <= limit <= MOST_FINDS:
        return "invalid_tool_input"
    return "" if key == "query" or _compiled(wanted) else "invalid_tool_input"


def _found(given: Json, tools: list[Json]) -> list[str]:
    deferred = {str(each.get("name")): _text(each) for each in tools if each.get("defer_loading")}
    if "pattern" in given:
        pattern = re.compile(given["pattern"], re.IGNORECASE)
        names = [name for name, text in deferred.items() if pattern.search(text)]
    else:
        wanted = _words(given["query"])
        scores = {name: (len(wanted & _words(text)), len(wanted & _words(name))) for name, text in deferred.items()}
        names = sorted(
            (name for name, score in scores.items() if score[0]), key=lambda name: scores[name], reverse=True
        )
    return names[: given.get("limit", FINDS)]


def _text(tool: Json) -> str:
    """What is searched of a tool: its name and description, and those of its arguments."""
    schema = tool.get("input_schema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    parts = [tool.get("name"), tool.get("description")]
    for name, argument in (properties if isinstance(properties, dict) else {}).items():
        parts += [name, argument.get("description") if isinstance(argument, dict) else None]
    return "\n".join(str(each) for each in parts if each)


def _words(text: str) -> set[str]:
    return {each.lower() for each in re.findall(r"[A-Z]?[^\W\dA-Z_]+|[A-Z]+(?![a-z])|\d+", text)}


def _compiled(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
