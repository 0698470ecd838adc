"""Asks every source for its servers. Reads files and starts nothing; a broken file stops no other.

Above: `find` in the package itself. Below: the program modules, through their `Source`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from pegboard.config import jsonc, locate
from pegboard.config.check import check_layer
from pegboard.config.importers.fields import WrongShape, kind_of
from pegboard.config.importers.found import Entry, Found, Places, Source
from pegboard.config.importers.merge import merge
from pegboard.config.importers.naming import Keys
from pegboard.config.layer import Findings, Layer, Stack
from pegboard.config.read import Unreadable, read_text
from pegboard.config.resolve import resolve_server
from pegboard.errors import ConfigError

_TOML_PLACE = re.compile(r"\(at line (\d+), column \d+\)")


def gather(sources: Iterable[Source], places: Places) -> tuple[Found, ...]:
    """Every server of every source, each launch once; then whatever could not be read."""
    shelf = _Shelf()
    found = [item for source in sources for item in _from_source(source, places, shelf)]
    keys = Keys()
    return (*(_with_key(item, keys) for item in merge(found)), *shelf.broken)


def _from_source(source: Source, places: Places, shelf: _Shelf) -> Iterator[Found]:
    read = functools.partial(shelf.document, source)
    off = source.switched_off(places, read) if source.switched_off else frozenset()
    for path in dict.fromkeys(source.files(places)):
        document = read(path)
        if document is None:
            continue
        try:
            entries = source.entries(document, path, places)
        except WrongShape as error:
            shelf.report(source, path, str(error))
            continue
        for entry in entries:
            yield _found(source, path, _switched(_checked(entry), off, source), shelf)


def _found(source: Source, path: Path, entry: Entry, shelf: _Shelf) -> Found:
    return Found(
        source=source.id,
        file=path,
        name=entry.name,
        config=entry.config,
        problem=entry.problem,
        line=shelf.line(source, path, entry.where) if entry.problem else None,
        notes=entry.notes,
    )


def _checked(entry: Entry) -> Entry:
    """Whatever Pegboard itself would refuse is refused here, so that no import breaks the file it goes to."""
    if entry.config is None:
        return entry
    findings = Findings()
    layer = Layer("", {"servers": {"it": msgspec.to_builtins(entry.config)}}, folder=Path())
    stack = Stack()
    stack.lay(layer, check_layer(layer, findings), ("it",))
    # Without any variables: what the environment lacks today is no fault of the entry.
    resolve_server("it", stack.servers()["it"], [layer], {}, findings)
    if not findings.problems:
        return entry
    wrong = [f"{problem.key.removeprefix('servers.it.')}: {problem.message}" for problem in findings.problems]
    return Entry(name=entry.name, problem=f"Pegboard cannot use it: {'; '.join(wrong)}.", where=entry.where)


def _switched(entry: Entry, off: frozenset[str], source: Source) -> Entry:
    if entry.name not in off or entry.config is None:
        return entry
    return msgspec.structs.replace(
        entry,
        config=msgspec.structs.replace(entry.config, enabled=False),
        notes=(*entry.notes, f"Switched off in {source.title.partition(',')[0]}, so it is imported switched off."),
    )


def _with_key(item: Found, keys: Keys) -> Found:
    if item.config is None:
        return item
    key = keys.claim(item.name, item.source.partition(":")[0])
    duplicates = tuple(msgspec.structs.replace(other, key=key) for other in item.duplicates)
    return msgspec.structs.replace(item, key=key, duplicates=duplicates)


class _Shelf:
    """Every file that was looked at, read once."""

    def __init__(self) -> None:
        self.broken: list[Found] = []
        self._texts: dict[Path, str] = {}
        self._documents: dict[Path, Any] = {}

    def document(self, source: Source, path: Path) -> Any:
        """The content, or None: missing and empty files say nothing, broken ones are reported."""
        if path not in self._documents:
            self._documents[path] = self._load(source, path)
        return self._documents[path]

    def line(self, source: Source, path: Path, where: tuple[str, ...]) -> int | None:
        """The line on which an entry stands."""
        line_of = jsonc.line_of if source.load is jsonc.parse else locate.line_of
        return line_of(self._texts.get(path, ""), where)

    def report(self, source: Source, path: Path, problem: str, line: int | None = None) -> None:
        """Keeps a file as a whole among what was found."""
        self.broken.append(Found(source=source.id, file=path, name="", problem=problem, line=line))

    def _load(self, source: Source, path: Path) -> Any:
        try:
            if not path.exists():
                return None
            # Anything else may never answer, such as a pipe that someone left there.
            if not path.is_file():
                return self.report(source, path, "This is not a file.")
            text = self._texts[path] = read_text(path)
            document = source.load(text) if text.removeprefix("\ufeff").strip() else {}
        except (OSError, Unreadable) as error:
            return self.report(source, path, f"It could not be read: {error}.")
        except jsonc.JsoncError as error:
            return self.report(source, path, f"This is not valid JSON: {error.reason}.", error.line)
        except ConfigError as error:
            place = _TOML_PLACE.search(error.message)
            return self.report(source, path, error.message, int(place[1]) if place else None)
        if not isinstance(document, dict):
            return self.report(source, path, f"It should hold a table of settings, but is {kind_of(document)}.", 1)
        return document
