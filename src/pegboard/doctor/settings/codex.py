"""Codex: the model and who serves it, and its servers. A project's file counts only where the project is trusted.

Above: `read`. Below: the importers and the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from pegboard.config.importers.fields import member
from pegboard.doctor.facts import ServerEntry, Setting
from pegboard.doctor.settings.endpoints import Said, documents, files_of
from pegboard.doctor.settings.machine import Glance, Machine
from pegboard.doctor.settings.precedence import Draft
from pegboard.doctor.settings.servers import Place, in_folder_above, servers_at, source
from pegboard.doctor.settings.values import settings_at
from pegboard.doctor.settings.variables import variables

VARIABLES = ("OPENAI_BASE_URL", "CODEX_HOME")
_KEYS = (("model",), ("model_provider",), ("openai_base_url",))
_USER = Place(agent="codex", scope="user", source=source("codex:user"))
_PROJECT = Place(agent="codex", scope="project", source=source("codex:project"), folder=in_folder_above)


def read(machine: Machine, glance: Glance, project: Path | None) -> Draft:
    """What it is set to in a folder, or in none."""
    said, is_trusted = _said(machine, glance, project)
    settings = [setting for scope, document in said for setting in settings_at(document, scope, _KEYS, glance)]
    settings += _provider(settings, said, glance)
    return Draft(
        settings=(*settings, *variables(machine, glance, VARIABLES)),
        servers=_servers(machine, glance, project, is_trusted=is_trusted),
    )


def _said(machine: Machine, glance: Glance, project: Path | None) -> tuple[list[Said], bool]:
    """The files that count, the strongest first, and whether the project's are among them."""
    user = list(documents("user", files_of("codex", machine), glance))
    trusts = [member(document.value, "projects") for _, document in user]
    is_trusted = project is not None and any(
        member(member(trust, str(folder)), "trust_level") == "trusted"
        for trust in trusts
        for folder in machine.upward()
    )
    own = documents("project", _PROJECT.source.files(machine), glance) if is_trusted else ()
    return [*own, *user, *documents("managed", [_system_file(machine)], glance)], is_trusted


def _system_file(machine: Machine) -> Path:
    """For all users of the machine, and the weakest."""
    return machine.root / "etc" / "codex" / "config.toml"


def _provider(settings: list[Setting], said: list[Said], glance: Glance) -> Iterator[Setting]:
    """The address of the provider that is chosen; others have no say."""
    chosen = next((each.value for each in settings if each.name == "model_provider"), None)
    if chosen is None:
        return
    keys = [("model_providers", chosen, key) for key in ("base_url", "wire_api")]
    for scope, document in said:
        yield from settings_at(document, scope, keys, glance)


def _servers(machine: Machine, glance: Glance, project: Path | None, *, is_trusted: bool) -> tuple[ServerEntry, ...]:
    own = servers_at(_PROJECT, machine, glance) if project is not None else ()
    system = Place(agent="codex", scope="managed", source=source("codex:user", [_system_file(machine)]))
    return (
        *(msgspec.structs.replace(entry, pending=not is_trusted) for entry in own),
        *servers_at(_USER, machine, glance),
        *servers_at(system, machine, glance),
    )
