"""Adds servers to the text of a pegboard.toml without touching a character of what is there.

The text only ever grows at its end, and the result is parsed and compared before anyone may write it.
Above: `pegboard import`, which owns the disk. Below: the model.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pegboard.config.model import ServerConfig
from pegboard.errors import ConfigError

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_MARK = "\ufeff"


def append_servers(text: str, servers: Mapping[str, ServerConfig]) -> str:
    """`text` followed by one `[servers.<key>]` table for each server; what `text` says already stays as it is."""
    if not servers:
        return text
    before = parse_toml(text)
    tables = {key: _plain(msgspec.to_builtins(config)) for key, config in servers.items()}
    _refuse_taken(before.get("servers"), tables)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [line for key, table in tables.items() for line in ("", *table_lines(("servers", key), table))]
    blank = text.strip() in {"", _MARK}
    gap = "" if blank or text.endswith("\n") else newline
    after = text + gap + newline.join([*(lines[1:] if blank else lines), ""])
    _verify(before, tables, after)
    return after


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of `text`; a leading byte-order mark is allowed."""
    try:
        return tomllib.loads(text.removeprefix(_MARK))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"This is not valid TOML: {error}.", hint="Mend the file first.") from None


def _refuse_taken(existing: Any, tables: Mapping[str, Any]) -> None:
    taken = [key for key in tables if isinstance(existing, dict) and key in existing]
    if taken:
        raise ConfigError(f"Already configured: {', '.join(taken)}.", hint="Remove the old entry first.")


def _verify(before: dict[str, Any], tables: Mapping[str, Any], after: str) -> None:
    """The promise of this module: everything old, everything new, and nothing else."""
    expected = dict(before)
    existing = before.get("servers", {})
    expected["servers"] = {**existing, **tables} if isinstance(existing, dict) else tables
    try:
        after.encode()
        found: object = tomllib.loads(after.removeprefix(_MARK))
    except UnicodeEncodeError:
        raise ConfigError("A value is not valid Unicode text, which TOML cannot hold.") from None
    except tomllib.TOMLDecodeError as error:
        found = error
    if not same_toml(found, expected):
        raise ConfigError(
            "Tables cannot be added to the end of this file.",
            hint="Write its `servers` as [servers.<name>] tables, or pick another file with --to.",
        )


def same_toml(left: Any, right: Any) -> bool:
    """Equality as TOML means it: 1 is not true, and nan is nan."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same_toml(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same_toml, left, right))
    return bool(left == right) or (left != left and right != right)  # only nan differs from itself


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


def table_lines(path: tuple[str, ...], values: Mapping[str, Any]) -> Iterator[str]:
    """The lines of one table: its own values first, because a sub-table ends them."""
    yield f"[{'.'.join(map(key_text, path))}]"
    for name, value in values.items():
        if not isinstance(value, dict):
            yield f"{key_text(name)} = {value_text(value)}"
    for name, value in values.items():
        if isinstance(value, dict):
            yield ""
            yield from table_lines((*path, name), value)


def key_text(name: str) -> str:
    """A key as TOML writes it."""
    return name if _BARE_KEY.fullmatch(name) else _string(name)


def value_text(value: Any) -> str:
    """A plain value as TOML writes it."""
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    return repr(value)


def _string(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04X}"
