"""Changes one table of a TOML file as text: every character outside the change stays as it was.

A scanner finds the statements (headers and pairs) with the whole path each speaks of; what belongs to a server is cut
out with the comments right above it, and new tables are added at the end. Above: `plan`, `undo` and whoever takes
servers out of a pegboard.toml. Below: `locate`, which knows the pieces of TOML, and `write`, which writes tables.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec

from pegboard.config.installers import edit_toml_inline
from pegboard.config.locate import PIECES
from pegboard.config.write import key_text, parse_toml, table_lines, value_text

Path = tuple[str, ...]

_MARK = "\ufeff"


class _Statement(msgspec.Struct, frozen=True):
    """A header or a pair: its lines, and the path it speaks of."""

    start: int
    end: int
    path: Path
    is_header: bool


def parse(text: str) -> dict[str, Any]:
    """The tables of the file."""
    return parse_toml(text)


def without(text: str, path: Path, names: Collection[str]) -> str:
    """`text` without these members of the table at `path`."""
    for start, end in reversed(_ranges(text, path, names)):
        text = _without_range(text, start, end)
    for name in names:
        text = _in_inline(text, (*path, name), edit_toml_inline.without_member) or text
    return text


def with_entry(text: str, path: Path, name: str, value: Any) -> str:
    """`text` followed by this table; one of the same name goes."""
    return _appended(without(text, path, (name,)), _newline(text).join([*table_lines((*path, name), value), ""]))


def with_value(text: str, path: Path, name: str, value: Any) -> str:
    """`text` in which this key has a plain value: where it stands, else at the end of its table, else in a new one."""
    statements = list(_statements(text))
    for statement in reversed(statements):
        if statement.path == (*path, name) and not statement.is_header:
            start, end = _value_span(text, statement)
            return text[:start] + value_text(value) + text[end:]
    newline = _newline(text)
    line = f"{key_text(name)} = {value_text(value)}{newline}"
    if not path:
        return _at_root(text, statements, line, newline)
    section = _section_end(statements, path)
    if section is None:
        section, line = _dotted_end(statements, path, line)
    if section is None:
        inline = _in_inline(text, (*path, name), functools.partial(edit_toml_inline.with_member, value=value))
        return inline or _appended(text, newline.join([*table_lines(path, {name: value}), ""]))
    gap = "" if text[:section].endswith("\n") else newline
    return text[:section] + gap + line + text[section:]


def put_back(text: str, path: Path, names: Collection[str], before: str) -> str:
    """`text` followed by these tables as `before` has them; the order of tables means nothing in TOML."""
    values: Any = parse(before)
    for key in path:
        values = values.get(key, {}) if isinstance(values, dict) else {}
    for name in [name for name in values if name in names]:
        ranges = _ranges(before, path, (name,))
        if ranges and all(_has_header(before, *each) for each in ranges):
            for start, end in ranges:
                text = _appended(text, before[start:end])
        else:
            # Pairs in a section of others mean nothing elsewhere, so the same is said as a table.
            text = _appended(text, _newline(text).join([*table_lines((*path, name), values[name]), ""]))
    return text


def _at_root(text: str, statements: list[_Statement], line: str, newline: str) -> str:
    """Behind the last pair that is in no table; without one before the first table and the comments on it."""
    headers = [number for number, statement in enumerate(statements) if statement.is_header]
    first = headers[0] if headers else len(statements)
    floor = 1 if text.startswith(_MARK) else 0
    if first:
        at = statements[first - 1].end
    elif headers:
        at = _with_comments(text, floor, statements[0].start)
        line += newline
    else:
        at = len(text)
    gap = "" if at == floor or text[:at].endswith("\n") else newline
    return text[:at] + gap + line + text[at:]


def _section_end(statements: list[_Statement], path: Path) -> int | None:
    """Where the pairs of the table with this header end; None when there is no such header."""
    end = None
    in_section = False
    for statement in statements:
        if statement.is_header:
            in_section = statement.path == path
        if in_section:
            end = statement.end
    return end


def _dotted_end(statements: list[_Statement], path: Path, line: str) -> tuple[int | None, str]:
    """Where the pairs of a table end that is written by dotted keys, and the line as it is written there."""
    section: Path = ()
    end = None
    for statement in statements:
        if statement.is_header:
            section = statement.path
        elif (
            section == path[: len(section)] and statement.path[: len(path)] == path and len(statement.path) > len(path)
        ):
            end, keys = statement.end, path[len(section) :]
            dotted = ".".join([*map(key_text, keys), line])
    return end, line if end is None else dotted


def _in_inline(text: str, path: Path, change: Callable[[str, int, int, Path], str | None]) -> str | None:
    """`text` after a change in the inline table that holds this path; None when there is no such table."""
    for statement in reversed(list(_statements(text))):
        depth = len(statement.path)
        if not statement.is_header and depth < len(path) and statement.path == path[:depth]:
            start, end = _value_span(text, statement)
            return change(text, start, end, path[depth:])
    return None


def _value_span(text: str, statement: _Statement) -> tuple[int, int]:
    """Where the value of a pair begins and ends, without the comment behind it."""
    pieces = [match for match in PIECES.finditer(text, statement.start, statement.end) if match[0] != "\n"]
    equals = next(number for number, match in enumerate(pieces) if match[0] == "=")
    value = [match for match in pieces[equals + 1 :] if not match[0].startswith("#")]
    return value[0].start(), value[-1].end()


def _has_header(text: str, start: int, end: int) -> bool:
    lines = (line.strip() for line in text[start:end].splitlines())
    return next((line.startswith("[") for line in lines if line and not line.startswith("#")), False)


def _appended(text: str, block: str) -> str:
    newline = _newline(text)
    if not text.removeprefix(_MARK).strip():
        return text + block
    gap = "" if text.endswith("\n") else newline
    blank = "" if text.endswith(("\n\n", "\n\r\n")) else newline
    return text + gap + blank + block


def _ranges(text: str, path: Path, names: Collection[str]) -> list[tuple[int, int]]:
    """What belongs to these members, in order: whole sections, and single pairs in sections of others."""
    statements = list(_statements(text))
    mine = {(*path, name) for name in names}
    ranges: list[tuple[int, int]] = []
    in_section = False
    behind = 1 if text.startswith(_MARK) else 0
    for statement in statements:
        belongs = statement.path[: len(path) + 1] in mine
        if statement.is_header:
            in_section = belongs
        if belongs and in_section and not statement.is_header:
            ranges[-1] = (ranges[-1][0], statement.end)
        elif belongs:
            ranges.append((_with_comments(text, behind, statement.start), statement.end))
        behind = statement.end
    return ranges


def _with_comments(text: str, floor: int, start: int) -> int:
    """Where the comment lines right above a statement begin."""
    while start > floor:
        line = text.rfind("\n", 0, start - 1) + 1
        if line < floor or not text[line:start].lstrip(" \t").startswith("#"):
            break
        start = line
    return start


def _without_range(text: str, start: int, end: int) -> str:
    """Cuts out whole lines with the blank ones behind them; at the end of the file with those before."""
    rest = text[end:]
    lines = rest.splitlines(keepends=True)
    blank = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    if blank < len(lines):
        return text[:start] + "".join(lines[blank:])
    kept = text[:start].rstrip()
    if not kept.removeprefix(_MARK):
        return kept
    return kept + (text[len(kept) : start].partition("\n")[0] + "\n" if "\n" in text[len(kept) : start] else "")


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _statements(text: str) -> Iterator[_Statement]:
    """Every header and pair of the text, which is valid TOML."""
    section: Path = ()
    begin: int | None = None
    equals: int | None = None
    depth = 0
    for match in PIECES.finditer(text, text.startswith(_MARK)):
        piece = match[0]
        if piece == "\n" and not depth and begin is not None:
            statement = _statement(text, begin, match.end(), equals, section)
            section = statement.path if statement.is_header else section
            yield statement
            begin = equals = None
        elif piece == "\n" or piece.startswith("#"):
            continue
        else:
            begin = match.start() if begin is None else begin
            equals = match.start() if piece == "=" and not depth and equals is None else equals
            depth += (piece in "[{") - (piece in "]}")
    if begin is not None:
        yield _statement(text, begin, len(text), equals, section)


def _statement(text: str, begin: int, end: int, equals: int | None, section: Path) -> _Statement:
    start = text.rfind("\n", 0, begin) + 1
    start = max(start, 1) if text.startswith(_MARK) else start
    if equals is None:
        return _Statement(start, end, _steps(text[begin:end]), True)
    return _Statement(start, end, (*section, *_steps(f"{text[begin:equals]} = 0")), False)


def _steps(text: str) -> Path:
    """The keys that a header or the left side of a pair names."""
    value: Any = tomllib.loads(text)
    steps: list[str] = []
    while value:
        value = value[0] if isinstance(value, list) else value
        if not value:
            break
        [(key, value)] = value.items()
        steps.append(key)
    return tuple(steps)
