"""A tool's input schema, bent to what the model APIs take. Calls are checked against the true one: nothing is lost.

Both want an object at the root without a choice there. OpenAI wants `properties` and the `items` of every array as
well, Anthropic wants plain parameter names. Above: the dialects. Below: nothing. Pure.
"""

from __future__ import annotations

import re
from typing import Any

from pegboard.types import Json

_CHOICES = ("allOf", "anyOf", "oneOf")
_AT_NO_ROOT = (*_CHOICES, "enum", "const", "not", "if", "then", "else")
_WITHIN = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_BESIDE = ("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DEEPEST = 64


def rooted(schema: Any) -> Json:
    """The schema as an object without a choice at its root: a choice becomes all that any of its branches takes."""
    if not isinstance(schema, dict):
        return {"type": "object", "properties": {}}
    if schema.get("type") == "object" and not any(key in schema for key in (*_AT_NO_ROOT, "$ref")):
        return schema if isinstance(schema.get("properties", {}), dict) else {**schema, "properties": {}}
    properties, required = _gathered(schema, schema, _DEEPEST)
    kept = {key: value for key, value in schema.items() if key not in (*_AT_NO_ROOT, "$ref", "required")}
    root: Json = {**kept, "type": "object", "properties": properties}
    return {**root, "required": required} if required else root


def with_items(schema: Any, depth: int = _DEEPEST) -> Any:
    """The schema with `items` in every array; the very same where nothing is missing."""
    if not isinstance(schema, dict) or depth == 0:
        return schema
    changed: Json = {}
    for key, value in schema.items():
        bent = _bent(key, value, depth - 1)
        if bent is not value:
            changed[key] = bent
    kind = schema.get("type")
    if (kind == "array" or (isinstance(kind, list) and "array" in kind)) and "items" not in schema:
        changed["items"] = {}
    return {**schema, **changed} if changed else schema


def with_plain_keys(schema: Json) -> tuple[Json, list[str]]:
    """The schema without the parameters whose names cannot be said, and these names."""
    properties = schema.get("properties")
    odd = [key for key in properties if not _PLAIN_KEY.fullmatch(key)] if isinstance(properties, dict) else []
    if not odd or not isinstance(properties, dict):
        return schema, []
    kept = {key: value for key, value in properties.items() if key not in odd}
    required = [key for key in _names(schema.get("required")) if key in kept]
    rest = {key: value for key, value in schema.items() if key not in ("required", "additionalProperties")}
    return {**rest, "properties": kept, **({"required": required} if required else {})}, odd


def _gathered(schema: Any, root: Json, depth: int) -> tuple[Json, list[str]]:
    """All parameters that a schema and its branches know, and those that none of them can do without."""
    if not isinstance(schema, dict) or depth == 0:
        return {}, []
    own = schema.get("properties")
    properties: Json = dict(own) if isinstance(own, dict) else {}
    required = dict.fromkeys(_names(schema.get("required")))
    parts = [_pointed(schema["$ref"], root)] if "$ref" in schema else []
    parts += _branches(schema, "allOf")
    for part in parts:
        more, needed = _gathered(part, root, depth - 1)
        properties = {**more, **properties}
        required |= dict.fromkeys(needed)
    for key in ("anyOf", "oneOf"):
        branches = [_gathered(each, root, depth - 1) for each in _branches(schema, key)]
        for more, _ in branches:
            properties = {**more, **properties}
        always = [set(needed) for _, needed in branches]
        required |= dict.fromkeys(sorted(set.intersection(*always)) if always else ())
    return properties, [name for name in required if name in properties]


def _branches(schema: Json, key: str) -> list[Any]:
    value = schema.get(key)
    return value if isinstance(value, list) else []


def _pointed(reference: Any, root: Json) -> Any:
    """What a reference into the same schema points to."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: Any = root
    for step in reference[2:].split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


def _bent(key: str, value: Any, depth: int) -> Any:
    if key in _WITHIN and isinstance(value, dict):
        return _same_or({name: with_items(each, depth) for name, each in value.items()}, value)
    if key in _BESIDE:
        return with_items(value, depth)
    if key in (*_CHOICES, "prefixItems") and isinstance(value, list):
        bent = [with_items(each, depth) for each in value]
        return value if all(new is old for new, old in zip(bent, value, strict=True)) else bent
    return value


def _same_or(new: Json, old: Json) -> Json:
    return old if all(new[key] is old[key] for key in old) else new


def _names(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
