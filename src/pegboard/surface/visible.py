"""Text that servers chose, fit to stand on one line beside ours: short, and with nothing in it that hides.

Above: `signature`, `notes`, `render`, `guidance`. Below: nothing.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

_LOOKED_AT = 4096
"""Characters of a text that are looked at, however long it is."""
_WORD = re.compile(r"[A-Za-z_][\w./:+@#-]*", re.ASCII)
_NAME = re.compile(r"[\w$@.-]+", re.ASCII)
_MEANS_SOMETHING_ELSE = frozenset({"true", "false", "null", "any", "never", "str", "int", "float", "bool", "dict"})


def one_line(text: str, longest: int) -> str:
    """The text on one line, cut at a word where it is too long; characters nobody can see are spelled out."""
    line = " ".join(text[:_LOOKED_AT].split())
    if not line.isprintable():
        line = "".join(each if each.isprintable() else spelled(each) for each in line)
    if len(line) <= longest:
        return line
    head = line[: longest - 1]
    at = head.rfind(" ")
    return (head[:at] if at > longest // 2 else head).rstrip(" ,;:(") + "…"


def spelled(character: str) -> str:
    """The character as an escape that JSON understands too."""
    point = ord(character)
    if point <= 0xFFFF:
        return f"\\u{point:04x}"
    point -= 0x10000
    return f"\\u{0xD800 + (point >> 10):04x}\\u{0xDC00 + (point & 0x3FF):04x}"


def as_json(value: Any) -> str:
    """The value as compact JSON that says the same and hides nothing; empty when JSON has no word for it."""
    try:
        text = msgspec.json.encode(value).decode()
    except (OverflowError, UnicodeEncodeError, RecursionError, ValueError, TypeError):
        return ""
    return text if text.isprintable() else "".join(each if each.isprintable() else spelled(each) for each in text)


def parameter_name(name: str, longest: int) -> str:
    """A parameter's name; quoted when it is not a plain word, so that it cannot pass for anything else."""
    return name if len(name) <= longest and _NAME.fullmatch(name) else _quoted(name, longest)


def literal(value: Any, longest: int) -> str:
    """A value that is meant literally: plain words bare, all else as JSON."""
    if isinstance(value, str):
        bare = len(value) <= longest and _WORD.fullmatch(value) and value not in _MEANS_SOMETHING_ELSE
        return value if bare else _quoted(value, longest)
    text = as_json(value)
    return text if text and len(text) <= longest else "…"


def _quoted(text: str, longest: int) -> str:
    whole = as_json(text)
    if whole and len(whole) <= longest:
        return whole
    # Cut before it is quoted, so that no escape is cut in two.
    return '"' + one_line(text, longest - 2).replace("\\", "\\\\").replace('"', '\\"') + '"'
