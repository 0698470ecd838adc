"""Writes tables as TOML in every style there is, and remembers the line of each key."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

Path = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_DECOYS = ("# [servers.decoy]", "# command = 'x'", "", '  # """ [', "\t# '''")


class Writer:
    """The text so far, and where its keys stand."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.text = ""
        self.exact: dict[Path, int] = {}
        self.implied: dict[Path, int] = {}

    @property
    def lines(self) -> dict[Path, int]:
        """The line of every key."""
        return {**self.implied, **self.exact}

    def table(self, values: dict[str, Any], path: Path = (), *, header: bool = False) -> None:
        """A table and all below it; sub-tables with headers come last, as TOML demands."""
        later: list[str] = []
        plain: list[str] = []
        for key, value in values.items():
            has_header = isinstance(value, dict) and self.random.random() < 0.5
            (later if has_header else plain).append(key)
        if header and (plain or not later or self.random.random() < 0.3):
            self._noise()
            self._mark(path)
            space = self.random.choice(("", " "))
            self.text += f"[{space}{'.'.join(self._key(str(step)) for step in path)}{space}]{self._end()}"
        for key in plain:
            self._pair((*path, key), (key,), values[key])
        for key in later:
            self.table(values[key], (*path, key), header=True)

    def _pair(self, path: Path, dotted: tuple[str, ...], value: Any) -> None:
        if isinstance(value, dict) and value and self.random.random() < 0.4:
            for key, item in value.items():
                self._pair((*path, key), (*dotted, key), item)
            return
        self._noise()
        self._mark(path)
        dot = self.random.choice((".", " . "))
        self.text += f"{dot.join(map(self._key, dotted))} = "
        self._value(value, path)
        self.text += self._end()

    def _mark(self, path: Path) -> None:
        line = self.text.count("\n") + 1
        self.exact.setdefault(path, line)
        for length in range(1, len(path)):
            self.implied.setdefault(path[:length], line)

    def _noise(self) -> None:
        while self.random.random() < 0.3:
            self.text += self.random.choice(_DECOYS) + "\n"

    def _end(self) -> str:
        return self.random.choice(("\n", "\r\n", "  # and = [so] on\n"))

    def _key(self, key: str) -> str:
        if _BARE.fullmatch(key) and self.random.random() < 0.7:
            return key
        return f"'{key}'" if _is_literal(key) and self.random.random() < 0.5 else _basic(key)

    def _value(self, value: Any, path: Path) -> None:
        if isinstance(value, str):
            self.text += self._string(value)
        elif isinstance(value, list):
            self._array(value, path)
        elif isinstance(value, dict):
            self._inline(value, path)
        elif isinstance(value, bool):
            self.text += "true" if value else "false"
        else:
            self.text += repr(value)

    def _string(self, value: str) -> str:
        styles = [_basic(value), f'"""\n{_multi(value)}"""']
        if _is_literal(value):
            styles += [f"'{value}'", f"'''\n{value}'''"]
        return self.random.choice(styles)

    def _array(self, items: list[Any], path: Path) -> None:
        self.text += "["
        for number, item in enumerate(items):
            self.text += self.random.choice(("", " ", "\n  ", " # a ] in a comment\n"))
            self._mark((*path, number))
            self._value(item, (*path, number))
            self.text += "," if number + 1 < len(items) else self.random.choice(("", ",", "\n", ",\n"))
        self.text += "]"

    def _inline(self, values: dict[str, Any], path: Path) -> None:
        self.text += "{"
        for number, (key, item) in enumerate(values.items()):
            self.text += ", " if number else " "
            self._mark((*path, key))
            self.text += f"{self._key(key)} = "
            self._value(item, (*path, key))
        self.text += " }"


def _is_literal(text: str) -> bool:
    return "'" not in text and all(character == "\t" or character >= " " for character in text) and "\x7f" not in text


def _basic(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _multi(text: str) -> str:
    return _basic(text)[1:-1].replace("\\n", "\n") if "\\\\" not in _basic(text) else _basic(text)[1:-1]
