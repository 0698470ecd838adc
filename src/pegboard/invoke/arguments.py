"""What is wrong with a call's arguments, in words. What fits, and what cannot be told, is left to the server.

One implementation for every way in, the command line among them. The work is bounded whatever the schema: where it
would grow beyond that, nothing is wrong. Above: `repair`, `path`, the command line. Below: `schema`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from pegboard.invoke.schema import LIMITS, Enum, Rule, compile_schema
from pegboard.invoke.visible import shown
from pegboard.types import Json

_WORDS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
_NAMES: dict[type, tuple[str, ...]] = {
    str: ("string",),
    bool: ("boolean",),
    int: ("integer", "number"),
    list: ("array",),
    dict: ("object",),
    type(None): ("null",),
}
_STEPS = 5_000
_DEPTH = 120
_LISTED = 12
_FAULTS = 50
_NAME_LENGTH = 100

Path = tuple[str | int, ...]


class TooMuch(Exception):
    """Telling whether the value fits would take longer than it is worth."""


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    return _WORDS.get(type(value), "a number")


def misfits(arguments: Json, schema: Json | Rule) -> list[str]:
    """What does not fit: missing, unknown and mistyped arguments, values out of bounds. Empty when nothing is sure."""
    rule = schema if isinstance(schema, Rule) else compile_schema(schema)
    if _fits_at_a_glance(arguments, rule):
        return []
    try:
        faults = islice(Check().faults(rule, arguments, (), 0), _FAULTS)
        return [f"{spelled(path)} {words}" for path, words in faults]
    except TooMuch:
        return []


def _fits_at_a_glance(arguments: Json, rule: Rule) -> bool:
    """Whether all that is required is there and each argument is one of which a type is all that is demanded.

    Most calls are like that, and a check that can say what is wrong takes four times as long.
    """
    if not rule.only_fields or (rule.types and "object" not in rule.types):
        return False
    for name in rule.required:
        if name not in arguments:
            return False
    fields = rule.properties
    for name, value in arguments.items():
        field = fields.get(name)
        if field is None or not field.only_types or not is_of_type(value, field.types):
            return False
    return True


def is_of_type(value: Any, types: frozenset[str]) -> bool:
    """Whether a JSON value is of one of these types; no types allow all. 3.0 is an integer, true is no number."""
    if not types:
        return True
    if type(value) is float:
        return "number" in types or ("integer" in types and value.is_integer())
    return not types.isdisjoint(_NAMES.get(type(value), ()))


def spelled(path: Path) -> str:
    """Where in the arguments, as one would write it: `filter.labels[2]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else ("." if text else "") + shown(step, _NAME_LENGTH)
    return text or "arguments"


class Check:
    """A look at values, with a bounded number of steps for all of them together; then it raises TooMuch."""

    def __init__(self) -> None:
        self._left = _STEPS

    def fits(self, value: Any, rule: Rule) -> bool:
        """Whether nothing is surely wrong with the value."""
        return next(self.faults(rule, value, (), 0), None) is None

    def faults(self, rule: Rule, value: Any, path: Path, depth: int) -> Iterator[tuple[Path, str]]:
        """Where and how the value does not fit."""
        self._spend(1, depth)
        for each in rule.all_of:
            yield from self.faults(each, value, path, depth + 1)
        if not is_of_type(value, rule.types):
            yield path, f"must be of type {_or(rule.types)}, not {kind_of(value)}"
            return
        if rule.enum is not None and not self._is_listed(value, rule.enum):
            yield path, f"must be one of {_listed(rule.enum.values)}"
        if isinstance(value, dict):
            yield from self._in_object(rule, value, path, depth)
        elif isinstance(value, list) and rule.items is not None:
            for position, item in enumerate(value):
                yield from self.faults(rule.items, item, (*path, position), depth + 1)
        if rule.limits:
            yield from ((path, words) for words in _out_of_bounds(rule, value))
        for group in rule.any_of:
            yield from self._of_none(group, value, path, depth)

    def _spend(self, steps: int, depth: int = 0) -> None:
        self._left -= steps
        if self._left < 0 or depth > _DEPTH:
            raise TooMuch

    def _is_listed(self, value: Any, enum: Enum) -> bool:
        if not isinstance(value, dict | list):
            return value in enum.scalars
        self._spend(len(enum.nested))
        return value in enum.nested

    def _in_object(self, rule: Rule, value: Json, path: Path, depth: int) -> Iterator[tuple[Path, str]]:
        self._spend(len(value))
        yield from (((*path, name), "is missing") for name in rule.required if name not in value)
        for name, item in value.items():
            field = rule.properties.get(name)
            if field is not None:
                yield from self.faults(field, item, (*path, name), depth + 1)
            elif rule.closed:
                yield (*path, name), "is unknown"

    def _of_none(self, group: tuple[Rule, ...], value: Any, path: Path, depth: int) -> Iterator[tuple[Path, str]]:
        """What is wrong when the value fits no alternative: told of the one that it comes closest to."""
        found: list[list[tuple[Path, str]]] = []
        for each in group:
            faults = list(self.faults(each, value, path, depth + 1))
            if not faults:
                return
            found.append(faults)
        meant = [
            faults
            for each, faults in zip(group, found, strict=True)
            if each.types != {"null"} and (not each.types or is_of_type(value, each.types))
        ]
        kinds = frozenset[str]().union(*(each.types for each in group))
        if len(meant) == 1:
            yield from meant[0]
        elif not meant and all(each.types for each in group):
            yield path, f"must be of type {_or(kinds)}, not {kind_of(value)}"
        else:
            yield path, f"fits none of the {len(group)} forms that are allowed"


def _out_of_bounds(rule: Rule, value: Any) -> Iterator[str]:
    for keyword, bound in rule.limits:
        kind, words = LIMITS[keyword]
        if not is_of_type(value, frozenset({kind})):
            continue
        size = value if kind == "number" else len(value)
        if not _kept(keyword, size, bound):
            yield words.format(f"{bound:g}" if isinstance(bound, float) else bound)


def _kept(keyword: str, size: float, bound: float) -> bool:
    if keyword == "exclusiveMinimum":
        return size > bound
    if keyword == "exclusiveMaximum":
        return size < bound
    return size >= bound if keyword.startswith("min") else size <= bound


def _or(types: frozenset[str]) -> str:
    return " or ".join(sorted(types, key=lambda name: (name == "null", name)))


def _listed(values: list[Any]) -> str:
    import msgspec

    first = [shown(msgspec.json.encode(each).decode(), _NAME_LENGTH) for each in values[:_LISTED]]
    return ", ".join(first) + (f" and {len(values) - _LISTED} more" if len(values) > _LISTED else "")
