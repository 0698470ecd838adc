"""Records as rows of a table, and back. Whatever a record holds, it fits: text is cut, numbers are kept in range.

Above: `sqlite`. Below: the nouns.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, TypeVar

import msgspec

from pegboard.types import Exposure, Lookup, Outcome, Record, SkillLoad

NAME_CAP = 300
"""Characters kept of a tool's, server's or caller's name, and of a conversation's key."""
CAPS = {"query": 2000, "detail": 500}
"""Characters kept of longer texts, by field."""
FOUND_CAP = 100
"""Names kept of one search's answer."""
_LARGEST = 2**63 - 1
_IN_JSON = frozenset({"found", "deferred_tokens"})
_FIELD_CAPS: dict[type[Record], tuple[int, ...]] = {
    kind: tuple(CAPS.get(name, NAME_CAP) for name in kind.__struct_fields__)
    for kind in (Outcome, Lookup, Exposure, SkillLoad)
}
_Kind = TypeVar("_Kind", Outcome, Lookup, Exposure, SkillLoad)


def row_of(record: Record) -> tuple[Any, ...]:
    """The values of its fields, in the order of the fields."""
    values = msgspec.structs.astuple(record)
    return tuple([_plain(value, cap) for value, cap in zip(values, _FIELD_CAPS[type(record)], strict=True)])


def outcome_of(row: Sequence[Any]) -> Outcome | None:
    """The outcome in a row; None when it holds what this version does not know."""
    return _record_of(row, Outcome)


def lookup_of(row: Sequence[Any]) -> Lookup | None:
    """The lookup in a row; None when it holds what this version does not know."""
    return _record_of(row, Lookup)


def exposure_of(row: Sequence[Any]) -> Exposure | None:
    """The exposure in a row; None when it holds what this version does not know."""
    return _record_of(row, Exposure)


def skill_load_of(row: Sequence[Any]) -> SkillLoad | None:
    """The loading of a skill in a row; None when it holds what this version does not know."""
    return _record_of(row, SkillLoad)


def text(value: str, cap: int = NAME_CAP) -> str:
    """At most so many characters, all of which a database can hold."""
    short = value[:cap]
    if short.isascii():
        return short
    return short.encode("utf-8", "backslashreplace").decode("utf-8")


def _record_of(row: Sequence[Any], kind: type[_Kind]) -> _Kind | None:
    fields: dict[str, Any] = dict(zip(kind.__struct_fields__, row, strict=True))
    try:
        for name in _IN_JSON & fields.keys():
            fields[name] = msgspec.json.decode(fields[name])
        return msgspec.convert(fields, kind, strict=False)
    except msgspec.MsgspecError:
        return None


def _plain(value: Any, cap: int) -> Any:
    # By exact type, the commonest first: this is most of what a record costs on its way to the disk.
    kind = type(value)
    if kind is str:
        return value if len(value) <= cap and value.isascii() else text(value, cap)
    if kind is float:
        return value if isfinite(value) else 0.0
    if kind is int or kind is bool:
        return int(value) if -_LARGEST <= value <= _LARGEST else (_LARGEST if value > 0 else -_LARGEST)
    if value is None:
        return None
    if isinstance(value, str):
        return text(value, cap)
    if kind is dict:
        return msgspec.json.encode({text(key): _plain(each, cap) for key, each in value.items()}).decode()
    return msgspec.json.encode([text(each) for each in value[:FOUND_CAP]]).decode()
