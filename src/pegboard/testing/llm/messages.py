"""The Messages API as `FakeLLM` speaks it: what the model sees of a request, a reply, and the reply as a stream.

Above: `FakeLLM`. Below: `messages_rules`, `asked`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pegboard.testing.llm.asked import Asked, Segment, blocks, objects, pieces, segment
from pegboard.testing.llm.cache import Reading
from pegboard.testing.llm.messages_rules import RULES, inline, references
from pegboard.testing.script import Move, Shown
from pegboard.types import Json

Event = tuple[str, Json]


class Messages:
    """Anthropic's wire."""

    path = "/messages"
    rules = RULES
    caches_explicitly = True

    def shown(self, asked: Asked) -> Shown:
        """The tools the model sees: those that are not deferred, and those the history refers to or defines."""
        found = dict.fromkeys(references(asked.messages))
        deferred = {str(each["name"]): each for each in asked.tools if each.get("defer_loading")}
        resident = [each for each in asked.tools if not each.get("defer_loading")]
        loaded = [*(deferred[name] for name in found if name in deferred), *inline(asked.messages)]
        return Shown(tools=(*resident, *loaded), messages=tuple(asked.messages), system=_system(asked.body))

    def prompt(self, asked: Asked) -> list[Segment]:
        """Tools without the deferred, then the system prompt, then the messages with references put out in full."""
        known = {each.get("name"): each for each in asked.tools}
        prompt = [_segment(each) for each in asked.tools if not each.get("defer_loading")]
        system = asked.body.get("system")
        prompt += [_segment(each) for each in ([{"text": system}] if isinstance(system, str) else objects(system))]
        for message in asked.messages:
            for block in blocks(message):
                expanded = [known.get(name) for name in references([{"content": [block]}])]
                prompt.append(segment([message.get("role"), block, expanded], marked=_is_marked(block)))
        if prompt and asked.body.get("cache_control"):
            prompt[-1] = Segment(prompt[-1].data, is_marked=True)
        return prompt

    def reply(self, move: Move, asked: Asked, number: int, reading: Reading) -> Json:
        """The message that the move comes to."""
        content: list[Json] = [{"type": "text", "text": move.text}] if move.text else []
        for at, (name, arguments) in enumerate(move.calls):
            call_id = f"toolu_{number:04}_{at}"
            content.append({"type": "tool_use", "id": call_id, "name": name, "input": dict(arguments)})
        written, cached = reading.written // 4, reading.cached // 4
        usage = {
            "input_tokens": (reading.total - reading.cached - reading.written) // 4,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": written,
            "output_tokens": len(json.dumps(content)) // 4,
        }
        return {
            "id": f"msg_{number:04}",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": content,
            "stop_reason": move.stop or ("tool_use" if move.calls else "end_turn"),
            "stop_sequence": None,
            "usage": usage,
        }

    def events(self, reply: Json) -> Iterator[Event]:
        """The reply as a stream."""
        begun = {**reply, "content": [], "stop_reason": None, "usage": {**reply["usage"], "output_tokens": 1}}
        yield "message_start", {"type": "message_start", "message": begun}
        yield "ping", {"type": "ping"}
        for at, block in enumerate(reply["content"]):
            yield from _block(at, block)
        delta = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": delta, "usage": reply["usage"]}
        yield "message_stop", {"type": "message_stop"}

    def issued(self, reply: Json) -> dict[str, Json]:
        """What later requests may be held against."""
        return {str(each["id"]): each for each in reply["content"] if each.get("id")}

    def error(self, message: str, status: int) -> Json:
        """The body of a refusal."""
        kind = "not_found_error" if status == 404 else "invalid_request_error"
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_fake"}


def _block(at: int, block: Json) -> Iterator[Event]:
    start: Json = {"type": "text", "text": ""}
    if block["type"] == "text":
        deltas = [{"type": "text_delta", "text": each} for each in pieces(block["text"])]
    else:
        start = {**block, "input": {}}
        written = pieces(json.dumps(block["input"]))
        deltas = [{"type": "input_json_delta", "partial_json": each} for each in written]
    yield "content_block_start", {"type": "content_block_start", "index": at, "content_block": start}
    for delta in deltas:
        yield "content_block_delta", {"type": "content_block_delta", "index": at, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": at}


def _system(body: Json) -> str:
    system = body.get("system") or ""
    return system if isinstance(system, str) else "\n".join(str(each.get("text", "")) for each in objects(system))


def _segment(block: Json) -> Segment:
    return segment(block, marked=_is_marked(block))


def _is_marked(block: Json) -> bool:
    return bool(block.get("cache_control")) or any(each.get("cache_control") for each in objects(block.get("content")))
