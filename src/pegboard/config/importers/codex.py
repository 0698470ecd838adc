"""Codex: TOML, `[mcp_servers.<name>]` in the user's and the project's `config.toml`; nothing is expanded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pegboard.config.importers.fields import MILLISECONDS, Fields, WrongShape, kind_of, member
from pegboard.config.importers.found import Entry, Places, Source
from pegboard.config.importers.launch import convert_all, launch, switched, with_tool_filter
from pegboard.config.importers.references import literal, reference
from pegboard.config.model import ServerConfig
from pegboard.config.write import parse_toml


def _convert(fields: Fields) -> ServerConfig:
    config = launch(fields)
    if config.url:
        config = msgspec.structs.replace(config, headers=_headers(fields))
    forwarded = _forwarded(fields)
    config = msgspec.structs.replace(
        config,
        enabled=switched(fields),
        inherit_env=forwarded or None,
        start_timeout=fields.seconds("startup_timeout_sec")
        or fields.seconds("startup_timeout_ms", per_second=MILLISECONDS),
        call_timeout=fields.seconds("tool_timeout_sec"),
    )
    return with_tool_filter(config, fields.texts("enabled_tools"), fields.texts("disabled_tools"))


def _headers(fields: Fields) -> dict[str, str]:
    headers = fields.pairs("http_headers")
    headers |= {name: reference(variable) for name, variable in fields.pairs("env_http_headers").items()}
    if variable := fields.text("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer {reference(variable)}"
    return headers


def _forwarded(fields: Fields) -> tuple[str, ...]:
    """Variables that Codex lets through to the server: plain names, or tables that say where they come from."""
    listed = fields.raw("env_vars") or []
    if not isinstance(listed, list):
        raise WrongShape(f"`env_vars` should be a list, but is {kind_of(listed)}.")
    names = [item if isinstance(item, str) else member(item, "name") for item in listed]
    return tuple(name for name in names if isinstance(name, str))


def _user_entries(document: Any, _path: Path, _places: Places) -> tuple[Entry, ...]:
    return convert_all(member(document, "mcp_servers"), ("mcp_servers",), _convert, literal)


def _project_entries(document: Any, path: Path, _places: Places) -> tuple[Entry, ...]:
    folder = path.parent.parent
    return convert_all(member(document, "mcp_servers"), ("mcp_servers",), _convert, literal, folder)


SOURCES = (
    Source(
        id="codex:project",
        title="Codex, this project",
        files=lambda places: places.nearest(".codex/config.toml"),
        entries=_project_entries,
        load=parse_toml,
    ),
    Source(
        id="codex:user",
        title="Codex, all your projects",
        files=lambda places: (places.from_variable("CODEX_HOME", places.home / ".codex") / "config.toml",),
        entries=_user_entries,
        load=parse_toml,
    ),
)
