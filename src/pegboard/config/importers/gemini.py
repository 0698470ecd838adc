"""Gemini CLI: `mcpServers` in the user's and the project's `settings.json`, with switches under `mcp`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pegboard.config.importers.fields import MILLISECONDS, Fields, member
from pegboard.config.importers.found import Entry, Places, Read, Source
from pegboard.config.importers.launch import convert_all, launch, remote, with_tool_filter
from pegboard.config.importers.references import dollar
from pegboard.config.model import ServerConfig


def _user_file(places: Places) -> Path:
    return places.from_variable("GEMINI_CLI_HOME", places.home) / ".gemini" / "settings.json"


def _project_files(places: Places) -> tuple[Path, ...]:
    return places.nearest(".gemini/settings.json")


def _convert(fields: Fields) -> ServerConfig:
    streamable = fields.text("httpUrl")
    config = remote(fields, streamable, "http") if streamable else launch(fields)
    config = msgspec.structs.replace(config, call_timeout=fields.seconds("timeout", per_second=MILLISECONDS))
    return with_tool_filter(config, fields.texts("includeTools"), fields.texts("excludeTools"))


def _user_entries(document: Any, _path: Path, _places: Places) -> tuple[Entry, ...]:
    return convert_all(member(document, "mcpServers"), ("mcpServers",), _convert, dollar)


def _project_entries(document: Any, path: Path, _places: Places) -> tuple[Entry, ...]:
    folder = path.parent.parent
    return convert_all(member(document, "mcpServers"), ("mcpServers",), _convert, dollar, folder)


def _switched_off(places: Places, read: Read) -> frozenset[str]:
    """Excluded by name, or left out of a list of the only servers allowed."""
    names: set[str] = set()
    for path in (_user_file(places), *_project_files(places)):
        document = read(path)
        switches = member(document, "mcp")
        names.update(_listed(switches, "excluded"))
        if allowed := _listed(switches, "allowed"):
            names.update(set(member(document, "mcpServers") or ()) - set(allowed))
    return frozenset(names)


def _listed(value: Any, key: str) -> list[str]:
    names = member(value, key)
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


SOURCES = (
    Source(
        id="gemini:project",
        title="Gemini CLI, this project",
        files=_project_files,
        entries=_project_entries,
        switched_off=_switched_off,
    ),
    Source(
        id="gemini:user",
        title="Gemini CLI, all your projects",
        files=lambda places: (_user_file(places),),
        entries=_user_entries,
        switched_off=_switched_off,
    ),
)
