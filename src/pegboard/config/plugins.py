"""Servers that come as folders: every `plugin.json` one or two levels below a plug-in folder is one.

A manifest is somebody else's file: whatever is wrong with it becomes the fault of that one server, shown with its
reason, and never stops the rest. Above: `load`. Below: `check` and `resolve`, which treat it like any layer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard.config import jsonc
from pegboard.config.check import check_layer, fields_of, kind_of
from pegboard.config.layer import Findings, Layer, Stack
from pegboard.config.model import ServerConfig, ServerSpec
from pegboard.config.problems import KeyPath, Problem, nearest, summary
from pegboard.config.read import Unreadable, read_text
from pegboard.config.resolve import resolve_server

MANIFEST = "plugin.json"
CACHE = "tools-cache.json"
MAX_FOLDERS = 10_000
"""Folders looked into below one plug-in folder; a home directory given by mistake must not take minutes."""

_NESTED = ("server", "mcp")
_REACH = ("command", "url")


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Where a plug-in lies."""

    path: Path
    key: str
    """Its folder, relative to the plug-in folder: what it is called while it has no usable name."""


class _BadManifest(Exception):
    """What is wrong with a manifest, with file and line."""


def scan(
    folders: Iterable[str], taken: Iterable[str], environ: Mapping[str, str], findings: Findings
) -> dict[str, ServerSpec]:
    """The servers of all plug-ins, in a stable order; names in `taken` belong to configured servers."""
    owners = dict.fromkeys(taken, "a configured server")
    outcomes = [(manifest, _outcome(manifest, owners, environ, findings)) for manifest in _manifests(folders, findings)]
    specs: dict[str, ServerSpec] = {}
    for manifest, outcome in outcomes:
        if isinstance(outcome, ServerSpec):
            specs[outcome.name] = outcome
            continue
        key = str(manifest.path.parent) if manifest.key in owners or manifest.key in specs else manifest.key
        specs[key] = ServerSpec(name=key, config=ServerConfig(), origin=manifest.path, problem=outcome)
    return specs


def _outcome(
    manifest: Manifest, owners: dict[str, str], environ: Mapping[str, str], findings: Findings
) -> ServerSpec | str:
    """The server of a plug-in, or why it has none."""
    try:
        spec = read_plugin(manifest, environ, findings)
    except _BadManifest as error:
        return str(error)
    if spec.name in owners:
        message = f"the name {spec.name} is already taken by {owners[spec.name]}"
        return str(Problem(where=str(manifest.path), key="name", message=message))
    owners[spec.name] = f"the plug-in in {manifest.path.parent}"
    return spec


def _manifests(folders: Iterable[str], findings: Findings) -> Iterator[Manifest]:
    seen: set[str] = set()
    for folder in folders:
        for manifest in find_manifests(Path(folder), findings):
            real = os.path.realpath(manifest.path)
            if real not in seen:
                seen.add(real)
                yield manifest


def find_manifests(folder: Path, findings: Findings, *, limit: int = MAX_FOLDERS) -> Iterator[Manifest]:
    """The manifests below a plug-in folder, sorted; what cannot be looked at is a warning."""
    try:
        upper = _subfolders(folder)
    except OSError as error:
        findings.warnings.append(f"{folder}: plug-in folder cannot be read: {error.strerror or error}")
        return
    looked_at = 0
    for name in upper:
        for key in (name, *_below(folder, name, findings)):
            looked_at += 1
            if looked_at > limit:
                findings.warnings.append(f"{folder}: only the first {limit} folders were looked into")
                return
            if os.path.lexists(folder / key / MANIFEST):
                yield Manifest(path=folder / key / MANIFEST, key=key)


def _below(folder: Path, name: str, findings: Findings) -> list[str]:
    try:
        return [f"{name}/{lower}" for lower in _subfolders(folder / name)]
    except OSError as error:
        findings.warnings.append(f"{folder / name}: plug-in folder cannot be read: {error.strerror or error}")
        return []


def _subfolders(folder: Path) -> list[str]:
    # Hidden folders hold other programs' files; some of those are called plugin.json too.
    with os.scandir(folder) as found:
        return sorted(entry.name for entry in found if not entry.name.startswith(".") and entry.is_dir())


def read_plugin(manifest: Manifest, environ: Mapping[str, str], findings: Findings) -> ServerSpec:
    """The server that a manifest describes."""
    text = _read(manifest.path)
    document = _parse(manifest.path, text)
    name, version = (_required_text(manifest.path, text, document, key) for key in ("name", "version"))
    layer = _layer(manifest.path, text, document, name)
    own = Findings()
    stack = Stack()
    stack.lay(layer, check_layer(layer, own), [name])
    spec = resolve_server(name, stack.servers()[name], [layer], environ, own)
    if own.problems or own.faults:
        raise _BadManifest(summary([*map(str, own.problems), *own.faults.get(name, ())]))
    findings.warnings += own.warnings
    return msgspec.structs.replace(
        spec, config=_at_home(spec.config, manifest), version=version, cache_path=manifest.path.parent / CACHE
    )


def _at_home(config: ServerConfig, manifest: Manifest) -> ServerConfig:
    if config.command is None or config.cwd is not None:
        return config
    return msgspec.structs.replace(config, cwd=str(manifest.path.parent))


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except Unreadable as error:
        raise _BadManifest(f"{path}: {error}") from None


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        document = jsonc.parse(text)
    except jsonc.JsoncError as error:
        raise _BadManifest(f"{path}:{error.line}: not valid JSON: {error.reason}") from None
    if not isinstance(document, dict):
        raise _BadManifest(f"{path}: expected a JSON object, got {kind_of(document)}")
    return document


def _required_text(path: Path, text: str, document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if isinstance(value, str) and value.strip():
        return value
    got = f"expected a string, got {kind_of(value)}" if key in document else "missing"
    message = "must not be empty" if isinstance(value, str) else got
    raise _BadManifest(str(Problem(where=str(path), line=jsonc.line_of(text, (key,)), key=key, message=message)))


def _layer(path: Path, text: str, document: Mapping[str, Any], name: str) -> Layer:
    """The launch fields, which stand at the top level, under `server` or under `mcp`."""
    known = fields_of(ServerConfig)
    fields = {key: value for key, value in document.items() if key in known and value is not None}
    written: dict[KeyPath, KeyPath] = {("servers", name): ()}
    for table in _NESTED:
        nested = document.get(table)
        if isinstance(nested, dict):
            fields |= nested
            written |= {("servers", name, key): (table, key) for key in nested}
    if fields.keys().isdisjoint(_REACH):
        # Other programs have their own keys here; what is nearly one of ours is taken for a slip of the pen.
        fields |= {key: value for key, value in document.items() if nearest(key, _REACH)}
    return Layer(
        str(path),
        {"servers": {name: fields}},
        folder=path.parent,
        file=path,
        text=text,
        written=written,
        known={"PLUGIN_DIR": str(path.parent)},
        foreign=True,
    )
