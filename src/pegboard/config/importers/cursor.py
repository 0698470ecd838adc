"""Cursor: `.cursor/mcp.json` in the home folder and in the project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pegboard.config.importers.fields import Fields, member
from pegboard.config.importers.found import Entry, Places, Source
from pegboard.config.importers.launch import convert_all, launch, note_env_file
from pegboard.config.importers.references import editor
from pegboard.config.model import ServerConfig


def _convert(fields: Fields) -> ServerConfig:
    note_env_file(fields)
    return launch(fields)


def _user_entries(document: Any, _path: Path, places: Places) -> tuple[Entry, ...]:
    return _servers(document, places, None)


def _project_entries(document: Any, path: Path, places: Places) -> tuple[Entry, ...]:
    return _servers(document, places, path.parent.parent)


def _servers(document: Any, places: Places, folder: Path | None) -> tuple[Entry, ...]:
    translate = editor("Cursor", places, folder)
    return convert_all(member(document, "mcpServers"), ("mcpServers",), _convert, translate, folder)


SOURCES = (
    Source(
        id="cursor:project",
        title="Cursor, this project",
        files=lambda places: places.nearest(".cursor/mcp.json"),
        entries=_project_entries,
    ),
    Source(
        id="cursor:user",
        title="Cursor, all your projects",
        files=lambda places: (places.home / ".cursor" / "mcp.json",),
        entries=_user_entries,
    ),
)
