"""Writes tables as YAML in the styles that people use: blocks, braces, quotes of both kinds, comments, odd indents."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NOISE = ("# a: comment", "", "  # { [ '", "\t", "# x\t")


class YamlWriter:
    """The text so far."""

    def __init__(self, random: Random, newline: str = "\n") -> None:
        self.random = random
        self.newline = newline
        self.unit = " " * random.choice((1, 2, 4))
        self.lines: list[str] = []

    def written(self, values: dict[str, Any]) -> str:
        """A whole file."""
        self.lines = []
        if self.random.random() < 0.2:
            self.lines.append("---")
        if values or self.random.random() < 0.5:
            self._value(values, "", "")
        self._noise()
        text = self.newline.join(self.lines)
        mark = "\ufeff" if self.random.random() < 0.2 and not text.startswith("---") else ""
        return mark + text + self.random.choice(("", self.newline, self.newline * 2))

    def _value(self, value: Any, indent: str, lead: str) -> None:
        """One value behind what leads to it, as `key:` or `-`."""
        if isinstance(value, dict) and value and self.random.random() < 0.8:
            self._open(lead, indent)
            for key, item in value.items():
                self._noise()
                self._value(item, indent + self.unit, f"{indent}{self._key(key)}:")
        elif isinstance(value, list) and value and lead and self.random.random() < 0.7:
            self._open(lead, indent)
            inner = indent + self.random.choice(("", self.unit)) if lead.strip() != "-" else indent + self.unit
            for item in value:
                self._value(item, inner + self.unit, f"{inner}-")
        elif isinstance(value, str) and self._is_block(value):
            self.lines.append(f"{lead} |-{self._comment()}")
            self.lines += [f"{indent}{self.unit}{line}" for line in value.split("\n")]
        else:
            gap = self.random.choice((" ", "  ")) if lead else ""
            self.lines.append(f"{lead}{gap}{self._flow(value)}{self._comment()}")

    def _open(self, lead: str, indent: str) -> None:
        if lead:
            self.lines.append(f"{lead}{self._comment()}")

    def _is_block(self, value: str) -> bool:
        return bool(re.fullmatch(r"[a-z]+(\n[a-z]+)+", value)) and self.random.random() < 0.7

    def _flow(self, value: Any) -> str:
        space = self.random.choice(("", " "))
        if isinstance(value, dict):
            inside = ", ".join(f"{self._key(key)}: {self._flow(item)}" for key, item in value.items())
            return f"{{{space}{inside}{self.random.choice(('', ',')) if value else ''}{space}}}"
        if isinstance(value, list):
            return f"[{space}{', '.join(map(self._flow, value))}{space}]"
        return self._text(value) if isinstance(value, str) else json.dumps(value)

    def _key(self, key: str) -> str:
        return self._text(key)

    def _text(self, text: str) -> str:
        reserved = text.lower() in {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
        styles = [json.dumps(text)]
        if text.isprintable():
            styles.append("'" + text.replace("'", "''") + "'")
        if _PLAIN.fullmatch(text) and not reserved:
            styles.append(text)
        return self.random.choice(styles)

    def _comment(self) -> str:
        return self.random.choice(("", "", " # : }", "   "))

    def _noise(self) -> None:
        while self.random.random() < 0.2:
            self.lines.append(self.random.choice(_NOISE).replace("\t", ""))
