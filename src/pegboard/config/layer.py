"""One layer of configuration (a file, a variable, a flag) and the values that remain when layers lie on each other.

Layers are merged leaf by leaf: every value stays with the layer that said it, so that an error found later still
names its file and line. Above: `load` stacks them, `resolve` reads the outcome. Below: positions and problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard.config.problems import KeyPath, Problem, key_text


class Layer:
    """What one place says, and where in it each key stands."""

    def __init__(
        self,
        where: str,
        tables: Mapping[str, Any],
        *,
        folder: Path,
        file: Path | None = None,
        text: str = "",
        written: Mapping[KeyPath, KeyPath] | None = None,
        known: Mapping[str, str] | None = None,
        foreign: bool = False,
    ) -> None:
        self.where = where
        self.tables = tables
        self.folder = folder
        """Relative paths in this layer start here."""
        self.file = file
        self.foreign = foreign
        """Written for another program or by a plug-in: a fault is one server's, and its entries are whole."""
        self.known = known or {}
        """References that are no environment variables."""
        self._text = text
        self._written = written or {}
        self._lines: dict[KeyPath, int] | None = None

    def original(self, path: KeyPath) -> KeyPath:
        """The path as the file spells it, when it was translated."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._written:
                return (*self._written[path[:length]], *path[length:])
        return path

    def line(self, path: KeyPath) -> int | None:
        """The line of the key, or of the nearest table around it."""
        if self._lines is None:
            self._lines = self._positions()
        original = self.original(path)
        lines = (self._lines.get(original[:length]) for length in range(len(original), 0, -1))
        return next((line for line in lines if line is not None), None)

    def problem(self, path: KeyPath, message: str) -> Problem:
        """A problem at this key."""
        return Problem(where=self.where, line=self.line(path), key=key_text(self.original(path)), message=message)

    def _positions(self) -> dict[KeyPath, int]:
        if not self._text:
            return {}
        if self.foreign:
            from pegboard.config import jsonc

            return jsonc.lines(self._text)
        from pegboard.config import locate

        return locate.lines(self._text)


class Said(msgspec.Struct, frozen=True):
    """A value and the layer that said it."""

    value: Any
    layer: Layer


class Stack:
    """The values that hold after all layers so far: the last to speak wins, key by key."""

    def __init__(self) -> None:
        self.values: dict[KeyPath, Said] = {}
        self.mentions: dict[str, list[Layer]] = {}
        """For each server, the layers that speak of it, weakest first."""

    def lay(self, layer: Layer, leaves: Iterable[tuple[KeyPath, Any]], servers: Iterable[str]) -> None:
        """Puts one layer on top."""
        for name in servers:
            if layer.foreign:
                self._forget(name)
            self.mentions.setdefault(name, []).append(layer)
        for path, value in leaves:
            self.values[self._known(path)] = Said(value, layer)

    def table(self, *prefix: str) -> dict[KeyPath, Said]:
        """Everything below `prefix`, by the rest of its path."""
        depth = len(prefix)
        return {path[depth:]: said for path, said in self.values.items() if path[:depth] == prefix}

    def servers(self) -> dict[str, dict[KeyPath, Said]]:
        """Every server with what is said of it; a server may be mentioned and say nothing."""
        found: dict[str, dict[KeyPath, Said]] = {name: {} for name in self.mentions}
        for path, said in self.values.items():
            if path[0] == "servers":
                found[str(path[1])][path[2:]] = said
        return found

    def _known(self, path: KeyPath) -> KeyPath:
        """The path as a weaker layer spelled it: header names are the same in any case."""
        if len(path) != 4 or path[2] != "headers" or path in self.values:
            return path
        wanted = str(path[3]).lower()
        return next((old for old in self.values if old[:3] == path[:3] and str(old[3]).lower() == wanted), path)

    def _forget(self, name: str) -> None:
        """Entries of other programs are whole: they replace, they are never completed from a weaker file."""
        self.mentions.pop(name, None)
        for path in [path for path in self.values if path[:2] == ("servers", name)]:
            del self.values[path]


class Findings:
    """All that was found wrong or odd on the way."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.warnings: list[str] = []
        self.faults: dict[str, list[str]] = {}
        """What is wrong with single servers, by their name; the rest of the configuration stands."""

    def report(self, layer: Layer, path: KeyPath, message: str) -> None:
        """Keeps what is wrong where it belongs: with one server, or with the configuration as a whole."""
        problem = layer.problem(path, message)
        if layer.foreign and len(path) > 1 and str(path[1]).strip():
            self.faults.setdefault(str(path[1]), []).append(str(problem))
        else:
            self.problems.append(problem)

    def warn(self, layer: Layer, path: KeyPath, message: str) -> None:
        """Something odd that stops nothing."""
        self.warnings.append(str(layer.problem(path, message)))
