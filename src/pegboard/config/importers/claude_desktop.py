"""Claude Desktop: one `claude_desktop_config.json`, in which nothing is expanded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pegboard.config.importers.fields import member
from pegboard.config.importers.found import Entry, Places, Source, matching
from pegboard.config.importers.launch import convert_all, launch
from pegboard.config.importers.references import literal

_FILE = "claude_desktop_config.json"


def _files(places: Places) -> tuple[Path, ...]:
    usual = places.app_data / "Claude" / _FILE
    if places.platform != "win32":
        return (usual,)
    # The packaged app reads a copy of its own under a folder whose name ends in the publisher's hash.
    packages = places.from_variable("LOCALAPPDATA", places.home / "AppData" / "Local") / "Packages"
    packaged = matching(packages, f"Claude_*/LocalCache/Roaming/Claude/{_FILE}")
    return (*packaged, usual)


def _entries(document: Any, _path: Path, _places: Places) -> tuple[Entry, ...]:
    return convert_all(member(document, "mcpServers"), ("mcpServers",), launch, literal)


SOURCES = (Source(id="claude-desktop", title="Claude Desktop", files=_files, entries=_entries),)
