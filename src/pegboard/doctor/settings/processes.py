"""Whether an agent runs now: then files that it rewrites itself are not to be edited.

Above: the modules of the agents. Below: the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pegboard.doctor.facts import Agent
from pegboard.doctor.settings.machine import Machine

PATIENCE = 3.0
"""Seconds for `ps`."""
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
    "zed-editor": "zed",
    "cursor": "cursor",
    "code": "vscode",
    "code-insiders": "vscode",
}
_PACKAGES: tuple[tuple[str, Agent], ...] = (
    ("/@anthropic-ai/claude-code/", "claude-code"),
    ("/@openai/codex/", "codex"),
    ("/@google/gemini-cli/", "gemini"),
    ("/opencode-ai/", "opencode"),
    ("/@kilocode/", "kilo"),
    ("/cline/", "cline"),
)
_VERSIONED = re.compile(r"/claude/versions/\d")


def running(machine: Machine) -> frozenset[Agent]:
    """The agents of which a process runs."""
    lists = _proc(machine.root / "proc") if machine.platform == "linux" else _ps(machine)
    return frozenset(agent for words in lists if (agent := agent_of(words)))


def agent_of(words: list[str]) -> Agent | None:
    """The agent whose process was started with these words."""
    if not words:
        return None
    program = words[0].replace("\\", "/")
    name = program.rpartition("/")[2].lower().removesuffix(".exe")
    if name in _INTERPRETERS:
        script = next((word.replace("\\", "/") for word in words[1:] if not word.startswith("-")), "")
        inside = next((agent for part, agent in _PACKAGES if part in script), None)
        return inside or _PROGRAMS.get(script.rpartition("/")[2].lower())
    if _VERSIONED.search(program):
        return "claude-code"
    return _PROGRAMS.get(name)


def _proc(folder: Path) -> Iterator[list[str]]:
    try:
        entries = [each for each in folder.iterdir() if each.name.isdecimal()]
    except OSError:
        return
    for entry in entries:
        try:
            raw = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        yield [word.decode(errors="replace") for word in raw.split(b"\0") if word][:4]


def _ps(machine: Machine) -> Iterator[list[str]]:
    import subprocess

    if machine.platform == "win32" or not machine.starts:
        return
    try:
        done = subprocess.run(
            ["ps", "-axo", "command="],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return
    for line in done.stdout.decode(errors="replace").splitlines():
        yield line.split()[:4]
