"""Which version of an agent is installed: as its files say, or, for Claude Code alone, as `--version` answers.

Nothing else is ever started. Above: `read`. Below: the machine.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from pegboard.doctor.facts import Agent
from pegboard.doctor.settings.machine import Machine, Shelf

PATIENCE = 3.0
"""Seconds for `claude --version`."""
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:[-+][\w.]+)?")
_PROGRAMS: dict[Agent, tuple[str, ...]] = {
    "claude-code": ("claude",),
    "codex": ("codex",),
    "opencode": ("opencode",),
    "kilo": ("kilo", "kilocode"),
    "cline": ("cline",),
    "gemini": ("gemini",),
    "zed": ("zed", "zeditor"),
    "cursor": ("cursor", "cursor-agent"),
    "vscode": ("code", "code-insiders", "codium"),
}
_PACKAGES: dict[Agent, str] = {
    "claude-code": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
    "kilo": "@kilocode/cli",
    "cline": "cline",
}
_MODULES = (
    "{home}/.local/lib/node_modules",
    "{home}/.npm-global/lib/node_modules",
    "{home}/.npm-packages/lib/node_modules",
    "{home}/.bun/install/global/node_modules",
    "{home}/.nvm/versions/node/*/lib/node_modules",
    "{home}/.volta/tools/image/packages/*/lib/node_modules",
    "{root}/usr/local/lib/node_modules",
    "{root}/usr/lib/node_modules",
    "{root}/opt/homebrew/lib/node_modules",
)
_APPS: dict[Agent, tuple[str, ...]] = {
    "vscode": ("usr/share/code", "Applications/Visual Studio Code.app/Contents/Resources"),
    "cursor": ("usr/share/cursor", "opt/Cursor", "Applications/Cursor.app/Contents/Resources"),
}
_EXTENSIONS = (".vscode", ".vscode-insiders", ".vscode-oss", ".vscode-server", ".cursor")


def installed(agent: Agent, machine: Machine, shelf: Shelf) -> tuple[bool, str]:
    """Whether it is there, and its version; empty when nobody can tell."""
    program = _program(agent, machine)
    found = [_of_program(program, agent, shelf)] if program else []
    found += [*_of_packages(agent, machine, shelf), *_of_apps(agent, machine, shelf)]
    if agent == "cline":
        found += _of_extensions(machine)
    if agent == "claude-code":
        found += [_of_claude_folder(machine, shelf)]
    version = next(filter(None, found), "")
    if agent == "claude-code" and not version:
        version = _asked(program, machine) if program and machine.starts else ""
        version = version or _of_native_folder(machine)
    return program is not None or bool(version), version


def number(version: str) -> tuple[int, ...]:
    """A version as numbers that can be compared; nothing for one that is unknown."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _program(agent: Agent, machine: Machine) -> Path | None:
    folders = machine.environ.get("PATH", "")
    names = (shutil.which(name, path=folders) for name in _PROGRAMS[agent] if folders)
    found = next(filter(None, names), None)
    return Path(found) if found else None


def _of_program(program: Path, agent: Agent, shelf: Shelf) -> str:
    """Of a link into a folder of versions, or of the package that the program belongs to."""
    try:
        real = program.resolve()
    except (OSError, RuntimeError):
        return ""
    # Installers link to a file or folder that is called by its version, and so does Homebrew.
    for name in (real.name, *(folder.name for folder in list(real.parents)[:2])):
        if _VERSION.fullmatch(name):
            return name
    folders = list(real.parents)[:4] if agent in _PACKAGES else []
    return next(filter(None, (_of_package(folder, agent, shelf) for folder in folders)), "")


def _of_package(folder: Path, agent: Agent, shelf: Shelf) -> str:
    about = shelf.document(folder / "package.json")
    return _first(about.value.get("version")) if about and about.value.get("name") == _PACKAGES[agent] else ""


def _of_packages(agent: Agent, machine: Machine, shelf: Shelf) -> Iterator[str]:
    """Of global installs, for programs that are not on this process's path."""
    if agent not in _PACKAGES:
        return
    found = []
    for pattern in _MODULES:
        top, _, rest = pattern.partition("/")
        folder = machine.home if top == "{home}" else machine.root
        places = _matching(folder, rest)
        found += [_of_package(place / _PACKAGES[agent], agent, shelf) for place in places]
    yield max(found, key=number, default="")


def _of_apps(agent: Agent, machine: Machine, shelf: Shelf) -> Iterator[str]:
    for name in _APPS.get(agent, ()):
        for folder in ("resources/app", "app"):
            about = shelf.document(machine.root / name / folder / "package.json")
            yield _first(about.value.get("version")) if about else ""


def _of_extensions(machine: Machine) -> list[str]:
    found = [
        _first(folder.name.rpartition("saoudrizwan.claude-dev-")[2])
        for place in _EXTENSIONS
        for folder in _matching(machine.home, f"{place}/extensions/saoudrizwan.claude-dev-*")
    ]
    return sorted(found, key=number, reverse=True)


def _of_claude_folder(machine: Machine, shelf: Shelf) -> str:
    folder = machine.from_variable("CLAUDE_CONFIG_DIR", machine.home / ".claude") / "local" / "node_modules"
    return _of_package(folder / _PACKAGES["claude-code"], "claude-code", shelf)


def _of_native_folder(machine: Machine) -> str:
    folder = machine.home / ".local" / "share" / "claude" / "versions"
    names = [each.name for each in _matching(folder, "*") if _VERSION.fullmatch(each.name)]
    return max(names, key=number, default="")


def _asked(program: Path, machine: Machine) -> str:
    import subprocess

    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            env=dict(machine.environ),
            cwd=machine.home,
            check=False,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    return _first(done.stdout.decode(errors="replace"))


def _matching(folder: Path, pattern: str) -> list[Path]:
    if "*" not in pattern:
        return [folder / pattern]
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


def _first(text: object) -> str:
    found = _VERSION.search(text) if isinstance(text, str) else None
    return found[0] if found else ""
