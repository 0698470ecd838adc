"""Variables that shell profiles set: which file, which line. Read, never edited.

It follows plain assignments only, not what a script would compute. Above: `settings`. Below: the machine.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from pathlib import Path

from pegboard.doctor.facts import Setting
from pegboard.doctor.settings.machine import Machine, Shelf, changed_at

# The later of two files of one shell is read later, and so is the stronger.
_PROFILES: dict[str, tuple[str, ...]] = {
    "zsh": (".zshenv", ".zprofile", ".zshrc", ".zlogin"),
    "bash": (".profile", ".bash_login", ".bash_profile", ".bashrc", ".bash_aliases"),
    "fish": (".config/fish/conf.d/*.fish", ".config/fish/config.fish"),
    "sh": (".profile",),
    "csh": (".cshrc", ".tcshrc", ".login"),
    "pwsh": (".config/powershell/profile.ps1", ".config/powershell/Microsoft.PowerShell_profile.ps1"),
}
_NAME = r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
_VALUE = r"""(?P<value>"(?:[^"\\]|\\.)*"|'[^']*'|[^\s;#&|]*)"""
_POSIX = re.compile(rf"^\s*(?:export\s+|typeset\s+-x\s+|declare\s+-x\s+)?{_NAME}={_VALUE}")
_FISH = re.compile(rf"^\s*set\s+(?:-\S+\s+)+{_NAME}(?:\s+{_VALUE})?")
_CSH = re.compile(rf"^\s*setenv\s+{_NAME}(?:\s+{_VALUE})?")
_PWSH = re.compile(rf"^\s*\$env:{_NAME}\s*=\s*{_VALUE}", re.IGNORECASE)
_UNSET = re.compile(r"^\s*(?:unset(?:\s+-v)?|unsetenv|set\s+(?:-\S*e\S*|--erase))\s+(?P<names>[\w \t]+)")
_SYNTAX = {"fish": (_FISH, _POSIX), "csh": (_CSH,), "pwsh": (_PWSH,)}


def assignments(machine: Machine, shelf: Shelf, wanted: Container[str]) -> tuple[Setting, ...]:
    """The wanted variables as profiles set them, the strongest first: those of the person's own shell."""
    own = Path(machine.environ.get("SHELL", "")).name
    shells = sorted(_PROFILES, key=lambda shell: shell != own)
    found: dict[tuple[Path, int], Setting] = {}
    for shell in shells:
        for setting in reversed(list(_of_shell(shell, machine, shelf, wanted))):
            assert setting.file is not None
            found.setdefault((setting.file, setting.line), setting)
    return tuple(found.values())


def profiles(machine: Machine) -> tuple[Path, ...]:
    """The files that are looked at, those of all shells."""
    return tuple(dict.fromkeys(file for shell in _PROFILES for file in _files(shell, machine)))


def _files(shell: str, machine: Machine) -> Iterator[Path]:
    home = machine.from_variable("ZDOTDIR", machine.home) if shell == "zsh" else machine.home
    for name in _PROFILES[shell]:
        if "*" in name:
            yield from sorted(home.glob(name))
        else:
            yield home / name


def _of_shell(shell: str, machine: Machine, shelf: Shelf, wanted: Container[str]) -> Iterator[Setting]:
    for file in _files(shell, machine):
        text = shelf.text(file)
        if text:
            yield from _of_text(text, shell, file, wanted)


def _of_text(text: str, shell: str, file: Path, wanted: Container[str]) -> Iterator[Setting]:
    """What holds at the end of the file: a variable that is unset again is not set."""
    found: dict[str, Setting] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if erased := _UNSET.match(line):
            for name in erased["names"].split():
                found.pop(name, None)
            continue
        match = next((each for syntax in _SYNTAX.get(shell, (_POSIX,)) if (each := syntax.match(line))), None)
        if match and match["name"] in wanted:
            name = match["name"]
            found.pop(name, None)
            found[name] = Setting(
                name=name,
                value=_unquoted(match["value"] or ""),
                file=file,
                line=number,
                scope="shell",
                changed_at=changed_at(file),
            )
    yield from found.values()


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] in "\"'" and value[-1] == value[0] else value
