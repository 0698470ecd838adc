"""The gateways that are measured: how each is installed, told of the same servers, started, called and searched."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.line_client import WORD, own_environ
from bench.rivals.environment import BIN, ROOT, VENV, installed, versions

VENVS = ROOT / ".venv-gateways"
SERVER = Path(__file__).with_name("catalog_server.py")
PREPARE_S = 120.0
ECHO = {"text": WORD}

Call = tuple[str, dict[str, Any]]


class Servers(msgspec.Struct, frozen=True):
    """The servers of one run, and a folder for what is written about them."""

    folder: Path
    definitions: Mapping[str, Sequence[str]]
    """By the server's name, the files of what it lists beyond its own."""

    def commands(self, mark: str) -> dict[str, list[str]]:
        """By name, what starts each server; no two gateways of any run have the same."""
        start = [sys.executable, "-IS", str(SERVER), str(self.folder / mark)]
        return {name: [*start, *files] for name, files in self.definitions.items()}

    def place(self, name: str) -> Path:
        """A folder of its own for each gateway."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return folder


class Launch(msgspec.Struct, frozen=True):
    """What starts a gateway."""

    command: Sequence[str]
    environ: Mapping[str, str]
    cwd: Path


class Gateway(msgspec.Struct, frozen=True, kw_only=True):
    """One that stands between a client and the servers."""

    name: str
    launch: Callable[[Servers], Launch]
    call: Call
    """How `echo` of the first server is called, as a model would that saw the list."""
    search: Callable[[str], Call] | None = None
    discovery: str = ""
    """What stands in for a search where there is none."""
    warm: Sequence[Call] = ()
    """What must be called once before anything can be found."""
    needs: tuple[str, ...] = ()
    venv: Path = VENV

    def missing(self) -> str:
        """Why it cannot be had here, or nothing."""
        return installed(self.needs, self.venv) if self.needs else ""

    def label(self) -> str:
        """Its name with its version."""
        return f"{self.name} {versions(self.needs, self.venv)}" if self.needs else self.name


def _config(servers: Servers, folder: Path) -> Path:
    """The servers as most are told of them."""
    path = folder / "servers.json"
    commands = servers.commands(folder.name)
    entries = {name: {"command": command[0], "args": command[1:]} for name, command in commands.items()}
    path.write_text(json.dumps({"mcpServers": entries}))
    return path


def _apart(folder: Path) -> Mapping[str, str]:
    """An environment whose home is the folder: nobody's own settings are read or written."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environ = own_environ(HOME=str(home))
    environ.pop("PYTHONPATH", None)
    return {name: value for name, value in environ.items() if not name.startswith("XDG_")}


def _pegboard(servers: Servers) -> Launch:
    """As a person would set it up: the servers asked and the index made once, before."""
    folder = servers.place("pegboard")
    store = f'[store]\ncache_dir = "{folder / "cache"}"\nstate_dir = "{folder / "state"}"\n[surface]\nmode = "on"\n'
    entries = (
        f"[servers.{name}]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n"
        for name, command in servers.commands(folder.name).items()
    )
    (folder / "pegboard.toml").write_text(store + "".join(entries))
    pegboard, environ = str(Path(sys.executable).with_name("pegboard")), own_environ()
    for command in (["refresh"], ["index", "build"]):
        done = [pegboard, *command]
        subprocess.run(done, cwd=folder, env=environ, check=True, capture_output=True, timeout=PREPARE_S)
    return Launch([pegboard, "serve"], environ, folder)


def _fastmcp(servers: Servers, *more: str) -> Launch:
    folder = servers.place("-".join(("fastmcp", *more)))
    script = Path(__file__).with_name("fastmcp_gateway.py")
    command = [str(VENV / BIN / "python"), str(script), str(_config(servers, folder)), *more]
    return Launch(command, _apart(folder), folder)


def _compressor(servers: Servers) -> Launch:
    folder = servers.place("mcp-compressor")
    command = [str(VENVS / "mcp-compressor" / BIN / "mcp-compressor"), "--config", str(_config(servers, folder))]
    return Launch(command, _apart(folder), folder)


def _lazy(servers: Servers) -> Launch:
    folder = servers.place("lazy-mcp")
    path = folder / "servers.json"
    commands = servers.commands(folder.name)
    entries = [{"name": name, "description": name, "command": each} for name, each in commands.items()]
    path.write_text(json.dumps({"servers": entries}))
    return Launch([str(VENVS / "lazy-mcp" / BIN / "lazy-mcp"), "--config", str(path)], _apart(folder), folder)


def _pmcp(servers: Servers) -> Launch:
    folder = servers.place("progressive")  # with its own name among the arguments, it takes a server for itself
    project = folder / "project"
    project.mkdir(exist_ok=True)
    policy = folder / "policy.json"
    policy.write_text(json.dumps({"limits": {"max_tools_per_server": 1000}}))  # left to itself, it knows 100 of each
    files = ["--config", str(_config(servers, folder)), "--policy", str(policy)]
    options = ["--project", str(project), *files, "--lock-dir", str(folder), "--quiet"]
    return Launch([str(VENVS / "pmcp" / BIN / "pmcp"), *options], _apart(folder), project)


def _own(package: str) -> dict[str, Any]:
    """An environment for it alone: what one of them pins, another cannot have."""
    return {"needs": (package,), "venv": VENVS / package}


PEGBOARD = Gateway(
    name="Pegboard",
    launch=_pegboard,
    call=("call_tool", {"name": "s0__echo", "arguments": ECHO}),
    search=lambda query: ("search_tools", {"query": query}),
)
RIVALS = (
    Gateway(
        name="mcp-compressor",
        launch=_compressor,
        call=("s0_invoke_tool", {"tool_name": "echo", "tool_input": ECHO}),
        discovery="none: every name is in the list",
        **_own("mcp-compressor"),
    ),
    Gateway(
        name="lazy-mcp",
        launch=_lazy,
        call=("invoke_command", {"server": "s0", "command_name": "echo", "parameters": ECHO}),
        search=lambda _: ("list_commands", {"server": "s0"}),
        discovery="none: lists one server",
        **_own("lazy-mcp"),
    ),
    Gateway(
        name="fastmcp proxy",
        launch=_fastmcp,
        call=("s0_echo", ECHO),
        discovery="none: all is listed",
        needs=("fastmcp",),
    ),
    Gateway(
        name="fastmcp search",
        launch=lambda servers: _fastmcp(servers, "search"),
        call=("call_tool", {"name": "s0_echo", "arguments": ECHO}),
        search=lambda query: ("search_tools", {"query": query}),
        needs=("fastmcp",),
    ),
    Gateway(
        name="pmcp",
        launch=_pmcp,
        call=("gateway.invoke", {"tool_id": "s0::echo", "arguments": ECHO}),
        search=lambda query: ("gateway.catalog_search", {"query": query}),
        warm=tuple(("gateway.connect_server", {"server_name": f"s{number}"}) for number in range(3)),
        **_own("pmcp"),
    ),
)
NOT_DRIVEN = {
    "mcp-contextforge-gateway": "it installs, but takes stdio servers through an HTTP bridge only; no driver is written"
}
"""Known, and left out for a reason that is told with the results."""
