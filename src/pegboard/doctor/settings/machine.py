"""The machine as the settings are read on it, and every settings file read at most once.

Tests give it a root of their own, so that managed files and processes of no real machine count.
Above: the modules of the agents. Below: the importers' `Places`, and the readers of JSON and TOML.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from pegboard.config import jsonc, locate
from pegboard.config.importers.fields import kind_of
from pegboard.config.importers.found import Places
from pegboard.config.read import Unreadable, read_text


class Machine(Places, frozen=True):
    """All that decides which settings count."""

    root: Path = Path("/")
    """Where managed files and the list of processes are."""
    starts: bool = True
    """Whether `claude --version` may be run when no file says the version."""

    def at(self, folder: Path) -> Machine:
        """The same machine, seen from another folder."""
        return msgspec.structs.replace(self, cwd=folder)


class Document(msgspec.Struct, frozen=True):
    """One settings file that could be read."""

    file: Path
    text: str
    value: dict[str, Any]
    changed_at: float = 0.0

    def line(self, key: tuple[str, ...]) -> int:
        """The line of a key; 0 when it cannot be told."""
        line_of = locate.line_of if self.file.suffix == ".toml" else jsonc.line_of
        return line_of(self.text, key) or 0


class Shelf:
    """Every file that was looked at, read once; broken ones become problems, and stop nobody."""

    def __init__(self) -> None:
        self.problems: dict[Path, str] = {}
        self._documents: dict[Path, Document | None] = {}
        self._texts: dict[Path, str | None] = {}

    def document(self, file: Path) -> Document | None:
        """The content of a JSON or TOML file; None when it is missing, empty or broken."""
        if file not in self._documents:
            self._documents[file] = self._load(file)
        return self._documents[file]

    def value(self, file: Path) -> Any:
        """Only what it says, as the importers want it."""
        document = self.document(file)
        return None if document is None else document.value

    def text(self, file: Path) -> str | None:
        """The file as text; None when it is missing or cannot be read."""
        if file not in self._texts:
            self._texts[file] = self._read(file)
        return self._texts[file]

    def report(self, file: Path, problem: str) -> None:
        """Keeps the first that is wrong with a file."""
        self.problems.setdefault(file, problem)

    def said_of(self, files: Iterable[Path]) -> tuple[str, ...]:
        """The problems of these files."""
        known = dict.fromkeys(files)
        return tuple(f"{file}: {self.problems[file]}" for file in known if file in self.problems)

    def _read(self, file: Path) -> str | None:
        try:
            # Anything else may never answer, such as a pipe that someone left there.
            if not file.is_file():
                if file.exists():
                    self.report(file, "not a file")
                return None
            return read_text(file)
        except OSError as error:
            self.report(file, f"cannot be read: {error.strerror or error}")
        except Unreadable as error:
            self.report(file, str(error))
        return None

    def _load(self, file: Path) -> Document | None:
        text = self.text(file)
        if text is None or not text.removeprefix("\ufeff").strip():
            return None
        try:
            value = tomllib.loads(text.removeprefix("\ufeff")) if file.suffix == ".toml" else jsonc.parse(text)
        except jsonc.JsoncError as error:
            self.report(file, f"not valid JSON, line {error.line}: {error.reason}")
            return None
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            self.report(file, f"not valid TOML: {error}")
            return None
        if not isinstance(value, dict):
            self.report(file, f"should hold a table of settings, but is {kind_of(value)}")
            return None
        return Document(file, text, value, changed_at(file))


def changed_at(file: Path) -> float:
    """When a file was last written; 0 when nobody can tell."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
