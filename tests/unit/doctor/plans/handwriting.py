"""Writes a table of settings as people do: JSON with and without comments, TOML and YAML, in any layout.

Every comment has a number and is known by the keys it stands at, so that it can be told later which may go. What is
drawn comes from one seeded source, so a seed is a text.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

Keys = tuple[str, ...]
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_WORDS_OF_YAML = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


class Hand:
    """One person's way to write."""

    def __init__(self, rng: Random, *, comments: bool) -> None:
        self.rng = rng
        self.newline = rng.choice(["\n", "\n", "\r\n"])
        self.mark = "\ufeff" if rng.random() < 0.15 else ""
        self.unit = rng.choice(["  ", "  ", "    ", "\t", " ", "   "])
        self.end = rng.choice(["", "", self.newline, self.newline, self.newline * 3, f" {self.newline}"])
        self.is_sloppy = rng.random() < 0.25
        self.comments: dict[str, Keys] = {}
        """Each comment with the keys it stands at."""
        self._is_talkative = comments and rng.random() < 0.8

    def remark(self, keys: Keys, chance: float = 0.2) -> str:
        """A comment, or none."""
        if not self._is_talkative or self.rng.random() > chance:
            return ""
        text = f"c{len(self.comments)}z" + self.rng.choice(["", " ünïcode ✓", ' "quoted": {', " # // */"[:6], " 日本"])
        self.comments[text] = keys
        return text

    def gap(self, usual: str = " ") -> str:
        """White space between two things on a line."""
        return self.rng.choice(["", " ", "   ", "\t"]) if self.is_sloppy else usual

    def blank(self) -> str:
        """Empty lines, now and then."""
        return self.newline * self.rng.choice([0, 0, 0, 0, 1, 2]) if self.is_sloppy else ""


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def as_json(document: dict[str, Any], rng: Random, *, comments: bool) -> tuple[str, dict[str, Keys], Hand]:
    """JSON; with comments and trailing commas where they are allowed."""
    hand = Hand(rng, comments=comments)
    writer = _Json(hand, trailing=comments and rng.random() < 0.4, flat=rng.random() < 0.15)
    head = "".join(f"// {text}{hand.newline}" for text in [hand.remark((), 0.3)] if text)
    text = hand.mark + head + writer.value(document, (), "") + hand.end
    return text, hand.comments, hand


class _Json:
    def __init__(self, hand: Hand, *, trailing: bool, flat: bool) -> None:
        self._hand = hand
        self._trailing = trailing
        self._flat = flat

    def value(self, value: Any, keys: Keys, indent: str) -> str:
        if isinstance(value, dict):
            return self._table(list(value.items()), keys, indent)
        if isinstance(value, list):
            return self._list(value, keys, indent)
        return json.dumps(value, ensure_ascii=self._hand.rng.random() < 0.3)

    def _table(self, members: list[tuple[str, Any]], keys: Keys, indent: str) -> str:
        rng = self._hand.rng
        if members and rng.random() < 0.06:
            # The same key twice: the last counts.
            name = rng.choice(members)[0]
            members = [(name, rng.choice([None, 7, "old", {"old": 1}])), *members]
        written = [
            (f"{self._key(name)}{self._hand.gap('')}:{self._hand.gap()}", value, (*keys, name))
            for name, value in members
        ]
        return self._joined("{}", written, keys, indent)

    def _list(self, values: list[Any], keys: Keys, indent: str) -> str:
        return self._joined("[]", [("", value, (*keys, str(value))) for value in values], keys, indent)

    def _joined(self, brackets: str, members: list[tuple[str, Any, Keys]], keys: Keys, indent: str) -> str:
        hand = self._hand
        if not members:
            inside = hand.remark(keys, 0.1)
            return f"{brackets[0]}{f'/* {inside} */' if inside else hand.gap('')}{brackets[1]}"
        if self._flat or hand.rng.random() < 0.2:
            return self._in_one_line(brackets, members, indent)
        inner = indent + (hand.rng.choice(["", " ", "\t", "     "]) if hand.is_sloppy else hand.unit)
        lines: list[str] = []
        for number, (lead, value, path) in enumerate(members):
            if text := hand.remark(path):
                lines.append(inner + hand.rng.choice([f"// {text}", f"/* {text} */"]))
            comma = "," if number + 1 < len(members) or self._trailing else ""
            behind = hand.remark(path)
            behind = hand.rng.choice([f" // {behind}", f" /* {behind} */"]) if behind else ""
            lines.append(f"{inner}{lead}{self.value(value, path, inner)}{hand.gap('')}{comma}{behind}{hand.blank()}")
        if text := hand.remark(keys, 0.08):
            lines.append(f"{inner}// {text}")
        return hand.newline.join([brackets[0], *lines, indent + brackets[1]])

    def _in_one_line(self, brackets: str, members: list[tuple[str, Any, Keys]], indent: str) -> str:
        hand = self._hand
        parts: list[str] = []
        for lead, value, path in members:
            text = hand.remark(path, 0.1)
            parts.append((f"/* {text} */ " if text else "") + lead + self.value(value, path, indent))
        comma = "," if self._trailing else ""
        edge = hand.rng.choice(["", " "])
        return f"{brackets[0]}{edge}{f',{hand.gap()}'.join(parts)}{comma}{edge}{brackets[1]}"

    def _key(self, name: str) -> str:
        if name and self._hand.rng.random() < 0.04:
            return f'"\\u{ord(name[0]):04x}{json.dumps(name[1:])[1:]}' if ord(name[0]) < 0x10000 else json.dumps(name)
        return json.dumps(name, ensure_ascii=self._hand.rng.random() < 0.3)


