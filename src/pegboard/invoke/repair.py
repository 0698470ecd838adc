"""Mends arguments where the schema leaves no doubt what was meant, and says what it did. A valid call is never changed.

Only what is surely wrong is touched, and only in the ways models get things wrong: JSON written as text, keys in
another case, one value where a list is wanted, null for what could be left out. Above: `path`. Below: `arguments`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pegboard.invoke.arguments import Check, Path, TooMuch, is_of_type, kind_of, misfits, spelled
from pegboard.invoke.schema import Rule
from pegboard.types import Json

_LONGEST_TEXT = 1 << 20
_DEPTH = 16
_MEANS = {"true": True, "false": False}
_JOINTS = str.maketrans("", "", "_- ")


class Mended(msgspec.Struct, frozen=True):
    """Arguments as they would be sent."""

    arguments: Any
    """The very object that came, when nothing was mended."""
    repairs: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    """What still does not fit."""


def mend(arguments: Any, rule: Rule, *, repair: bool = True) -> Mended:
    """The arguments, mended if they need it and it is allowed."""
    notes: list[str] = []
    value = arguments
    if isinstance(value, str) and repair:
        value = _decoded(value)
        notes.append("arguments: text read as an object")
    if not isinstance(value, dict):
        return Mended(arguments, (), (f"arguments must be an object, not {kind_of(arguments)}",))
    wrong = misfits(value, rule)
    if wrong and repair:
        try:
            value = _Mender(notes).mend(rule, value, (), 0)
        except TooMuch:
            return Mended(arguments, (), tuple(wrong))
        wrong = misfits(value, rule)
    return Mended(value, tuple(notes), tuple(wrong))


class _Mender:
    """Goes through a value and notes what it mends; all its looking is bounded together."""

    def __init__(self, notes: list[str], check: Check | None = None) -> None:
        self._notes = notes
        self._check = check or Check()

    def mend(self, rule: Rule, value: Any, path: Path, depth: int) -> Any:
        """The value with all that is surely meant otherwise put right."""
        if depth > _DEPTH or self._check.fits(value, rule):
            return value
        for each in rule.all_of:
            value = self.mend(each, value, path, depth + 1)
        if not is_of_type(value, rule.types):
            value = self._retyped(rule, value, path)
        if isinstance(value, dict):
            value = self._mend_object(rule, value, path, depth)
        elif isinstance(value, list) and rule.items is not None:
            items = rule.items
            value = [self.mend(items, each, (*path, number), depth + 1) for number, each in enumerate(value)]
        for group in rule.any_of:
            value = self._mend_one_of(group, value, path, depth)
        return value

    def _retyped(self, rule: Rule, value: Any, path: Path) -> Any:
        if isinstance(value, str):
            read = _decoded(value)
            if read is not None and is_of_type(read, rule.types):
                self._notes.append(f"{spelled(path)}: text read as {kind_of(read)}")
                return read
        items = rule.items
        if rule.types - {"null"} != {"array"} or items is None or not items.types:
            return value
        if isinstance(value, dict | list | None) or not self._check.fits(value, items):
            return value
        self._notes.append(f"{spelled(path)}: one value put into an array")
        return [value]

    def _mend_object(self, rule: Rule, value: Json, path: Path, depth: int) -> Json:
        renamed = _renamings(rule, value)
        mended: Json = {}
        for name, item in value.items():
            key = renamed.get(name, name)
            field = rule.properties.get(key)
            if key != name:
                self._notes.append(f"{spelled((*path, name))}: taken as {spelled((key,))}")
            if item is None and field is not None and key not in rule.required and not self._check.fits(None, field):
                self._notes.append(f"{spelled((*path, key))}: null left out")
            else:
                mended[key] = item if field is None else self.mend(field, item, (*path, key), depth + 1)
        return mended

    def _mend_one_of(self, group: tuple[Rule, ...], value: Any, path: Path, depth: int) -> Any:
        """The value as the one alternative has it that it can be mended for; unchanged when there are two, or none."""
        if any(self._check.fits(value, each) for each in group):
            return value
        ways: dict[bytes, tuple[Any, list[str]]] = {}
        for each in group:
            heard: list[str] = []
            mended = _Mender(heard, self._check).mend(each, value, path, depth + 1)
            if heard and self._check.fits(mended, each):
                ways.setdefault(msgspec.json.encode(mended, order="sorted"), (mended, heard))
        if len(ways) != 1:
            return value
        ((mended, heard),) = ways.values()
        self._notes += heard
        return mended


def _decoded(text: str) -> Any:
    """What the text says as JSON, or as Python says true and false; None when it says nothing."""
    if len(text) > _LONGEST_TEXT:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _MEANS.get(text.strip().lower())


def _renamings(rule: Rule, value: Json) -> dict[str, str]:
    """The keys that are surely meant for another: one such key, one such property, and a fault that this mends."""
    unknown = [name for name in value if name not in rule.properties]
    wanted = rule.properties if rule.closed else rule.required
    missing = {name for name in wanted if name in rule.properties and name not in value}
    if not unknown or not missing:
        return {}
    meant: dict[str, list[str]] = {}
    for name in rule.properties:
        meant.setdefault(_folded(name), []).append(name)
    written: dict[str, list[str]] = {}
    for name in unknown:
        written.setdefault(_folded(name), []).append(name)
    return {
        written[folded][0]: names[0]
        for folded, names in meant.items()
        if len(names) == 1 and names[0] in missing and len(written.get(folded, ())) == 1
    }


def _folded(name: str) -> str:
    return name.translate(_JOINTS).casefold()
