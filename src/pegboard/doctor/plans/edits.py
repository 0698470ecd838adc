"""Single edits of settings, as text: what each does, and whether it still stands. Only the key that is named changes.

Above: plans, and the journal that remembers them. Below: the editors of the installers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from pegboard.config.installers import edit_json
from pegboard.config.installers.documents import EDITORS, Format, copied, made, parse, says, table_at
from pegboard.errors import ConfigError


class Edit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change at the end of these keys."""

    path: tuple[str, ...]
    do: Literal["set", "remove", "add", "drop"]
    """A value is set or its key removed; an element is added to a list or dropped from it."""
    value: str | bool | None = None
    """What is set, added or dropped."""

    @property
    def name(self) -> str:
        """The keys as people write them."""
        return ".".join(self.path)


def edited(text: str, edits: Sequence[Edit], format: Format) -> str:  # noqa: A002 - it is the format
    """The settings after these edits; refuses where they cannot be made without touching anything else."""
    for edit in edits:
        expected = _expected(parse(text, format), edit)
        after = text if expected is None else _changed(text, edit, format)
        if expected is not None and not says(after, expected, [edit.path[:-1]], format):
            raise ConfigError(f"`{edit.name}` cannot be changed as this file is written.", hint="Change it by hand.")
        text = after
    return text


def _expected(document: dict[str, Any], edit: Edit) -> dict[str, Any] | None:
    """What the settings should say afterwards; None when they say it already."""
    if stands(document, edit):
        return None
    *outer, last = edit.path
    expected = copied(document, tuple(outer))
    if edit.do == "remove":
        del table_at(expected, tuple(outer))[last]
        return expected
    holder = made(expected, tuple(outer), "a table")
    if edit.do == "set":
        holder[last] = edit.value
        return expected
    listed = holder.get(last, [])
    if not isinstance(listed, list):
        raise ConfigError(f"`{edit.name}` should be a list, and is not.", hint="Mend the file first.")
    holder[last] = [*listed, edit.value] if edit.do == "add" else [each for each in listed if each != edit.value]
    return expected


def _changed(text: str, edit: Edit, format: Format) -> str:  # noqa: A002
    *outer, last = edit.path
    editor = EDITORS[format]
    if edit.do == "set":
        return str(editor.with_value(text, tuple(outer), last, edit.value))
    if edit.do == "remove":
        return str(editor.without(text, tuple(outer), (last,)))
    if format != "json" or not isinstance(edit.value, str):
        raise ConfigError(f"`{edit.name}` is a list in a file that is no JSON.", hint="Change it by hand.")
    if edit.do == "add":
        return edit_json.with_element(text, edit.path, edit.value)
    return edit_json.without_elements(text, edit.path, (edit.value,))


def stands(document: Any, edit: Edit) -> bool:
    """Whether the settings say what the edit made them say."""
    *outer, last = edit.path
    holder = table_at(document, tuple(outer))
    if edit.do == "remove":
        return last not in holder
    found = holder.get(last)
    if edit.do == "set":
        return type(found) is type(edit.value) and found == edit.value
    is_listed = isinstance(found, list) and edit.value in found
    return is_listed if edit.do == "add" else not is_listed
