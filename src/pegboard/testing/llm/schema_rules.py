"""What OpenAI's APIs say no to in a function: its name, its schema, strict mode.

Above: the rules of Responses and Chat Completions. Below: nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pegboard.types import Json

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_AT_ROOT = ("oneOf", "anyOf", "allOf", "enum", "not")


def function_problem(function: Json) -> str | None:
    """What is wrong with a function: the name is up to 64 plain characters, the schema an object without a choice at
    its root and with `properties`, every array says what its items are, strict mode wants everything required."""
    name, schema = str(function.get("name")), function.get("parameters")
    if not _NAME.fullmatch(name):
        return f"Invalid name {name!r}: string does not match pattern '^[a-zA-Z0-9_-]+$' of at most 64"
    if schema is None:
        return None
    about = f"Invalid schema for function '{name}': "
    if not isinstance(schema, dict) or schema.get("type") != "object" or any(key in schema for key in _NOT_AT_ROOT):
        return (
            f"{about}schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
        )
    if "properties" not in schema:
        return f"{about}In context=(), object schema missing properties."
    if any("items" not in each for each in arrays(schema)):
        return f"{about}array schema missing items."
    if function.get("strict") and (schema.get("additionalProperties") is not False or not _all_required(schema)):
        return f"{about}'additionalProperties' is required to be false and all properties to be required."
    return None


def arrays(schema: Any, depth: int = 64) -> Iterator[Json]:
    """Every schema of an array within, at whatever depth."""
    if isinstance(schema, list):
        for each in schema:
            yield from arrays(each, depth - 1)
    if not isinstance(schema, dict) or depth <= 0:
        return
    kind = schema.get("type")
    if kind == "array" or (isinstance(kind, list) and "array" in kind):
        yield schema
    for key, value in schema.items():
        if key in ("properties", "$defs", "definitions") and isinstance(value, dict):
            yield from arrays(list(value.values()), depth - 1)
        elif key not in ("enum", "const", "default", "examples", "required"):
            yield from arrays(value, depth - 1)


def _all_required(schema: Json) -> bool:
    return set(schema.get("required") or ()) == set(schema["properties"] or ())
