"""Changes one value of a YAML file as text: every character outside the change stays as it was.

PyYAML says where everything stands; only lines of the one key are touched. What cannot be changed so, such as a value
that an alias shares, is found out by whoever compares what the outcome says. Above: `documents`. Below: `yaml_tree`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from pegboard.config.installers import yaml_tree
from pegboard.config.installers.yaml_tree import Member, Node
from pegboard.errors import ConfigError

Path = tuple[str, ...]

_MARK = "\ufeff"
_UNIT = "  "
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
# Words that are no texts where they stand without quotes.
_RESERVED = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"})
_LINE_END = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r\n|\n|\r|\Z)")
_BREAKS = ("\n", "\r")


def parse(text: str) -> dict[str, Any]:
    """The settings; a file that says nothing has none."""
    document = yaml_tree.values(text)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError("It should hold a table of settings.", hint="Mend the file first.")
    return document


def with_value(text: str, path: Path, name: str, value: Any) -> str:
    """`text` in which this key has a plain value: where it stands, else last in its table, which is made if need be."""
    root = yaml_tree.root(text)
    if root is None:
        gap = "" if not text.removeprefix(_MARK) or text.endswith(_BREAKS) else _newline(text)
        return text + gap + _lines((*path, name), value, "", _newline(text))
    table, rest = root, (*path, name)
    while True:
        member = _last(table, rest[0])
        if member is None:
            return _added(text, table, rest, value)
        if len(rest) == 1:
            end = max(_content_end(text, member.end), member.value.start)
            return text[: member.value.start] + _shown(text, member.value, value) + text[end:]
        if member.value.members is None:
            raise ConfigError(f"`{'.'.join(path)}` should be a table, and is not.", hint="Mend the file first.")
        table, rest = member.value, rest[1:]


def without(text: str, path: Path, names: Collection[str]) -> str:
    """`text` without these members of the table at `path`; an emptied table stays."""
    for name in names:
        while (table := _table_at(text, path)) is not None and _last(table, name) is not None:
            text = _without_one(text, table, name)
    return text


def _table_at(text: str, path: Path) -> Node | None:
    table = yaml_tree.root(text)
    for step in path:
        member = None if table is None else _last(table, step)
        table = None if member is None else member.value
    return table


def _last(table: Node, name: str) -> Member | None:
    """Of two equal keys the last counts."""
    return next((member for member in reversed(table.members or ()) if member.name == name), None)


# ── adding ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _added(text: str, table: Node, path: Path, value: Any) -> str:
    newline = _newline(text)
    if table.members is None:
        raise ConfigError("It should be a table, and is not.", hint="Mend the file first.")
    if table.is_flow or not table.members:
        return _added_in_flow(text, table, path, value)
    first, last = table.members[0], table.members[-1]
    line = text[_line_start(text, first.start) : first.start]
    indent = " " * len(line.removeprefix(_MARK))
    at = _behind_line(text, last.end)
    gap = "" if text[:at].endswith(_BREAKS) else newline
    return text[:at] + gap + _lines(path, value, indent, newline) + text[at:]


def _added_in_flow(text: str, table: Node, path: Path, value: Any) -> str:
    """In braces a member is added behind the last, whether or not a comma follows that."""
    written = _written(value)
    for step in reversed(path[1:]):
        written = f"{{{_key(step)}: {written}}}"
    member = f"{_key(path[0])}: {written}"
    if table.members:
        at = table.members[-1].end
        return f"{text[:at]}, {member}{text[at:]}"
    opening = text.index("{", table.start)
    return f"{text[: opening + 1]}{member}{text[opening + 1 :]}"


def _lines(path: Path, value: Any, indent: str, newline: str) -> str:
    *outer, last = path
    heads = [f"{indent}{_UNIT * depth}{_key(step)}:" for depth, step in enumerate(outer)]
    return newline.join([*heads, f"{indent}{_UNIT * len(outer)}{_key(last)}: {_written(value)}", ""])


def _shown(text: str, old: Node, value: Any) -> str:
    """The new value in the quotes of the old; where there was none, with a gap before it."""
    written = _written(value)
    if isinstance(value, str) and text[old.start : old.start + 1] == "'" and "'" not in value and value.isprintable():
        written = f"'{value}'"
    is_bare = old.start == old.end and text[old.start - 1 : old.start] == ":"
    return f" {written}" if is_bare else written


# ── taking out ───────────────────────────────────────────────────────────────────────────────────────────────────


def _without_one(text: str, table: Node, name: str) -> str:
    members = table.members or ()
    number = max(index for index, member in enumerate(members) if member.name == name)
    member = members[number]
    if len(members) == 1:
        if table.is_flow:
            return text[: text.index("{", table.start) + 1] + text[table.end - 1 :]
        return text[: member.start] + "{}" + text[_content_end(text, member.end) :]
    if table.is_flow:
        if number + 1 < len(members):
            return text[: member.start] + text[members[number + 1].start :]
        return text[: members[number - 1].end] + text[member.end :]
    start, end = _line_start(text, member.start), _behind_line(text, member.end)
    if not text[start : member.start].strip(" \t" + _MARK):
        start += text.startswith(_MARK) and start == 0
        return text[:start] + text[end:]
    # The first key of an element stands behind its dash: the next one takes its place.
    following = members[number + 1].start
    return text[: member.start] + text[following:] if not text[end:following].strip() else text


def _content_end(text: str, end: int) -> int:
    """Where what a block says ends, without the line end behind it."""
    while end and text[end - 1] in "\r\n":
        end -= 1
    return end


def _behind_line(text: str, end: int) -> int:
    """Behind the line on which something ends, with the comment there."""
    if end and text[end - 1] in "\r\n":
        return end
    found = _LINE_END.match(text, end)
    return found.end() if found else end


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _key(name: str) -> str:
    return name if _is_plain(name) else json.dumps(name, ensure_ascii=not name.isprintable())


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value if _is_plain(value) else json.dumps(value, ensure_ascii=not value.isprintable())
    return json.dumps(value)


def _is_plain(word: str) -> bool:
    return bool(_PLAIN.fullmatch(word)) and word.lower() not in _RESERVED
