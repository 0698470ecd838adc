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
from pegboard.proxy.response_items import brief, halves, is_models, mark_of, said_by
from pegboard.proxy.toolset import Offer
from pegboard.proxy.turn import Ask
from pegboard.proxy.weave import Place, Row, cut, placed, places, woven
from pegboard.types import Json

Fields = Mapping[str, msgspec.Raw]
Rounds = list[tuple[list[Json], list[Json]]]
_Said = tuple[Any, Any]
"""An item, read, and as it is to be sent."""


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
        # What is before a reply that the request goes on from, the API has.
        self.put_back: list[Insert] = list(memory.inserts) if _previous(fields) else []
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
        read: list[_Said] = [(brief(each), each) for each in raw]
        runs = [list(run) for _, run in groupby(read, key=lambda said: is_models(said[0]))]
        rows = [Row([], is_models(run[0][0]), self._marks(run)) for run in runs]
        self._part(runs, rows)
        at = places(rows, memory.inserts)
        self.put_back = self.put_back or placed(at)
        out: list[Any] = []
        for number, (row, run) in enumerate(zip(rows, runs, strict=True)):
            said = [self._unbridged(*each) if row.is_reply else each[1] for each in run]
            out += _put_back(said, number, row, at)
        return out

    def _marks(self, run: list[_Said]) -> list[str]:
        return [mark_of(item, self._memory.items) for item, _ in run]

    def _part(self, runs: list[list[_Said]], rows: list[Row]) -> None:
        """Takes messages apart that a client has put together (Cline does), where something stood between them."""
        wanted = [each for each in self._memory.inserts if each.length and each.row < len(rows)]
        whole = {each.row: rows[each.row].given for each in wanted if rows[each.row].is_reply}
        for insert in wanted:
            if insert.row not in whole or insert.spoken[0] in whole[insert.row]:
                continue
            run = runs[insert.row]
            for at, (item, _) in enumerate(run):
                if length := cut(said_by(item), insert):
                    run[at : at + 1] = [(half, half) for half in halves(item, length)]
                    rows[insert.row].given = self._marks(run)
                    break

    def _unbridged(self, item: Any, raw: Any) -> Any:
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
