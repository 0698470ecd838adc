"""Requests of the Responses API, edited: most tools left out, hidden calls put back, all else as it came.

Above: `planner`. Below: `weave`, `memory`, `function_calls`. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from pegboard.proxy.function_calls import rebridged
from pegboard.proxy.memory import Insert, Remembered, is_thought
from pegboard.proxy.response_items import brief, is_models, mark_of
from pegboard.proxy.toolset import Offer
from pegboard.proxy.turn import Ask
from pegboard.proxy.weave import Place, Row, places, woven
from pegboard.types import Json

Fields = Mapping[str, msgspec.Raw]
Rounds = list[tuple[list[Json], list[Json]]]


class ResponsesRequest:
    """One request, and the rounds that follow from it."""

    def __init__(
        self,
        fields: Fields,
        offer: Offer,
        memory: Remembered,
        own: Sequence[Json] = (),
    ) -> None:
        """`own` are the bridge's tools, as name, description and schema."""
        self._memory = memory
        self._fields = {**fields, **self._previous(fields)}
        self._items = [*self._owed(fields), *self._woven(fields["input"])]
        self._is_text = _is_text(fields["input"]) and len(self._items) == 1
        self._tools = _tools(offer, own)

    def body(self, rounds: Rounds) -> bytes:
        """The request as it is sent."""
        said: Any = [*self._items, *(each for round_ in rounds for part in round_ for each in part)]
        if self._is_text and not rounds:
            said = self._fields["input"]
        return msgspec.json.encode({**self._fields, "tools": self._tools, "input": said})

    @staticmethod
    def result(ask: Ask, text: str) -> Json:
        """The answer to a call."""
        return {"type": "function_call_output", "call_id": ask.id, "output": text}

    def _previous(self, fields: Fields) -> Fields:
        """The reply that it goes on from, by the id that the API knows its last round by."""
        last = self._memory.responses.get(_previous(fields))
        return {"previous_response_id": msgspec.Raw(msgspec.json.encode(last))} if last else {}

    def _owed(self, fields: Fields) -> list[Json]:
        """Answers to calls in that reply which the client does not know of."""
        waiting = self._memory.pending.get(_previous(fields), ())
        return [self.result(Ask(str(each["id"]), {}, {}), str(each["text"])) for each in waiting if "text" in each]

    def _woven(self, given: msgspec.Raw) -> list[Any]:
        if _is_text(given):
            return [{"role": "user", "content": given}]
        raw = msgspec.json.decode(given, type=list[msgspec.Raw])
        memory = self._memory
        if not memory.inserts and not memory.bridged:
            return list(raw)
        items = [brief(each) for each in raw]
        runs = [list(run) for _, run in groupby(range(len(items)), key=lambda number: is_models(items[number]))]
        rows = [
            Row([], is_models(items[run[0]]), [mark_of(items[number], memory.items) for number in run]) for run in runs
        ]
        at = places(rows, memory.inserts)
        out: list[Any] = []
        for number, (row, run) in enumerate(zip(rows, runs, strict=True)):
            said = [self._unbridged(items[each], raw[each]) if row.is_reply else raw[each] for each in run]
            out += _put_back(said, number, row, at)
        return out

    def _unbridged(self, item: Json, raw: msgspec.Raw) -> Any:
        """A call that was made with `call_tool`, as the model made it; all else as it came."""
        first = self._memory.bridged_as(item.get("call_id"), item.get("name"))
        if first is None or item.get("type") != "function_call":
            return raw
        text = rebridged(item.get("name"), item.get("arguments"), arguments_first=first)
        return {**item, "name": self._memory.call, "arguments": text}


def _put_back(said: list[Any], number: int, row: Row, at: Mapping[Place, list[Insert]]) -> list[Any]:
    """One reply as the model made it: answers stand after the calls of their round."""
    here = {place: inserts for place, inserts in at.items() if place.row == number}
    sendable = {
        place: [_unbound(each, row) for each in inserts if not each.asked or each.later]
        for place, inserts in here.items()
    }
    done = woven(said, number, sendable)
    return [*(each for _, blocks in done.parts for each in blocks), *done.later]


def _unbound(insert: Insert, row: Row) -> Insert:
    """Without ids, where the client left out the thought that led to it: the API wants both or neither."""
    if not is_thought(insert.after) or insert.after in row.given:
        return insert
    bare = [{key: value for key, value in block.items() if key != "id"} for block in insert.blocks]
    return msgspec.structs.replace(insert, blocks=bare)


def _is_text(given: msgspec.Raw) -> bool:
    return bytes(given).lstrip()[:1] == b'"'


def _previous(fields: Fields) -> str:
    value: Any = msgspec.json.decode(fields["previous_response_id"]) if "previous_response_id" in fields else None
    return value if isinstance(value, str) else ""


def _tools(offer: Offer, own: Sequence[Json]) -> list[msgspec.Raw]:
    """The bridge's own, and those that stay in sight."""
    # Functions are strict here unless they say otherwise, and then nothing could be left out of a search.
    about: Json = {"type": "function", "strict": False}
    return offer.with_ours(
        [
            {**about, "name": each["name"], "description": each["description"], "parameters": each["schema"]}
            for each in own
        ]
    )
