"""Single edits of settings, as text: what each does, and whether it still stands. Only the key that is named changes.

Above: plans, and the journal that remembers them. Below: the editors of the installers.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from pegboard.config.installers.documents import table_at


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
