"""Servers that plugins bring to Claude Code: in the plugin's manifest, or in a file beside it.

Above: `claude_code`. Below: the importers and the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

import msgspec

from pegboard.config.importers.fields import member
from pegboard.config.importers.found import Entry, Places
from pegboard.doctor.facts import ServerEntry
from pegboard.doctor.settings.claude_files import Layer, base_folder
from pegboard.doctor.settings.machine import Glance, Machine
from pegboard.doctor.settings.servers import Place, servers_at, source

_TABLE = ("mcpServers",)


def plugin_servers(
    machine: Machine, glance: Glance, project: Path | None, found: Sequence[Layer]
) -> Iterator[ServerEntry]:
    """Those of every plugin that is installed for this folder; off where the plugin is."""
    known = member(glance.value(base_folder(machine) / "plugins" / "installed_plugins.json"), "plugins")
    for identity, records in known.items() if isinstance(known, dict) else ():
        root = _root(records, machine, project)
        if root is None:
            continue
        is_on = _is_on(identity, found)
        for entry in _of_plugin(identity.partition("@")[0], root, machine, glance):
            yield entry if is_on else msgspec.structs.replace(entry, enabled=False)


def _root(records: Any, machine: Machine, project: Path | None) -> Path | None:
    """Where it is installed: for this project, or else for all."""
    listed = records if isinstance(records, list) else [records]
    here = {str(folder) for folder in machine.upward()} if project is not None else set()
    own = [each for each in listed if member(each, "projectPath") in here]
    shared = [each for each in listed if member(each, "projectPath") is None]
    paths = (member(each, "installPath") for each in (*own, *shared))
    path = next((each for each in paths if isinstance(each, str) and PurePath(each).is_absolute()), None)
    return None if path is None else Path(path)


def _is_on(identity: str, found: Sequence[Layer]) -> bool:
    said = (member(layer.document.at(("enabledPlugins",)), identity) for layer in found)
    return next((each for each in said if isinstance(each, bool)), False)


def _of_plugin(plugin: str, root: Path, machine: Machine, glance: Glance) -> Iterator[ServerEntry]:
    seen = msgspec.structs.replace(machine, environ={**machine.environ, "CLAUDE_PLUGIN_ROOT": str(root)})
    for file in _files(root, glance):
        yield from servers_at(_place(plugin, file), seen, glance)


def _files(root: Path, glance: Glance) -> Iterator[Path]:
    """The manifest, and the file that it names or that is there by custom."""
    manifest = root / ".claude-plugin" / "plugin.json"
    named = member(glance.value(manifest), "mcpServers")
    if isinstance(named, dict):
        yield manifest
    inside = isinstance(named, str) and not PurePath(named).is_absolute() and ".." not in PurePath(named).parts
    yield root / named if inside else root / ".mcp.json"


def _place(plugin: str, file: Path) -> Place:
    """Its servers go by the plugin's name too, on the wire as well."""
    user = source("claude-code:user", [file])

    def entries(document: Any, path: Path, places: Places) -> tuple[Entry, ...]:
        where = _TABLE if "mcpServers" in document else ()
        table = member(document, "mcpServers") if where else document
        read = user.entries({"mcpServers": table}, path, places)
        return tuple(
            msgspec.structs.replace(each, name=f"plugin:{plugin}:{each.name}", where=(*where, each.where[-1]))
            for each in read
        )

    return Place(agent="claude-code", scope="plugin", source=msgspec.structs.replace(user, entries=entries))
