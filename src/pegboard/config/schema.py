"""The JSON Schema of pegboard.toml, for editors that complete and check TOML.

Made from the model, so that it cannot say anything else than the program does. Above: `pegboard config schema`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pegboard.config.check import SECTIONS
from pegboard.config.model import ServerConfig
from pegboard.types import Json

_REFERENCE = "#/$defs/{name}"


def schema() -> Json:
    """The schema of the whole file."""
    tables = (*SECTIONS.values(), ServerConfig)
    references, definitions = msgspec.json.schema_components(tables, ref_template=_REFERENCE)
    sections = dict(zip((*SECTIONS, "server"), references, strict=True))
    server = sections.pop("server")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pegboard.toml",
        "description": "The configuration of Pegboard. Each file may say a part; stronger files win key by key.",
        "type": "object",
        "properties": {
            **sections,
            "servers": {
                "description": "MCP servers by name; the name is the first part of their tools' names.",
                "type": "object",
                "propertyNames": {"pattern": r"\S"},
                "additionalProperties": server,
            },
        },
        "additionalProperties": False,
        "$defs": {name: _without_null(table) for name, table in sorted(definitions.items())},
    }


def _without_null(node: Any) -> Any:
    """TOML has no null: a key that may be missing is just not written."""
    if isinstance(node, list | tuple):
        return [_without_null(item) for item in node]
    if not isinstance(node, dict):
        return node
    clean = {key: _without_null(value) for key, value in node.items() if key != "default" or value is not None}
    options = clean.get("anyOf")
    if isinstance(options, list):
        options = [option for option in options if option != {"type": "null"}]
        if len(options) == 1:
            del clean["anyOf"]
            return {**options[0], **clean}
        clean["anyOf"] = options
    return clean
