"""A tool on one line: its name and what it takes, as short as its schema allows."""

from __future__ import annotations

from typing import Any

from pegboard.types import Json, Tool

_MOST_PARAMETERS = 12
_MOST_CHOICES = 5
_LONGEST = 40
"""Characters of a name or a choice: a server chose them, and an answer must stay small."""
_SHORT = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict", "null": "None"}


def signature(tool: Tool) -> str:
    """`github__create_issue(title: str, body?: str, state?: open|closed)`."""
    schema = tool.input_schema
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return f"{tool.public_name}()"
    required = schema.get("required")
    needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    names = sorted(properties, key=lambda name: name not in needed)
    shown = [
        f"{_cut(name)}{'' if name in needed else '?'}: {_type(properties[name])}" for name in names[:_MOST_PARAMETERS]
    ]
    more = [f"… {len(names) - _MOST_PARAMETERS} more"] if len(names) > _MOST_PARAMETERS else []
    return f"{tool.public_name}({', '.join([*shown, *more])})"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _type(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "any"
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        rest = "|…" if len(choices) > _MOST_CHOICES else ""
        return "|".join(_cut(str(choice)) for choice in choices[:_MOST_CHOICES]) + rest
    kind = schema.get("type")
    if isinstance(kind, list):
        return "|".join(_SHORT.get(str(each), str(each)) for each in kind)
    if kind == "array":
        return f"list[{_type(schema.get('items', {}))}]"
    if isinstance(kind, str):
        return _SHORT.get(kind, kind)
    return _union(schema)


def _union(schema: Json) -> str:
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list) and options:
            return "|".join(dict.fromkeys(_type(option) for option in options[:_MOST_CHOICES]))
    return "any"
