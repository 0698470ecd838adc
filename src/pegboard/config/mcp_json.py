"""Understands the JSON in which other programs write their MCP servers, and says the same in Pegboard's words.

Understood are `mcpServers` (Claude Code and Desktop, Cursor, Cline, Windsurf, Gemini CLI …) and VS Code's
`servers`, alone or under `mcp`. The outcome has the shape of `[servers.<name>]`; whether its values fit is checked
where everything is checked. Above: `read`. Below: nothing but the problems' paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pegboard.config.problems import KeyPath, quoted

SHAPES: tuple[tuple[str, ...], ...] = (("mcpServers",), ("servers",), ("mcp", "servers"), ("mcp", "mcpServers"))
UNDERSTOOD = 'expected {"mcpServers": {…}}, or VS Code\'s {"servers": {…}} or {"mcp": {"servers": {…}}}'

_TRANSPORTS = {"stdio": "stdio", "http": "http", "streamablehttp": "http", "sse": "sse"}
_SAME = ("command", "args", "env", "cwd", "headers", "enabled")
# Of several addresses the most specific name counts.
_ADDRESSES = ("httpUrl", "url", "serverUrl")
KNOWN_KEYS = {*_SAME, *_ADDRESSES, "type", "transport", "disabled", "alwaysLoad", "timeout"}
# They say nothing about how a server is run, so nobody misses them.
_DESCRIPTIVE = {"$schema", "name", "title", "description", "displayName", "icon", "gallery", "version"}


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One server of another program's file, in Pegboard's words."""

    name: str
    where: KeyPath
    """The keys that lead to it."""
    fields: Any
    """What goes into `[servers.<name>]`; anything but a table is an error to be reported."""
    written: dict[str, str] = {}
    """Fields that have another name in the file."""
    ignored: tuple[str, ...] = ()
    """Keys that mean something to the other program only."""
    faults: tuple[tuple[str, str], ...] = ()
    """Keys whose value cannot be taken over, and why."""


def entries(document: Any) -> list[Entry] | None:
    """Every server of the document; None when it has none of the shapes."""
    tables = [(path, found) for path in SHAPES if (found := _at(document, path)) is not None]
    if not tables:
        return None
    names: dict[str, Entry] = {}
    for path, table in tables:
        for name, raw in table.items():
            names.setdefault(name, translate(name, raw, (*path, name)))
    return list(names.values())


def _at(document: Any, path: tuple[str, ...]) -> dict[str, Any] | None:
    for key in path:
        if not isinstance(document, dict) or key not in document:
            return None
        document = document[key]
    return document if isinstance(document, dict) else None


def translate(name: str, raw: Any, where: KeyPath) -> Entry:
    """One entry in Pegboard's words."""
    if not isinstance(raw, Mapping):
        return Entry(name=name, where=where, fields=raw)
    # A null says as much as a missing key.
    raw = {key: value for key, value in raw.items() if value is not None}
    fields: dict[str, Any] = {key: _plain(raw[key]) for key in _SAME if key in raw}
    written: dict[str, str] = {}
    faults: list[tuple[str, str]] = []
    for ours, theirs, value in _renamed(raw, faults):
        fields[ours] = value
        written[ours] = theirs
    ignored = tuple(key for key in raw if key not in KNOWN_KEYS | _DESCRIPTIVE)
    return Entry(name=name, where=where, fields=fields, written=written, ignored=ignored, faults=tuple(faults))


def _renamed(raw: Mapping[str, Any], faults: list[tuple[str, str]]) -> Iterator[tuple[str, str, Any]]:
    address = next((key for key in _ADDRESSES if key in raw), None)
    if address:
        yield "url", address, raw[address]
    for key in ("transport", "type"):
        if key in raw:
            yield from _transport(key, raw[key], faults)
    if "disabled" in raw and raw.get("enabled") is not False:
        yield "enabled", "disabled", _opposite(raw["disabled"])
    if "alwaysLoad" in raw:
        yield "lazy", "alwaysLoad", _opposite(raw["alwaysLoad"])
    if "timeout" in raw:
        yield "call_timeout", "timeout", _seconds(raw["timeout"])


def _transport(key: str, value: Any, faults: list[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    spelled = value.lower().replace("-", "").replace("_", "") if isinstance(value, str) else ""
    if spelled in _TRANSPORTS:
        yield "transport", key, _TRANSPORTS[spelled]
    else:
        said = quoted(value) if isinstance(value, str) else "this"
        faults.append((key, f"{said} is not supported; Pegboard speaks stdio, http (streamable HTTP) and sse"))


def _opposite(value: Any) -> Any:
    return not value if isinstance(value, bool) else value


def _seconds(value: Any) -> Any:
    """Claude Code counts in milliseconds, others in seconds; below 1000 only seconds make sense."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value / 1000 if number and value >= 1000 else value


def _plain(value: Any) -> Any:
    """Ports and switches that were written without quotes, as text; a variable set to null is left out."""
    if isinstance(value, dict):
        return {key: _as_text(item) for key, item in value.items() if item is not None}
    return [_as_text(item) for item in value] if isinstance(value, list) else value


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value
