"""Requests of Chat Completions, edited: most tools left out, hidden calls put back, all else as it came.

A reply of several rounds came to the client as one message; here it becomes as many as the model made of it.
Above: `planner`. Below: `weave`, `memory`, `function_calls`. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pegboard.proxy.function_calls import rebridged
from pegboard.proxy.memory import Insert, Remembered, text_of
from pegboard.proxy.toolset import Offer
from pegboard.proxy.turn import Ask
from pegboard.proxy.weave import NotUnderstood, Place, Row, placed, places, rows_of, woven
from pegboard.types import Json

Fields = Mapping[str, msgspec.Raw]
Rounds = list[tuple[list[Json], list[Json]]]
THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details")
"""What a model thinks, in the words of several providers; some want it back with the calls it led to."""


class CompletionsRequest:
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
        self._tools = _tools(offer, own)

    def body(self, rounds: Rounds) -> bytes:
        """The request as it is sent."""
        added: list[Json] = []
        for said, got in rounds:
            added += [message_of(said), *got]
        fields = {**self._fields, "tools": self._tools, "messages": [*self._messages, *added]}
        return msgspec.json.encode(fields)

    @staticmethod
    def result(ask: Ask, text: str) -> Json:
        """The answer to a call."""
        return {"role": "tool", "tool_call_id": ask.id, "content": text}

    def _woven(self) -> list[Any]:
        raw = msgspec.json.decode(self._fields["messages"], type=list[msgspec.Raw])
        memory = self._memory
        if not memory.inserts and not memory.bridged:
            return list(raw)
        rows = rows_of(raw, blocks_of)
        at = places(rows, memory.inserts)
        self.put_back = placed(at)
        touched = {place.row for place in at}
        out: list[Any] = []
        for number, row in enumerate(rows):
            if number in touched or (row.is_reply and self._has_bridged(row)):
                out += self._put_back(msgspec.json.decode(raw[number]), row, number, at)
            else:
                out.append(raw[number])
        return out

    def _put_back(self, message: Json, row: Row, number: int, at: Mapping[Place, list[Insert]]) -> list[Json]:
        """One message as the model had it: a message for each round, with what it got."""
        here = {place: at[place] for place in sorted(at) if place.row == number}
        rounds = [each for inserts in here.values() for each in inserts if each.results is not None]
        beside = {place: [each for each in inserts if is_answered(each)] for place, inserts in here.items()}
        _understood(message)
        done = woven([self._unbridged(block) for block in row.blocks], number, beside)
        calls = [block["call"] for _, blocks in done.parts for block in blocks if "call" in block]
        last = {**message, "tool_calls": calls} if calls else message
        early, last = parted([message_of(each.blocks) for each in rounds], last)
        out: list[Json] = []
        for said, insert in zip(early, rounds, strict=True):
            out += [said, *(insert.results or ())]
        return [*out, last, *done.later]

    def _has_bridged(self, row: Row) -> bool:
        return any(self._bridged(block) is not None for block in row.blocks)

    def _bridged(self, block: Json) -> bool | None:
        function = block["call"].get("function") if "call" in block else None
        name = function.get("name") if isinstance(function, dict) else None
        return self._memory.bridged_as(block.get("call_id"), name)

    def _unbridged(self, block: Json) -> Json:
        """A call that was made with `call_tool`, as the model made it."""
        first = self._bridged(block)
        if first is None:
            return block
        function = block["call"]["function"]
        text = rebridged(function.get("name"), function.get("arguments"), arguments_first=first)
        call = {**block["call"], "function": {**function, "name": self._memory.call, "arguments": text}}
        return {**block, "call": call}


def is_answered(insert: Insert) -> bool:
    """Whether this stood beside calls of the client's, and can go back: a call without an answer is refused."""
    return insert.results is None and bool(insert.later or not insert.asked)


