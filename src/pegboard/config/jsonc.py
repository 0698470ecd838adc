"""JSON as people write it in settings files: with comments, trailing commas and perhaps a byte-order mark.

Plain JSON takes the fast road through msgspec. Only what that refuses is looked at again: comments and
trailing commas are blanked out in place, so that every remaining character keeps its line and column, and
msgspec reads the rest. Both roads therefore agree on every value. Above: whatever reads settings files.
Below: nothing but the errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from pegboard.errors import ConfigError

MAX_DEPTH = 200
"""How deep arrays and objects may nest; no settings file comes near, and no parser may run out of stack."""

# Possessive quantifiers keep these linear on hostile input; a string that never ends swallows the rest.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
_COMMENTS = re.compile(rf"{_STRING}|//[^\n\r]*+|/\*.*?(?:\*/|\Z)", re.DOTALL)
_COMMAS = re.compile(rf"{_STRING}|[\[{{,]\s*+,|,(?=\s*+[\]}}])", re.DOTALL)
_BRACKETS = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_TOKENS = re.compile(rf'{_STRING}|[\[\]{{}}:,]|[^\s\[\]{{}}:,"]++', re.DOTALL)
_VISIBLE = re.compile(r"[^\n\r]")
_POSITION = re.compile(r" \(byte (\d+)\)$")


class JsoncError(ConfigError):
    """Text that is not JSON even with comments and trailing commas allowed; says where."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.reason = message
        self.line = line
        self.column = column


def parse(text: str) -> Any:
    """The value of `text`; comments, trailing commas and a leading byte-order mark are allowed."""
    text = _without_mark(text)
    _check_depth(text)
    try:
        return msgspec.json.decode(text)
    except (ValueError, msgspec.DecodeError):
        pass
    blanked = _blank(text)
    raw = _encode(blanked)
    try:
        return msgspec.json.decode(raw)
    except (ValueError, msgspec.DecodeError) as error:
        raise _located(error, raw) from None


def line_of(text: str, path: tuple[str | int, ...]) -> int | None:
    """The line, from 1, of the key or array element at `path`. Of two equal keys the last counts."""
    try:
        plain = _blank(_without_mark(text))
    except JsoncError:
        return None
    offset = _offset_of(plain, path)
    return None if offset is None else plain.count("\n", 0, offset) + 1


def lines(text: str) -> dict[tuple[str | int, ...], int]:
    """The line of every key and array element, by its path: for whoever asks more than once."""
    try:
        plain = _blank(_without_mark(text))
    except JsoncError:
        return {}
    found: dict[tuple[str | int, ...], int] = {}
    path: list[str | int] = []
    line, counted = 1, 0
    for depth, step, offset in _members(plain):
        line += plain.count("\n", counted, offset)
        counted = offset
        path[depth:] = ["" if step is None else step]
        found[tuple(path)] = line
    return found


def _offset_of(plain: str, path: tuple[str | int, ...]) -> int | None:
    if not path:
        first = _TOKENS.search(plain)
        return first.start() if first else None
    found: int | None = None
    matched = 0  # how many steps of the path lead to where we are
    for depth, step, offset in _members(plain):
        if depth > matched:
            continue
        matched = depth
        if depth < len(path) and step == path[depth]:
            matched = depth + 1
            found = offset if matched == len(path) else None
    return found


def _members(plain: str) -> Iterator[tuple[int, str | int | None, int]]:
    """Every object key and array element, in order: how deep it is, what it is called, where it begins."""
    stack: list[_Frame] = []
    for match in _TOKENS.finditer(plain):
        piece = match[0]
        if piece == "," and stack:
            stack[-1].index += 1
            stack[-1].expects_member = True
        elif piece in "]}" and stack:
            stack.pop()
        elif piece not in ":,]}":
            if stack and stack[-1].expects_member:
                stack[-1].expects_member = False
                yield len(stack) - 1, stack[-1].step(piece), match.start()
            if piece in "[{":
                stack.append(_Frame(piece == "{"))


class _Frame:
    """An array or object that is open at this point of the text."""

    __slots__ = ("expects_member", "index", "is_object")

    def __init__(self, is_object: bool) -> None:
        self.is_object = is_object
        self.index = 0
        self.expects_member = True

    def step(self, piece: str) -> str | int | None:
        if not self.is_object:
            return self.index
        try:
            key = msgspec.json.decode(piece)
        except (ValueError, msgspec.DecodeError):
            return None
        return key if isinstance(key, str) else None


def _without_mark(text: str) -> str:
    return text.removeprefix("\ufeff")


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for match in _BRACKETS.finditer(_blank_comments(text)):
        piece = match[0]
        if piece in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise _error_at(text, match.start(), f"nested more than {MAX_DEPTH} levels deep")
        elif piece in "]}":
            depth -= 1


def _blank(text: str) -> str:
    return _COMMAS.sub(_keep_or_blank_comma, _blank_comments(text))


def _blank_comments(text: str) -> str:
    def blank(match: re.Match[str]) -> str:
        piece = match[0]
        if piece.startswith('"'):
            return piece
        if piece.startswith("/*") and (len(piece) < 4 or not piece.endswith("*/")):
            raise _error_at(text, match.start(), "this comment never ends; close it with */")
        return _VISIBLE.sub(" ", piece)

    return _COMMENTS.sub(blank, text)


def _keep_or_blank_comma(match: re.Match[str]) -> str:
    # A comma after an opening bracket or another comma follows no value: it stays, and is refused.
    return " " if match[0] == "," else match[0]


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _error_at(text, error.start, "not valid Unicode text") from None


def _located(error: Exception, raw: bytes) -> JsoncError:
    message = str(error)
    position = _POSITION.search(message)
    if position is not None:
        message = message[: position.start()].removeprefix("JSON is malformed: ")
        end = int(position[1])
    elif message == "Input data was truncated":
        message, end = "the text ends too early; a bracket, brace or quote is not closed", len(raw)
    else:
        end = 0
    text = raw.decode()
    return _error_at(text, len(raw[:end].decode(errors="ignore")), message)


def _error_at(text: str, offset: int, message: str) -> JsoncError:
    line_start = text.rfind("\n", 0, offset) + 1
    return JsoncError(message, text.count("\n", 0, offset) + 1, offset - line_start + 1)
