"""The programs that Pegboard can be put into: which of their files, and how an entry is written there.

Where files lie and how they are read is known to the importers; here is only what writing needs besides.
Above: `plan`. Below: the importers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from pegboard.config.importers import SOURCES
from pegboard.config.importers.found import Places, Source, is_there
from pegboard.config.importers.opencode import servers_table
from pegboard.config.installers.undo import Format
from pegboard.config.problems import nearest
from pegboard.errors import PegboardError

Scope = Literal["user", "project"]


class Launch(msgspec.Struct, frozen=True):
    """How a client is to start Pegboard."""

    command: tuple[str, ...]
    env: dict[str, str] = {}


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """One program."""

    id: str
    title: str
    user: tuple[str, ...]
    """The sources that are the user's, as the importers name them."""
    project: str = ""
    project_files: tuple[str, ...] = ()
    """Where a project's settings may lie in its folder; the last is made when none is there."""
    entry: Callable[[Launch], dict[str, Any]]
    table: Callable[[Any], tuple[str, ...]]
    is_merged: bool = False
    """The program reads all its files as one, so Pegboard is entered in one of them only."""
    allowed: tuple[str, ...] = ()
    """Keys that lead to a list of the only servers in use, where the program knows one."""
    advice: str = ""
    """What the person has to do for the change to count."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a client."""

    client: Client
    scope: Scope
    file: Path
    source: Source
    enters: bool = True
    """Whether Pegboard is entered here; otherwise servers only leave."""

    @property
    def format(self) -> Format:
        """How the file is written."""
        return "toml" if self.file.suffix == ".toml" else "json"


def _plain(launch: Launch) -> dict[str, Any]:
    command, *args = launch.command
    return {"command": command, "args": args, **({"env": launch.env} if launch.env else {})}


def _typed(launch: Launch) -> dict[str, Any]:
    return {"type": "stdio", **_plain(launch)}


def _zed(launch: Launch) -> dict[str, Any]:
    # Versions of 2025 took an entry without a source for one that an extension brings.
    return {"source": "custom", **_plain(launch)}


def _opencode(launch: Launch) -> dict[str, Any]:
    environment = {"environment": launch.env} if launch.env else {}
    return {"type": "local", "command": list(launch.command), "enabled": True, **environment}


def _at(*path: str) -> Callable[[Any], tuple[str, ...]]:
    return lambda _document: path


_RESTART = "Restart {title} for the change to count."
_MCP_SERVERS = _at("mcpServers")

CLIENTS: tuple[Client, ...] = (
    Client(
        id="claude-code",
        title="Claude Code",
        user=("claude-code:user",),
        project="claude-code:project",
        project_files=(".mcp.json",),
        entry=_typed,
        table=_MCP_SERVERS,
        advice="Claude Code writes its settings while it runs: start new sessions, and check with `pegboard install`.",
    ),
    Client(
        id="claude-desktop",
        title="Claude Desktop",
        user=("claude-desktop",),
        entry=_plain,
        table=_MCP_SERVERS,
        advice="Quit Claude Desktop and start it again for the change to count.",
    ),
    Client(
        id="cursor",
        title="Cursor",
        user=("cursor:user",),
        project="cursor:project",
        project_files=(".cursor/mcp.json",),
        entry=_plain,
        table=_MCP_SERVERS,
        advice=_RESTART,
    ),
    Client(
        id="vscode",
        title="VS Code",
        user=("vscode:user",),
        project="vscode:project",
        project_files=(".vscode/mcp.json",),
        entry=_typed,
        table=_at("servers"),
        advice=_RESTART,
    ),
    Client(
        id="cline",
        title="Cline",
        user=("cline:cli", "cline:extension"),
        entry=_plain,
        table=_MCP_SERVERS,
        advice=_RESTART,
    ),
    Client(
        id="codex",
        title="Codex",
        user=("codex:user",),
        project="codex:project",
        project_files=(".codex/config.toml",),
        entry=_plain,
        table=_at("mcp_servers"),
        advice="Start a new Codex session for the change to count.",
    ),
    Client(
        id="gemini",
        title="Gemini CLI",
        user=("gemini:user",),
        project="gemini:project",
        project_files=(".gemini/settings.json",),
        entry=_plain,
        table=_MCP_SERVERS,
        allowed=("mcp", "allowed"),
        advice=_RESTART,
    ),
    Client(
        id="opencode",
        title="opencode",
        user=("opencode:user",),
        project="opencode:project",
        project_files=(".opencode/opencode.jsonc", ".opencode/opencode.json", "opencode.jsonc", "opencode.json"),
        entry=_opencode,
        table=servers_table,
        is_merged=True,
        advice=_RESTART,
    ),
    Client(id="windsurf", title="Windsurf", user=("windsurf",), entry=_plain, table=_MCP_SERVERS, advice=_RESTART),
    Client(
        id="zed",
        title="Zed",
        user=("zed:user",),
        project="zed:project",
        project_files=(".zed/settings.json",),
        entry=_zed,
        table=_at("context_servers"),
    ),
)


def client_named(name: str) -> Client:
    """The client of this id."""
    for client in CLIENTS:
        if client.id == name:
            return client
    known = [client.id for client in CLIENTS]
    near = nearest(name, known)
    hint = f"Did you mean {near}?" if near else f"There are {', '.join(known)}."
    raise PegboardError(f"There is no client named {name!r}.", hint=hint)


def sites(client: Client, scope: Scope, places: Places) -> tuple[Site, ...]:
    """Every file of the client that is there; when none is, the one that the client would look for first."""
    candidates = _user_files(client, places) if scope == "user" else _project_files(client, places)
    there = [(source, path) for source, path in candidates if is_there(path)]
    chosen = there or [_default(candidates, scope)]
    return tuple(
        Site(
            client=client,
            scope=scope,
            file=path,
            source=msgspec.structs.replace(source, files=lambda _places, path=path: (path,)),
            enters=number == 0 or not client.is_merged,
        )
        for number, (source, path) in enumerate(chosen)
    )


def _default(candidates: list[tuple[Source, Path]], scope: Scope) -> tuple[Source, Path]:
    """Of several editions the one that is installed; in a project the plain name."""
    if scope == "project":
        return candidates[-1]
    return next((each for each in candidates if is_there(each[1].parent)), candidates[0])


def _user_files(client: Client, places: Places) -> list[tuple[Source, Path]]:
    sources = [source for source in SOURCES if source.id in client.user]
    return [(source, path) for source in sources for path in dict.fromkeys(source.files(places))]


def _project_files(client: Client, places: Places) -> list[tuple[Source, Path]]:
    if not client.project:
        raise PegboardError(f"{client.title} has no settings of its own for a project.", hint="Leave out --scope.")
    if places.cwd == places.home:
        raise PegboardError("The home folder is no project.", hint="Say which folder is with --project DIR.")
    source = next(source for source in SOURCES if source.id == client.project)
    return [(source, places.cwd / name) for name in client.project_files]
