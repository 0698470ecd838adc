"""OpenAI's Responses API: tools, calls and results as it says them, and which tools a history speaks of.

Above: the OpenAI plug-in. Below: `plain`, `schema`, `content`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pegboard.integrations.dialects.content import PICTURES, Given, Part, marked, only_text, parts, said
from pegboard.integrations.dialects.plain import Call, arguments_of, dicts, plain
from pegboard.integrations.dialects.schema import rooted, with_items
from pegboard.integrations.dialects.uses import named
from pegboard.types import Json

_CUT_OFF = "Not run: the reply was cut off, so the call may be incomplete. Call again."
_LOADING = ("tool_search_call", "tool_search_output", "additional_tools")
LOST = "(The result of this call was not kept.)"
_ANSWERS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "tool_search_call": "tool_search_output",
}


def tool(definition: Json, *, deferred: bool = False, longest: int | None = None) -> Json:
    """A tool as `tools` takes it. Not strict: what servers write as schemas is seldom what strict mode takes."""
    made: Json = {"type": "function", **function(definition, longest), "strict": False}
    return {**made, "defer_loading": True} if deferred else made


def function(definition: Json, longest: int | None = None) -> Json:
    """Name, description and parameters, which Chat Completions says the same way; a description cut to `longest`."""
    about = str(definition.get("description") or definition.get("title") or "")
    if longest is not None and len(about) > longest:
        about = about[: longest - 1] + "…"
    parameters = with_items(rooted(definition.get("inputSchema")))
    return {"name": definition["name"], "description": about, "parameters": {"properties": {}, **parameters}}


def search(definition: Json) -> Json:
    """The wire's own search, to be answered by us."""
    asked = function(definition)
    about, parameters = asked["description"], asked["parameters"]
    return {"type": "tool_search", "execution": "client", "description": about, "parameters": parameters}


def calls(response: Any) -> list[Call]:
    """The calls that the client is to run, in their order."""
    said_so = plain(response)
    items = dicts(said_so.get("output") if isinstance(said_so, dict) else said_so)
    return [call for item in items if (call := _call(item)) is not None]


def custom_calls(response: Any) -> list[Call]:
    """The calls of tools that take plain text, which are never ours."""
    said_so = plain(response)
    made = [each for each in dicts(said_so.get("output")) if each.get("type") == "custom_tool_call"]
    return [Call(str(each.get("call_id")), full_name(each)[1], each.get("input")) for each in made]


def names(tools: Iterable[Json]) -> Iterator[str]:
    """What tools are called by, those in a namespace with it before them."""
    for each in tools:
        if each.get("type") == "namespace":
            yield from (f"{each.get('name')}__{inner.get('name')}" for inner in dicts(each.get("tools")))
        elif isinstance(each.get("name"), str):
            yield each["name"]


def result(call: Call, given: Given) -> Json:
    """A result as the answer to a call."""
    shown = parts(given)
    if all(not part.media_type for part in shown):
        return _output(call, only_text(given))
    content = [_content(part) for part in shown]
    return _output(call, [{"type": "input_text", "text": marked("")}, *content] if given.is_error else content)


def failure(call: Call, text: str) -> Json:
    """The answer to a call that was not run or failed."""
    return _output(call, marked(text))


def found(call: Call, tools: Sequence[Json]) -> Json:
    """The answer to a search: the definitions, which are loaded from here on."""
    about = {"type": "tool_search_output", "call_id": call.id, "execution": "client", "status": "completed"}
    return {**about, "tools": list(tools)}


def addition(tools: Sequence[Json]) -> Json:
    """An item that gives the model these tools from there on, without a search."""
    return {"type": "additional_tools", "role": "developer", "tools": list(tools)}


def uses(items: Iterable[Any]) -> list[str]:
    """The tools a history found or called, least recently used first."""
    order: dict[str, None] = {}
    for item in map(plain, items):
        for name in _mentioned(item) if isinstance(item, dict) else ():
            order.pop(name, None)
            order[name] = None
    return list(order)


def loaded(items: Iterable[Any]) -> list[str]:
    """The tools whose definitions a history holds."""
    return list(dict.fromkeys(name for item in map(plain, items) if isinstance(item, dict) for name in _defined(item)))


def mended(items: Sequence[Any], *, searches: bool = True) -> list[Any]:
    """A whole history as the API takes it: every answer has its call, and every call an answer.

    Without `searches`, the wire's own and what they loaded are left out, for a model that does not know them.
    """
    plains = [plain(item) for item in items]
    asked = {str(each["call_id"]) for each in plains if _kind(each) in _ANSWERS and each.get("call_id")}
    answered = {str(each["call_id"]) for each in plains if _kind(each) in _ANSWERS.values() and each.get("call_id")}
    kept: list[Any] = []
    for item, each in zip(items, plains, strict=True):
        kind = _kind(each)
        # What the API searched itself has no id, and needs no answer.
        call_id = str(each.get("call_id") or "") if isinstance(each, dict) else ""
        if (not searches and kind in _LOADING) or (kind in _ANSWERS.values() and call_id and call_id not in asked):
            continue
        kept.append(item)
        if kind in _ANSWERS and call_id and call_id not in answered:
            kept.append(_lost(each))
    return kept


def full_name(item: Json) -> tuple[str, str]:
    """The function that an item calls, and its name with the namespace before it where it has another one."""
    name, space = str(item.get("name")), item.get("namespace")
    return name, f"{space}__{name}" if isinstance(space, str) and space and space != name else name


def _call(item: Json) -> Call | None:
    kind = item.get("type")
    if kind == "tool_search_call" and item.get("execution") == "client" and item.get("call_id"):
        arguments, problem = arguments_of(item.get("arguments"))
        return Call(str(item["call_id"]), "", arguments, problem, is_search=True)
    if kind != "function_call" or (item.get("caller") or {}).get("type") == "program":
        return None
    arguments, problem = arguments_of(item.get("arguments"))
    if item.get("status") == "incomplete":
        problem = _CUT_OFF
    return Call(str(item.get("call_id")), full_name(item)[1], arguments, problem)


def _mentioned(item: Json) -> Iterator[str]:
    yield from _defined(item)
    if item.get("type") == "function_call":
        yield from named(full_name(item)[1], arguments_of(item.get("arguments"))[0])


def _defined(item: Json) -> Iterator[str]:
    if item.get("type") in ("tool_search_output", "additional_tools"):
        yield from names(dicts(item.get("tools")))


def _kind(item: Any) -> str:
    return str(item.get("type")) if isinstance(item, dict) else ""


def _lost(item: Json) -> Json:
    call = Call(str(item["call_id"]), "", None)
    if item["type"] == "tool_search_call":
        return found(call, ())
    return {**_output(call, LOST), "type": _ANSWERS[item["type"]]}


def _output(call: Call, output: str | list[Json]) -> Json:
    return {"type": "function_call_output", "call_id": call.id, "output": output}


def _content(part: Part) -> Json:
    if part.media_type in PICTURES:
        return {"type": "input_image", "detail": "auto", "image_url": f"data:{part.media_type};base64,{part.data}"}
    if part.media_type == "application/pdf":
        name = part.name.rpartition("/")[2] or "file.pdf"
        return {"type": "input_file", "filename": name, "file_data": f"data:{part.media_type};base64,{part.data}"}
    return {"type": "input_text", "text": said(part)}
