"""Requests of the Messages API, edited: definitions deferred, hidden blocks put back, all else as it came.

Above: `planner`. Below: `weave`, `memory`, `declared`. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pegboard.proxy.decide import NATIVE_SEARCH
from pegboard.proxy.declared import marked, moved_markers
from pegboard.proxy.memory import Insert, Remembered
from pegboard.proxy.toolset import Offer
from pegboard.proxy.turn import Ask
from pegboard.proxy.weave import NotUnderstood, Row, parted, placed, places, rows_of, woven
from pegboard.types import Json

Fields = Mapping[str, msgspec.Raw]
NATIVE: Json = {"type": f"{NATIVE_SEARCH}_20251119", "name": NATIVE_SEARCH}
Rounds = list[tuple[list[Json], list[Json]]]


class MessagesRequest:
    """One request, and the rounds that follow from it."""

    def __init__(
        self,
        fields: Fields,
        offer: Offer,
        memory: Remembered,
        own: Sequence[Json] = (),
    ) -> None:
        """`own` are the bridge's tools, as name, description and schema."""
        self._fields = fields
        self._memory = memory
        self.put_back: list[Insert] = []
        self._messages = self._woven()
        if memory.executor == "native":
            self._messages, missing = mended(self._messages, {tool.name for tool in offer.tools}, memory.definitions)
            self._tools = native_tools(offer, missing)
        else:
            self._tools = bridge_tools(offer, own)

    def body(self, rounds: Rounds) -> bytes:
        """The request as it is sent."""
        added: list[Any] = []
        for said, got in rounds:
            added.append({"role": "assistant", "content": said})
            added += [{"role": "user", "content": got}] if got else []
        fields = {**self._fields, "tools": self._tools, "messages": [*self._messages, *added]}
        return msgspec.json.encode(fields)

    @staticmethod
    def result(ask: Ask, text: str) -> Json:
        """The answer to a call."""
        answer: Json = {"type": "tool_result", "tool_use_id": ask.id, "content": text}
        return {**answer, "is_error": True} if ask.problem else answer

    def _woven(self) -> list[Any]:
        raw = msgspec.json.decode(self._fields["messages"], type=list[msgspec.Raw])
        memory = self._memory
        if not memory.inserts and not memory.bridged:
            return list(raw)
        rows = rows_of(raw, blocks_of)
        parted(rows, memory.inserts)
        at = places(rows, memory.inserts)
        self.put_back = placed(at)
        touched = {place.row for place in at}
        out: list[Any] = []
        later: list[Json] = []
        for number, row in enumerate(rows):
            if number not in touched and not later and not (row.is_reply and self._has_bridged(row)):
                out.append(raw[number])
                continue
            out += self._put_back(msgspec.json.decode(raw[number]), row, number, at, later)
        return [*out, {"role": "user", "content": later}] if later else out

    def _put_back(
        self, message: Json, row: Row, number: int, at: dict[Any, list[Insert]], later: list[Json]
    ) -> list[Any]:
        """One message as the model had it; `later` are answers that wait for the client's next turn."""
        _understood(message)
        if not row.is_reply:
            content = [*later, *row.blocks]
            later.clear()
            return [{**message, "content": content}]
        done = woven([self._unbridged(block) for block in row.blocks], number, at)
        later += done.later
        return [
            {**message, "content": blocks} if is_reply else {"role": "user", "content": blocks}
            for is_reply, blocks in done.parts
        ]

    def _has_bridged(self, row: Row) -> bool:
        return any(self._memory.bridged_as(block.get("id"), block.get("name")) is not None for block in row.blocks)

    def _unbridged(self, block: Json) -> Json:
        """A call that was made with `call_tool`, as the model made it."""
        first = self._memory.bridged_as(block.get("id"), block.get("name"))
        if first is None or block.get("type") != "tool_use":
            return block
        inner = {"name": block.get("name"), "arguments": block.get("input")}
        ordered = dict(reversed(inner.items())) if first else inner
        return {**block, "name": self._memory.call, "input": ordered}


