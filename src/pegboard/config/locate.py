"""Finds the line on which a TOML key stands; tomllib reads values but keeps no positions.

A scanner, not a parser: it is asked about text that tomllib has accepted, follows only brackets, braces, quotes and
key paths, and answers "unknown" rather than failing. It keeps its own stack, so no nesting exhausts Python's.
Above: error messages of `load`. Below: nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

Path = tuple[str | int, ...]

_DEEPEST = 16
"""Positions are kept to this depth: configuration is shallower, and hostile nesting must not cost its square."""

# In this order: comment, multi-line strings (which may end in two more quotes), strings, marks, everything bare.
# Possessive quantifiers keep it linear; what is never closed swallows the rest.
PIECES = re.compile(
    r"#[^\n]*+"
    r'|"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5}|\Z)'
    r"|'''(?:[^']|'(?!''))*+(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|[\[\]{}=,.\n]"
    r"""|[^\s\[\]{}=,."'#]++""",
    re.DOTALL,
)


def line_of(text: str, path: Path) -> int | None:
    """The line, from 1, of the key or array element at `path`; None when the text does not have it."""
    return lines(text).get(path)


def lines(text: str) -> dict[Path, int]:
    """The line of every key, table and array element, by its path.

    A table that is only implied, like `servers` in `[servers.github]`, stands where it is first implied.
    """
    text = text.removeprefix("\ufeff")
    exact: dict[Path, int] = {}
    implied: dict[Path, int] = {}
    line, counted = 1, 0
    for path, offset in _Scan(text):
        line += text.count("\n", counted, offset)
        counted = offset
        exact.setdefault(path, line)
        for length in range(1, len(path[:_DEEPEST])):
            implied.setdefault(path[:length], line)
    return {**implied, **exact}


class _Open:
    """An array or inline table that is open at this point of the text."""

    __slots__ = ("index", "is_array", "path", "wants_element")

    def __init__(self, path: Path, is_array: bool) -> None:
        self.path = path
        self.is_array = is_array
        self.index = 0
        self.wants_element = is_array


class _Scan:
    """One pass over the text; `table` is the current header, `value` the path whose value is being read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.table: Path = ()
        self.value: Path = ()
        self.open: list[_Open] = []
        self.key: list[str] = []
        self.key_at = 0
        self.reads_key = True
        self.brackets = 0  # of a header: one for a table, two for an array of tables
        self.table_counts: dict[Path, int] = {}

    def __iter__(self) -> Iterator[tuple[Path, int]]:
        """Every key, table header and array element with the offset at which it begins."""
        for match in PIECES.finditer(self.text):
            piece = match[0]
            if piece == "\n":
                self._end_of_line()
            elif piece.startswith("#"):
                continue
            elif self.reads_key:
                yield from self._read_key(piece, match.start())
            else:
                yield from self._read_value(piece, match.start())

    def _end_of_line(self) -> None:
        if not self.open:
            self.key, self.reads_key, self.brackets = [], True, 0

    def _read_key(self, piece: str, offset: int) -> Iterator[tuple[Path, int]]:
        if piece == "[" and not self.open and not self.key:
            self.brackets += 1
        elif piece == "]" and self.brackets:
            yield self._header(), self.key_at
        elif piece == "=":
            base = self.open[-1].path if self.open else self.table
            self.value = (*base, *self.key)[:_DEEPEST]
            yield self.value, self.key_at
            self.key, self.reads_key = [], False
        elif piece in "}]":
            self._close()
        elif piece not in ".,":
            if not self.key:
                self.key_at = offset
            self.key.append(_unquoted(piece))

    def _header(self) -> Path:
        table: Path = ()
        for part in self.key[:_DEEPEST]:
            # Below an array of tables, a header speaks of its last element.
            if table in self.table_counts:
                table = (*table, self.table_counts[table] - 1)
            table = (*table, part)
        if self.brackets > 1:
            index = self.table_counts.get(table, 0)
            self.table_counts[table] = index + 1
            table = (*table, index)
        self.table = table
        self.key, self.reads_key, self.brackets = [], False, 0
        return table

    def _read_value(self, piece: str, offset: int) -> Iterator[tuple[Path, int]]:
        top = self.open[-1] if self.open else None
        if piece in "]}":
            self._close()
            return
        if piece == "," and top is not None:
            top.index += 1
            top.wants_element = top.is_array
            self.reads_key = not top.is_array
            return
        if top is not None and top.wants_element:
            top.wants_element = False
            self.value = (*top.path, top.index)[:_DEEPEST]
            yield self.value, offset
        if piece in "[{":
            self.open.append(_Open(self.value, piece == "["))
            self.reads_key = piece == "{"

    def _close(self) -> None:
        if self.open:
            self.open.pop()
        self.key, self.reads_key = [], False


def _unquoted(piece: str) -> str:
    if piece[0] == "'":
        return piece.strip("'")
    if piece[0] != '"':
        return piece
    if "\\" not in piece:
        return piece.strip('"')
    try:
        return str(tomllib.loads(f"key = {piece}")["key"])
    except tomllib.TOMLDecodeError:
        return piece
