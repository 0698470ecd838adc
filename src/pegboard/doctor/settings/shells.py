"""Variables that shell profiles set: which file, which line. Read, never edited.

It follows plain assignments only, not what a script would compute. Above: `variables`. Below: the machine.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from pathlib import Path

from pegboard.doctor.facts import Setting
from pegboard.doctor.settings.addresses import without_credentials
from pegboard.doctor.settings.machine import Glance, Machine, changed_at

# The later of two files of one shell is read later, and so is the stronger.
_PROFILES: dict[str, tuple[str, ...]] = {
    "zsh": (".zshenv", ".zprofile", ".zshrc", ".zlogin"),
    "bash": (".bash_login", ".bash_profile", ".bashrc", ".bash_aliases"),
    "fish": (".config/fish/fish_variables", ".config/fish/conf.d/*.fish", ".config/fish/config.fish"),
    "csh": (".cshrc", ".tcshrc", ".login"),
    "pwsh": (".config/powershell/profile.ps1", ".config/powershell/Microsoft.PowerShell_profile.ps1"),
}
_OF_ALL = (".profile",)
"""Read when a person logs in, whatever their shell."""
_SYSTEM = ("etc/environment", "etc/profile", "etc/profile.d/*.sh", "etc/bash.bashrc", "etc/zsh/zshenv", "etc/zshenv")
_KIN = {"tcsh": "csh", "powershell": "pwsh", "sh": "bash", "dash": "bash", "ksh": "bash"}

_NAME = r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
_VALUE = r"""(?P<value>(?:"(?:[^"\\]|\\.)*+"|'[^']*+'|\\.|[^\s;#&|'"\\])*+)"""
_EXPORT = re.compile(r"\s*(?:export|typeset\s+-\w*x\w*|declare\s+-\w*x\w*)\s+(?P<rest>.*)")
_PAIR = re.compile(rf"\s*{_NAME}(?:=(?!\(){_VALUE})?(?=[\s;&|#]|$)")
_PLAIN = re.compile(rf"\s*{_NAME}={_VALUE}\s*(?:;\s*export\s+(?P<exported>\w+)\s*)?(?:#.*)?$")
_FISH = re.compile(rf"\s*set\s+(?P<flags>(?:-\S+\s+)+){_NAME}(?:\s+{_VALUE})?")
_FISH_KEPT = re.compile(r"SETUVAR (?P<flags>--export )?(?P<name>\w+):(?P<value>.*)")
_CSH = re.compile(rf"\s*setenv\s+{_NAME}(?:\s+{_VALUE})?")
_PWSH = re.compile(rf"\s*\$env:{_NAME}\s*=\s*{_VALUE}", re.IGNORECASE)
_UNSET = re.compile(r"\s*(?:unset(?:\s+-v)?|unsetenv|set\s+(?:-\w*e\w*|--erase))\s+(?P<names>[\w \t]+)")
_QUOTED = re.compile(r""""((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)""")
_ESCAPED = re.compile(r"\\(.)")


def assignments(machine: Machine, glance: Glance, wanted: Container[str]) -> tuple[Setting, ...]:
    """The wanted variables as profiles set them, the strongest first.

    Where it is known which shell a person has, other shells' profiles have no say.
    """
    found: list[Setting] = []
    for file, shell in profiles(machine):
        if text := glance.text(file):
            found += _of_text(text, shell, file, wanted)
    return tuple(reversed(found))


def profiles(machine: Machine) -> Iterator[tuple[Path, str]]:
    """The files that are looked at, the strongest last, each with its shell."""
    own = Path(machine.environ.get("SHELL", "").strip()).name
    own = _KIN.get(own, own)
    shells = [own] if own in _PROFILES else list(reversed(_PROFILES))
    for name in _SYSTEM:
        yield from ((file, "sh") for file in _matching(machine.root, name))
    yield from ((machine.home / name, "sh") for name in _OF_ALL)
    for shell in shells:
        folder = machine.from_variable("ZDOTDIR", machine.home) if shell == "zsh" else machine.home
        for name in _PROFILES[shell]:
            yield from ((file, shell) for file in _matching(folder, name))


def _matching(folder: Path, name: str) -> list[Path]:
    if "*" not in name:
        return [folder / name]
    try:
        return sorted(folder.glob(name))
    except OSError:
        return []


def _of_text(text: str, shell: str, file: Path, wanted: Container[str]) -> list[Setting]:
    """What holds at the end of the file: a variable that is unset again is not set."""
    found: dict[str, Setting] = {}
    silent: dict[str, Setting] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if erased := _UNSET.match(line):
            for name in erased["names"].split():
                found.pop(name, None)
            continue
        for name, value, is_exported in _of_line(line, shell, file):
            if name not in wanted:
                continue
            earlier = silent.pop(name, None)
            setting = earlier if value is None else _setting(name, value, file, number)
            if setting is None:
                continue
            # Once exported it stays so, whatever is assigned to it later.
            if is_exported or name in found:
                found.pop(name, None)
                found[name] = setting
            else:
                silent[name] = setting
    return list(found.values())


def _of_line(line: str, shell: str, file: Path) -> Iterator[tuple[str, str | None, bool]]:
    """What one line assigns or exports: name, value if one is given, whether programs see it."""
    if file.name == "fish_variables":
        if kept := _FISH_KEPT.match(line):
            yield kept["name"], kept["value"].encode().decode("unicode_escape", "replace"), bool(kept["flags"])
    elif shell in ("csh", "pwsh"):
        if match := (_CSH if shell == "csh" else _PWSH).match(line):
            yield match["name"], _unquoted(match["value"] or ""), True
    elif shell == "fish" and (match := _FISH.match(line)):
        flags = match["flags"].split()
        yield match["name"], _unquoted(match["value"] or ""), any(_exports(flag) for flag in flags)
    elif export := _EXPORT.match(line):
        yield from _pairs(export["rest"])
    elif match := _PLAIN.match(line):
        is_exported = match["exported"] == match["name"] or file.name == "environment"
        yield match["name"], _unquoted(match["value"]), is_exported


def _pairs(rest: str) -> Iterator[tuple[str, str | None, bool]]:
    """`A=1 B="2" C`, up to whatever is none."""
    position = 0
    while match := _PAIR.match(rest, position):
        yield match["name"], None if match["value"] is None else _unquoted(match["value"]), True
        position = match.end()


def _exports(flag: str) -> bool:
    return flag == "--export" or (not flag.startswith("--") and "x" in flag)


def _setting(name: str, value: str, file: Path, line: int) -> Setting:
    shown = without_credentials(value) if name.endswith("_URL") else value
    return Setting(name=name, value=shown, file=file, line=line, scope="shell", changed_at=changed_at(file))


def _unquoted(value: str) -> str:
    """The value as the shell would give it, but for references, which stay."""

    def plain(match: re.Match[str]) -> str:
        if match[1] is not None:
            return _ESCAPED.sub(r"\1", match[1])
        return match[2] if match[2] is not None else match[3]

    return _QUOTED.sub(plain, value)
