"""Sets single values in settings, as text, and takes them back: the old value returns, or the key goes.

What someone has set to another value since is theirs and stays. Every outcome is parsed and compared with what it
should say. Above: `redirect` and `store.redirects`. Below: documents, and the editors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

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


class Setting(msgspec.Struct, frozen=True):
    """One value that is set: the keys that lead to it, and the text."""

    path: Path
    value: str

    @property
    def name(self) -> str:
        """The keys as people write them."""
        return ".".join(self.path)


class Returned(msgspec.Struct, frozen=True, kw_only=True):
    """Settings from which values were taken back."""

    text: str
    restored: tuple[Setting, ...]
    kept: tuple[Setting, ...] = ()
    """Of these someone has made something else since; theirs stays."""
    is_empty: bool = False
    """Nothing is left, and there was no such file before."""


def value_at(document: Any, path: Path) -> Any:
    """The value at the end of these keys; None when there is none."""
    return table_at(document, path[:-1]).get(path[-1])


def apply(text: str, settings: Sequence[Setting], format: Format) -> str:  # noqa: A002 - it is the format
    """The settings with these values; refuses where they cannot be set without touching anything else."""
    expected = parse(text, format)
    after = text
    for setting in settings:
        *outer, last = setting.path
        made(expected, tuple(outer), "a table")[last] = setting.value
        after = EDITORS[format].with_value(after, tuple(outer), last, setting.value)
    if not _says(after, expected, settings, format):
        names = ", ".join(f"`{setting.name}`" for setting in settings)
        raise ConfigError(f"{names} cannot be set as this file is written.", hint="Set it by hand.")
    return after


def take_back(current: str, before: str | None, settings: Sequence[Setting], format: Format) -> Returned:  # noqa: A002
    """The settings as they are now with the old values; `before` is what they were, None when there were none."""
    old, now = parse(before or "", format), parse(current, format)
    kept = tuple(setting for setting in settings if value_at(now, setting.path) != setting.value)
    ours = tuple(setting for setting in settings if setting not in kept)
    expected = now
    for setting in ours:
        *outer, last = setting.path
        expected = copied(expected, tuple(outer))
        holder = table_at(expected, tuple(outer))
        if last in table_at(old, tuple(outer)):
            holder[last] = value_at(old, setting.path)
        else:
            del holder[last]
            prune(expected, old, tuple(outer))
    text = _patched(current, before or "", settings, expected, format)
    if text is None:
        text = _edited(current, old, ours, expected, format)
    # Of a file that was made for us, comments and blank lines of others still count.
    is_empty = before is None and not expected and not _without_mark(text).strip("{} \t\r\n")
    return Returned(text=text, restored=ours, kept=kept, is_empty=is_empty)


def _patched(
    current: str,
    before: str,
    settings: Sequence[Setting],
    expected: dict[str, Any],
    format: Format,  # noqa: A002
) -> str | None:
    try:
        after = apply(before, settings, format)
    except PegboardError:
        return None
    if after == current:
        return before
    return patched(current, before, after, lambda text: _says(text, expected, settings, format))


def _edited(
    current: str,
    old: dict[str, Any],
    ours: Sequence[Setting],
    expected: dict[str, Any],
    format: Format,  # noqa: A002
) -> str:
    editor, text = EDITORS[format], current
    for setting in ours:
        *outer, last = setting.path
        if last in table_at(old, tuple(outer)):
            text = editor.with_value(text, tuple(outer), last, value_at(old, setting.path))
        else:
            text = editor.without(text, tuple(outer), (last,))
            text = without_empty(text, expected, tuple(outer), format)
    if not _says(text, expected, ours, format):
        raise ConfigError("The change cannot be taken back without touching more.", hint="Take it out by hand.")
    return text


def _says(text: str, expected: dict[str, Any], settings: Sequence[Setting], format: Format) -> bool:  # noqa: A002
    return says(text, expected, [setting.path[:-1] for setting in settings], format)


def _without_mark(text: str) -> str:
    return text.removeprefix("\ufeff")
