"""Calls as OpenAI's two wires have them, whose arguments are text: what is read out of it, and what becomes of it.

Above: the editors of Chat Completions and Responses. Below: `call_stream`, `turn`. Pure.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pegboard.proxy.call_stream import CallStream
from pegboard.proxy.searching import unknown_tool
from pegboard.proxy.turn import Ask, Turn
from pegboard.types import Json


class Held:
    """A call of the bridge's under way: what the client gets of it once it is known what it calls."""

    def __init__(self, turn: Turn) -> None:
        self.shown = ""
        """The arguments that the client has got so far."""
        self.has_ended = False
        self._known = turn.known
        self._call = CallStream()
        self._has_begun = False

    @property
    def name(self) -> str:
        """What it calls."""
        return self._call.name

    @property
    def is_real(self) -> bool:
        """Whether it is known to call a tool that is there."""
        return self._call.name in self._known

    @property
    def is_whole(self) -> bool:
        """Whether nothing can come after what has come."""
        return self._has_begun and self._call.parsed() is not None

    @property
    def arguments_first(self) -> bool:
        """Whether the model said what with before it said which."""
        return self._call.arguments_first

    def add(self, piece: str) -> str:
        """What there is more of the arguments."""
        self._has_begun = self._has_begun or bool(piece)
        return self._took(self._call.feed(piece))

    def end(self, whole: str = "") -> str:
        """The rest of them; `whole` is the text of the call, for servers that never sent it in pieces."""
        if self.has_ended:
            return ""
        early = "" if self._has_begun else self.add(whole)
        self.has_ended = True
        rest = self._call.end()
        return early + self._took(rest if rest or self.shown else "{}")

    def _took(self, more: str) -> str:
        if self.is_real:
            self.shown += more
        return more


def read(arguments: Any) -> Json:
    """The arguments of a call; empty when they are no object."""
    try:
        value: Any = msgspec.json.decode(str(arguments or "{}"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def sendable(arguments: Any) -> str:
    """The text of arguments as it can be sent back: some APIs refuse what is no object, though a model wrote it."""
    text = str(arguments or "")
    return text if read(text) or text.strip() == "{}" else "{}"


def searched(call: str, arguments: Any, block: Json) -> Ask:
    """A search."""
    return Ask(call, read(arguments), block)


def refused(turn: Turn, call: str, arguments: Any, block: Json) -> Ask:
    """A call of a tool that is not there."""
    given = read(arguments)
    problem = unknown_tool(str(given.get("name") or ""), list(turn.known.values()), turn.memory.search)
    return Ask(call, given, block, problem)


def rebridged(name: Any, arguments: Any, *, arguments_first: bool) -> str:
    """The arguments of `call_tool` that stand for this call, the inner ones as the very text they are."""
    text = str(arguments or "{}")
    try:
        msgspec.json.decode(text)
        inner: Any = msgspec.Raw(text.encode())
    except (ValueError, RecursionError):
        inner = text
    both = {"name": name, "arguments": inner}
    return msgspec.json.encode(dict(reversed(both.items())) if arguments_first else both).decode()


def error_of(status: int, body: bytes) -> Json:
    """What the API said of a round that it refused."""
    try:
        said: Any = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        said = None
    error = said.get("error") if isinstance(said, dict) else None
    if isinstance(error, dict):
        return error
    text = f"The model's API answered {status} in the middle of a turn."
    return {"message": text, "type": "server_error", "param": None, "code": None}
