"""`call_tool`'s arguments as a model writes them, piece by piece: which tool it calls, and with what.

`{"name": "x", "arguments": {…}}` becomes the name as soon as it is there, and then the text of the inner object as it
comes. Above: the editors of replies. Below: nothing. Pure.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from pegboard.types import Json

_MARK = re.compile(r'["\\{}\[\],:]')
_NAME, _ARGUMENTS = "name", "arguments"


class CallStream:
    """One call under way."""

    def __init__(self) -> None:
        self.name = ""
        self.arguments_first = False
        """Whether the model said what with before it said which."""
        self._text = ""
        self._at = 0
        self._depth = 0
        self._string_from = -1
        self._key = ""
        self._value_from = -1
        self._sent = 0
        """How much of the arguments' text was taken."""
        self._arguments: tuple[int, int] | None = None
        """Where their text begins, and ends once it has ended, else -1."""

    def feed(self, piece: str) -> str:
        """What there is more of the arguments, now that this came; nothing before the name is known."""
        self._text += piece
        self._scan()
        return self._take()

    def end(self) -> str:
        """The rest of the arguments, now that the call has come whole."""
        whole = self.parsed()
        if whole is None:
            return ""
        self.name = self.name or str(whole.get(_NAME) or "")
        if self._arguments is not None and self._sent:
            return self._take()
        return msgspec.json.encode(self.inner(whole)).decode()

    def parsed(self) -> Json | None:
        """All of it; None when it is no whole object."""
        try:
            value: Any = msgspec.json.decode(self._text or "{}")
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    @staticmethod
    def inner(whole: Json) -> Json:
        """The arguments of the inner call, also where a model wrote them as text, or beside the name."""
        given = whole.get(_ARGUMENTS)
        if isinstance(given, str):
            try:
                given = msgspec.json.decode(given)
            except (ValueError, RecursionError):
                given = None
        if isinstance(given, dict):
            return given
        return {key: value for key, value in whole.items() if key not in (_NAME, _ARGUMENTS)}

    def _take(self) -> str:
        if not self.name or self._arguments is None:
            return ""
        start, end = self._arguments
        piece = self._text[start + self._sent : end if end >= 0 else len(self._text)]
        self._sent += len(piece)
        return piece

    def _scan(self) -> None:
        """Goes on to the end of what has come. Only the keys of the outer object are looked at."""
        while found := _MARK.search(self._text, self._at):
            mark, place = found[0], found.start()
            if mark == "\\":
                if place + 1 >= len(self._text):
                    self._at = place
                    return
                self._at = place + 2
                continue
            self._at = place + 1
            if mark == '"':
                self._quote(place)
            elif self._string_from < 0:
                self._structure(mark, place)
        self._at = max(self._at, len(self._text))

    def _quote(self, place: int) -> None:
        if self._string_from < 0:
            self._string_from = place
            return
        start, self._string_from = self._string_from, -1
        if self._depth != 1:
            return
        text = _read(self._text[start : place + 1])
        if self._value_from < 0:
            self._key = text
        elif self._key == _NAME and not self.name:
            self.name = text
            self.arguments_first = self._arguments is not None

    def _structure(self, mark: str, place: int) -> None:
        if mark in "{[":
            self._depth += 1
            if mark == "{" and self._depth == 2 and self._key == _ARGUMENTS and self._value_from >= 0:
                self._arguments = self._arguments or (place, -1)
        elif mark in "}]":
            self._depth -= 1
            if self._depth == 1 and self._arguments is not None and self._arguments[1] < 0:
                self._arguments = (self._arguments[0], place + 1)
            if self._depth <= 1:
                self._value_from = -1 if self._depth < 1 else self._value_from
        elif self._depth == 1:
            self._value_from = place if mark == ":" else -1


def _read(quoted: str) -> str:
    try:
        return msgspec.json.decode(quoted, type=str)
    except (ValueError, RecursionError):  # half a surrogate pair, for instance: no name of anything
        return ""
