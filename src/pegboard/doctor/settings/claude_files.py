"""The settings files of Claude Code, in the order in which they count.

Flags of the command line come between managed and local ones, and leave no trace. Above: `claude_code`.
Below: the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from pegboard.doctor.settings.machine import Document, Glance, Machine

Scope = Literal["managed", "local", "project", "user"]


class Layer(msgspec.Struct, frozen=True):
    """One file that has a say."""

    scope: Scope
    document: Document


def layers(machine: Machine, glance: Glance, project: Path | None) -> tuple[Layer, ...]:
    """Those that are there, the strongest first."""
    found = [Layer("managed", document) for document in _managed(machine, glance)]
    for scope, file in _own(machine, project):
        if document := glance.document(file):
            found.append(Layer(scope, document))
    return tuple(found)


def base_folder(machine: Machine) -> Path:
    """Where the user's files are."""
    return machine.from_variable("CLAUDE_CONFIG_DIR", machine.home / ".claude")


def state_file(machine: Machine) -> Path:
    """The one file with servers, approvals and much else, which Claude Code rewrites all the time."""
    return machine.from_variable("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json"


def managed_folder(machine: Machine) -> Path:
    """Where an administrator puts files."""
    return machine.administered(linux="claude-code", mac="ClaudeCode", windows="Program Files/ClaudeCode")


def managed_servers(machine: Machine) -> Path:
    """An administrator's list of servers, beside which there are none."""
    return managed_folder(machine) / "managed-mcp.json"


def _own(machine: Machine, project: Path | None) -> Iterator[tuple[Scope, Path]]:
    user = base_folder(machine) / "settings.json"
    if project is not None:
        yield "local", project / ".claude" / "settings.local.json"
        shared = project / ".claude" / "settings.json"
        # In the home folder the project's file is the user's.
        if shared != user:
            yield "project", shared
    yield "user", user


def _managed(machine: Machine, glance: Glance) -> Iterator[Document]:
    """Of all ways to manage settings only the strongest counts, unless it says that the others are to be merged."""
    folder = managed_folder(machine)
    ways = (
        [base_folder(machine) / "remote-settings.json"],
        _profiles(machine),
        # Of the files beside the main one the last by name counts most.
        [*reversed(_additions(folder / "managed-settings.d")), folder / "managed-settings.json"],
    )
    for files in ways:
        said = [document for file in files if (document := glance.document(file)) and document.value]
        yield from said
        if said and not any(each.value.get("managedSourcesBehavior") == "merge" for each in said):
            return


def _profiles(machine: Machine) -> list[Path]:
    """What a company's management of Macs has left."""
    if machine.platform != "darwin":
        return []
    folder, name = machine.root / "Library" / "Managed Preferences", "com.anthropic.claudecode.plist"
    return [folder / machine.home.name / name, folder / name]


def _additions(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if each.suffix == ".json" and not each.name.startswith("."))
    except OSError:
        return []
