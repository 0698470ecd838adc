"""A SKILL.md taken apart: the header that says what the skill is for, and the body that says how.

Somebody else wrote it: YAML is read as plain text, lists and tables, nothing is built from it, and what is wrong is
said in words. Pure. Above: `source` reads headers, `read` bodies. Below: nothing of ours.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any

import msgspec

MAX_HEADER = 16 * 1024
"""Bytes in which a header must end."""
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
MOST_TOOLS = 64
_LONGEST_TOOL = 256
_DEEPEST = 16
_SHOWN = 80

_FENCE = re.compile(rb"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)
_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n")
_NAME = re.compile(r"[^\W_](?:[\w.-]*\w)?")
_BETWEEN = re.compile(r"[,\s]+")
# `description: Use when: …` is no YAML, and is what people write.
_PLAIN_LINE = re.compile(r"^([A-Za-z][\w-]*):[ \t]+([^\s\"'\[{|>&*!%@`#].*)$", re.MULTILINE)


class Malformed(Exception):
    """Why a file is no skill."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What a skill says of itself before it is loaded."""

    name: str
    description: str
    tools: tuple[str, ...] = ()
    """Names or globs of the tools that it speaks of: a hint, never a gate."""
    remarks: tuple[str, ...] = ()
    """What is odd about it, and stops nothing."""


def header_in(start: bytes) -> Header:
    """The header with which a file begins; `start` may end anywhere after it."""
    opening = _OPENING.match(start)
    if opening is None:
        raise Malformed("it does not begin with a line ---, and so has no header")
    closing = _FENCE.search(start, opening.end(), MAX_HEADER)
    if closing is None:
        raise Malformed(f"its header is not closed by a line --- within {MAX_HEADER:,} bytes")
    try:
        text = start[opening.end() : closing.start()].decode()
    except UnicodeDecodeError:
        raise Malformed("its header is not UTF-8 text") from None
    return header_of(text)


def body_of(text: str) -> str:
    """What stands after the header."""
    raw = text.encode("utf-8", "surrogatepass")
    opening = _OPENING.match(raw)
    closing = _FENCE.search(raw, opening.end(), MAX_HEADER) if opening else None
    return raw[closing.end() :].decode("utf-8", "surrogatepass").strip() if closing else text.strip()


def header_of(text: str) -> Header:
    """The header in this YAML."""
    remarks: list[str] = []
    table = _table(text, remarks)
    return Header(
        name=_name(table.get("name")),
        description=_description(table.get("description")),
        tools=_tools(table, remarks),
        remarks=tuple(remarks),
    )


def _table(text: str, remarks: list[str]) -> dict[Any, Any]:
    try:
        value = _read(text)
    except Malformed as error:
        mended = _PLAIN_LINE.sub(_with_quotes, text)
        if mended == text:
            raise
        try:
            value = _read(mended)
        except Malformed:
            raise error from None
        remarks.append(f"{error}; it was read as if the text with a colon stood in quotes")
    if not isinstance(value, dict):
        raise Malformed("its header is no table of keys and values")
    return value


def _with_quotes(line: re.Match[str]) -> str:
    value = line[2].rstrip()
    if ": " not in value and not value.endswith(":"):
        return line[0]
    return f"{line[1]}: {msgspec.json.encode(value).decode()}"


def _read(text: str) -> Any:
    import yaml  # type: ignore[import-untyped]

    try:
        return yaml.load(text, Loader=_loader())  # noqa: S506 - a loader that builds text, lists and tables only
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "a character that it may not have"
        raise Malformed(f"its header is not valid YAML{where}: {problem}") from None
    except (ValueError, OverflowError):  # an escape that stands for no character
        raise Malformed("its header is not valid YAML: an escape stands for no character") from None
    except RecursionError:
        raise Malformed("its header is nested too deeply") from None


@cache
def _loader() -> Any:
    """Made when the first header is read: whoever has no skills pays nothing for YAML."""
    import yaml

    class Plain(yaml.BaseLoader):  # type: ignore[misc]
        """Every scalar is text; what would let a few bytes stand for gigabytes is refused."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise Malformed("its header uses YAML aliases (*name), which are not read")
            self.depth = getattr(self, "depth", 0) + 1
            if self.depth > _DEEPEST:
                raise Malformed("its header is nested too deeply")
            try:
                return super().compose_node(parent, index)
            finally:
                self.depth -= 1

    return Plain


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Malformed("it has no name")
    name = unicodedata.normalize("NFC", value.strip())
    if len(name) > LONGEST_NAME:
        raise Malformed(f"its name has {len(name)} characters, more than {LONGEST_NAME}")
    if not _NAME.fullmatch(name):
        raise Malformed(f"its name {_shown(name)} has other characters than letters, digits, -, _ and . in it")
    return name


def _description(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Malformed("it has no description, and nobody could know when to use it")
    return " ".join(_whole(value).split())[:LONGEST_DESCRIPTION]


def _tools(table: dict[Any, Any], remarks: list[str]) -> tuple[str, ...]:
    found: list[str] = []
    metadata = table.get("metadata")
    for key, value in (("tools", table.get("tools")), ("metadata.tools", _inside(metadata))):
        if value is None:
            continue
        several = _BETWEEN.split(value) if isinstance(value, str) else value
        if not isinstance(several, list):
            remarks.append(f"its {key} is no list of names; nothing was taken from it")
            continue
        names = [each.strip() for each in several if isinstance(each, str)]
        fit = [name for name in names if name.isprintable() and len(name) <= _LONGEST_TOOL]
        if len(fit) < len(several):
            remarks.append(f"some of its {key} are no names")
        found += filter(None, fit)
    unique = tuple(dict.fromkeys(found))
    if len(unique) > MOST_TOOLS:
        remarks.append(f"of its {len(unique)} tools, the first {MOST_TOOLS} count")
    return unique[:MOST_TOOLS]


def _inside(metadata: Any) -> Any:
    return metadata.get("tools") if isinstance(metadata, dict) else None


def _whole(text: str) -> str:
    """The text without halves of characters, which no message could carry."""
    return text.encode("utf-8", "replace").decode()


def _shown(name: str) -> str:
    return repr(name[:_SHOWN])
