"""The machine as the settings are read on it, and every settings file read at most once.

Tests give it a root of their own, so that managed files and processes of no real machine count.
Above: the modules of the agents. Below: the importers' `Places`, and the readers of JSON and TOML.
"""

from __future__ import annotations

import plistlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from pegboard.config import jsonc, locate
from pegboard.config.importers.fields import kind_of
from pegboard.config.importers.found import Places
from pegboard.config.installers import edit_env
from pegboard.config.read import MAX_BYTES, Unreadable, read_text

_REWRITTEN = frozenset({".claude.json", "remote-settings.json"})
"""Files that agents write all the time: when that was says nothing of what is set."""


class Machine(Places, frozen=True):
    """All that decides which settings count."""

    root: Path = Path("/")
    """Where managed files and the list of processes are."""
    starts: bool = True
    """Whether `claude --version` may be run when no file says the version."""

    def at(self, folder: Path) -> Machine:
        """The same machine, seen from another folder."""
        return msgspec.structs.replace(self, cwd=folder)

    def upward(self) -> Iterator[Path]:
        """As everywhere; and never above the root."""
        for folder in super().upward():
            yield folder
            if folder == self.root:
                return

    def administered(self, *, linux: str, mac: str, windows: str) -> Path:
        """The folder of an administrator's settings, which goes by another name on every platform."""
        names = {"darwin": f"Library/Application Support/{mac}", "win32": windows}
        return self.root / names.get(self.platform, f"etc/{linux}")


class Document(msgspec.Struct, frozen=True):
    """One settings file that could be read."""

    file: Path
    text: str
    value: dict[str, Any]
    changed_at: float = 0.0

    def at(self, path: tuple[str, ...]) -> Any:
        """What stands at the end of these keys; None when nothing does."""
        value: Any = self.value
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def line(self, path: tuple[str, ...], element: int | None = None) -> int:
        """The line of a key, or of an element of the list it leads to; 0 when it cannot be told."""
        if is_variables(self.file):
            return edit_env.line_of(self.text, path) or 0
        if self.file.suffix == ".plist":
            return 0
        whole: tuple[str | int, ...] = path if element is None else (*path, element)
        line_of = locate.line_of if self.file.suffix == ".toml" else jsonc.line_of
        return line_of(self.text, whole) or 0


class Shelf:
    """Every file that was looked at, read once; broken ones become problems, and stop nobody."""

    def __init__(self) -> None:
        self.problems: dict[Path, str] = {}
        self._documents: dict[Path, Document | None] = {}
        self._texts: dict[Path, str | None] = {}

    def document(self, file: Path) -> Document | None:
        """The content of a JSON, TOML or .env file; None when it is missing, empty or broken."""
        if file not in self._documents:
            self._documents[file] = self._load(file)
        return self._documents[file]

    def known(self, file: Path) -> Document | None:
        """The content of a settings file that was read as one before."""
        return self._documents.get(file)

    def text(self, file: Path) -> str | None:
        """The file as text; None when it is missing or cannot be read."""
        if file not in self._texts:
            self._texts[file] = self._read(file)
        return self._texts[file]

    def _read(self, file: Path) -> str | None:
        try:
            # Anything else may never answer, such as a pipe that someone left there.
            if not file.is_file():
                if file.exists():
                    self.problems.setdefault(file, "not a file")
                return None
            return read_text(file)
        except (OSError, ValueError) as error:
            self.problems.setdefault(file, f"cannot be read: {getattr(error, 'strerror', None) or error}")
        except Unreadable as error:
            self.problems.setdefault(file, str(error))
        return None

    def _load(self, file: Path) -> Document | None:
        if file.suffix == ".plist":
            return self._load_plist(file)
        text = self.text(file)
        if text is None or not text.removeprefix("\ufeff").strip():
            return None
        try:
            value = _parsed(file, text)
        except jsonc.JsoncError as error:
            self.problems.setdefault(file, f"not valid JSON, line {error.line}: {error.reason}")
            return None
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            self.problems.setdefault(file, f"not valid TOML: {error}")
            return None
        if not isinstance(value, dict):
            self.problems.setdefault(file, f"should hold a table of settings, but is {kind_of(value)}")
            return None
        return Document(file, text, value, 0.0 if file.name in _REWRITTEN else changed_at(file))

    def _load_plist(self, file: Path) -> Document | None:
        """Apple's own format, which is no text as a rule; nobody is told lines of it."""
        try:
            if not file.is_file():
                return None
            with file.open("rb") as content:
                value = plistlib.loads(content.read(MAX_BYTES))
        except OSError as error:
            self.problems.setdefault(file, f"cannot be read: {error.strerror or error}")
            return None
        except Exception as error:  # noqa: BLE001 - its parser fails in any way that it likes
            self.problems.setdefault(file, f"not a valid property list: {type(error).__name__}")
            return None
        return Document(file, "", value, changed_at(file)) if isinstance(value, dict) else None


class Glance:
    """What one state was read from: the files that were asked for, and what is wrong with them."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._asked: dict[Path, None] = {}
        self._wrong: dict[str, None] = {}

    def document(self, file: Path) -> Document | None:
        """The content of a settings file; None when there is none, or none that can be read."""
        self._asked[file] = None
        return self._shelf.document(file)

    def value(self, file: Path) -> Any:
        """Only what it says, as the importers want it."""
        document = self.document(file)
        return None if document is None else document.value

    def text(self, file: Path) -> str | None:
        """The file as text."""
        self._asked[file] = None
        return self._shelf.text(file)

    def report(self, file: Path, problem: str) -> None:
        """Keeps what is wrong inside a file."""
        self._wrong[f"{file}: {problem}"] = None

    @property
    def files(self) -> tuple[Path, ...]:
        """All that was asked for, there or not."""
        return tuple(self._asked)

    @property
    def problems(self) -> tuple[str, ...]:
        """Files that could not be read, then parts of files that make no sense."""
        known = self._shelf.problems
        return (*(f"{file}: {known[file]}" for file in self._asked if file in known), *self._wrong)


def is_variables(file: Path) -> bool:
    """Whether a file is a list of variables."""
    return file.suffix == ".env" or file.name == ".env"


def changed_at(file: Path) -> float:
    """When a file was last written; 0 when nobody can tell."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _parsed(file: Path, text: str) -> Any:
    if is_variables(file):
        return edit_env.parse(text)
    return tomllib.loads(text.removeprefix("\ufeff")) if file.suffix == ".toml" else jsonc.parse(text)
