"""Whether an agent runs now: then files that it rewrites itself are not to be edited.

Only processes of the person whose home it is count. Above: `read`. Below: the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pegboard.doctor.facts import Agent
from pegboard.doctor.settings.machine import Machine

PATIENCE = 10.0
"""Seconds for the list of processes, where no folder has it."""
_PS = ["ps", "-xo", "command="]
_WORDS = re.compile(r'"[^"]*"|\S+')
_INTERPRETERS = frozenset({"node", "bun", "deno", "nodejs"})
_PROGRAMS: dict[str, Agent] = {
    "claude": "claude-code",
    "codex": "codex",
    "opencode": "opencode",
    "kilo": "kilo",
    "kilocode": "kilo",
    "cline": "cline",
    "gemini": "gemini",
    "zed": "zed",
    "zeditor": "zed",
    "zed-editor": "zed",
    "cursor": "cursor",
    "cursor-agent": "cursor",
    "code": "vscode",
    "code-insiders": "vscode",
    "codium": "vscode",
    "windsurf": "vscode",  # of its kind: with the same extensions, in folders of the same shape
}
_PACKAGES: tuple[tuple[str, Agent], ...] = (
    ("/@anthropic-ai/claude-code/", "claude-code"),
    ("/@openai/codex/", "codex"),
    ("/@google/gemini-cli/", "gemini"),
    ("/opencode-ai/", "opencode"),
    ("/@kilocode/", "kilo"),
    ("/node_modules/cline/", "cline"),
)
_APPS: tuple[tuple[str, Agent], ...] = (
    ("/Visual Studio Code.app/", "vscode"),
    ("/Visual Studio Code - Insiders.app/", "vscode"),
    ("/Cursor.app/", "cursor"),
    ("/Zed.app/", "zed"),
)
_EXTENSIONS = "--type=extensionHost"
"""What an editor's remote server starts on this machine, under node, for a window that is elsewhere."""
_VERSIONED = re.compile(r"/claude/versions/\d")
_FEW = 12
"""Words of a command line that are looked at; an interpreter's own options come before the script."""


def running(machine: Machine) -> frozenset[Agent]:
    """The agents of which a process runs."""
    lists = _proc(machine) if machine.platform == "linux" else _asked(machine)
    return frozenset(agent for words in lists if (agent := agent_of(words)))


def agent_of(words: list[str]) -> Agent | None:
    """The agent whose process was started with these words."""
    if not words:
        return None
    program = words[0].replace("\\", "/")
    # Names with spaces in them come in pieces where a command line is one text.
    app = next((agent for part, agent in _APPS if part in " ".join(words[:6])), None)
    if app and program.startswith("/Applications/"):
        return app
    name = program.rpartition("/")[2].lower().removesuffix(".exe")
    if name in _INTERPRETERS and _EXTENSIONS in words:
        return "cursor" if "/.cursor-server/" in program else "vscode"
    if name in _INTERPRETERS:
        script = next((word.replace("\\", "/") for word in words[1:] if not word.startswith("-")), "")
        inside = next((agent for part, agent in _PACKAGES if part in script), None)
        return inside or _PROGRAMS.get(script.rpartition("/")[2].lower())
    return "claude-code" if _VERSIONED.search(program) else _PROGRAMS.get(name)


def _proc(machine: Machine) -> Iterator[list[str]]:
    try:
        owner = machine.home.stat().st_uid
        entries = [each for each in (machine.root / "proc").iterdir() if each.name.isdecimal()]
    except OSError:
        return
    for entry in entries:
        try:
            raw = (entry / "cmdline").read_bytes() if entry.stat().st_uid == owner else b""
        except OSError:
            continue
        words = [word.decode(errors="replace") for word in raw.split(b"\0") if word]
        # A process that gives itself a title has that in place of its words.
        yield words[0].split()[:1] if len(words) == 1 and not Path(words[0]).is_absolute() else words[:_FEW]


def words_of(line: str) -> list[str]:
    """The words of a command line that came as one text, the first of them."""
    return [word.strip('"') for word in _WORDS.findall(line)][:_FEW]


def _asked(machine: Machine) -> Iterator[list[str]]:
    import subprocess

    if not machine.starts:
        return
    listing = "Get-CimInstance Win32_Process | ForEach-Object CommandLine"
    command = ["powershell", "-NoProfile", "-Command", listing] if machine.platform == "win32" else _PS
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return
    for line in done.stdout.decode(errors="replace").splitlines():
        yield words_of(line)
