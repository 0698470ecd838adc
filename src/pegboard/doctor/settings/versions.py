"""Which version of an agent is installed: as its files say, or, for Claude Code alone, as `--version` answers.

Nothing else is ever started. Above: the modules of the agents. Below: the machine.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from pegboard.doctor.settings.machine import Machine, Shelf

PATIENCE = 3.0
"""Seconds for `claude --version`."""
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:[-+][\w.]+)?")
_PACKAGES = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
    "kilo": "@kilocode/cli",
    "cline": "cline",
}


def installed(program: str, machine: Machine, shelf: Shelf) -> tuple[bool, str]:
    """Whether the program is there, and its version as files have it; empty when none says."""
    found = shutil.which(program, path=machine.environ.get("PATH", ""))
    version = _of_file(Path(found), _PACKAGES.get(program, program), shelf) if found else ""
    return found is not None, version


def claude_version(machine: Machine, shelf: Shelf) -> tuple[bool, str]:
    """Whether Claude Code is there, and its version; it is asked only when no file says."""
    is_there, version = installed("claude", machine, shelf)
    version = version or _of_local_install(machine, shelf)
    if is_there and not version and machine.starts:
        version = _asked(shutil.which("claude", path=machine.environ.get("PATH", "")) or "claude", machine)
    return is_there or bool(version), version or _of_native_folder(machine)


def _of_file(program: Path, package: str, shelf: Shelf) -> str:
    """Of a link into a folder of versions, or of the package that the program belongs to."""
    try:
        real = program.resolve()
    except (OSError, RuntimeError):
        return ""
    # The native installer links to a file or folder that is called by its version.
    for part in (real.name, real.parent.name):
        if _VERSION.fullmatch(part):
            return part
    for folder in list(real.parents)[:4]:
        about = shelf.value(folder / "package.json")
        if isinstance(about, dict) and about.get("name") == package:
            return _first(about.get("version"))
    return ""


def _of_local_install(machine: Machine, shelf: Shelf) -> str:
    folder = machine.from_variable("CLAUDE_CONFIG_DIR", machine.home / ".claude") / "local" / "node_modules"
    about = shelf.value(folder / _PACKAGES["claude"] / "package.json")
    return _first(about.get("version")) if isinstance(about, dict) else ""


def _of_native_folder(machine: Machine) -> str:
    folder = machine.home / ".local" / "share" / "claude" / "versions"
    try:
        names = [each.name for each in folder.iterdir() if _VERSION.fullmatch(each.name)]
    except OSError:
        return ""
    return max(names, key=number, default="")


def _asked(program: str, machine: Machine) -> str:
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


def _first(text: object) -> str:
    found = _VERSION.search(text) if isinstance(text, str) else None
    return found[0] if found else ""


def number(version: str) -> tuple[int, ...]:
    """A version as numbers that can be compared; nothing for one that is unknown."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
