"""Claude Code: servers of the user, of a project (`.mcp.json`), and of the user in one project ("local").

User and local servers lie in one file, which Claude Code rewrites while it runs; it is only read here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from pegboard.config.importers.fields import MILLISECONDS, Fields, member
from pegboard.config.importers.found import Entry, Places, Read, Source
from pegboard.config.importers.launch import convert_all, launch
from pegboard.config.importers.references import shell_like
from pegboard.config.model import ServerConfig


def _state_file(places: Places) -> Path:
    return places.from_variable("CLAUDE_CONFIG_DIR", places.home) / ".claude.json"


def _project_files(places: Places) -> tuple[Path, ...]:
    return tuple(folder / ".mcp.json" for folder in places.upward())


def _convert(fields: Fields) -> ServerConfig:
    config = launch(fields)
    return msgspec.structs.replace(
        config,
        call_timeout=fields.seconds("timeout", per_second=MILLISECONDS),
        lazy=not fields.flag("alwaysLoad"),
    )


def _user_entries(document: Any, _path: Path, _places: Places) -> tuple[Entry, ...]:
    return convert_all(member(document, "mcpServers"), ("mcpServers",), _convert, shell_like)


def _project_entries(document: Any, path: Path, _places: Places) -> tuple[Entry, ...]:
    return convert_all(member(document, "mcpServers"), ("mcpServers",), _convert, shell_like, path.parent)


def _local_entries(document: Any, _path: Path, places: Places) -> tuple[Entry, ...]:
    nearest_first: dict[str, Entry] = {}
    for name, folder, project in _projects(document, places):
        where = ("projects", name, "mcpServers")
        for entry in convert_all(member(project, "mcpServers"), where, _convert, shell_like, folder):
            nearest_first.setdefault(entry.name, entry)
    return tuple(nearest_first.values())


def _projects(document: Any, places: Places) -> Iterator[tuple[str, Path, Any]]:
    """What the state file says of the working folder and the folders above it."""
    projects = member(document, "projects")
    for folder in places.upward():
        # Claude Code writes forward slashes on Windows too.
        for name in dict.fromkeys((str(folder), folder.as_posix())):
            if (project := member(projects, name)) is not None:
                yield name, folder, project


def _switched_off(places: Places, read: Read) -> frozenset[str]:
    names: set[str] = set()
    for _, _, project in _projects(read(_state_file(places)), places):
        names.update(_names(project, "disabledMcpServers"))
    return frozenset(names)


def _rejected(places: Places, read: Read) -> frozenset[str]:
    """Servers of `.mcp.json` that were rejected, in whichever settings file that was written down."""
    names = set(_switched_off(places, read))
    for _, _, project in _projects(read(_state_file(places)), places):
        names.update(_names(project, "disabledMcpjsonServers"))
    for settings in _settings_files(places):
        names.update(_names(read(settings), "disabledMcpjsonServers"))
    return frozenset(names)


def _settings_files(places: Places) -> Iterator[Path]:
    yield places.from_variable("CLAUDE_CONFIG_DIR", places.home / ".claude") / "settings.json"
    for folder in places.upward():
        yield folder / ".claude" / "settings.json"
        yield folder / ".claude" / "settings.local.json"


def _names(value: Any, key: str) -> list[str]:
    listed = member(value, key)
    return [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []


# Claude Code itself prefers local to project to user.
SOURCES = (
    Source(
        id="claude-code:local",
        title="Claude Code, yours in this project",
        files=lambda places: (_state_file(places),),
        entries=_local_entries,
        switched_off=_switched_off,
    ),
    Source(
        id="claude-code:project",
        title="Claude Code, this project",
        files=_project_files,
        entries=_project_entries,
        switched_off=_rejected,
    ),
    Source(
        id="claude-code:user",
        title="Claude Code, all your projects",
        files=lambda places: (_state_file(places),),
        entries=_user_entries,
        switched_off=_switched_off,
    ),
)
