"""The list of models, as either company has it.

Above: `FakeLLM`. Below: nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.types import Json

_ANTHROPIC = ("claude-opus-5-5", "claude-sonnet-5", "claude-haiku-4-5")
_OPENAI = ("gpt-5.6", "gpt-5.5", "gpt-4.1")


def models(headers: Mapping[str, str]) -> Json:
    """A few models, in the form that whoever asks with such headers expects."""
    if "anthropic-version" not in headers:
        about = {"object": "model", "created": 0, "owned_by": "openai"}
        return {"object": "list", "data": [{"id": each, **about} for each in _OPENAI]}
    since = "2026-01-01T00:00:00Z"
    listed = [{"type": "model", "id": each, "display_name": each, "created_at": since} for each in _ANTHROPIC]
    return {"data": listed, "has_more": False, "first_id": _ANTHROPIC[0], "last_id": _ANTHROPIC[-1]}
