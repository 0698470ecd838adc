"""Replies of Chat Completions, edited: searches are hidden, `call_tool` becomes the call it stands for.

The rounds of a reply are one message to the client: texts follow upon each other, calls come in the last round only.
Above: `exchange`. Below: `turn`, `function_calls`, `events`. Pure.
"""

from __future__ import annotations

from typing import Any, Literal

from pegboard.proxy.completions_request import THOUGHTS, call_block, text_block
from pegboard.proxy.events import Event, encoded
from pegboard.proxy.function_calls import Held, error_of, refused, searched, sendable
from pegboard.proxy.turn import Pieces, Room, Turn, summed
from pegboard.types import Json

_CUT = ("", "error", "length", "content_filter")
"""Reasons after which nothing is to be answered."""
_NOTHING: tuple[Any, ...] = (None, "", [], {})
Kind = Literal["", "hidden", "bridged", "visible"]


class Said:
    """What a message says beside its calls, put together from its deltas."""

    def __init__(self, room: Room) -> None:
        self.has_text = False
        self._room = room
        self._texts: dict[str, Pieces] = {}
        self._lists: dict[str, list[Any]] = {}

    def add(self, delta: Json) -> int:
        """One more piece; gives how much longer the text is."""
        for field in THOUGHTS:
            value = delta.get(field)
            if isinstance(value, str) and value:
                self._grow(field, value)
            elif isinstance(value, list) and value:
                self._texts.pop(field, None)
                self._lists.setdefault(field, []).extend(value)
        text = delta.get("content")
        if not isinstance(text, str) or not text:
            return 0
        self.has_text = True
        self._grow("content", text)
        return len(text)

    @property
    def content(self) -> str | None:
        """Its text."""
        return self._texts["content"].whole() if self.has_text else None

    @property
    def thoughts(self) -> Json:
        """What it says beside."""
        texts = {field: text.whole() for field, text in self._texts.items() if field != "content"}
        return {field: {**self._lists, **texts}[field] for field in THOUGHTS if field in self._lists or field in texts}

    def message(self) -> Json:
        """As it is sent back."""
        return {"role": "assistant", "content": self.content, **self.thoughts}

    def _grow(self, field: str, more: str) -> None:
        self._lists.pop(field, None)
        self._texts.setdefault(field, Pieces(self._room)).add(more)


class Call:
    """One call of a round, put together from its deltas."""

    def __init__(self, turn: Turn) -> None:
        self.entry: Json = {}
        self.kind: Kind = ""
        self.index = -1
        """Under which the client sees it; -1 while it does not."""
        self.held = Held(turn)
        self._memory = turn.memory

    @property
    def function(self) -> Json:
        """Its name and arguments."""
        inner: Json = self.entry.setdefault("function", {"name": "", "arguments": ""})
        return inner

    def add(self, piece: Json) -> str:
        """One more piece; gives what it has of the arguments, and all so far when it is the first with a name."""
        for key, value in piece.items():
            if key == "function" and isinstance(value, dict):
                self._grow(value)
            elif key not in ("index", "function") and value:
                self.entry[key] = value
        given = piece.get("function")
        more = str(given.get("arguments") or "") if isinstance(given, dict) else ""
        if not self.kind and (self.function["name"] or self.entry.get("type") not in (None, "function")):
            self.kind = self._told()
            return str(self.function["arguments"])
        return more

    def block(self) -> Json:
        """As it is sent back."""
        function = {**self.function, "arguments": sendable(self.function["arguments"])}
        return call_block({**self.entry, "type": self.entry.get("type") or "function", "function": function})

    def shown(self, text: str) -> Json:
        """The call that it stands for."""
        return {**self.entry, "function": {**self.function, "name": self.held.name, "arguments": text}}

    def _grow(self, function: Json) -> None:
        for key, value in function.items():
            if key == "arguments":
                self.function["arguments"] += str(value or "")
            elif value and not self.function.get(key):
                self.function[key] = value

    def _told(self) -> Kind:
        name = self.function["name"]
        if name == self._memory.search:
            return "hidden"
        return "bridged" if name == self._memory.call else "visible"


