"""Cline, Gemini CLI, Zed, Cursor and VS Code: their servers, and the little else that matters of their settings.

Above: `read`. Below: the importers and the machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pegboard.config.importers.vscode import user_folders
from pegboard.doctor.facts import Agent, ServerEntry, Setting
from pegboard.doctor.settings.endpoints import Said, addresses, documents, files_of
from pegboard.doctor.settings.machine import Glance, Machine
from pegboard.doctor.settings.precedence import Draft
from pegboard.doctor.settings.servers import Place, in_folder_above, servers_at, source
from pegboard.doctor.settings.values import Key, settings_at
from pegboard.doctor.settings.variables import variables

_COPILOT = "github.copilot.chat."
_COPILOT_KEYS: tuple[Key, ...] = tuple(
    (_COPILOT + name,)
    for name in ("anthropic.toolSearchTool.enabled", "anthropic.toolSearchTool.mode", "virtualTools.threshold")
)


def cline(machine: Machine, glance: Glance, _project: Path | None) -> Draft:
    """It has no settings for a project."""
    said = list(documents("user", files_of("cline", machine), glance))
    keys: list[Key] = [("lastUsedProvider",)]
    for _, document in said:
        providers = document.at(("providers",))
        keys += [("providers", name, "settings", "model") for name in providers or () if isinstance(providers, dict)]
    return Draft(
        settings=(*_values(said, keys, glance), *addresses("cline", said, glance)),
        servers=_servers("cline", ("cline:cli", "cline:extension"), machine, glance),
    )


def gemini(machine: Machine, glance: Glance, project: Path | None) -> Draft:
    """An administrator's file comes first, one with defaults last; variables come before files of variables."""
    folder = machine.administered(linux="gemini-cli", mac="GeminiCli", windows="ProgramData/gemini-cli")
    own = machine.nearest(".gemini/settings.json") if project is not None else ()
    user = source("gemini:user").files(machine)
    said = [
        *documents("managed", [folder / "settings.json"], glance),
        *documents("project", own, glance),
        *documents("user", user, glance),
        *documents("managed", [folder / "system-defaults.json"], glance),
    ]
    env = [*documents("project", machine.nearest(".gemini/.env") if project is not None else (), glance)]
    # Only the nearest of these files is read.
    env = env or list(documents("user", files_of("gemini", machine), glance))
    managed = Place(agent="gemini", scope="managed", source=source("gemini:user", [folder / "settings.json"]))
    return Draft(
        settings=(
            *_values(said, [("model", "name")], glance),
            *variables(machine, glance, ("GOOGLE_GEMINI_BASE_URL", "GEMINI_MODEL")),
            *addresses("gemini", env, glance),
            *_values(env, [("GEMINI_MODEL",)], glance),
        ),
        servers=(
            *servers_at(managed, machine, glance),
            *(_servers("gemini", ("gemini:project",), machine, glance) if project is not None else ()),
            *_servers("gemini", ("gemini:user",), machine, glance),
        ),
    )


def zed(machine: Machine, glance: Glance, project: Path | None) -> Draft:
    """Extensions bring servers too: Zed knows how to run them by their names."""
    own = machine.nearest(".zed/settings.json") if project is not None else ()
    said = [*documents("project", own, glance), *documents("user", files_of("zed", machine), glance)]
    keys: list[Key] = [("agent", "default_model", "provider"), ("agent", "default_model", "model")]
    return Draft(
        settings=(*_values(said, keys, glance), *addresses("zed", said, glance)),
        servers=_scoped("zed", machine, glance, project),
    )


def cursor(machine: Machine, glance: Glance, project: Path | None) -> Draft:
    """Its requests go through servers of its own, so no address matters."""
    return Draft(servers=_scoped("cursor", machine, glance, project))


def vscode(machine: Machine, glance: Glance, project: Path | None) -> Draft:
    """Copilot has a search of its own for Claude."""
    own = machine.nearest(".vscode/settings.json") if project is not None else ()
    user = [folder / "settings.json" for folder in user_folders(machine)]
    said = [*documents("project", own, glance), *documents("user", user, glance)]
    return Draft(settings=_values(said, _COPILOT_KEYS, glance), servers=_scoped("vscode", machine, glance, project))


def _scoped(agent: Agent, machine: Machine, glance: Glance, project: Path | None) -> tuple[ServerEntry, ...]:
    scopes = ("user",) if project is None else ("project", "user")
    return _servers(agent, [f"{agent}:{scope}" for scope in scopes], machine, glance)


def _servers(agent: Agent, sources: Iterable[str], machine: Machine, glance: Glance) -> tuple[ServerEntry, ...]:
    found: list[ServerEntry] = []
    for identity in sources:
        is_own = identity.endswith(":project")
        place = Place(
            agent=agent,
            scope="project" if is_own else "user",
            source=source(identity),
            folder=in_folder_above if is_own else lambda _file, _entry: "",
            without_launch="known" if agent == "zed" else "wrong",
        )
        found += servers_at(place, machine, glance)
    return tuple(found)


def _values(said: Iterable[Said], keys: Iterable[Key], glance: Glance) -> tuple[Setting, ...]:
    wanted = tuple(keys)
    return tuple(each for scope, document in said for each in settings_at(document, scope, wanted, glance))
