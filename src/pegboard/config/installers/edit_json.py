"""Changes one table of a JSON settings file as text: every character outside the change stays as it was.

Comments, trailing commas, a byte-order mark, line ends and indentation are kept. A member goes and comes back with
the comments that stand before it and behind it on its line. Every outcome is parsed and compared with what it should
say before anyone may write it. Above: `plan` and `undo`. Below: `jsonc`, which reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from pegboard.config import jsonc
from pegboard.errors import ConfigError

Path = tuple[str, ...]

_MARK = "\ufeff"
_PIECES = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|//[^\n\r]*+|/\*.*?(?:\*/|\Z)|[\[\]{}:,]|[^\s\[\]{}:,"/]++|/', re.DOTALL
)
# What may follow a member on its line and belongs to it.
_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*[^\n\r]*?\*/)*+(?://[^\n\r]*+)?(?=\r?\n|\r)")
_INDENT = re.compile(r'[\n\r]([ \t]+)"')
_WHITE = re.compile(r"[ \t]*")


class _Member(msgspec.Struct, frozen=True):
    """One member of an object, by offsets: its key, its value, the end of that, and the comma behind it."""

    name: str
    start: int
    value: int
    end: int
    comma: int | None


class _Table(msgspec.Struct, frozen=True):
    """One object or list, by the offsets of its brackets, and its members; a text in a list is its own name."""

    open: int
    close: int
    members: tuple[_Member, ...]


class _Chunk(msgspec.Struct, frozen=True):
    """A member with the white space and comments that belong to it; `end` and `comma` are offsets in its text."""

    name: str
    text: str
    end: int
    comma: int | None

    def written(self, with_comma: bool) -> str:
        """The text with a comma or without one."""
        if with_comma and self.comma is None:
            return f"{self.text[: self.end]},{self.text[self.end :]}"
        if not with_comma and self.comma is not None:
            return self.text[: self.comma] + self.text[self.comma + 1 :]
        return self.text


def parse(text: str) -> dict[str, Any]:
    """The settings; a file that says nothing has none."""
    document = jsonc.parse(text) if text.removeprefix(_MARK).strip() else {}
    if not isinstance(document, dict):
        raise ConfigError("It should hold a table of settings.", hint="Mend the file first.")
    return document


def without(text: str, path: Path, names: Collection[str]) -> str:
    """`text` without these members of the table at `path`."""
    table = _table_at(text, path)
    if table is None or not any(member.name in names for member in table.members):
        return text
    chunks, tail = _chunks(text, table)
    kept = [chunk for chunk in chunks if chunk.name not in names]
    return _with_inside(text, table, _joined(kept, tail, _ends_in_comma(chunks), _newline(text)))


def with_entry(text: str, path: Path, name: str, value: Any) -> str:
    """`text` in which the table at `path` has this member, last if it is new; missing tables are made."""
    if not text.removeprefix(_MARK).strip():
        document = _nested(path, {name: value})
        return (_MARK if text.startswith(_MARK) else "") + _dumped(document, "  ", "", _newline(text)) + _newline(text)
    for depth in range(len(path), -1, -1):
        table = _table_at(text, path[:depth])
        if table is None:
            continue
        rest = (*path[depth:], name)
        return _with_member(text, table, rest[0], _nested(rest[1:], value))
    raise ConfigError("It should hold a table of settings.", hint="Mend the file first.")


def with_value(text: str, path: Path, name: str, value: Any) -> str:
    """As `with_entry`: in JSON a value is written as a table is."""
    return with_entry(text, path, name, value)


def with_element(text: str, path: Path, value: str) -> str:
    """`text` in which the list at `path` has this element, last; a missing list is made, with its tables."""
    array = _array_at(text, path)
    if array is None:
        return with_entry(text, path[:-1], path[-1], [value])
    chunks, tail = _chunks(text, array)
    indent, _ = _style(text, array)
    lead = (" " if chunks else "") if indent is None else _newline(text) + indent
    if indent is not None and not chunks and not re.search(r"[\n\r]", tail):
        tail += _newline(text) + _line_indent(text, array.open)
    element = lead + json.dumps(value, ensure_ascii=False)
    new = _Chunk(value, element, len(element), None)
    return _with_inside(text, array, _joined([*chunks, new], tail, _ends_in_comma(chunks), _newline(text)))


def without_elements(text: str, path: Path, values: Collection[str]) -> str:
    """`text` without these elements of the list at `path`; an emptied list stays."""
    array = _array_at(text, path)
    if array is None or not any(element.name in values for element in array.members):
        return text
    chunks, tail = _chunks(text, array)
    kept = [chunk for chunk in chunks if chunk.name not in values]
    return _with_inside(text, array, _joined(kept, tail, _ends_in_comma(chunks), _newline(text)))


def put_back(text: str, path: Path, names: Collection[str], before: str) -> str:
    """`text` with these members as `before` has them, each behind the one that it stood behind."""
    source = _table_at(before, path)
    if source is None:
        return text
    if _table_at(text, path) is None:
        text = with_entry(text, path[:-1], path[-1], {})
    table = _table_at(text, path)
    assert table is not None  # just made
    chunks, tail = _chunks(text, table)
    originals, original_tail = _chunks(before, source)
    comma = _ends_in_comma(chunks) if chunks else _ends_in_comma(originals)
    tail = tail if chunks or tail.strip() else original_tail
    placed = list(chunks)
    for position, chunk in enumerate(originals):
        if chunk.name in names:
            earlier = {other.name for other in originals[:position]}
            behind = [index for index, other in enumerate(placed) if other.name in earlier]
            placed.insert(behind[-1] + 1 if behind else 0, chunk)
    return _with_inside(text, table, _joined(placed, tail, comma, _newline(text)))


def _with_member(text: str, table: _Table, name: str, value: Any) -> str:
    chunks, tail = _chunks(text, table)
    newline = _newline(text)
    indent, unit = _style(text, table)
    there = [member for member in table.members if member.name == name]
    if there:
        # Of two equal keys the last counts.
        return text[: there[-1].value] + _dumped(value, unit, indent, newline) + text[there[-1].end :]
    if indent is None:
        lead = " " if chunks else ""
    else:
        lead = newline + indent
        if not chunks and not re.search(r"[\n\r]", tail):
            tail += newline + _line_indent(text, table.open)
    member = f"{lead}{json.dumps(name, ensure_ascii=False)}: {_dumped(value, unit, indent, newline)}"
    new = _Chunk(name, member, len(member), None)
    return _with_inside(text, table, _joined([*chunks, new], tail, _ends_in_comma(chunks), newline))


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _with_inside(text: str, table: _Table, inside: str) -> str:
    return text[: table.open + 1] + inside + text[table.close :]


def _joined(chunks: Sequence[_Chunk], tail: str, last_comma: bool, newline: str) -> str:
    written = [chunk.written(last_comma or number + 1 < len(chunks)) for number, chunk in enumerate(chunks)]
    pieces: list[str] = []
    in_comment = False
    for piece in filter(None, (*written, tail)):
        # A comment that runs to the end of its line must not swallow what now comes behind it.
        if in_comment and not piece.startswith(("\n", "\r")):
            pieces.append(newline)
        pieces.append(piece)
        in_comment = _is_in_line_comment(piece)
    return "".join(pieces) + (newline if in_comment else "")


def _is_in_line_comment(text: str) -> bool:
    last = None
    for last in _PIECES.finditer(text):  # noqa: B007 - the last one is what is wanted
        pass
    return last is not None and last[0].startswith("//") and last.end() == len(text)


def _ends_in_comma(chunks: Sequence[_Chunk]) -> bool:
    return bool(chunks) and chunks[-1].comma is not None


def _chunks(text: str, table: _Table) -> tuple[list[_Chunk], str]:
    """The inside of a table, cut into its members; and what stands behind the last of them."""
    chunks: list[_Chunk] = []
    start = table.open + 1
    for member in table.members:
        stop = member.end if member.comma is None else member.comma + 1
        rest = _REST_OF_LINE.match(text, stop, table.close)
        stop = rest.end() if rest else stop
        comma = None if member.comma is None else member.comma - start
        chunks.append(_Chunk(member.name, text[start:stop], member.end - start, comma))
        start = stop
    return chunks, text[start : table.close]


def _style(text: str, table: _Table) -> tuple[str | None, str]:
    """How a new member is indented, None for a table that is written in one line; and by how much one level is."""
    found = _INDENT.search(text)
    unit = found[1] if found else "  "
    previous = table.open + 1
    for member in table.members:
        lead = text[previous : member.start]
        if re.search(r"[\n\r]", lead):
            match = _WHITE.match(lead, max(lead.rfind("\n"), lead.rfind("\r")) + 1)
            return (match[0] if match else ""), unit
        previous = member.end
    if table.members or not re.search(r"[\n\r]", text.strip()):
        return None, unit
    return _line_indent(text, table.open) + unit, unit


def _line_indent(text: str, offset: int) -> str:
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    match = _WHITE.match(text, start)
    return match[0] if match else ""


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _dumped(value: Any, unit: str, indent: str | None, newline: str) -> str:
    if indent is None:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + indent)


def _table_at(text: str, path: Path) -> _Table | None:
    """The object at `path`; None when it is missing, an error when something else is there."""
    tokens = _tokens(text)
    at = _found(tokens, path, ["{"] * len(path))
    return None if at is None else _read_table(tokens, at)


def _array_at(text: str, path: Path) -> _Table | None:
    """The list at `path`; None when it is missing, an error when something else is there."""
    tokens = _tokens(text)
    at = _found(tokens, path, [*["{"] * (len(path) - 1), "["])
    return None if at is None else _read_array(tokens, at)


def _tokens(text: str) -> list[re.Match[str]]:
    return [match for match in _PIECES.finditer(text, text.startswith(_MARK)) if not match[0].startswith("/")]


def _found(tokens: Sequence[re.Match[str]], path: Path, opens: Sequence[str]) -> int | None:
    """Where among the pieces the value at `path` opens, if what is met on the way opens as it should."""
    if not tokens:
        return None
    at = 0
    for depth, (step, bracket) in enumerate(zip(path, opens, strict=True)):
        found = [index for index, name in _keys(tokens, at) if name == step]
        if not found:
            return None
        at = found[-1] + 2
        if tokens[at][0] != bracket:
            what = "table" if bracket == "{" else "list"
            raise ConfigError(
                f"`{'.'.join(path[: depth + 1])}` should be a {what}, and is not.", hint="Mend the file first."
            )
    return at


def _keys(tokens: Sequence[re.Match[str]], at: int) -> list[tuple[int, str]]:
    """The members of the object that opens here: where each key is among the pieces, and what it says."""
    found: list[tuple[int, str]] = []
    index = at + 1
    while tokens[index][0] != "}":
        found.append((index, str(msgspec.json.decode(tokens[index][0]))))
        index = _behind(tokens, index + 2)
        index += tokens[index][0] == ","
    return found


def _behind(tokens: Sequence[re.Match[str]], index: int) -> int:
    """The piece behind the value that begins here."""
    depth = 0
    while True:
        piece = tokens[index][0]
        depth += (piece in "[{") - (piece in "]}")
        index += 1
        if depth == 0:
            return index


def _read_table(tokens: Sequence[re.Match[str]], at: int) -> _Table:
    members: list[_Member] = []
    close = at + 1
    for index, name in _keys(tokens, at):
        close = _behind(tokens, index + 2)
        comma = tokens[close].start() if tokens[close][0] == "," else None
        value, end = tokens[index + 2].start(), tokens[close - 1].end()
        members.append(_Member(name, tokens[index].start(), value, end, comma))
        close += comma is not None
    return _Table(tokens[at].start(), tokens[close].start(), tuple(members))


def _read_array(tokens: Sequence[re.Match[str]], at: int) -> _Table:
    members: list[_Member] = []
    index = at + 1
    while tokens[index][0] != "]":
        close = _behind(tokens, index)
        comma = tokens[close].start() if tokens[close][0] == "," else None
        start, piece = tokens[index].start(), tokens[index][0]
        name = str(msgspec.json.decode(piece)) if piece.startswith('"') else ""
        members.append(_Member(name, start, start, tokens[close - 1].end(), comma))
        index = close + (comma is not None)
    return _Table(tokens[at].start(), tokens[index].start(), tuple(members))
