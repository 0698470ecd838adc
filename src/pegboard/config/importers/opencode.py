"""opencode: `mcp` in `opencode.json` or `opencode.jsonc`; its second version moved the servers to `mcp.servers`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pegboard.config.importers.fields import MILLISECONDS, Fields, WrongShape, kind_of, member
from pegboard.config.importers.found import Entry, Places, Source
from pegboard.config.importers.launch import convert_all, remote, switched
from pegboard.config.importers.references import opencode
from pegboard.config.model import ServerConfig

_NAMES = ("opencode.jsonc", "opencode.json")
_V2_KEYS = frozenset({"servers", "timeout"})


def _user_files(places: Places) -> tuple[Path, ...]:
    folder = places.xdg_config / "opencode"
    named = places.environ.get("OPENCODE_CONFIG", "").strip()
    usual = tuple(folder / name for name in (*_NAMES, "config.json"))
    return (places.cwd / named, *usual) if named else usual


def _project_files(places: Places) -> tuple[Path, ...]:
    folders = (folder for project in places.upward() for folder in (project / ".opencode", project))
    return tuple(folder / name for folder in folders for name in _NAMES)


def _convert(fields: Fields) -> ServerConfig:
    kind = fields.text("type")
    url = fields.text("url")
    if kind == "remote" or (kind is None and url):
        config = remote(fields, url or "", None)
    elif "command" in fields:
        config = _local(fields)
    else:
        raise WrongShape("It only switches a server on or off that is defined elsewhere.")
    start, call = _timeouts(fields)
    return msgspec.structs.replace(config, enabled=switched(fields), start_timeout=start, call_timeout=call)


def _local(fields: Fields) -> ServerConfig:
    argv = fields.texts("command")
    if not argv:
        raise WrongShape("`command` is empty.")
    return ServerConfig(command=argv[0], args=argv[1:], env=fields.pairs("environment"), cwd=fields.text("cwd"))


def _timeouts(fields: Fields) -> tuple[float | None, float | None]:
    """One number is how long listing tools may take; newer files say `startup` and `request`."""
    value = fields.raw("timeout")
    if not isinstance(value, dict):
        return fields.seconds("timeout", per_second=MILLISECONDS), None
    split = fields.inner(value)
    return (
        split.seconds("startup", per_second=MILLISECONDS),
        split.seconds("request", per_second=MILLISECONDS),
    )


def _user_entries(document: Any, _path: Path, _places: Places) -> tuple[Entry, ...]:
    return _servers(document, None)


def _project_entries(document: Any, path: Path, _places: Places) -> tuple[Entry, ...]:
    folder = path.parent.parent if path.parent.name == ".opencode" else path.parent
    return _servers(document, folder)


def _servers(document: Any, folder: Path | None) -> tuple[Entry, ...]:
    table = member(document, "mcp")
    if table is not None and not isinstance(table, dict):
        raise WrongShape(f"`mcp` should be a table of servers, but is {kind_of(table)}.")
    where = servers_table(document)
    return convert_all(table if len(where) == 1 else member(table, "servers"), where, _convert, opencode, folder)


def servers_table(document: Any) -> tuple[str, ...]:
    """The keys that lead to the servers."""
    return ("mcp", "servers") if _is_second_version(member(document, "mcp")) else ("mcp",)


def _is_second_version(table: Any) -> bool:
    """A server may itself be called `servers`; then it says how it is reached."""
    servers = member(table, "servers")
    return (
        isinstance(servers, dict)
        and table.keys() <= _V2_KEYS
        and not {"type", "command", "url"} & {key for key, value in servers.items() if not isinstance(value, dict)}
    )


SOURCES = (
    Source(id="opencode:project", title="opencode, this project", files=_project_files, entries=_project_entries),
    Source(id="opencode:user", title="opencode, all your projects", files=_user_files, entries=_user_entries),
)
