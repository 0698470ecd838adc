"""The nouns of importing: where to look, what one program says, and what was found in the end.

Above: one module per program family, and `find`, which asks them all. Below: the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard.config import jsonc
from pegboard.config.model import ServerConfig


class Places(msgspec.Struct, frozen=True):
    """All that decides where programs keep their settings; nothing else of the machine is asked."""

    home: Path
    cwd: Path
    environ: Mapping[str, str]
    platform: str
    """As `sys.platform` says it."""

    def from_variable(self, name: str, default: Path) -> Path:
        """The folder or file an environment variable names, or its usual place."""
        value = self.environ.get(name, "").strip()
        return self.cwd / value if value else default

    @property
    def xdg_config(self) -> Path:
        """Where programs that follow XDG on every platform keep settings."""
        return self.from_variable("XDG_CONFIG_HOME", self.home / ".config")

    @property
    def app_data(self) -> Path:
        """Where desktop programs keep settings on this platform."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return self.from_variable("APPDATA", self.home / "AppData" / "Roaming")
        return self.xdg_config

    def upward(self) -> Iterator[Path]:
        """The working folder and its parents, nearest first; never above the home folder it lies in."""
        for folder in (self.cwd, *self.cwd.parents):
            yield folder
            if folder == self.home:
                return

    def nearest(self, *relative: str) -> tuple[Path, ...]:
        """The nearest project's file of one of these names; the home folder is no project."""
        for folder in self.upward():
            there = tuple(folder / name for name in relative if is_there(folder / name))
            if there and folder != self.home:
                return there
        return ()


def is_there(path: Path) -> bool:
    """Whether something has this name; a folder that may not be entered has nothing."""
    try:
        return path.exists()
    except OSError:
        return False


def matching(folder: Path, pattern: str) -> list[Path]:
    """What is in a folder by such a name, sorted; one that may not be entered has nothing."""
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What one program says of one server, in Pegboard's terms."""

    name: str
    config: ServerConfig | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    """The keys that lead to it in the file."""


Read = Callable[[Path], Any]
"""The parsed content of a file, or None when it is missing or broken."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One place of one program: which files it looks at, and how their content is understood."""

    id: str
    title: str
    files: Callable[[Places], tuple[Path, ...]]
    entries: Callable[[Any, Path, Places], tuple[Entry, ...]]
    load: Callable[[str], Any] = jsonc.parse
    switched_off: Callable[[Places, Read], frozenset[str]] | None = None
    """Names of servers that the program has switched off in other places than their own entry."""

    @property
    def program(self) -> str:
        """The id without the scope."""
        return self.id.partition(":")[0]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One server that some program has, ready to be imported; or why it cannot be."""

    source: str
    file: Path
    name: str
    """As the program calls it. Empty when the file as a whole could not be read."""
    key: str = ""
    """A legal and unique key for `[servers.<key>]`."""
    config: ServerConfig | None = None
    problem: str = ""
    line: int | None = None
    """Where in the file the problem is, when known."""
    notes: tuple[str, ...] = ()
    """What could not be carried over, and what to do about it."""
    duplicates: tuple[Found, ...] = ()
    """The same launch in other programs; imported once."""

    @property
    def also_in(self) -> tuple[str, ...]:
        """The other sources that have it, each once."""
        return tuple(dict.fromkeys(other.source for other in self.duplicates if other.source != self.source))
