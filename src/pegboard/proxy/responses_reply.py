"""Replies of the Responses API, edited: searches are hidden, `call_tool` becomes the call it stands for.

The rounds of a reply are one response to the client: it has the id of the first, and the items of all.
Above: `exchange`. Below: `turn`, `function_calls`, `events`. Pure.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from pegboard.proxy.events import Event, encoded
from pegboard.proxy.function_calls import Held, error_of, refused, searched, sendable
from pegboard.proxy.memory import mark
from pegboard.proxy.response_items import known
from pegboard.proxy.turn import Turn, summed
from pegboard.types import Json

_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_ADDED, _DONE = "response.output_item.added", "response.output_item.done"
_DELTA, _ARGUMENTS = "response.function_call_arguments.delta", "response.function_call_arguments.done"
_CLIENTS = (
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "mcp_approval_request",
)
"""What the client has to do something about."""
MOST_REPLIES = 400


class Item:
    """One item of a round."""

    def __init__(self, item: Json, turn: Turn) -> None:
        self.item = item
        self.index = -1
        """Under which the client sees it; -1 while it does not."""
        self.kind: Literal["hidden", "bridged", "visible"] = "visible"
        if item.get("type") == "function_call" and item.get("name") == turn.memory.search:
            self.kind = "hidden"
        elif item.get("type") == "function_call" and item.get("name") == turn.memory.call:
            self.kind = "bridged"
        self.held = Held(turn)

    def shown(self, item: Json, arguments: str) -> Json:
        """The call that it stands for."""
        return {**item, "name": self.held.name, "arguments": arguments}


class ResponsesReply:
    """Implements `turn.ReplyEditor`."""

    def __init__(
        self, turn: Turn, tools: msgspec.Raw | None = None, *, stored: bool = True, previous: str = ""
    ) -> None:
        """`tools` and `previous` are what the client said; `stored` says whether the API keeps the reply."""
        self.turn = turn
        self.is_over = False
        self.id = ""
        """By which the client knows the reply."""
        self._tools = tools
        self._stored = stored
        self._previous = previous
        self._status = ""
        self._usage: Json = {}
        self._before: Json = {}
        self._first = True
        self._is_changed = False
        self._sequence = -1
        self._next = 0
        self._items: dict[int, Item] = {}
        self._output: dict[int, Json] = {}
        self._begun: Json = {}

    @property
    def goes_on(self) -> bool:
        """Never: this wire has no pauses."""
        return False

    @property
    def waits(self) -> bool:
        """Whether the model waits for answers of the proxy's, and for nothing else."""
        return self._status == "completed" and self.turn.is_for_us

    def begin_round(self) -> None:
        """Usage is added up; items and events are counted on."""
        self._before = summed(self._before, self._usage)
        self._usage, self._status, self._first, self.is_over = {}, "", False, False
        self._items, self._is_changed = {}, True

    # ── a stream ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def event(self, event: Event) -> bytes:
        """What the client gets for this event."""
        data = event.parsed()
        kind = str(data.get("type") or "")
        if not kind:
            return b"" if self.waits else event.raw
        if isinstance(data.get("response"), dict):
            return self._about(event, data, kind)
        if kind == "error":
            self.is_over, self._status = True, "error"
        index = data.get("output_index")
        return self._of_item(event, data, kind, index) if isinstance(index, int) else self._numbered(event, data, data)

    def _about(self, event: Event, data: Json, kind: str) -> bytes:
        response = data["response"]
        if kind in _ENDS:
            shown = self._ended(response, kind.removeprefix("response."))
            return b"" if self.waits else self._numbered(event, data, {**data, "response": shown})
        shown = self._restored(response)
        if not self._first:
            return b""
        self._begun = shown
        return self._numbered(event, data, {**data, "response": shown})

    def _of_item(self, event: Event, data: Json, kind: str, index: int) -> bytes:
        given = data.get("item")
        item = self._items.get(index)
        if item is None:
            item = self._items[index] = Item(given if isinstance(given, dict) else {}, self.turn)
            self._is_changed = self._is_changed or item.kind != "visible"
        if item.kind == "bridged":
            return self._of_bridged(event, data, kind, item)
        if item.kind == "hidden":
            if kind == _DONE and isinstance(given, dict):
                self._hide(given)
            return b""
        if item.index < 0:
            self._number(item)
        if kind == _DONE and isinstance(given, dict):
            self._show(item, given)
        return self._numbered(event, data, {**data, "output_index": item.index})

    def _of_bridged(self, event: Event, data: Json, kind: str, item: Item) -> bytes:
        if kind == _ADDED:
            return b""
        if kind == _DELTA:
            return self._called(event, item, item.held.add(str(data.get("delta") or "")))
        given = data.get("item") if kind == _DONE else data
        whole = str(given.get("arguments") or "") if isinstance(given, dict) else ""
        out = self._called(event, item, item.held.end(whole)) if kind in (_ARGUMENTS, _DONE) else b""
        if kind == _DONE and isinstance(given, dict):
            self._settle(item, given)
        if item.index < 0:
            return b""
        told: Json = {**data, "output_index": item.index}
        if kind == _DONE and item.index in self._output:
            told["item"] = self._output[item.index]
        elif kind == _ARGUMENTS:
            told = item.shown(told, item.held.shown) if "name" in told else {**told, "arguments": item.held.shown}
        return out + self._numbered(event, data, told)

    def _called(self, event: Event, item: Item, text: str) -> bytes:
        """The call as the client sees it, as far as it is known; one of a tool that is not there stays hidden."""
        if not item.held.is_real:
            return b""
        out = b""
        if item.index < 0:
            self._number(item)
            out = self._made(event, _ADDED, output_index=item.index, item=item.shown(item.item, ""))
        if text:
            about: Json = {"item_id": item.item.get("id"), "output_index": item.index}
            out += self._made(event, _DELTA, **about, delta=text)
        return out

    def _number(self, item: Item) -> None:
        item.index, self._next = self._next, self._next + 1

    def _made(self, event: Event, kind: str, **more: Any) -> bytes:
        """An event of our own, named as the API names its own."""
        self._sequence += 1
        return encoded({"type": kind, "sequence_number": self._sequence, **more}, kind if event.name else "")

    def _numbered(self, event: Event, data: Json, told: Json) -> bytes:
        """The event with its place in the whole stream; the very bytes when nothing is changed."""
        number = data.get("sequence_number")
        if isinstance(number, int):
            self._sequence = number if self._sequence < 0 else self._sequence + 1
            told = {**told, "sequence_number": self._sequence}
        return event.raw if told == data else event.saying(told)

    # ── one piece ────────────────────────────────────────────────────────────────────────────────────────────────────

    def whole(self, reply: Json) -> Json:
        """A reply that is not a stream; the very same where nothing in it is changed."""
        given = reply.get("output")
        for each in given if isinstance(given, list) else ():
            if isinstance(each, dict):
                self._take(each)
        shown = self._ended(reply, str(reply.get("status") or "completed"))
        return reply if shown == reply else shown

    def _take(self, given: Json) -> None:
        item = Item(given, self.turn)
        self._is_changed = self._is_changed or item.kind != "visible"
        if item.kind == "hidden":
            self._hide(given)
            return
        if item.kind == "bridged":
            item.held.end(str(given.get("arguments") or ""))
        if item.kind == "visible" or item.held.is_real:
            self._number(item)
        if item.kind == "visible":
            self._show(item, given)
        else:
            self._settle(item, given)

    # ── both ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def error(self, status: int, body: bytes) -> bytes:
        """What the API said of a later round, as the event that ends a stream."""
        said = error_of(status, body)
        error = {"code": str(said.get("code") or said.get("type") or "server_error"), "message": said.get("message")}
        response = {**self._begun, "status": "failed", "error": error, "output": self._visible()}
        self._sequence += 1
        kind = "response.failed"
        return encoded({"type": kind, "sequence_number": self._sequence, "response": response}, kind)

    def _ended(self, response: Json, status: str) -> Json:
        """The round is over: the response as the client sees it, if this was the last."""
        self.is_over, self._status = True, status
        usage = response.get("usage")
        self._usage = usage if isinstance(usage, dict) else {}
        shown = self._restored(response)
        if self.waits:
            return shown
        self.turn.commit()
        self._remember(str(response.get("id") or ""))
        if self._is_changed:
            shown = {**shown, "output": self._visible()}
        return {**shown, "usage": summed(self._before, self._usage)} if self._before else shown

    def _remember(self, last: str) -> None:
        """What a client that goes on from this reply by its id will not say."""
        memory = self.turn.memory
        if self._status in ("failed", "cancelled") or not self.id:
            return
        if last and last != self.id:
            memory.responses[self.id] = last
        if self.turn.asks:
            memory.pending[self.id] = [
                {"id": ask.id, "input": ask.input, "problem": ask.problem} for ask in self.turn.asks
            ]
        for kept in (memory.responses, memory.pending):
            while len(kept) > MOST_REPLIES:
                del kept[next(iter(kept))]

    def _restored(self, response: Json) -> Json:
        """The response as one to what the client asked, under the id that the client knows."""
        self.id = self.id or str(response.get("id") or "")
        shown = {**response, "id": self.id} if "id" in response else dict(response)
        if self._tools is not None and isinstance(response.get("tools"), list):
            shown["tools"] = msgspec.json.decode(self._tools)
        if self._previous and response.get("previous_response_id"):
            shown["previous_response_id"] = self._previous
        return shown

    def _visible(self) -> list[Json]:
        return [self._output[index] for index in sorted(self._output)]

    def _show(self, item: Item, given: Json) -> None:
        self._output[item.index] = given
        if given.get("type") == "reasoning" and not self._stored and not given.get("encrypted_content"):
            return  # nobody has it, so it can neither be sent back nor be found again
        self._name(given)
        self.turn.show(given, shown=known(given), calls=given.get("type") in _CLIENTS)

    def _name(self, given: Json) -> None:
        """What the API keeps can be named by the client instead of being said again."""
        if self._stored and given.get("id"):
            self.turn.memory.name(str(given["id"]), mark(known(given)))

    def _settle(self, item: Item, given: Json) -> None:
        """A call of the bridge's that has come whole."""
        call, arguments = str(given.get("call_id")), given.get("arguments")
        if item.index >= 0:
            self.turn.memory.bridge(call, item.held.name, arguments_first=item.held.arguments_first)
            self._output[item.index] = item.shown(given, item.held.shown)
            self._name(given)
            self.turn.show(given, shown=known(given), calls=True)
        elif given.get("status") != "incomplete":
            block = {**given, "arguments": sendable(arguments)}
            self.turn.hide(block, refused(self.turn, call, arguments, block))

    def _hide(self, given: Json) -> None:
        if given.get("status") != "incomplete":  # half a call: nobody is to know of it
            arguments = given.get("arguments")
            block = {**given, "arguments": sendable(arguments)}
            self.turn.hide(block, searched(str(given.get("call_id")), arguments, block))