class CompletionsReply:
    """Implements `turn.ReplyEditor`."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.is_over = False
        self._finish = ""
        self._usage: Json = {}
        self._before: Json = {}
        self._first = True
        self._next = 0
        self._calls: dict[Any, Call] = {}
        self._round = Said(turn.room)
        self._room = Room()
        self._whole = Said(self._room)

    @property
    def goes_on(self) -> bool:
        """Never: this wire has no pauses."""
        return False

    @property
    def waits(self) -> bool:
        """Whether the model waits for answers of the proxy's. What was asked counts: some say `stop` all the same."""
        return self._finish not in _CUT and self.turn.is_for_us

    def begin_round(self) -> None:
        """Usage is added up; the text goes on."""
        self._before = summed(self._before, self._usage)
        self._usage, self._finish, self._first, self.is_over = {}, "", False, False
        self._calls, self._round = {}, Said(self.turn.room)

    # ── a stream ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def event(self, event: Event) -> bytes:
        """What the client gets for this chunk."""
        if event.data.strip() == b"[DONE]":
            return event.raw if self.is_over and not self.waits else b""
        data = event.parsed()
        if data.get("error"):
            self.is_over, self._finish = True, "error"
            return event.raw
        usage = data.get("usage")
        if isinstance(usage, dict):
            self._usage = usage
        if self.is_over:  # what comes after the reason to finish is usage, or says it again
            return b"" if self.waits else self._counted(event, data)
        choice = _choice(data)
        return self._counted(event, data) if choice is None else self._chosen(event, data, choice)

    def _chosen(self, event: Event, data: Json, choice: Json) -> bytes:
        given = choice.get("delta")
        delta: Json = given if isinstance(given, dict) else {}
        self._hear(delta)
        shown = self._delta(delta)
        finish = choice.get("finish_reason")
        if not finish:
            return self._counted(event, data) if shown is delta else _told(event, data, choice, shown)
        self._finish, self.is_over = str(finish), True
        if rest := self._settled():
            calls = shown.get("tool_calls")
            shown = {**shown, "tool_calls": [*(calls if isinstance(calls, list) else ()), *rest]}
        if self.waits:
            return _told(event, data, {**choice, "finish_reason": None}, shown)
        if shown is delta:
            return self._counted(event, data)
        early = _told(event, data, {**choice, "finish_reason": None}, shown)
        return early + event.saying(self._sum(_with(data, choice, {**choice, "delta": {}})))

    def _hear(self, delta: Json) -> None:
        self.turn.text_length += self._round.add(delta)
        self._whole.add(delta)

    def _delta(self, delta: Json) -> Json:
        """A delta as the client sees it; the very same when there is nothing to change."""
        pieces = delta.get("tool_calls")
        calls: list[Any] = pieces if isinstance(pieces, list) else []
        shown = [entry for piece in calls if isinstance(piece, dict) for entry in self._piece(piece)]
        same = len(shown) == len(calls) and all(one is other for one, other in zip(shown, calls, strict=True))
        # A role that comes twice is put together to nonsense by some clients.
        if same and (self._first or "role" not in delta):
            return delta
        kept = {key: value for key, value in delta.items() if key != "tool_calls" and (self._first or key != "role")}
        return {**kept, "tool_calls": shown} if shown else kept

    def _piece(self, piece: Json) -> list[Json]:
        """What the client gets of a piece of a call."""
        key = self._key(piece)
        rest = [] if key in self._calls else self._released()
        is_new = key not in self._calls
        call = self._calls.setdefault(key, Call(self.turn))
        more = call.add(piece)
        if call.kind == "bridged":
            return [*rest, *self._called(call, call.held.add(more))]
        if call.kind != "visible":
            return rest
        if call.index < 0:
            self._number(call)
            piece = piece if is_new else {"index": call.index, **call.entry}  # it waited for its name
        return [*rest, piece if piece.get("index") == call.index else {**piece, "index": call.index}]

    def _key(self, piece: Json) -> Any:
        """Which call a piece is of; some servers send whole calls, and number none."""
        index = piece.get("index")
        if isinstance(index, int):
            return index
        return f"id:{piece['id']}" if piece.get("id") else next(reversed(self._calls), 0)

    def _released(self) -> list[Json]:
        """Calls that were held and have come whole, before another begins: the client sees them in their order."""
        waiting = [each for each in self._calls.values() if each.kind == "bridged" and each.index < 0]
        return [entry for each in waiting if each.held.is_whole for entry in self._called(each, each.held.end())]

    def _called(self, call: Call, text: str) -> list[Json]:
        """The call as the client sees it, as far as it is known; one of a tool that is not there stays hidden."""
        if not call.held.is_real:
            return []
        if call.index < 0:
            self._number(call)
            self.turn.memory.bridge(call.entry.get("id"), call.held.name, arguments_first=call.held.arguments_first)
            return [{"index": call.index, **call.shown(text)}]
        return [{"index": call.index, "function": {"arguments": text}}] if text else []

    def _number(self, call: Call) -> None:
        call.index, self._next = self._next, self._next + 1

    def _counted(self, event: Event, data: Json) -> bytes:
        summary = self._sum(data)
        return event.raw if summary is data else event.saying(summary)

    def _sum(self, data: Json) -> Json:
        """With the usage of all rounds, where it says any."""
        if not self._before or not isinstance(data.get("usage"), dict):
            return data
        return {**data, "usage": summed(self._before, self._usage)}

    # ── one piece ────────────────────────────────────────────────────────────────────────────────────────────────────

    def whole(self, reply: Json) -> Json:
        """A reply that is not a stream; the very same where nothing in it is changed."""
        choice = _choice(reply)
        message = choice.get("message") if choice is not None else None
        if choice is None or not isinstance(message, dict):
            return reply
        self._finish, self.is_over = str(choice.get("finish_reason") or "stop"), True
        self.turn.room.left = self._room.left = len(str(message))  # it is here already, and nothing of it may be lost
        usage = reply.get("usage")
        self._usage = usage if isinstance(usage, dict) else {}
        self._hear(message)
        given = message.get("tool_calls")
        calls: list[Any] = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
        for number, each in enumerate(calls):
            self._piece({**each, "index": number})
        self._settled()
        shown = self._spoken(message, calls)
        whole = self._sum(_with(reply, choice, {**choice, "message": shown}))
        return reply if whole == reply else whole

    def _spoken(self, message: Json, calls: list[Json]) -> Json:
        """The message as the client sees it."""
        seen = sorted((call.index, number) for number, call in self._calls.items() if call.index >= 0)
        shown = [_shown(self._calls[number], calls[number]) for _, number in seen]
        kept = {key: value for key, value in message.items() if key != "tool_calls" or shown}
        said: Json = {**kept, **self._whole.thoughts}
        if self._whole.content is not None:
            said["content"] = self._whole.content
        return {**said, "tool_calls": shown} if shown else said

    # ── both ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def error(self, status: int, body: bytes) -> bytes:
        """What the API said of a later round, as the chunk that ends a stream."""
        return encoded({"error": error_of(status, body)})

    def _settled(self) -> list[Json]:
        """The round has come whole: what the client gets still of its calls."""
        rest: list[Json] = []
        for call in self._calls.values():
            if call.kind == "bridged":
                rest += self._called(call, call.held.end())
            elif not call.kind:  # it has no name, which is for the client to see
                self._number(call)
                rest.append({"index": call.index, **call.entry})
        for call in self._calls.values():
            self._account(call)
        if self.waits:
            self.turn.asks[0].block["message"] = self._round.message()
            return rest
        if not self.turn.shows_calls:
            self.turn.show(text_block(self._whole.content or ""))
        self.turn.commit()
        return rest

    def _account(self, call: Call) -> None:
        block = call.block()
        name, arguments = str(call.entry.get("id")), call.function["arguments"]
        if call.index >= 0:
            self.turn.show(block, calls=True)
        elif self._finish in _CUT:  # half a call: nobody is to know of it
            return
        elif call.kind == "hidden":
            self.turn.hide(block, searched(name, arguments, block))
        else:
            self.turn.hide(block, refused(self.turn, name, arguments, block))


def _choice(data: Json) -> Json | None:
    """The one choice that there is."""
    choices = data.get("choices")
    found = [each for each in choices if isinstance(each, dict)] if isinstance(choices, list) else []
    return next((each for each in found if not each.get("index")), None)


def _with(data: Json, choice: Json, other: Json) -> Json:
    return {**data, "choices": [other if each is choice else each for each in data["choices"]]}


def _told(event: Event, data: Json, choice: Json, delta: Json) -> bytes:
    """A chunk with what is left of it; nothing when nothing is."""
    if all(value in _NOTHING for value in delta.values()):
        return b""
    kept = {key: value for key, value in data.items() if key != "usage" or not isinstance(value, dict)}
    return event.saying({**kept, "choices": [{**choice, "delta": delta}]})


def _shown(call: Call, given: Json) -> Json:
    return call.shown(call.held.shown) if call.kind == "bridged" else given
