"""VS Code: `mcp.json` of the user's profiles and `.vscode/mcp.json`, whose table is called `servers`.

`inputs` are values that VS Code asks for and keeps; Pegboard asks nobody, so they become variables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pegboard.config.importers.fields import Fields, member
from pegboard.config.importers.found import Entry, Places, Source, matching
from pegboard.config.importers.launch import convert_all, launch, note_env_file
from pegboard.config.importers.references import editor
from pegboard.config.model import ServerConfig

_EDITIONS = ("Code", "Code - Insiders", "VSCodium")
_REMOTE_FOLDERS = (".vscode-server", ".vscode-server-insiders")


def user_folders(places: Places, editions: tuple[str, ...] = _EDITIONS) -> tuple[Path, ...]:
    """The `User` folder of every edition, and of the server that a remote window leaves on this machine."""
    local = tuple(places.app_data / edition / "User" for edition in editions)
    return local + tuple(places.home / name / "data" / "User" for name in _REMOTE_FOLDERS)


def _user_files(places: Places) -> tuple[Path, ...]:
    files: list[Path] = []
    for folder in user_folders(places):
        files += [folder / "mcp.json", *matching(folder, "profiles/*/mcp.json")]
    return tuple(files)


def _convert(fields: Fields) -> ServerConfig:
    note_env_file(fields)
    return launch(fields)


def _user_entries(document: Any, _path: Path, places: Places) -> tuple[Entry, ...]:
    return _servers(document, places, None)


def _project_entries(document: Any, path: Path, places: Places) -> tuple[Entry, ...]:
    return _servers(document, places, path.parent.parent)


def _servers(document: Any, places: Places, folder: Path | None) -> tuple[Entry, ...]:
    translate = editor("VS Code", places, folder, _inputs(document))
    return convert_all(member(document, "servers"), ("servers",), _convert, translate, folder)


def _inputs(document: Any) -> dict[str, Any]:
    listed = member(document, "inputs")
    definitions = listed if isinstance(listed, list) else []
    return {item["id"]: item for item in definitions if isinstance(member(item, "id"), str)}


SOURCES = (
    Source(
        id="vscode:project",
        title="VS Code, this project",
        files=lambda places: places.nearest(".vscode/mcp.json"),
        entries=_project_entries,
    ),
    Source(id="vscode:user", title="VS Code, all your projects", files=_user_files, entries=_user_entries),
)