def blocks_of(message: Json) -> list[Json]:
    """A message of the model's as its text and its calls; any other is one block."""
    if message.get("role") != "assistant":
        return [message]
    given = message.get("tool_calls")
    calls = given if isinstance(given, list) else ()
    text = text_of(message.get("content") or message.get("refusal") or "")
    return [text_block(text), *(call_block(each) for each in calls if isinstance(each, dict))]


def text_block(text: str) -> Json:
    """All that a message says."""
    return {"type": "text", "text": text}


def call_block(call: Json) -> Json:
    """A call; what a round said before it goes to `message` of its first."""
    return {"type": "call", "call_id": call.get("id"), "call": call}


def message_of(blocks: Sequence[Json]) -> Json:
    """A round of the model's, put together again."""
    said = next((block["message"] for block in blocks if "message" in block), {"role": "assistant", "content": None})
    return {**said, "tool_calls": [block["call"] for block in blocks if "call" in block]}


def parted(early: list[Json], message: Json) -> tuple[list[Json], Json]:
    """The messages of earlier rounds, and what the last one says beyond them.

    Where the client's text does not begin with theirs it was changed, and goes whole with the last.
    """
    if not early:
        return early, message
    rest = dict(message)
    for field in THOUGHTS:
        before = [each[field] for each in early if field in each]
        if before and field in rest:
            rest[field] = _beyond(rest[field], before)
    before = [str(each["content"]) for each in early if each.get("content")]
    if not before:
        return early, rest
    content = message.get("content")
    length = _begins(content, "".join(before))
    if length is None:
        return [{**each, "content": None} for each in early], rest
    beyond, gone = _after(content, length)
    early = _marked(early, gone) if gone else early
    return early, {**rest, "content": beyond or (None if rest.get("tool_calls") else "")}


def _marked(early: list[Json], part: Json) -> list[Json]:
    """With what a part has beside its text, such as a cache marker, on the last text that was said before."""
    last = max(number for number, each in enumerate(early) if each.get("content"))
    said = {**early[last], "content": [{**part, "text": str(early[last]["content"])}]}
    return [*early[:last], said, *early[last + 1 :]]


def _understood(message: Json) -> None:
    """Raises where a call would be lost if this message were written anew."""
    calls = message.get("tool_calls")
    if calls is not None and not (isinstance(calls, list) and all(isinstance(each, dict) for each in calls)):
        raise NotUnderstood


def _begins(content: Any, before: str) -> int | None:
    """How much of it was said before; None where it is another text, or more than text."""
    parts = content if isinstance(content, list) else ()
    if not all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in parts):
        return None
    said = text_of(content)
    # Clients may have stripped blanks at the ends.
    return next((len(head) for head in (before, before.lstrip(), before.strip()) if said.startswith(head)), None)


def _after(content: Any, length: int) -> tuple[Any, Json | None]:
    """What comes after so much of it: parts where they have more than text; and the last of such that are left out."""
    if not isinstance(content, list) or all(part.keys() <= {"type", "text"} for part in content):
        return text_of(content)[length:], None
    left, gone = [], None
    for part in content:
        text = part["text"][length:]
        length = max(length - len(part["text"]), 0)
        if text or not part["text"]:
            left.append({**part, "text": text})
        elif part.keys() > {"type", "text"}:
            gone = part
    return left, gone


def _beyond(value: Any, before: list[Any]) -> Any:
    """The same for thoughts, which may be texts or lists."""
    if isinstance(value, list):
        flat = [each for part in before if isinstance(part, list) for each in part]
        return value[len(flat) :] if value[: len(flat)] == flat else value
    head = "".join(map(str, before))
    return value.removeprefix(head) if isinstance(value, str) else value


def _tools(offer: Offer, own: Sequence[Json]) -> list[msgspec.Raw]:
    """The bridge's own, and those that stay in sight."""
    ours = [{"name": each["name"], "description": each["description"], "parameters": each["schema"]} for each in own]
    return offer.with_ours([{"type": "function", "function": each} for each in ours])
