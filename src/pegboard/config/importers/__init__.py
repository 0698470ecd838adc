"""Reads the MCP servers that other programs already have configured. Nothing is started, nothing is written.

One module per program family; this is the list of them all, in the order in which they are shown and in which the
first to name a server gives it its plain key. Above: `pegboard import`. Below: the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pegboard.config.importers import (
    claude_code,
    claude_desktop,
    cline,
    codex,
    cursor,
    gemini,
    opencode,
    vscode,
    windsurf,
    zed,
)
from pegboard.config.importers.found import Found, Places, Source
from pegboard.config.importers.gather import gather

__all__ = ["SOURCES", "Found", "find"]

SOURCES: tuple[Source, ...] = (
    *claude_code.SOURCES,
    *claude_desktop.SOURCES,
    *cursor.SOURCES,
    *vscode.SOURCES,
    *cline.SOURCES,
    *codex.SOURCES,
    *gemini.SOURCES,
    *opencode.SOURCES,
    *windsurf.SOURCES,
    *zed.SOURCES,
)


def find(home: Path, cwd: Path, environ: Mapping[str, str], platform: str) -> tuple[Found, ...]:
    """Every server that some program on this machine has, each launch once; last, the files that are broken."""
    return gather(SOURCES, Places(home=home, cwd=cwd, environ=environ, platform=platform))
