"""What is plainly wrong with a call's arguments, in words. It looks at the top level only, and follows no reference:
schemas come from servers, and a hostile one must not keep us busy.
"""

from __future__ import annotations

from typing import Any

from pegboard.types import Json

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int, float),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_WORDS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    return _WORDS.get(type(value), "a number")


def misfits(arguments: Json, schema: Json) -> list[str]:
    """Required arguments that are missing, unknown ones where none are allowed, and those of another type."""
    properties = schema.get("properties")
    known: Json = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    found = [f"{name} is missing" for name in required if name not in arguments] if isinstance(required, list) else []
    for name, value in arguments.items():
        field = known.get(name)
        if field is None and schema.get("additionalProperties") is False:
            found.append(f"{name} is unknown")
        elif isinstance(field, dict) and not _fits(value, field.get("type")):
            found.append(f"{name} must be of type {field['type']}, not {kind_of(value)}")
    return found


def _fits(value: Any, kind: Any) -> bool:
    kinds = _KINDS.get(kind) if isinstance(kind, str) else None
    if kinds is None:
        return True
    return isinstance(value, kinds) and (not isinstance(value, bool) or kind == "boolean")
