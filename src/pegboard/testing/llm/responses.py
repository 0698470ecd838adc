"""The Responses API as `FakeLLM` speaks it: what the model sees of a request, a reply, and the reply as a stream.

Above: `FakeLLM`. Below: `responses_rules`, `asked`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pegboard.testing.llm.asked import Asked, Segment, openai_error, pieces, segment
from pegboard.testing.llm.cache import Reading
from pegboard.testing.llm.responses_rules import RULES, items, loaded
from pegboard.testing.script import Move, Shown
from pegboard.types import Json

Event = tuple[str, Json]
SEARCHES = ("search_tools", "tool_search")
"""What a script may call the wire's own search."""


class Responses:
    """OpenAI's newer wire."""

    path = "/responses"
    rules = RULES
    caches_explicitly = False

    def shown(self, asked: Asked) -> Shown:
        """The tools the model sees: those that are not deferred, and those that searches loaded."""
        resident = [each for each in asked.tools if not each.get("defer_loading")]
        system = str(asked.body.get("instructions") or "")
        return Shown(tools=(*resident, *loaded(asked)), messages=tuple(items(asked)), system=system)

    def prompt(self, asked: Asked) -> list[Segment]:
        """Tools, then instructions, then the items."""
        return [
            *(segment(each) for each in asked.tools),
            segment(asked.body.get("instructions")),
            *(segment(each) for each in items(asked)),
        ]

    def reply(self, move: Move, asked: Asked, number: int, reading: Reading) -> Json:
        """The response that the move comes to."""
        output: list[Json] = []
        if move.text:
            text = {"type": "output_text", "text": move.text, "annotations": [], "logprobs": []}
            about = {"id": f"msg_{number:04}", "type": "message", "role": "assistant", "status": "completed"}
            output.append({**about, "content": [text]})
        output += [_call(f"{number:04}_{at}", *call, asked) for at, call in enumerate(move.calls)]
        is_cut = move.stop == "max_output_tokens"
        if is_cut and output:
            output[-1]["status"] = "incomplete"
        return {
            "id": f"resp_{number:04}",
            "object": "response",
            "created_at": 0,
            "status": "incomplete" if is_cut else "completed",
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "instructions": asked.body.get("instructions"),
            "metadata": {},
            "model": asked.model,
            "output": output,
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": asked.tools,
            "top_p": 1.0,
            "usage": _usage(reading, len(json.dumps(output)) // 4),
        }

    def unplayable(self, move: Move, asked: Asked) -> str:
        """Why the move cannot be made here: a script speaks for searches by calls, and there are no pauses."""
        return f"FakeLLM has no {move.messages_only[0]} on the Responses API" if move.messages_only else ""

    def events(self, reply: Json, asked: Asked) -> Iterator[Event]:
        """The reply as a stream."""
        begun = {**reply, "status": "in_progress", "output": [], "usage": None}
        for number, (kind, event) in enumerate(_events(reply, begun)):
            yield kind, {"type": kind, "sequence_number": number, **event}

    def issued(self, reply: Json, asked: Asked) -> dict[str, Json]:
        """What later requests may be held against; and the conversation, unless it is not to be kept."""
        calls = {str(each["call_id"]): each for each in reply["output"] if each.get("call_id")}
        if asked.body.get("store") is False:
            return calls
        named = {str(each["id"]): each for each in reply["output"] if each.get("id")}
        return {**calls, **named, reply["id"]: {"items": [*items(asked), *reply["output"]]}}

    def error(self, message: str, status: int) -> Json:
        """The body of a refusal."""
        if message.startswith("Previous response"):
            return openai_error(message, status, param="previous_response_id", code="previous_response_not_found")
        return openai_error(message, status)


def _call(tag: str, name: str, arguments: Any, asked: Asked) -> Json:
    """A call as an item: of the wire's own search, or of a function, which has its name as namespace once loaded."""
    searches = any(each.get("type") == "tool_search" and each.get("execution") == "client" for each in asked.tools)
    about = {"status": "completed", "call_id": f"call_{tag}"}
    if name in SEARCHES and searches:
        return {"id": f"tsc_{tag}", "type": "tool_search_call", "execution": "client", "arguments": arguments, **about}
    item = {"id": f"fc_{tag}", "type": "function_call", "name": name, "arguments": json.dumps(arguments), **about}
    return {**item, "namespace": name} if any(each.get("name") == name for each in loaded(asked)) else item


def _events(reply: Json, begun: Json) -> Iterator[Event]:
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for at, item in enumerate(reply["output"]):
        started = {**item, "status": "in_progress"}
        if item["type"] == "message":
            started["content"] = []
        elif item["type"] == "function_call":
            started["arguments"] = ""
        yield "response.output_item.added", {"output_index": at, "item": started}
        yield from _inner(at, item)
        yield "response.output_item.done", {"output_index": at, "item": item}
    yield f"response.{reply['status']}", {"response": reply}


def _inner(at: int, item: Json) -> Iterator[Event]:
    place = {"item_id": item["id"], "output_index": at}
    if item["type"] == "function_call":
        for each in pieces(item["arguments"]):
            yield "response.function_call_arguments.delta", {**place, "delta": each}
        done = {**place, "name": item["name"], "arguments": item["arguments"]}
        yield "response.function_call_arguments.done", done
    elif item["type"] == "message":
        [part] = item["content"]
        place |= {"content_index": 0}
        yield "response.content_part.added", {**place, "part": {**part, "text": ""}}
        for each in pieces(part["text"]):
            yield "response.output_text.delta", {**place, "delta": each, "logprobs": []}
        yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
        yield "response.content_part.done", {**place, "part": part}


def _usage(reading: Reading, output: int) -> Json:
    total = reading.total // 4
    return {
        "input_tokens": total,
        "input_tokens_details": {"cached_tokens": reading.cached // 4, "cache_write_tokens": reading.written // 4},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": total + output,
    }
