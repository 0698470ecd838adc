"""Changes settings as text and holds every outcome against what it should say; and takes such a change back.

Taking back what nobody touched since is a matter of bytes and not done here. Otherwise the lines of the change are
looked for and exchanged; where they are not as they were left, the entry is taken out and each server put back.
Above: `plan` and `store.installs`. Below: the two editors.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import ModuleType
from typing import Any, Literal

import msgspec

from pegboard.config.installers import edit_json, edit_toml
from pegboard.config.write import same_toml
from pegboard.errors import ConfigError, PegboardError

Format = Literal["json", "toml"]
Path = tuple[str, ...]

_EDITORS: dict[Format, ModuleType] = {"json": edit_json, "toml": edit_toml}


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What an install does to a client's settings: some servers go, one entry comes."""

    format: Format
    table: Path
    """The keys that lead to the servers."""
    moved: tuple[str, ...]
    name: str
    """What Pegboard is called there."""
    entry: dict[str, Any] | None
    """None: Pegboard is entered already, or in another file of the same program."""


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """Settings from which a change was taken back."""

    text: str
    restored: tuple[str, ...]
    kept: tuple[str, ...] = ()
    """Servers that someone has entered again since; theirs stay."""
    is_empty: bool = False
    """Nothing is left but what the install made."""


def parse(text: str, format: Format) -> dict[str, Any]:  # noqa: A002 - it is the format
    """What the settings say."""
    document: dict[str, Any] = _EDITORS[format].parse(text)
    return document


def servers_at(document: Any, path: Path) -> dict[str, Any]:
    """The table of servers; empty when there is none."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def apply(text: str, change: Change) -> str:
    """The settings after the change; refuses where it cannot be made without touching anything else."""
    editor = _EDITORS[change.format]
    expected = parse(text, change.format)
    for name in change.moved:
        servers_at(expected, change.table).pop(name, None)
    after: str = editor.without(text, change.table, change.moved)
    if change.entry is not None and servers_at(expected, change.table).get(change.name) != change.entry:
        _make(expected, change.table)[change.name] = change.entry
        after = editor.with_entry(after, change.table, change.name, change.entry)
    if not _says(after, expected, change):
        place = ".".join(change.table)
        raise ConfigError(
            f"Its servers cannot be taken out one by one as `{place}` is written.",
            hint=f"Write them as [{place}.<name>] tables." if change.format == "toml" else "Mend the file first.",
        )
    return after


def take_back(current: str, before: str | None, change: Change) -> Undone:
    """The settings as they are now without the change; `before` is what they were, None when there were none."""
    original = before or ""
    old, now = parse(original, change.format), parse(current, change.format)
    had, has = servers_at(old, change.table), servers_at(now, change.table)
    kept = tuple(name for name in change.moved if name in has and name != change.name)
    restored = tuple(name for name in change.moved if name in had and name not in kept)
    expected = _expected(now, old, change, restored)
    text = _patched(current, original, change, expected)
    if text is None:
        text = _edited(current, original, change, restored, expected)
    is_empty = before is None and not expected
    return Undone(text=text, restored=restored, kept=kept, is_empty=is_empty)


def without_servers(text: str, path: Path, names: Collection[str]) -> str:
    """A TOML text without these tables."""
    expected = parse(text, "toml")
    for name in names:
        servers_at(expected, path).pop(name, None)
    after = edit_toml.without(text, path, names)
    if not _says(after, expected, Change(format="toml", table=path, moved=(), name="", entry=None)):
        raise ConfigError(f"{', '.join(names)} cannot be taken out of this file.", hint="Take them out by hand.")
    return after


def _expected(now: dict[str, Any], old: dict[str, Any], change: Change, restored: Sequence[str]) -> dict[str, Any]:
    expected = _copied(now, change.table)
    had = servers_at(old, change.table)
    back = {name: had[name] for name in restored}
    if change.entry is not None:
        servers_at(expected, change.table).pop(change.name, None)
        back |= {change.name: had[change.name]} if change.name in had else {}
    if back:
        _make(expected, change.table).update(back)
    _prune(expected, old, change.table)
    return expected


def _copied(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """A copy in which the tables on the path may be changed."""
    copied = dict(document)
    if path and isinstance(inner := copied.get(path[0]), dict):
        copied[path[0]] = _copied(inner, path[1:])
    return copied


def _make(document: dict[str, Any], path: Path) -> dict[str, Any]:
    for key in path:
        inner = document.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"`{'.'.join(path)}` should be a table of servers, and is not.", hint="Mend the file.")
        document = inner
    return document


def _prune(document: dict[str, Any], old: dict[str, Any], path: Path) -> None:
    """Tables that the change made and that nobody else uses go with it."""
    for depth in range(len(path), 0, -1):
        holder = servers_at(document, path[: depth - 1])
        if holder.get(path[depth - 1]) == {} and path[depth - 1] not in servers_at(old, path[: depth - 1]):
            del holder[path[depth - 1]]


def _patched(current: str, before: str, change: Change, expected: dict[str, Any]) -> str | None:
    """The lines that the change left, exchanged for those it found; None when they are no longer there once."""
    try:
        after = apply(before, change)
    except PegboardError:
        return None
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    for around in (1, 0):
        first, last = max(head - around, 0), max(tail - around, 0)
        left = "".join(new[first : len(new) - last])
        if left.strip() and current.count(left) == 1:
            text = current.replace(left, "".join(old[first : len(old) - last]))
            if _says(text, expected, change):
                return text
    return None


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(left), len(right)))


def _edited(current: str, before: str, change: Change, restored: Sequence[str], expected: dict[str, Any]) -> str:
    editor = _EDITORS[change.format]
    text = current
    back = set(restored)
    if change.entry is not None:
        text = editor.without(text, change.table, (change.name,))
        back |= {change.name} & servers_at(parse(before, change.format), change.table).keys()
    text = editor.put_back(text, change.table, back, before) if back else text
    document = parse(text, change.format)
    for depth in range(len(change.table), 0, -1):
        outer, key = change.table[: depth - 1], change.table[depth - 1]
        if servers_at(document, change.table[:depth]) == {} and key not in servers_at(expected, outer):
            text = editor.without(text, outer, (key,))
            document = parse(text, change.format)
    if not _says(text, expected, change):
        raise ConfigError("The change cannot be taken back without touching more.", hint="Take it out by hand.")
    return text


def _says(text: str, expected: dict[str, Any], change: Change) -> bool:
    try:
        text.encode()
        found = parse(text, change.format)
    except (PegboardError, UnicodeEncodeError):
        return False
    if change.format == "toml":
        # A table without members is there or not: nobody can tell.
        for document in (found, expected := _copied(expected, change.table)):
            _prune(document, {}, change.table)
    return same_toml(found, expected)
