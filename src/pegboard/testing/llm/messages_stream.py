"""A reply of the Messages API as the events of a stream.

Above: `messages`. Below: nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pegboard.testing.llm.asked import pieces
from pegboard.types import Json

Event = tuple[str, Json]


def events(reply: Json, input_tokens: int) -> Iterator[Event]:
    """All of them; so much input was read when the reply began, and the last count of usage has all."""
    usage = {**reply["usage"], "input_tokens": input_tokens, "output_tokens": 1}
    begun = {**reply, "content": [], "stop_reason": None, "usage": usage}
    yield "message_start", {"type": "message_start", "message": begun}
    yield "ping", {"type": "ping"}
    for at, block in enumerate(reply["content"]):
        yield from _block(at, block)
        if block["type"] == "server_tool_use":  # nothing else comes while the API searches
            yield "ping", {"type": "ping"}
    delta = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    total = {key: value for key, value in reply["usage"].items() if key != "cache_creation"}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": total}
    yield "message_stop", {"type": "message_stop"}


def _block(at: int, block: Json) -> Iterator[Event]:
    start, deltas = _parts(block)
    yield "content_block_start", {"type": "content_block_start", "index": at, "content_block": start}
    for delta in deltas:
        yield "content_block_delta", {"type": "content_block_delta", "index": at, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": at}


def _parts(block: Json) -> tuple[Json, list[Json]]:
    """How a block begins, and what is added to it; the results of the API's own tools come whole."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": each} for each in pieces(block["text"])]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": each} for each in pieces(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
    if "input" in block:
        written = pieces(json.dumps(block["input"]))
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": each} for each in written]
    return block, []
