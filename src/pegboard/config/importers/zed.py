"""Zed: `context_servers` in the user's and the project's settings, which are JSON with comments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pegboard.config.importers.fields import Fields, WrongShape, member
from pegboard.config.importers.found import Entry, Places, Source
from pegboard.config.importers.launch import convert_all, launch, switched
from pegboard.config.importers.references import literal
from pegboard.config.model import ServerConfig


def _user_files(places: Places) -> tuple[Path, ...]:
    if places.platform == "win32":
        return (places.app_data / "Zed" / "settings.json",)
    # On macOS too Zed keeps its settings under ~/.config.
    return (places.xdg_config / "zed" / "settings.json",)


def _convert(fields: Fields) -> ServerConfig:
    source = fields.text("source")
    command = fields.raw("command")
    if source == "extension" or (command is None and "url" not in fields):
        raise WrongShape("A Zed extension brings it and knows its command; Zed's settings do not.")
    config = _nested(fields.inner(command)) if isinstance(command, dict) else launch(fields)
    return msgspec.structs.replace(config, enabled=switched(fields), call_timeout=fields.seconds("timeout"))


def _nested(command: Fields) -> ServerConfig:
    """The form of 2024 and early 2025: `command` is a table with `path`, `args` and `env`."""
    path = command.text("path")
    if not path:
        raise WrongShape("`command.path` is missing.")
    return ServerConfig(command=path, args=command.texts("args"), env=command.pairs("env"))


def _user_entries(document: Any, _path: Path, _places: Places) -> tuple[Entry, ...]:
    return convert_all(member(document, "context_servers"), ("context_servers",), _convert, literal)


def _project_entries(document: Any, path: Path, _places: Places) -> tuple[Entry, ...]:
    folder = path.parent.parent
    return convert_all(member(document, "context_servers"), ("context_servers",), _convert, literal, folder)


SOURCES = (
    Source(
        id="zed:project",
        title="Zed, this project",
        files=lambda places: places.nearest(".zed/settings.json"),
        entries=_project_entries,
    ),
    Source(id="zed:user", title="Zed, all your projects", files=_user_files, entries=_user_entries),
)
