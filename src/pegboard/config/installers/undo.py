"""Changes settings as text and holds every outcome against what it should say; and takes such a change back.

Taking back what nobody touched since is a matter of bytes and not done here. Otherwise the lines of the change are
looked for and exchanged; where they are not as they were left, the entry is taken out and each server put back.
Above: `plan` and `store.installs`. Below: documents, and the editors.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from pegboard.config.installers import edit_toml
from pegboard.config.installers.documents import (
    EDITORS,
    Format,
    Path,
    copied,
    made,
    parse,
    patched,
    prune,
    says,
    table_at,
    without_empty,
)
from pegboard.errors import ConfigError, PegboardError

__all__ = ["Change", "Format", "Undone", "apply", "parse", "servers_at", "take_back", "without_servers"]

servers_at = table_at


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


def apply(text: str, change: Change) -> str:
    """The settings after the change; refuses where it cannot be made without touching anything else."""
    editor = EDITORS[change.format]
    expected = parse(text, change.format)
    for name in change.moved:
        servers_at(expected, change.table).pop(name, None)
    after: str = editor.without(text, change.table, change.moved)
    if change.entry is not None and servers_at(expected, change.table).get(change.name) != change.entry:
        _made(expected, change.table)[change.name] = change.entry
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
    expected = copied(now, change.table)
    had = servers_at(old, change.table)
    back = {name: had[name] for name in restored}
    if change.entry is not None:
        servers_at(expected, change.table).pop(change.name, None)
        back |= {change.name: had[change.name]} if change.name in had else {}
    if back:
        _made(expected, change.table).update(back)
    prune(expected, old, change.table)
    return expected


def _made(document: dict[str, Any], path: Path) -> dict[str, Any]:
    return made(document, path, "a table of servers")


def _patched(current: str, before: str, change: Change, expected: dict[str, Any]) -> str | None:
    try:
        after = apply(before, change)
    except PegboardError:
        return None
    return patched(current, before, after, lambda text: _says(text, expected, change))


def _edited(current: str, before: str, change: Change, restored: Sequence[str], expected: dict[str, Any]) -> str:
    editor = EDITORS[change.format]
    text = current
    back = set(restored)
    if change.entry is not None:
        text = editor.without(text, change.table, (change.name,))
        back |= {change.name} & servers_at(parse(before, change.format), change.table).keys()
    text = editor.put_back(text, change.table, back, before) if back else text
    text = without_empty(text, expected, change.table, change.format)
    if not _says(text, expected, change):
        raise ConfigError("The change cannot be taken back without touching more.", hint="Take it out by hand.")
    return text


def _says(text: str, expected: dict[str, Any], change: Change) -> bool:
    return says(text, expected, (change.table,), change.format)
