"""The Chat Completions API as `FakeLLM` speaks it, with what it says no to.

Above: `FakeLLM`. Below: `shapes`, `schema_rules`, `asked`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pegboard.testing.llm.asked import Asked, Rule, Segment, objects, openai_error, pieces, segment
from pegboard.testing.llm.cache import Reading
from pegboard.testing.llm.schema_rules import function_problem
from pegboard.testing.llm.shapes import completions_are_typed
from pegboard.testing.script import Move, Shown
from pegboard.types import Json

Event = tuple[str, Json]
MOST_TOOLS = 128


def asks_for_something(asked: Asked) -> str | None:
    """A model and messages are needed."""
    missing = [field for field in ("model", "messages") if not asked.body.get(field)]
    return f"you must provide a {missing[0]} parameter" if missing else None


def not_too_many_tools(asked: Asked) -> str | None:
    """At most 128 tools, and where the list is given it is not empty."""
    tools = asked.body.get("tools")
    if isinstance(tools, list) and not 1 <= len(tools) <= MOST_TOOLS:
        return f"Invalid 'tools': expected an array with 1 to {MOST_TOOLS} items, but got {len(tools)}."
    return None


def functions_are_sound(asked: Asked) -> str | None:
    """Every function has a plain name and a schema that can be shown."""
    functions = [each["function"] for each in asked.tools if isinstance(each.get("function"), dict)]
    return next((said for each in functions if (said := function_problem(each))), None)


def nothing_is_deferred(asked: Asked) -> str | None:
    """This wire has neither deferral nor a search of its own."""
    odd = [each for each in asked.tools if each.get("type") not in ("function", "custom") or "defer_loading" in each]
    odd += [each for each in asked.tools if "defer_loading" in (each.get("function") or {})]
    return "Unknown parameter: 'tools[0].defer_loading'." if odd else None


def calls_are_answered(asked: Asked) -> str | None:
    """A tool's message follows the assistant's message that called it, and each call gets one before anything else."""
    asking: list[str] = []
    for message in asked.messages:
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in asking:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
            asking.remove(str(message["tool_call_id"]))
            continue
        if asking:
            break
        asking = [str(each.get("id")) for each in objects(message.get("tool_calls"))]
    if asking:
        return f"An assistant message with 'tool_calls' must be followed by tool messages responding to {asking}."
    return None


RULES: tuple[Rule, ...] = (
    completions_are_typed,
    asks_for_something,
    not_too_many_tools,
    nothing_is_deferred,
    functions_are_sound,
    calls_are_answered,
)


class Completions:
    """The wire that everybody speaks."""

    path = "/chat/completions"
    rules = RULES
    caches_explicitly = False

    def shown(self, asked: Asked) -> Shown:
        """The tools the model sees: all."""
        return Shown(tools=tuple(asked.tools), messages=tuple(asked.messages))

    def prompt(self, asked: Asked) -> list[Segment]:
        """Tools, then the messages."""
        return [segment(each) for each in (*asked.tools, *asked.messages)]

    def reply(self, move: Move, asked: Asked, number: int, reading: Reading) -> Json:
        """The completion that the move comes to."""
        message: Json = {"role": "assistant", "content": move.text or None, "refusal": None}
        if move.calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{number:04}_{at}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for at, (name, arguments) in enumerate(move.calls)
            ]
        total, output = reading.total // 4, len(json.dumps(message)) // 4
        reason = move.stop or ("tool_calls" if move.calls else "stop")
        return {
            "id": f"chatcmpl-{number:04}",
            "object": "chat.completion",
            "created": 0,
            "model": asked.model,
            "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
            "usage": {
                "prompt_tokens": total,
                "completion_tokens": output,
                "total_tokens": total + output,
                "prompt_tokens_details": {"cached_tokens": reading.cached // 4},
            },
        }

    def unplayable(self, move: Move, asked: Asked) -> str:
        """Why the move cannot be made here: this wire has no search of its own, no thinking and no pauses."""
        return f"Chat Completions has no {move.messages_only[0]}" if move.messages_only else ""

    def events(self, reply: Json, asked: Asked) -> Iterator[Event]:
        """The reply as a stream; usage comes in a chunk of its own, where it was asked for."""
        options = asked.body.get("stream_options")
        counts = isinstance(options, dict) and bool(options.get("include_usage"))
        unknown: Json = {"usage": None} if counts else {}
        [choice] = reply["choices"]
        for delta in _deltas(choice["message"]):
            yield "", {**_chunk(reply, [{"index": 0, "delta": delta, "finish_reason": None}]), **unknown}
        yield "", {**_chunk(reply, [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]), **unknown}
        if counts:
            yield "", {**_chunk(reply, []), "usage": reply["usage"]}

    def issued(self, reply: Json, asked: Asked) -> dict[str, Json]:
        """What later requests may be held against: nothing here."""
        return {}

    def error(self, message: str, status: int) -> Json:
        """The body of a refusal."""
        return openai_error(message, status)


def _chunk(reply: Json, choices: list[Json]) -> Json:
    about = {key: reply[key] for key in ("id", "created", "model")}
    return {**about, "object": "chat.completion.chunk", "choices": choices}


def _deltas(message: Json) -> Iterator[Json]:
    yield {"role": "assistant", "content": "" if message["content"] else None}
    for each in pieces(message["content"] or ""):
        yield {"content": each}
    for at, call in enumerate(message.get("tool_calls", ())):
        start = {"name": call["function"]["name"], "arguments": ""}
        yield {"tool_calls": [{"index": at, "id": call["id"], "type": "function", "function": start}]}
        for each in pieces(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": at, "function": {"arguments": each}}]}
