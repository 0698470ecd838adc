"""Windsurf: one `mcp_config.json`, which calls an address `serverUrl`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pegboard.config.importers.fields import Fields, member
from pegboard.config.importers.found import Entry, Places, Source
from pegboard.config.importers.launch import convert_all, launch, switched, with_tool_filter
from pegboard.config.importers.references import editor
from pegboard.config.model import ServerConfig


def _files(places: Places) -> tuple[Path, ...]:
    root = places.home / ".codeium"
    return tuple(root / folder / "mcp_config.json" for folder in ("windsurf", "windsurf-next", ""))


def _convert(fields: Fields) -> ServerConfig:
    config = launch(fields, url_keys=("serverUrl", "url"))
    config = msgspec.structs.replace(config, enabled=switched(fields))
    return with_tool_filter(config, (), fields.texts("disabledTools"))


def _entries(document: Any, _path: Path, places: Places) -> tuple[Entry, ...]:
    translate = editor("Windsurf", places, None)
    return convert_all(member(document, "mcpServers"), ("mcpServers",), _convert, translate)


SOURCES = (Source(id="windsurf", title="Windsurf", files=_files, entries=_entries),)
