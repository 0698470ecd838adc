"""Where agents keep their MCP servers, and how an entry looks there."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.homes.builder import HomeBuilder, Scope

_JSON_FILES = {
    "opencode": (".config/opencode/opencode.json", "mcp"),
    "kilo": (".config/kilo/kilo.json", "mcp"),
    "cline": (".cline/data/settings/cline_mcp_settings.json", "mcpServers"),
    "gemini": (".gemini/settings.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": (".config/Code/User/mcp.json", "servers"),
    "zed": (".config/zed/settings.json", "context_servers"),
}


def merged(before: Any, value: Any) -> Any:
    """Objects are merged, lists are joined, the rest is replaced."""
    if isinstance(before, dict) and isinstance(value, dict):
        return {**before, **{key: merged(before.get(key), each) for key, each in value.items()}}
    if isinstance(before, list) and isinstance(value, list):
        return [*before, *(each for each in value if each not in before)]
    return value


def add_server(
    home: HomeBuilder, name: str, *, agent: str, scope: Scope, always_load: bool | None, command: str, url: str
) -> HomeBuilder:
    """Adds an entry as that agent wants it."""
    if agent == "claude-code":
        return _claude_server(home, name, scope, always_load, command, url)
    if agent == "codex":
        return _codex_server(home, name, command, url)
    file, key = _JSON_FILES[agent]
    if agent in ("opencode", "kilo"):
        entry: dict[str, Any] = {"type": "remote", "url": url} if url else {"type": "local", "command": [command]}
    else:
        entry = {"url": url} if url else {"command": command, "args": []}
    return home.json(file, {key: {name: entry}})


def _claude_server(
    home: HomeBuilder, name: str, scope: Scope, always_load: bool | None, command: str, url: str
) -> HomeBuilder:
    entry: dict[str, Any] = {"type": "http", "url": url} if url else {"command": command, "args": []}
    entry |= {} if always_load is None else {"alwaysLoad": always_load}
    servers = {"mcpServers": {name: entry}}
    if scope == "project":
        # Claude Code asks before it starts a project's servers, and keeps the answer.
        home.json(_state(home), {"projects": {str(home.project): {"enabledMcpjsonServers": [name]}}})
        return home.json(home.project / ".mcp.json", servers)
    if scope == "local":
        return home.json(_state(home), {"projects": {str(home.project): servers}})
    return home.json(_state(home), servers)


def _state(home: HomeBuilder) -> Path:
    return Path(home.environ.get("CLAUDE_CONFIG_DIR", home.folder)) / ".claude.json"


def _codex_server(home: HomeBuilder, name: str, command: str, url: str) -> HomeBuilder:
    file = home.codex_folder / "config.toml"
    before = file.read_text("utf-8") if file.exists() else ""
    line = f'url = "{url}"' if url else f'command = "{command}"'
    text = f"{before}\n[mcp_servers.{name}]\n{line}\n".lstrip("\n")
    tomllib.loads(text)
    return home.file(file, text)