def blocks_of(message: Json) -> list[Json]:
    """What a message says, as blocks."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []


def _understood(message: Json) -> None:
    """Raises where something of this message would be lost if it were written anew."""
    content = message.get("content")
    if not isinstance(content, str) and not (
        isinstance(content, list) and all(isinstance(each, dict) for each in content)
    ):
        raise NotUnderstood


def native_tools(offer: Offer, missing: Sequence[Json] = ()) -> list[msgspec.Raw]:
    """The API's search first, then all tools in their order, most of them deferred; then those that went missing."""
    known = offer.written(b"native", lambda: _native(offer))
    return [*known, *(_deferred(msgspec.json.encode(each)) for each in missing)] if missing else known


def _native(offer: Offer) -> list[msgspec.Raw]:
    stay = [_deferred(tool.raw) if tool.raw in offer.hidden else msgspec.Raw(tool.raw) for tool in offer.tools]
    out = [msgspec.Raw(msgspec.json.encode(NATIVE)), *stay]
    return marked(out, moved_markers(offer.tools, offer.hidden, 1, 1))


def bridge_tools(offer: Offer, own: Sequence[Json]) -> list[msgspec.Raw]:
    """The bridge's own, and those that stay in sight."""
    ours = [{"name": each["name"], "description": each["description"], "input_schema": each["schema"]} for each in own]
    return offer.with_ours(ours)


def _deferred(raw: bytes) -> msgspec.Raw:
    if b'"cache_control"' not in raw and b'"defer_loading"' not in raw:
        return msgspec.Raw(raw.rstrip()[:-1] + b',"defer_loading":true}')
    tool: Json = msgspec.json.decode(raw)
    kept = {key: value for key, value in tool.items() if key not in ("cache_control", "defer_loading")}
    return msgspec.Raw(msgspec.json.encode({**kept, "defer_loading": True}))


def mended(messages: list[Any], names: set[str], definitions: Mapping[str, Json]) -> tuple[list[Any], list[Json]]:
    """The history as the API takes it: searches that can never be finished and references to nothing are taken out.

    Also gives the definitions that the history refers to and the request does not bring.
    """
    if not any(isinstance(each, dict) for each in messages):  # nothing was put back
        return messages, []
    ended = {str(block.get("tool_use_id")) for block in _searches(messages, "tool_search_tool_result")}
    begun = {str(block.get("id")) for block in _searches(messages, "server_tool_use")}
    open_at = _may_be_open(messages)
    missing: dict[str, Json] = {}
    out = []
    for at, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") != "assistant":
            out.append(message)
            continue
        kept = []
        for block in blocks_of(message):
            if _is_search(block) and str(block.get("id")) not in ended and at != open_at:
                continue
            if block.get("type") == "tool_search_tool_result":
                if str(block.get("tool_use_id")) not in begun:
                    continue
                kept.append(_resolved(block, names, definitions, missing))
                continue
            kept.append(block)
        if kept:
            out.append({**message, "content": kept})
    return out, list(missing.values())


def _may_be_open(messages: list[Any]) -> int:
    """The message whose search the API may still finish: the last of the model's, if only results came after it."""
    last = len(messages) - 1
    if last < 1:
        return -1
    final: Any = messages[last] if isinstance(messages[last], dict) else msgspec.json.decode(messages[last])
    only = all(block.get("type") == "tool_result" for block in blocks_of(final))
    return last - 1 if final.get("role") == "user" and only else -1


def _searches(messages: list[Any], kind: str) -> list[Json]:
    blocks = [block for message in messages if isinstance(message, dict) for block in blocks_of(message)]
    return [block for block in blocks if block.get("type") == kind]


def _is_search(block: Json) -> bool:
    return block.get("type") == "server_tool_use" and str(block.get("name")).startswith("tool_search_tool")


def _resolved(block: Json, names: set[str], definitions: Mapping[str, Json], missing: dict[str, Json]) -> Json:
    """A search's result with the references that can be resolved; what is needed for that goes to `missing`."""
    content = block.get("content")
    references = content.get("tool_references") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(references, list):
        return block
    kept = []
    for each in references:
        name = str(each.get("tool_name")) if isinstance(each, dict) else ""
        if name not in names and name in definitions:
            missing[name] = definitions[name]
        if name in names or name in missing:
            kept.append(each)
    return block if len(kept) == len(references) else {**block, "content": {**content, "tool_references": kept}}
