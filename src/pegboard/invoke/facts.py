"""What the call path needs to know of a tool, worked out once for each definition.

Above: `path`. Below: `schema`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pegboard.invoke.policy import Effect
from pegboard.invoke.schema import Rule, compile_schema
from pegboard.types import Tool

_REMEMBERED = 256


class Facts(msgspec.Struct, frozen=True):
    """What one definition says that bears on calls."""

    rule: Rule
    """What its arguments must be."""
    effect: Effect
    repeatable: bool
    """Says that it is read-only or idempotent: the same call again changes nothing more."""
    has_output_schema: bool


def effect_of(tool: Tool) -> Effect:
    """Read when the server says that the tool is read-only, else write. A hint, and no more trusted than the server."""
    return _effect(tool.parsed().get("annotations"))


class KnownFacts:
    """Facts by fingerprint, for the tools that were called last."""

    def __init__(self) -> None:
        self._known: dict[str, Facts] = {}

    def of(self, tool: Tool) -> Facts:
        """The facts of this tool's definition."""
        facts = self._known.get(tool.fingerprint)
        if facts is None:
            if len(self._known) >= _REMEMBERED:
                del self._known[next(iter(self._known))]
            facts = self._known[tool.fingerprint] = _facts(tool)
        return facts


def _facts(tool: Tool) -> Facts:
    definition = tool.parsed()
    hints = definition.get("annotations")
    effect = _effect(hints)
    return Facts(
        rule=compile_schema(definition.get("inputSchema")),
        effect=effect,
        repeatable=effect == "read" or (isinstance(hints, dict) and hints.get("idempotentHint") is True),
        has_output_schema=isinstance(definition.get("outputSchema"), dict),
    )


def _effect(hints: Any) -> Effect:
    return "read" if isinstance(hints, dict) and hints.get("readOnlyHint") is True else "write"
