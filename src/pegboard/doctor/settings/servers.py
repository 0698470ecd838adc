"""MCP servers as the files of an agent have them, read with the eyes of the importers.

Above: the modules of the agents. Below: the importers and the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec

from pegboard.config.importers import SOURCES
from pegboard.config.importers.fields import WrongShape
from pegboard.config.importers.found import Entry, Source
from pegboard.doctor.facts import Agent, ServerEntry
from pegboard.doctor.settings.launches import digest_of, digest_of_raw
from pegboard.doctor.settings.machine import Document, Glance, Machine

Scope = Literal["managed", "local", "project", "user", "plugin"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where servers of one agent are."""

    agent: Agent
    scope: Scope
    source: Source
    folder: Callable[[Path, Entry], str] = lambda _file, _entry: ""
    """The project an entry is for."""
    without_launch: Literal["wrong", "elsewhere", "known"] = "wrong"
    """What an entry is that says nothing of how it is run: a mistake, a switch of one that stands elsewhere, or known
    to the agent by its name."""


def source(identity: str, files: Iterable[Path] | None = None) -> Source:
    """The importers' source of this id, perhaps with other files than its own."""
    known = next(each for each in SOURCES if each.id == identity)
    if files is None:
        return known
    listed = tuple(files)
    return msgspec.structs.replace(known, files=lambda _places: listed)


def servers_at(place: Place, machine: Machine, glance: Glance) -> tuple[ServerEntry, ...]:
    """Every server of a place, in the order of its files; what makes no sense is a problem."""
    off = place.source.switched_off(machine, glance.value) if place.source.switched_off else frozenset()
    found: list[ServerEntry] = []
    for file in dict.fromkeys(place.source.files(machine)):
        document = glance.document(file)
        if document is None:
            continue
        try:
            entries = place.source.entries(document.value, file, machine)
        except WrongShape as error:
            glance.report(file, str(error))
            continue
        for entry in entries:
            launch, is_on = _launch(entry, document, machine)
            if not launch and place.without_launch != "known":
                if place.without_launch == "wrong":
                    # The importers' words may quote values, and so secrets.
                    glance.report(file, f"{entry.name} says nothing of what to start or reach")
                continue
            found.append(_entry(place, entry, document, launch, enabled=is_on and entry.name not in off))
    return tuple(found)


def in_folder_of_file(file: Path, _entry: Entry) -> str:
    """For files that lie in the project itself."""
    return str(file.parent)


def in_folder_above(file: Path, _entry: Entry) -> str:
    """For files that lie in a folder of the project."""
    return str(file.parent.parent)


def _entry(place: Place, entry: Entry, document: Document, launch: str, *, enabled: bool) -> ServerEntry:
    pinned = document.at((*entry.where, "alwaysLoad"))
    return ServerEntry(
        agent=place.agent,
        name=entry.name,
        file=document.file,
        scope=place.scope,
        project=place.folder(document.file, entry),
        key=entry.where,
        always_load=pinned if isinstance(pinned, bool) and place.agent == "claude-code" else None,
        enabled=enabled,
        launch=launch,
        changed_at=document.changed_at,
    )


def _launch(entry: Entry, document: Document, machine: Machine) -> tuple[str, bool]:
    """Its digest and whether it is in use. What Pegboard cannot import may well run: itself, or over a web socket."""
    if entry.config is not None:
        return digest_of(entry.config, machine.environ), entry.config.enabled is not False
    raw = document.at(entry.where)
    return digest_of_raw(raw), not _is_off(raw)


def _is_off(raw: Any) -> bool:
    return isinstance(raw, dict) and (raw.get("enabled") is False or raw.get("disabled") is True)
