"""What the Messages API says no to about its own search: the tool, the blocks it leaves in a history, their pairs.

Above: `messages_rules`. Below: `history`, `tool_search`. Pure.
"""

from __future__ import annotations

from pegboard.testing.llm.asked import Asked, Rule, blocks, unique
from pegboard.testing.llm.history import SEARCHES, results, search_tool, searches, turns, unfinished
from pegboard.testing.llm.tool_search import LONGEST
from pegboard.types import Json

_ASSISTANTS = ("tool_use", "server_tool_use", "tool_search_tool_result", "thinking", "redacted_thinking")
_USERS = ("tool_result",)


def search_is_resident(asked: Asked) -> str | None:
    """The API's own search tools cannot be deferred themselves."""
    declared = [each for each in asked.tools if str(each.get("type", "")).startswith("tool_search_tool")]
    deferred = any(each.get("defer_loading") for each in declared)
    return "tools: the tool search tool cannot be deferred" if deferred else None


def search_has_its_name(asked: Asked) -> str | None:
    """Each search tool has one name that it may have, and its type is that name, with or without a date."""
    for each in asked.tools:
        kind, name = str(each.get("type", "")), str(each.get("name"))
        if kind.startswith("tool_search_tool") and (name not in SEARCHES or kind not in (name, f"{name}_20251119")):
            return f"tools: the tool search tool {kind!r} cannot be named {name!r}"
    return None


def blocks_are_on_their_side(asked: Asked) -> str | None:
    """What the model and the API's tools made stands in the assistant's messages, results of calls in the user's."""
    for at, message in enumerate(asked.messages):
        kinds = [str(each.get("type")) for each in blocks(message)]
        for side, owned in (("assistant", _ASSISTANTS), ("user", _USERS)):
            if odd := [kind for kind in kinds if kind in owned and message.get("role") != side]:
                return f"messages.{at}: `{odd[0]}` blocks can only be in `{side}` messages"
    return None


def searches_are_finished(asked: Asked) -> str | None:
    """A search that the API began has its result; else it is in the last turn of the model's, sent back as it paused
    or with nothing after it but results of other calls, and the same search tool is still there to go on with it."""
    for each in unfinished(asked.messages):
        about = f"messages: `{each['name']}` tool use with id `{each.get('id')}` was found without a corresponding"
        about += " `tool_search_tool_result` block"
        if not _is_going_on(asked, str(each.get("id"))):
            return about
        if search_tool(asked.tools, str(each["name"])) is None:
            return f"{about}, but no `{each['name']}` tool was provided"
    return None


def _is_going_on(asked: Asked, search_id: str) -> bool:
    made = turns(asked.messages)
    last = made[-1]
    if last["role"] == "user" and any(each.get("type") != "tool_result" for each in last["content"]):
        return False
    models = [each for each in made[-2:] if each["role"] == "assistant"]
    return bool(models) and search_id in [each.get("id") for each in models[-1]["content"]]


def results_have_searches(asked: Asked) -> str | None:
    """The result of a search comes after the search that it answers, and there is one for each."""
    begun: set[str] = set()
    for block in [each for message in asked.messages for each in blocks(message)]:
        if block.get("type") == "server_tool_use":
            begun.add(str(block.get("id")))
        if block.get("type") == "tool_search_tool_result" and block.get("tool_use_id") not in begun:
            wrong = block.get("tool_use_id")
            return f"messages: unexpected `tool_use_id` found in `tool_search_tool_result` blocks: {wrong}"
    given = [str(each.get("tool_use_id")) for each in results(asked.messages)]
    return None if unique(given) else "messages: each server_tool_use must have a single result"


def queries_are_short(asked: Asked) -> str | None:
    """No search found anything by a pattern of more than 200 characters or a query of more than 500."""
    found = {each.get("tool_use_id") for each in results(asked.messages) if not _has_failed(each)}
    for each in [each for each in searches(asked.messages) if each.get("id") in found]:
        given = each.get("input")
        for key, most in LONGEST.items():
            if isinstance(given, dict) and len(str(given.get(key, ""))) > most:
                return f"messages: the {key} of {each.get('id')} should have at most {most} characters"
    return None


def _has_failed(result: Json) -> bool:
    content = result.get("content")
    return isinstance(content, dict) and content.get("type") == "tool_search_tool_result_error"


SEARCH_RULES: tuple[Rule, ...] = (
    search_is_resident,
    search_has_its_name,
    blocks_are_on_their_side,
    results_have_searches,
    searches_are_finished,
    queries_are_short,
)
