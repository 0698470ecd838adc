"""OpenAI's Chat Completions API, which many others speak: tools, calls and results, and what a history speaks of.

It has no deferral and takes only text as a result. Above: the OpenAI plug-in. Below: `responses`, for what both say
the same way. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pegboard.integrations.dialects.content import Given, marked, only_text
from pegboard.integrations.dialects.plain import Call, arguments_of, dicts, plain
from pegboard.integrations.dialects.responses import LOST, function
from pegboard.integrations.dialects.uses import named
from pegboard.types import Json

_CUT_OFF = ("length", "content_filter")


def tool(definition: Json, *, longest: int | None = None) -> Json:
    """A tool as `tools` takes it."""
    return {"type": "function", "function": function(definition, longest)}


def name_of(tool: Json) -> str:
    """The name of a tool as `tools` has it."""
    about = tool.get("function") or tool.get("custom") or tool
    return str(about.get("name", ""))


def calls(completion: Any) -> list[Call]:
    """The calls of functions in a completion, a choice or a message, in their order."""
    choice = _choice(completion)
    problem = ""
    if choice.get("finish_reason") in _CUT_OFF:
        problem = f"Not run: the reply was cut off ({choice['finish_reason']}), so the call may be incomplete."
    return [
        _call(each, problem)
        for each in _made(choice)
        if each.get("type", "function") == "function" and isinstance(each.get("function"), dict)
    ]


def custom_calls(completion: Any) -> list[Call]:
    """The calls of tools that take plain text, which are never ours."""
    made = [each for each in _made(_choice(completion)) if isinstance(each.get("custom"), dict)]
    return [Call(str(each.get("id")), str(each["custom"].get("name")), each["custom"].get("input")) for each in made]


def result(call: Call, given: Given) -> Json:
    """A result as the answer to a call."""
    return _message(call.id, only_text(given))


def failure(call: Call, text: str) -> Json:
    """The answer to a call that was not run or failed."""
    return _message(call.id, marked(text))


def uses(messages: Iterable[Any]) -> list[str]:
    """The tools a history called, least recently used first."""
    order: dict[str, None] = {}
    for message in map(plain, messages):
        for call in calls(message):
            for name in named(call.name, call.arguments):
                order.pop(name, None)
                order[name] = None
    return list(order)


def mended(messages: Sequence[Any]) -> list[Any]:
    """A history as the API takes it: every tool message has its call, every call but the last turn's its message."""
    kept: list[Any] = []
    asked: dict[str, None] = {}
    for message in messages:
        said_so = plain(message)
        role = said_so.get("role") if isinstance(said_so, dict) else None
        if role == "tool":
            if said_so.get("tool_call_id") in asked:
                del asked[said_so["tool_call_id"]]
                kept.append(message)
            continue
        kept += [_message(each, LOST) for each in asked]
        asked = dict.fromkeys(str(each.get("id")) for each in _made(_choice(message))) if role == "assistant" else {}
        kept.append(message)
    return kept


def _choice(completion: Any) -> Json:
    said_so = plain(completion)
    choices = dicts(said_so.get("choices")) if isinstance(said_so, dict) else []
    return choices[0] if choices else said_so if isinstance(said_so, dict) else {}


def _made(choice: Json) -> list[Json]:
    message = choice.get("message", choice)
    return dicts(message.get("tool_calls") if isinstance(message, dict) else None)


def _call(each: Json, problem: str) -> Call:
    about = each["function"]
    arguments, wrong = arguments_of(about.get("arguments"))
    return Call(str(each.get("id")), str(about.get("name")), arguments, problem or wrong)


def _message(call_id: str, text: str) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": text}
