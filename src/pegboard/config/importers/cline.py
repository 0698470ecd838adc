"""Cline: the file its CLI and newer extensions share, and the extension's own storage inside VS Code and kin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pegboard.config.importers.fields import MILLISECONDS, Fields, member
from pegboard.config.importers.found import Entry, Places, Source
from pegboard.config.importers.launch import convert_all, launch, switched
from pegboard.config.importers.references import editor
from pegboard.config.importers.vscode import user_folders
from pegboard.config.model import ServerConfig

_FILE = "cline_mcp_settings.json"
_HOSTS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")


def _shared_file(places: Places) -> tuple[Path, ...]:
    root = places.from_variable("CLINE_DIR", places.home / ".cline")
    data = places.from_variable("CLINE_DATA_DIR", root / "data")
    return (places.from_variable("CLINE_MCP_SETTINGS_PATH", data / "settings" / _FILE),)


def _extension_files(places: Places) -> tuple[Path, ...]:
    storage = Path("globalStorage") / "saoudrizwan.claude-dev" / "settings" / _FILE
    return tuple(folder / storage for folder in user_folders(places, _HOSTS))


def _convert(fields: Fields) -> ServerConfig:
    nested = fields.raw("transport")
    # Newer versions keep how to reach the server in a table of its own.
    how = fields.inner(nested) if nested is not None else fields
    legacy = how.text("transportType")
    # Without a type an address means SSE, so that old settings keep working.
    config = launch(how, untyped_url="http" if legacy == "http" else "sse")
    return msgspec.structs.replace(
        config,
        enabled=switched(fields),
        call_timeout=fields.seconds("timeout"),
        start_timeout=fields.seconds("initializeTimeoutMs", per_second=MILLISECONDS),
    )


def _entries(document: Any, _path: Path, places: Places) -> tuple[Entry, ...]:
    translate = editor("Cline", places, None)
    return convert_all(member(document, "mcpServers"), ("mcpServers",), _convert, translate)


SOURCES = (
    Source(id="cline:cli", title="Cline", files=_shared_file, entries=_entries),
    Source(id="cline:extension", title="Cline's editor extension", files=_extension_files, entries=_entries),
)
