"""Reads one server entry of another program, field by field: checks types, translates references, keeps notes.

Above: `launch` and the program modules. Below: nothing of ours but the nouns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Translate = Callable[[str, list[str]], str]
"""Text with another program's references in, text with Pegboard's out; what is lost goes into the notes."""

MILLISECONDS = 1000
"""Of one second, for programs that count in them."""

# Says nothing about how a server is run, so nobody misses it.
_DESCRIPTIVE = frozenset(
    {"$schema", "description", "displayName", "gallery", "icon", "metadata", "name", "title", "version"}
)


class WrongShape(Exception):
    """An entry that is not what its program documents; the message says which part."""


class Fields:
    """One entry, read once. Whatever nobody asked for is named by `leftover`."""

    def __init__(self, raw: Any, translate: Translate, folder: Path | None = None) -> None:
        if not isinstance(raw, dict):
            raise WrongShape(f"It should be a table of settings, but is {kind_of(raw)}.")
        self._raw: Mapping[str, Any] = raw
        self._translate = translate
        self._used: set[str] = set()
        self.folder = folder
        """The project the entry belongs to; None when it holds everywhere."""
        self.notes: list[str] = []

    def __contains__(self, key: str) -> bool:
        return self._raw.get(key) is not None

    def raw(self, key: str) -> Any:
        """The value as it is; None when it is missing."""
        self._used.add(key)
        return self._raw.get(key)

    def text(self, key: str) -> str | None:
        """A string."""
        value = self.raw(key)
        return None if value is None else self.translated(_text(value, f"`{key}`"))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        value = self.raw(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise WrongShape(f"`{key}` should be a list of strings, but is {kind_of(value)}.")
        return tuple(self.translated(_text(item, f"`{key}`")) for item in value)

    def pairs(self, key: str) -> dict[str, str]:
        """A table of strings; a null means that a variable is taken away, which Pegboard cannot say."""
        value = self.raw(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise WrongShape(f"`{key}` should be a table of strings, but is {kind_of(value)}.")
        gone = [name for name, item in value.items() if item is None]
        if gone:
            self.notes.append(f"`{key}` takes away {', '.join(gone)}, which is not carried over.")
        return {
            name: self.translated(_text(item, f"`{key}.{name}`")) for name, item in value.items() if item is not None
        }

    def flag(self, key: str) -> bool | None:
        """True, false, or unsaid."""
        value = self.raw(key)
        if value is None or isinstance(value, bool):
            return value
        raise WrongShape(f"`{key}` should be true or false, but is {kind_of(value)}.")

    def seconds(self, key: str, *, per_second: int = 1) -> float | None:
        """A positive duration; zero and less mean that the program's own default holds."""
        value = self.raw(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WrongShape(f"`{key}` should be a number, but is {kind_of(value)}.")
        return value / per_second if 0 < value < math.inf else None

    def inner(self, value: Any) -> Fields:
        """A table inside the entry, read with the same eyes and into the same notes."""
        fields = Fields(value, self._translate, self.folder)
        fields.notes = self.notes
        return fields

    def translated(self, text: str) -> str:
        """The text with its references in Pegboard's form."""
        return self._translate(text, self.notes)

    def leftover(self) -> tuple[str, ...]:
        """The fields that say something and were not read."""
        return tuple(
            key
            for key, value in self._raw.items()
            if key not in self._used | _DESCRIPTIVE and value not in (None, False, "", [], {})
        )


def member(value: Any, key: str) -> Any:
    """A key of what should be a table; None when either is missing."""
    return value.get(key) if isinstance(value, dict) else None


def kind_of(value: Any) -> str:
    """What a JSON or TOML value is, in words."""
    if isinstance(value, bool):
        return "true or false"
    kinds = {dict: "a table", list: "a list", str: "text", int: "a number", float: "a number", type(None): "null"}
    return kinds.get(type(value), "a date or time")


def _text(value: Any, what: str) -> str:
    # People write ports and switches without quotes, and most programs take them.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise WrongShape(f"{what} should be text, but is {kind_of(value)}.")
