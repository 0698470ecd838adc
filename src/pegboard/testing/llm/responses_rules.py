"""What the Responses API says no to, each documented rule by itself. Wordings are near the API's, not the same.

Above: `responses`. Below: `shapes`, `schema_rules`, `asked`. Pure.
"""

from __future__ import annotations

import re

from pegboard.testing.llm.asked import Asked, Rule, objects
from pegboard.testing.llm.schema_rules import function_problem
from pegboard.testing.llm.shapes import responses_are_typed
from pegboard.types import Json


def asks_for_something(asked: Asked) -> str | None:
    """A model and some input are needed."""
    missing = [field for field in ("model", "input") if not asked.body.get(field)]
    return f"Missing required parameter: '{missing[0]}'." if missing else None


def previous_is_kept(asked: Asked) -> str | None:
    """A conversation goes on only from a response that was kept: one that is, and was not made with `store` false."""
    previous = asked.body.get("previous_response_id")
    if previous and "items" not in asked.issued.get(str(previous), {}):
        return f"Previous response with id '{previous}' not found."
    return None


def references_are_kept(asked: Asked) -> str | None:
    """An item can be named instead of sent where it was kept."""
    missing = [each.get("id") for each in items(asked) if is_named(each)]
    return f"Item with id '{missing[0]}' not found." if missing else None


def functions_are_sound(asked: Asked) -> str | None:
    """Every function, declared or loaded by a search, has a plain name and a schema that can be shown."""
    return next((said for each in functions(asked) if (said := function_problem(each))), None)


def model_searches(asked: Asked) -> str | None:
    """Only GPT-5.4 and later know `tool_search`."""
    uses = any(each.get("type") == "tool_search" or each.get("defer_loading") for each in asked.tools)
    return f"tool_search is not supported with {asked.model}." if uses and not _searches(asked.model) else None


def deferral_needs_search(asked: Asked) -> str | None:
    """What is deferred among the tools can only be reached with `tool_search` among them."""
    kinds = {each.get("type") for each in asked.tools}
    inner = [each for tool in asked.tools if tool.get("type") == "namespace" for each in objects(tool.get("tools"))]
    deferred = any(each.get("defer_loading") for each in (*asked.tools, *inner))
    return "defer_loading requires a tool_search tool." if deferred and "tool_search" not in kinds else None


def namespaces_are_described(asked: Asked) -> str | None:
    """A namespace has a name and a description, and is not deferred itself: what is in it may be."""
    for each in (*asked.tools, *loaded(asked)):
        if each.get("type") == "namespace" and not (each.get("name") and each.get("description")):
            return "Missing required parameter: 'tools.description'."
        if each.get("type") == "namespace" and "defer_loading" in each:
            return "Unknown parameter: 'tools.defer_loading'."
    return None


def calls_are_answered(asked: Asked) -> str | None:
    """Every call has its output, every output its call, before anything is answered."""
    for call, output in (("function_call", "function_call_output"), ("tool_search_call", "tool_search_output")):
        asking = [str(each["call_id"]) for each in _of(asked, call) if each.get("call_id")]
        given = [str(each["call_id"]) for each in _of(asked, output) if each.get("call_id")]
        if missing := [each for each in asking if each not in given]:
            return f"No tool output found for {call.replace('_', ' ')} {missing[0]}."
        if orphans := [each for each in given if each not in asking]:
            return f"No tool call found for {output.replace('_', ' ')} with call_id {orphans[0]}."
    return None


def namespaces_are_kept(asked: Asked) -> str | None:
    """A call is sent back with the namespace it came with."""
    for each in _of(asked, "function_call"):
        issued = asked.issued.get(str(each.get("call_id")))
        if issued and issued.get("namespace") != each.get("namespace"):
            return f"Function call {each.get('call_id')} lost its namespace {issued.get('namespace')!r}."
    return None


def searches_are_whole(asked: Asked) -> str | None:
    """The answer to a search that the client runs says so, is completed, and holds definitions."""
    for each in _of(asked, "tool_search_output"):
        if not isinstance(each.get("tools"), list):
            return "Missing required parameter: 'input.tools'."
        if each.get("call_id") and (each.get("execution"), each.get("status")) != ("client", "completed"):
            return "Invalid 'input': a client tool_search_output has execution 'client' and status 'completed'."
    return None


def additions_are_the_developers(asked: Asked) -> str | None:
    """Tools that are added in the middle of a conversation are added by its developer, for models that search."""
    roles = [each.get("role") for each in _of(asked, "additional_tools")]
    if any(role != "developer" for role in roles):
        return "Invalid 'input': additional_tools has role 'developer'."
    return f"additional_tools is not supported with {asked.model}." if roles and not _searches(asked.model) else None


RULES: tuple[Rule, ...] = (
    responses_are_typed,
    asks_for_something,
    previous_is_kept,
    references_are_kept,
    functions_are_sound,
    model_searches,
    deferral_needs_search,
    namespaces_are_described,
    searches_are_whole,
    calls_are_answered,
    namespaces_are_kept,
    additions_are_the_developers,
)


def items(asked: Asked) -> list[Json]:
    """The input as items, after those of the response that it goes on from."""
    given, kept = asked.body.get("input"), asked.issued.get(str(asked.body.get("previous_response_id")), {})
    new = [{"role": "user", "content": given}] if isinstance(given, str) else objects(given)
    named = [asked.issued.get(str(each.get("id")), each) if is_named(each) else each for each in new]
    return [*kept.get("items", ()), *named]


def is_named(item: Json) -> bool:
    """Whether an item of an earlier response is only named, and not said again."""
    return item.get("type") == "item_reference"


def loaded(asked: Asked) -> list[Json]:
    """What searches and additions in the history have loaded."""
    return [
        each
        for item in items(asked)
        if item.get("type") in ("tool_search_output", "additional_tools")
        for each in objects(item.get("tools"))
    ]


def functions(asked: Asked) -> list[Json]:
    """All functions, those in namespaces too."""
    tools = [*asked.tools, *loaded(asked)]
    inner = [each for tool in tools if tool.get("type") == "namespace" for each in objects(tool.get("tools"))]
    return [each for each in (*tools, *inner) if each.get("type") == "function"]


def _searches(model: str) -> bool:
    version = re.search(r"gpt-(\d+)(?:\.(\d+))?", model)
    return version is not None and (int(version[1]), int(version[2] or 0)) >= (5, 4)


def _of(asked: Asked, kind: str) -> list[Json]:
    return [each for each in items(asked) if each.get("type") == kind]
