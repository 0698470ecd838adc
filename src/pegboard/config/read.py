"""Reads one configuration file into a layer: TOML in Pegboard's own words, or JSON in another program's.

The only part of configuration that touches files besides the scan for plug-ins. Above: `load`. Below: `layer`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard.config.layer import Findings, Layer
from pegboard.config.problems import KeyPath, Problem, nearest

MAX_BYTES = 16 * 1024 * 1024
"""No configuration is larger; a device or a log given by mistake is."""

_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_EDITOR_FOLDERS = {".vscode", ".cursor", ".roo", ".kiro"}


class Unreadable(Exception):
    """A file that cannot be read as text; the message says why."""


def read_text(path: Path) -> str:
    """The file as text."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise Unreadable("there is no such file") from None
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise Unreadable("not a possible file name") from None
    if len(raw) > MAX_BYTES:
        raise Unreadable(f"larger than {MAX_BYTES // (1024 * 1024)} MiB, which no configuration is")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"not UTF-8 text: line {line} has the byte 0x{raw[error.start]:02x}") from None


def read_layer(path: Path, environ: Mapping[str, str], findings: Findings) -> Layer | None:
    """The layer that a file is; None when it cannot be one, which is reported."""
    try:
        text = read_text(path)
    except Unreadable as error:
        findings.problems.append(Problem(where=str(path), message=str(error)))
        return None
    if path.suffix.lower() in {".json", ".jsonc"}:
        return _json_layer(path, text, environ, findings)
    return _toml_layer(path, text, findings)


def _toml_layer(path: Path, text: str, findings: Findings) -> Layer | None:
    try:
        tables = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        findings.problems.append(_toml_problem(path, text, str(error)))
        return None
    except RecursionError:
        findings.problems.append(Problem(where=str(path), message="arrays or tables are nested too deeply"))
        return None
    return Layer(str(path), tables, folder=path.parent, file=path, text=text)


def _toml_problem(path: Path, text: str, message: str) -> Problem:
    place = _TOML_PLACE.search(message)
    if place is None:
        return Problem(where=str(path), message=f"not valid TOML: {message}")
    line = int(place[1]) if place[1] else max(1, len(text.splitlines()))
    return Problem(where=str(path), line=line, message=f"not valid TOML: {message[: place.start()]}")


def _json_layer(path: Path, text: str, environ: Mapping[str, str], findings: Findings) -> Layer | None:
    from pegboard.config import jsonc, mcp_json

    try:
        found = mcp_json.entries(jsonc.parse(text))
    except jsonc.JsoncError as error:
        findings.problems.append(Problem(where=str(path), line=error.line, message=f"not valid JSON: {error.reason}"))
        return None
    if found is None:
        message = f"no MCP servers in a shape that Pegboard understands; {mcp_json.UNDERSTOOD}"
        findings.problems.append(Problem(where=str(path), message=message))
        return None
    layer = Layer(
        str(path),
        {"servers": {entry.name: entry.fields for entry in found}},
        folder=path.parent,
        file=path,
        text=text,
        written=_written(found),
        known=_editor_references(path, environ),
        foreign=True,
    )
    for entry in found:
        _tell(entry, layer, findings)
    return layer


def _written(found: list[Any]) -> dict[KeyPath, KeyPath]:
    spelled: dict[KeyPath, KeyPath] = {}
    for entry in found:
        spelled["servers", entry.name] = entry.where
        for ours, theirs in entry.written.items():
            spelled["servers", entry.name, ours] = (*entry.where, theirs)
    return spelled


def _tell(entry: Any, layer: Layer, findings: Findings) -> None:
    """What translation found goes where everything goes; a stronger file's entry replaces what a weaker one did."""
    findings.faults.pop(entry.name, None)
    for key, message in entry.faults:
        findings.report(layer, ("servers", entry.name, key), message)
    if entry.ignored:
        keys = ", ".join(map(_or_a_slip, entry.ignored))
        findings.warn(layer, ("servers", entry.name), f"ignored, as only another program knows it: {keys}")


def _or_a_slip(key: str) -> str:
    """An unknown key, with the one it may be a slip for; only a very close one, as other programs have many keys."""
    from pegboard.config.mcp_json import KNOWN_KEYS

    near = nearest(key, KNOWN_KEYS, cutoff=0.8)
    return f"{key} (did you mean {near}?)" if near else key


def _editor_references(path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """What VS Code and Cursor fill in besides environment variables."""
    from pegboard.config.places import expand_home

    folder = path.parent.parent if path.parent.name in _EDITOR_FOLDERS else path.parent
    return {
        "workspaceFolder": str(folder),
        "workspaceFolderBasename": folder.name,
        "userHome": expand_home("~", environ),
        "pathSeparator": "/",
        "/": "/",
    }
