"""Anthropic's Messages API: tools, calls and results as it says them, and which tools a history speaks of.

Above: the Anthropic plug-in. Below: `plain`, `schema`, `content`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pegboard.integrations.dialects.content import PICTURES, Given, Part, parts, said
from pegboard.integrations.dialects.plain import Call, dicts, plain
from pegboard.integrations.dialects.schema import rooted, with_plain_keys
from pegboard.integrations.dialects.uses import named
from pegboard.surface.markers import longest
from pegboard.types import Json

ADDITIONS = "mid-conversation-tool-changes-2026-07-01"
"""The beta that `addition` needs."""
CUT_OFF = frozenset({"max_tokens", "model_context_window_exceeded"})
"""Stop reasons that leave the last call unfinished."""
HANDED_BACK = frozenset({"pause_turn", "compaction", "refusal"})
"""Stop reasons after which nothing is to be run: the turn is not over, or there is nothing to go on with."""
_GONE = "This tool is no longer there. Search again for what can do it."


def tool(definition: Json, *, deferred: bool = False) -> Json:
    """A tool as `tools` takes it: what models are not shown is left out."""
    schema, odd = with_plain_keys(rooted(definition.get("inputSchema")))
    about = str(definition.get("description") or definition.get("title") or "")
    if odd:
        about = f"{about}\nAlso takes these arguments, by exactly these names: {', '.join(odd)}".strip()
    made: Json = {"name": definition["name"], "description": about, "input_schema": schema}
    return {**made, "defer_loading": True} if deferred else made


def gone(name: str) -> Json:
    """What stands in `tools` for one that the history refers to and that is no more: without it, all is refused."""
    return {"name": name, "description": _GONE, "input_schema": {"type": "object"}, "defer_loading": True}


def with_marker(tools: Sequence[Json], marker: Json | None = None) -> list[Json]:
    """The tools with at most one cache marker, on the last that is not deferred: of all there are, the one that lasts
    longest."""
    markers = [each["cache_control"] for each in tools if each.get("cache_control")]
    markers += [marker] if marker else []
    bare = [{key: value for key, value in each.items() if key != "cache_control"} for each in tools]
    last = max((at for at, each in enumerate(bare) if not each.get("defer_loading")), default=None)
    if markers and last is not None:
        bare[last]["cache_control"] = longest(markers)
    return bare


def calls(message: Any) -> list[Call]:
    """The calls that the client is to run, in their order; none of a turn that is handed back unfinished."""
    said_so = plain(message)
    if not isinstance(said_so, dict) or said_so.get("stop_reason") in HANDED_BACK:
        return []
    problem = ""
    if said_so.get("stop_reason") in CUT_OFF:
        problem = f"Not run: the reply was cut off ({said_so['stop_reason']}), so the call may be incomplete."
    return [
        Call(str(block.get("id")), str(block.get("name")), block.get("input") or {}, problem)
        for block in dicts(said_so.get("content"))
        if block.get("type") == "tool_use" and not block.get("toolset_name")
    ]


def result(call: Call, given: Given, loads: Sequence[str] = ()) -> Json:
    """A result as the answer to a call; `loads` are tools whose definitions the model is to have from here on."""
    content = [_block(part) for part in parts(given)]
    content += [{"type": "tool_reference", "tool_name": name} for name in loads]
    block: Json = {"type": "tool_result", "tool_use_id": call.id, "content": content}
    return {**block, "is_error": True} if given.is_error else block


def failure(call: Call, text: str) -> Json:
    """The answer to a call that was not run."""
    return {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": True}


def found(call: Call, names: Sequence[str], note: str = "") -> Json:
    """The answer to a search: the API puts the definition of each tool in the place of the reference to it."""
    content: list[Json] = [{"type": "tool_reference", "tool_name": name} for name in names]
    content += [{"type": "text", "text": note}] if note else []
    return {"type": "tool_result", "tool_use_id": call.id, "content": content}


def addition(names: Sequence[str]) -> Json:
    """A message after a user's turn that gives the model these tools from there on; the API has it in beta."""
    tools = [{"type": "tool_reference", "name": name} for name in names]
    return {"role": "system", "content": [{"type": "tool_addition", "tool": each} for each in tools]}


def references(messages: Iterable[Any]) -> list[str]:
    """Every tool that a history refers to, in the order of first mention: each must be in `tools`."""
    return list(dict.fromkeys(name for message in messages for name in _references(plain(message))))


def searched(messages: Iterable[Any]) -> list[str]:
    """The tools that the API's own search found in a history."""
    return list(dict.fromkeys(name for message in messages for name in _searched(plain(message))))


def uses(messages: Iterable[Any]) -> list[str]:
    """The tools a history found or called, least recently used first."""
    order: dict[str, None] = {}
    for message in map(plain, messages):
        for name in _mentioned(message):
            order.pop(name, None)
            order[name] = None
    return list(order)


def _mentioned(message: Any) -> Iterator[str]:
    yield from _references(message)
    yield from _searched(message)
    for block in _blocks(message):
        if block.get("type") == "tool_use":
            yield from named(str(block.get("name")), block.get("input"))


def _references(message: Any) -> Iterator[str]:
    """References in results and additions."""
    added = [block.get("tool") for block in _blocks(message) if block.get("type") == "tool_addition"]
    yield from (
        str(each.get("name")) for each in added if isinstance(each, dict) and each.get("type") == "tool_reference"
    )
    results = [block for block in _blocks(message) if block.get("type") == "tool_result"]
    inner = [each for block in results for each in dicts(block.get("content"))]
    yield from (str(each.get("tool_name")) for each in inner if each.get("type") == "tool_reference")


def _searched(message: Any) -> Iterator[str]:
    found = [block.get("content") for block in _blocks(message) if block.get("type") == "tool_search_tool_result"]
    inner = [each for content in found if isinstance(content, dict) for each in dicts(content.get("tool_references"))]
    yield from (str(each.get("tool_name")) for each in inner)


def _blocks(message: Any) -> list[Json]:
    return dicts(message.get("content")) if isinstance(message, dict) else []


def _block(part: Part) -> Json:
    if part.media_type in PICTURES:
        return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}
    if part.media_type == "application/pdf":
        return {"type": "document", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}
    return {"type": "text", "text": said(part)}
