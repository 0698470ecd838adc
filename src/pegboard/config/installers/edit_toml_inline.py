"""Changes one member of a TOML inline table as text: `{ command = "x", env = { A = "b" } }`.

Above: `edit_toml`, which knows where such tables stand. Below: `locate`, which knows the pieces of TOML.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

import msgspec

from pegboard.config.locate import PIECES
from pegboard.config.write import key_text, value_text

Path = tuple[str, ...]


class _Pair(msgspec.Struct, frozen=True):
    """One pair of an inline table, by offsets; a dotted key has a path of several steps."""

    path: Path
    start: int
    value: int
    end: int


def with_member(text: str, start: int, end: int, path: Path, value: Any) -> str | None:
    """`text` in which the table between these offsets has this value at `path`; None where it cannot be so."""
    table = _table(text, start, end)
    if table is None:
        return None
    pairs, close = table
    for pair in pairs:
        if pair.path == path:
            return text[: pair.value] + value_text(value) + text[pair.end :]
        if pair.path == path[: len(pair.path)]:
            return with_member(text, pair.value, pair.end, path[len(pair.path) :], value)
    member = f"{'.'.join(map(key_text, path))} = {value_text(value)}"
    if pairs:
        return f"{text[: pairs[-1].end]}, {member}{text[pairs[-1].end :]}"
    return f"{text[: start + 1]} {member} {text[close:]}"


def without_member(text: str, start: int, end: int, path: Path) -> str | None:
    """`text` in which the table between these offsets has nothing at `path`; None where it cannot be so."""
    table = _table(text, start, end)
    if table is None:
        return None
    pairs, close = table
    for number, pair in enumerate(pairs):
        if pair.path == path:
            if number + 1 < len(pairs):
                return text[: pair.start] + text[pairs[number + 1].start :]
            behind = pairs[number - 1].end if number else start + 1
            return text[:behind] + text[pair.end : close] + text[close:]
        if pair.path == path[: len(pair.path)]:
            return without_member(text, pair.value, pair.end, path[len(pair.path) :])
    return None


def _table(text: str, start: int, end: int) -> tuple[list[_Pair], int] | None:
    """The pairs of the inline table that begins here, and where it closes; None when none begins here."""
    pieces = [match for match in PIECES.finditer(text, start, end) if match[0] != "\n" and match[0][0] != "#"]
    if not pieces or pieces[0][0] != "{":
        return None
    pairs: list[_Pair] = []
    at = 1
    while pieces[at][0] != "}":
        first = at
        while pieces[at][0] != "=":
            at += 1
        stop = _behind(pieces, at + 1)
        path = _steps(text[pieces[first].start() : pieces[at].start()])
        pairs.append(_Pair(path, pieces[first].start(), pieces[at + 1].start(), pieces[stop - 1].end()))
        at = stop + (pieces[stop][0] == ",")
    return pairs, pieces[at].start()


def _behind(pieces: Sequence[re.Match[str]], at: int) -> int:
    """The comma or brace behind the value that begins here; a number or a date may be of several pieces."""
    depth = 0
    while depth or pieces[at][0] not in ",}":
        depth += (pieces[at][0] in "[{") - (pieces[at][0] in "]}")
        at += 1
    return at


def _steps(key: str) -> Path:
    value: Any = tomllib.loads(f"{key} = 0")
    steps: list[str] = []
    while isinstance(value, dict):
        [(step, value)] = value.items()
        steps.append(step)
    return tuple(steps)
