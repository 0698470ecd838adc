"""opencode, and Kilo, which is made from it: many files that are merged into one.

Above: `read`. Below: the importers and the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from pegboard.config.importers.fields import member
from pegboard.config.importers.opencode import servers_table
from pegboard.doctor.facts import ServerEntry
from pegboard.doctor.settings.endpoints import Said, addresses, documents, files_of
from pegboard.doctor.settings.machine import Glance, Machine
from pegboard.doctor.settings.precedence import Draft
from pegboard.doctor.settings.servers import Place, servers_at, source
from pegboard.doctor.settings.values import made, setting_at
from pegboard.doctor.settings.variables import variables


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """What sets the two apart."""

    agent: Literal["opencode", "kilo"]
    folders: tuple[str, ...]
    """In a project, the strongest first; the project itself is the last."""
    names: tuple[str, ...]
    named_by: str
    """The variable that names one more file."""
    variables: tuple[str, ...] = ()


OPENCODE = Kind(
    agent="opencode",
    folders=(".opencode", ""),
    names=("opencode.jsonc", "opencode.json"),
    named_by="OPENCODE_CONFIG",
    variables=("OPENCODE_EXPERIMENTAL_CODE_MODE", "OPENCODE_CONFIG"),
)
KILO = Kind(
    agent="kilo",
    folders=(".kilo", ".kilocode", ".opencode", ""),
    names=("kilo.jsonc", "kilo.json", "opencode.jsonc", "opencode.json"),
    named_by="KILO_CONFIG",
    variables=("KILO_CONFIG",),
)


def reader(kind: Kind) -> Callable[[Machine, Glance, Path | None], Draft]:
    """How one of the two is read."""
    return lambda machine, glance, project: _read(kind, machine, glance, project)


def _read(kind: Kind, machine: Machine, glance: Glance, project: Path | None) -> Draft:
    said = list(_said(kind, machine, glance, project))
    models = [setting for scope, document in said for setting in setting_at(document, scope, ("model",), glance)]
    return Draft(
        settings=(
            *models,
            *addresses(kind.agent, said, glance),
            *variables(machine, glance, kind.variables),
        ),
        servers=_servers(kind, said, machine, glance),
    )


def _said(kind: Kind, machine: Machine, glance: Glance, project: Path | None) -> Iterator[Said]:
    """Every file, the strongest first."""
    administered = machine.administered(linux=kind.agent, mac=kind.agent, windows=f"ProgramData/{kind.agent}")
    yield from documents("managed", [administered / name for name in kind.names], glance)
    for folder in machine.upward() if project is not None else ():
        if folder != machine.home:
            yield from documents("project", _files_in(kind, folder), glance)
    named = machine.environ.get(kind.named_by, "").strip()
    own = [machine.home / name / file for name in kind.folders[:-1] for file in kind.names]
    usual = files_of(kind.agent, machine)
    yield from documents("user", [*own, *([machine.cwd / named] if named else []), *usual], glance)


def _files_in(kind: Kind, folder: Path) -> list[Path]:
    return [folder / name / file for name in kind.folders for file in kind.names]


def _servers(kind: Kind, said: Sequence[Said], machine: Machine, glance: Glance) -> tuple[ServerEntry, ...]:
    found: list[ServerEntry] = []
    for scope, document in said:
        project = _project_of(kind, document.file) if scope == "project" else ""
        where = "opencode:project" if project else "opencode:user"
        place = Place(agent=kind.agent, scope=scope, source=source(where, [document.file]), without_launch="elsewhere")
        found += (msgspec.structs.replace(entry, project=project) for entry in servers_at(place, machine, glance))
    return tuple(_switched(entry, said) for entry in found)


def _project_of(kind: Kind, file: Path) -> str:
    return str(file.parent.parent if file.parent.name in kind.folders else file.parent)


def _switched(entry: ServerEntry, said: Sequence[Said]) -> ServerEntry:
    """The strongest file that has a word on it decides, even one that only switches it."""
    for scope, document in said:
        path = servers_table(document.value)
        switch = member(member(document.at(path), entry.name), "enabled")
        if isinstance(switch, bool):
            key = (*path, entry.name, "enabled")
            elsewhere = None
            if document.file != entry.file:
                elsewhere = made(document, scope, key, ".".join(key), "true" if switch else "false")
            return msgspec.structs.replace(entry, enabled=switch, switch=elsewhere)
    return entry