# ── TOML ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def as_toml(document: dict[str, Any], rng: Random) -> tuple[str, dict[str, Keys], Hand]:
    """TOML: tables by headers, dotted keys, or in braces."""
    hand = Hand(rng, comments=True)
    # What stands right above a key is taken for a word on it, so this stands apart.
    lines = [line for text in [hand.remark((), 0.3)] if text for line in (f"# {text}", "")]
    lines += _toml_table(document, (), hand)
    return hand.mark + hand.newline.join(lines) + hand.end, hand.comments, hand


def _toml_table(table: dict[str, Any], keys: Keys, hand: Hand) -> list[str]:
    lines: list[str] = []
    later: list[tuple[str, dict[str, Any]]] = []
    for name, value in table.items():
        path = (*keys, name)
        if isinstance(value, dict):
            way = hand.rng.choice(["header", "header", "header", "dotted", "braces"])
            if way == "header":
                later.append((name, value))
                continue
            if way == "dotted" and value and not any(isinstance(each, dict) for each in value.values()):
                lines += [
                    line for inner, each in value.items() for line in _pair((name, inner), each, (*path, inner), hand)
                ]
                continue
        lines += _pair((name,), value, path, hand)
    for name, value in later:
        path = (*keys, name)
        lines += [""] * hand.rng.choice([0, 1, 1, 2])
        lines += [f"# {text}" for text in [hand.remark(path)] if text]
        indent = hand.rng.choice(["", "", "", "  "])
        behind = hand.remark(path, 0.1)
        lines.append(f"{indent}[{'.'.join(_toml_key(key, hand) for key in path)}]{f' # {behind}' if behind else ''}")
        lines += _toml_table(value, path, hand)
    return lines


def _pair(names: Keys, value: Any, path: Keys, hand: Hand) -> list[str]:
    above = [f"# {text}" for text in [hand.remark(path)] if text]
    behind = hand.remark(path)
    key = ".".join(_toml_key(name, hand) for name in names)
    pair = f"{key}{hand.gap()}={hand.gap()}{_toml_value(value, hand)}{f'  # {behind}' if behind else ''}"
    return [*above, *hand.blank().splitlines(), pair]


def _toml_key(name: str, hand: Hand) -> str:
    if _BARE.fullmatch(name) and hand.rng.random() < 0.9:
        return name
    return f"'{name}'" if "'" not in name and name.isprintable() and hand.rng.random() < 0.3 else _toml_text(name)


def _toml_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_value(value: Any, hand: Hand) -> str:
    if isinstance(value, dict):
        pairs = [f"{_toml_key(name, hand)} = {_toml_value(each, hand)}" for name, each in value.items()]
        return "{ " + ", ".join(pairs) + " }" if pairs else "{}"
    if isinstance(value, list):
        if value and hand.rng.random() < 0.2:
            inner = "".join(f"{hand.newline}  {_toml_value(each, hand)}," for each in value)
            return f"[{inner}{hand.newline}]"
        return "[" + ", ".join(_toml_value(each, hand) for each in value) + "]"
    if isinstance(value, str):
        can_be_literal = "'" not in value and value.isprintable()
        return f"'{value}'" if can_be_literal and hand.rng.random() < 0.3 else _toml_text(value)
    return json.dumps(value)


# ── YAML ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def as_yaml(document: dict[str, Any], rng: Random) -> tuple[str, dict[str, Keys], Hand]:
    """YAML: blocks, and braces within them."""
    hand = Hand(rng, comments=True)
    lines = [f"# {text}" for text in [hand.remark((), 0.3)] if text]
    lines += ["---"] if rng.random() < 0.2 else []
    lines += _yaml_table(document, (), "", hand) if document else ["{}"]
    return hand.mark + hand.newline.join(lines) + hand.end, hand.comments, hand


def _yaml_table(table: dict[str, Any], keys: Keys, indent: str, hand: Hand) -> list[str]:
    lines: list[str] = []
    for name, value in table.items():
        path = (*keys, name)
        lines += [f"{indent}# {text}" for text in [hand.remark(path)] if text]
        lines += hand.blank().splitlines()
        behind = hand.remark(path)
        behind = f"  # {behind}" if behind else ""
        key = _yaml_text(name, hand)
        if isinstance(value, dict) and value and hand.rng.random() < 0.8:
            inner = indent + " " * hand.rng.choice([1, 2, 2, 4])
            lines.append(f"{indent}{key}:{behind}")
            lines += _yaml_table(value, path, inner, hand)
        elif isinstance(value, list) and value and hand.rng.random() < 0.6:
            lines.append(f"{indent}{key}:{behind}")
            lines += [f"{indent}- {_yaml_value(each, hand)}" for each in value]
        else:
            lines.append(f"{indent}{key}: {hand.rng.choice(['', ' '])}{_yaml_value(value, hand)}{behind}")
    return lines


def _yaml_value(value: Any, hand: Hand) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{_yaml_text(name, hand)}: {_yaml_value(each, hand)}" for name, each in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(_yaml_value(each, hand) for each in value) + "]"
    return _yaml_text(value, hand) if isinstance(value, str) else json.dumps(value)


def _yaml_text(text: str, hand: Hand) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML and hand.rng.random() < 0.7:
        return text
    if text.isprintable() and hand.rng.random() < 0.3:
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text, ensure_ascii=False)
