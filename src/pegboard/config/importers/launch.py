"""Turns the fields that most programs share into a `ServerConfig`, and tables of entries into `Entry` values.

Above: the program modules, each of which says only what its program does differently. Below: `fields`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import msgspec

from pegboard.config.expand import escape
from pegboard.config.importers.fields import Fields, Translate, WrongShape, kind_of
from pegboard.config.importers.found import Entry
from pegboard.config.model import ServerConfig, Transport

Convert = Callable[[Fields], ServerConfig]

_TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
_ADDRESS = re.compile(r"https?://|\$\{", re.IGNORECASE)
_SSE_PATH = re.compile(r"/sse/?(?:[?#].*)?$")
# A package name where a runner expects one; a folder that happens to be called pegboard is none.
_RUNNER = re.compile(r"uvx?|pipx|python[\d.]*|py")
_PEGBOARD = re.compile(r"pegboard(?:[\[=@<>~!].*)?")
_SLASH = re.compile(r"[/\\]")
_GLOB_MARKS = re.compile(r"[*?\[]")


def convert_all(
    servers: Any, where: tuple[str, ...], convert: Convert, translate: Translate, folder: Path | None = None
) -> tuple[Entry, ...]:
    """Every entry of a table of servers; one that is wrong says so and stops no other."""
    if servers is None:
        return ()
    if not isinstance(servers, dict):
        raise WrongShape(f"`{'.'.join(where)}` should be a table of servers, but is {kind_of(servers)}.")
    return tuple(_convert_one(name, raw, (*where, name), convert, translate, folder) for name, raw in servers.items())


def _convert_one(
    name: str, raw: Any, where: tuple[str, ...], convert: Convert, translate: Translate, folder: Path | None
) -> Entry:
    if not name.strip():
        return Entry(name="(no name)", problem="It has no name.", where=where)
    try:
        fields = Fields(raw, translate, folder)
        config = _anchored(convert(fields), fields)
        _refuse_pegboard(config)
    except WrongShape as error:
        return Entry(name=name, problem=str(error), where=where)
    leftover = fields.leftover()
    if leftover:
        fields.notes.append(f"Not carried over: {', '.join(leftover)}.")
    return Entry(name=name, config=config, notes=tuple(dict.fromkeys(fields.notes)), where=where)


def launch(fields: Fields, *, url_keys: Iterable[str] = ("url",), untyped_url: Transport | None = None) -> ServerConfig:
    """How the server is reached: `command`, `args`, `env`, `cwd`, or an address and its `headers`."""
    kind = fields.text("type")
    transport = None if kind is None else _TRANSPORTS.get(kind.lower())
    if kind is not None and transport is None:
        raise WrongShape(f"It speaks {kind!r}, which Pegboard does not.")
    if fields.text("command") and transport in {None, "stdio"}:
        return stdio(fields)
    for key in url_keys:
        if url := fields.text(key):
            return remote(fields, url, transport or untyped_url)
    raise WrongShape("It has neither a command nor an address.")


def stdio(fields: Fields) -> ServerConfig:
    """A server that is started here."""
    return ServerConfig(
        command=fields.text("command"),
        args=fields.texts("args"),
        env=fields.pairs("env"),
        cwd=fields.text("cwd"),
    )


def remote(fields: Fields, url: str, transport: Transport | None) -> ServerConfig:
    """A server behind an address; without a word on its transport, the address is looked at."""
    if not _ADDRESS.match(url):
        raise WrongShape(f"{url!r} is not an http or https address.")
    if transport is None and _SSE_PATH.search(url):
        transport = "sse"
    # Streamable HTTP is what an address means when nothing is said.
    return ServerConfig(url=url, headers=fields.pairs("headers"), transport="sse" if transport == "sse" else None)


def switched(fields: Fields) -> bool:
    """Whether the entry is in use: programs say `enabled` or `disabled`."""
    return fields.flag("enabled") is not False and not fields.flag("disabled")


def note_env_file(fields: Fields) -> None:
    """A file of variables is not read here: copying secrets that nobody sees is no import."""
    if path := fields.text("envFile"):
        fields.notes.append(f"Variables from {path} are not carried over; write those it needs into `env`.")


def with_tool_filter(config: ServerConfig, only: tuple[str, ...], never: tuple[str, ...]) -> ServerConfig:
    """Adds allow and deny lists of tool names. Elsewhere deny beats allow; in Pegboard include beats exclude."""
    kept = tuple(name for name in only if name not in never)
    if only and not kept:
        return msgspec.structs.replace(config, exclude=("*",))
    if only:
        return msgspec.structs.replace(config, include=tuple(map(_as_glob, kept)))
    return msgspec.structs.replace(config, exclude=tuple(map(_as_glob, never)))


def _as_glob(name: str) -> str:
    return _GLOB_MARKS.sub(lambda mark: f"[{mark[0]}]", name)


def _anchored(config: ServerConfig, fields: Fields) -> ServerConfig:
    """Paths that were relative to the project become independent of where Pegboard runs and where it is configured."""
    if config.command is None:
        return config
    relative_command = not _is_absolute(config.command) and bool(_SLASH.search(config.command))
    relative_cwd = config.cwd is not None and not _is_absolute(config.cwd)
    if fields.folder is None:
        if relative_command or relative_cwd:
            fields.notes.append("Its relative command or `cwd` now starts at the folder of the file it is written to.")
        return config
    project = escape(str(fields.folder))
    if relative_command:
        config = msgspec.structs.replace(config, command=_joined(project, config.command or ""))
    if relative_cwd:
        return msgspec.structs.replace(config, cwd=_joined(project, config.cwd or ""))
    if config.cwd is None and any(map(_is_relative, config.args)):
        fields.notes.append("It has relative paths, so `cwd` is set to its project.")
        return msgspec.structs.replace(config, cwd=project)
    return config


def _joined(folder: str, path: str) -> str:
    return os.path.normpath(os.path.join(folder, path))  # noqa: PTH118 - text, in which `..` must be resolved


def _is_absolute(path: str) -> bool:
    return path.startswith(("~", "$")) or PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


def _is_relative(word: str) -> bool:
    return word in {".", ".."} or word.startswith(("./", "../", ".\\", "..\\"))


def _refuse_pegboard(config: ServerConfig) -> None:
    """Pegboard behind Pegboard would call itself for ever."""
    program = PureWindowsPath(config.command or "").name.lower().removesuffix(".exe")
    if program == "pegboard" or (_RUNNER.fullmatch(program) and any(map(_PEGBOARD.fullmatch, config.args))):
        raise WrongShape("It is Pegboard itself.")
