"""Replies of the Messages API, edited: searches are hidden, `call_tool` becomes the call it stands for.

Above: `exchange`. Below: `turn`, `call_stream`, `events`. Pure.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pegboard.proxy.call_stream import CallStream
from pegboard.proxy.events import Event, encoded
from pegboard.proxy.searching import unknown_tool
from pegboard.proxy.turn import Ask, Pieces, Room, Turn, summed
from pegboard.types import Json

_NATIVE = ("tool_search_tool_regex", "tool_search_tool_bm25")
_CUT = ("", "error", "max_tokens", "model_context_window_exceeded", "refusal")
"""Stop reasons after which nothing is to be answered."""


class Builder:
    """A block of a stream, put together from its deltas."""

    def __init__(self, block: Json, room: Room) -> None:
        self.block = dict(block)
        self._room = room
        self._json = Pieces(room)
        self._texts: dict[str, Pieces] = {}

    def add(self, delta: Json) -> None:
        """One more piece."""
        kind = str(delta.get("type"))
        if kind == "input_json_delta":
            self._json.add(str(delta.get("partial_json") or ""))
        elif kind == "citations_delta":
            self.block["citations"] = [*(self.block.get("citations") or []), delta.get("citation")]
        else:  # text, thinking, a signature, and kinds to come: what is text goes on, what is not is new
            for field in delta.keys() - {"type"}:
                self._grow(field, delta[field])

    def _grow(self, field: str, more: Any) -> None:
        before = self.block.get(field)
        if not isinstance(before, str) or not isinstance(more, str):
            self.block[field] = more
            self._texts.pop(field, None)
            return
        if field not in self._texts:
            self._texts[field] = Pieces(self._room)
            self._texts[field].add(before)
        self._texts[field].add(more)

    def done(self) -> Json:
        """The whole block."""
        self.block |= {field: text.whole() for field, text in self._texts.items()}
        if written := self._json.whole():
            try:
                self.block["input"] = msgspec.json.decode(written)
            except (ValueError, RecursionError):
                self.block["input"] = {}
        return self.block


class Bridged(msgspec.Struct):
    """A `call_tool` under way: held until it is known what it calls."""

    builder: Builder
    call: CallStream
    index: int = -1
    """Under which the client sees it; -1 while it does not."""


class MessagesReply:
    """Both executors: which blocks are hidden differs, how they are hidden does not."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.is_over = False
        self._first = True
        self._usage: Json = {}
        self._before: Json = {}
        self._stop = ""
        self._next = 0
        self._visible: dict[int, tuple[int, Builder]] = {}
        self._hidden: dict[int, Builder] = {}
        self._bridged: dict[int, Bridged] = {}
        self._content: list[Any] = []

    @property
    def goes_on(self) -> bool:
        """Whether the API paused a search of its own and wants the turn back."""
        return self.turn.memory.executor == "native" and self._stop == "pause_turn"

    @property
    def waits(self) -> bool:
        """Whether the model waits for answers of the proxy's, and for nothing else."""
        return self._stop not in _CUT and self.turn.is_for_us

    def begin_round(self) -> None:
        """Usage is added up; blocks are counted on."""
        self._before = summed(self._before, self._usage)
        self._usage, self._stop, self._first, self.is_over = {}, "", False, False
        self._visible, self._hidden, self._bridged = {}, {}, {}

    # ── a stream ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def event(self, event: Event) -> bytes:
        """What the client gets for this event."""
        data = event.parsed()
        match data.get("type"):
            case "message_start":
                return self._started(event, data)
            case "content_block_start":
                return self._block(event, data)
            case "content_block_delta":
                return self._delta(event, data)
            case "content_block_stop":
                return self._stopped(event, data)
            case "message_delta":
                return self._closing(event, data)
            case "message_stop":
                self.is_over = True
                if self._another:
                    return b""
                self.turn.commit()
            case "error":
                self.is_over, self._stop = True, "error"
        return event.raw

    @property
    def _another(self) -> bool:
        return self.goes_on or self.waits

    def _started(self, event: Event, data: Json) -> bytes:
        message = data.get("message")
        usage = message.get("usage") if isinstance(message, dict) else None
        self._usage = dict(usage) if isinstance(usage, dict) else {}
        return event.raw if self._first else b""

    def _block(self, event: Event, data: Json) -> bytes:
        index, block = data.get("index"), data.get("content_block")
        if not isinstance(index, int) or not isinstance(block, dict):
            return event.raw
        if self._hides(block):
            self._hidden[index] = Builder(block, self.turn.room)
            return b""
        if self._bridges(block):
            self._bridged[index] = Bridged(Builder(block, self.turn.room), CallStream())
            return b""
        self._visible[index] = (self._next, Builder(block, self.turn.room))
        return self._numbered(event, data, self._next, new=True)

    def _delta(self, event: Event, data: Json) -> bytes:
        index, delta = data.get("index"), data.get("delta")
        if not isinstance(index, int) or not isinstance(delta, dict):
            return event.raw
        if index in self._hidden:
            self._hidden[index].add(delta)
            return b""
        if index in self._bridged:
            bridged = self._bridged[index]
            bridged.builder.add(delta)
            return self._called(bridged, bridged.call.feed(str(delta.get("partial_json") or "")))
        if index in self._visible:
            out, builder = self._visible[index]
            builder.add(delta)
            return self._numbered(event, data, out)
        return event.raw

    def _stopped(self, event: Event, data: Json) -> bytes:
        index = data.get("index")
        if not isinstance(index, int):
            return event.raw
        if index in self._hidden:
            self._hide(self._hidden.pop(index).done())
            return b""
        if index in self._bridged:
            return self._settled(self._bridged.pop(index))
        if index in self._visible:
            out, builder = self._visible.pop(index)
            self._show(builder.done())
            return self._numbered(event, data, out)
        return event.raw

    def _closing(self, event: Event, data: Json) -> bytes:
        delta, usage = data.get("delta"), data.get("usage")
        self._stop = str(delta.get("stop_reason") or self._stop) if isinstance(delta, dict) else self._stop
        # A field that is null says nothing against what it was at the start.
        given = usage.items() if isinstance(usage, dict) else ()
        self._usage |= {key: value for key, value in given if value is not None}
        if self._another:
            return b""
        if self._stop:
            self.turn.commit()
        return event.raw if self._first else event.saying({**data, "usage": summed(self._before, self._usage)})

    def _called(self, bridged: Bridged, piece: str) -> bytes:
        """The call as the client sees it, as far as it is known; one of a tool that is not there stays hidden."""
        name, out = bridged.call.name, b""
        if not name or name not in self.turn.known:
            return b""
        if bridged.index < 0:
            bridged.index, self._next = self._next, self._next + 1
            block = {**bridged.builder.block, "name": name, "input": {}}
            self.turn.memory.bridge(block.get("id"), name, arguments_first=bridged.call.arguments_first)
            out = _told("content_block_start", bridged.index, content_block=block)
        if piece:
            delta = {"type": "input_json_delta", "partial_json": piece}
            out += _told("content_block_delta", bridged.index, delta=delta)
        return out

    def _settled(self, bridged: Bridged) -> bytes:
        block, rest = bridged.builder.done(), bridged.call.end()
        out = self._called(bridged, rest)
        if bridged.index < 0:
            self._refuse(block)
            return b""
        self.turn.show(block, calls=True)
        return out + _told("content_block_stop", bridged.index)

    def _numbered(self, event: Event, data: Json, index: int, *, new: bool = False) -> bytes:
        self._next = max(self._next, index + 1) if new else self._next
        return event.raw if data["index"] == index else event.saying({**data, "index": index})

    # ── one piece ────────────────────────────────────────────────────────────────────────────────────────────────────

    def whole(self, reply: Json) -> Json:
        """A reply that is not a stream; the very same where nothing in it is changed."""
        self._stop, self.is_over = str(reply.get("stop_reason") or ""), True
        content, usage = reply.get("content"), reply.get("usage")
        self._usage = dict(usage) if isinstance(usage, dict) else {}
        for block in content if isinstance(content, list) else ():
            self._take(block)
        if self._another:
            return reply
        self.turn.commit()
        if not isinstance(content, list) or (self._first and list(map(id, self._content)) == list(map(id, content))):
            return reply
        total = summed(self._before, self._usage)
        return {**reply, "content": self._content, **({"usage": total} if total else {})}

    def _take(self, block: Any) -> None:
        if not isinstance(block, dict):
            self._content.append(block)
        elif self._hides(block):
            self._hide(block)
        elif self._bridges(block):
            self._bridge(block)
        else:
            self._show(block)
            self._content.append(block)

    def _bridge(self, block: Json) -> None:
        given = block.get("input")
        whole: Json = given if isinstance(given, dict) else {}
        name = str(whole.get("name") or "")
        if name not in self.turn.known:
            self._refuse(block)
            return
        first = next((key for key in whole if key in ("name", "arguments")), "name")
        self.turn.memory.bridge(block.get("id"), name, arguments_first=first == "arguments")
        self.turn.show(block, calls=True)
        self._content.append({**block, "name": name, "input": CallStream.inner(whole)})

    # ── both ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def error(self, status: int, body: bytes) -> bytes:
        """What the API said of a later round, as the event that ends a stream."""
        try:
            said: Any = msgspec.json.decode(body)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict) or not isinstance(said.get("error"), dict):
            text = f"The model's API answered {status} in the middle of a turn."
            said = {"type": "error", "error": {"type": "api_error", "message": text}}
        return encoded({**said, "type": "error"}, "error")

    def _hides(self, block: Json) -> bool:
        kind, name = block.get("type"), str(block.get("name") or "")
        if self.turn.memory.executor == "bridge":
            return kind == "tool_use" and name == self.turn.memory.search
        return kind == "tool_search_tool_result" or (kind == "server_tool_use" and name in _NATIVE)

    def _bridges(self, block: Json) -> bool:
        memory = self.turn.memory
        return memory.executor == "bridge" and block.get("type") == "tool_use" and block.get("name") == memory.call

    def _hide(self, block: Json) -> None:
        if self.turn.memory.executor == "native":
            self._refer(block)
            self.turn.hide(block)
            return
        given = block.get("input")
        self.turn.hide(block, Ask(str(block.get("id")), given if isinstance(given, dict) else {}, block))

    def _refuse(self, block: Json) -> None:
        given = block.get("input")
        whole: Json = given if isinstance(given, dict) else {}
        problem = unknown_tool(str(whole.get("name") or ""), list(self.turn.known.values()), self.turn.memory.search)
        self.turn.hide(block, Ask(str(block.get("id")), whole, block, problem))

    def _show(self, block: Json) -> None:
        self.turn.show(block, calls=block.get("type") == "tool_use")

    def _refer(self, block: Json) -> None:
        """Remembers the definitions that a search found: every later request has to have them."""
        if block.get("type") != "tool_search_tool_result":
            return
        content = block.get("content")
        given = content.get("tool_references") if isinstance(content, dict) else None
        found = given if isinstance(given, list) else []
        self.turn.found.append(len(found))
        for each in found:
            tool = self.turn.known.get(str(each.get("tool_name"))) if isinstance(each, dict) else None
            if tool is not None:
                self.turn.memory.definitions[tool.name] = msgspec.json.decode(tool.raw)


def _told(kind: str, index: int, **more: Any) -> bytes:
    return encoded({"type": kind, "index": index, **more}, kind)
