"""What a request says of the conversation it belongs to: how that began, and whether it is the beginning.

Above: `planner`. Below: `memory`. Pure. Most of a long history is never parsed for this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pegboard.proxy.declared import Family
from pegboard.proxy.memory import digest, mark, text_of
from pegboard.types import Json

Fields = Mapping[str, msgspec.Raw]
_DEFERRAL = (b"tool_reference", b"tool_addition", b"tool_search", b"additional_tools", b"defer_loading")
_SIGNS = frozenset(
    {
        "tool_reference",
        "tool_addition",
        "tool_removal",
        "additional_tools",
        "tool_search_tool_result",
        "tool_search_call",
        "tool_search_output",
    }
)


class _Head(msgspec.Struct):
    role: str | None = None
    type: str | None = None
    content: msgspec.Raw = msgspec.Raw(b'""')


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """Where in which conversation a request stands."""

    key: str
    """The same for all requests of one conversation; empty when the request does not say how it began."""
    is_first: bool
    prior: str
    """The mark of what the model is to answer."""
    previous: str = ""
    """The reply it goes on from, where the API keeps the history."""


def opening(family: Family, fields: Fields, *context: str) -> Opening | None:
    """What a request says; None when it is not what the wire says it is. `context` tells conversations apart, too."""
    said = fields.get("input" if family == "responses" else "messages")
    if said is None:
        return None
    try:
        whole = _items(said)
        heads = [msgspec.json.decode(raw, type=_Head) for raw in whole]
        last: Any = msgspec.json.decode(whole[-1]) if whole else None
        previous = _text(fields.get("previous_response_id"))
        first = next((head for head in heads if head.role == "user"), None)
        text = text_of(msgspec.json.decode(first.content)) if first is not None else ""
    except msgspec.MsgspecError:
        return None
    if not heads:
        return None
    begun = previous or any(head.role == "assistant" or head.type in ("function_call", "reasoning") for head in heads)
    key = digest(family, *context, text) if first is not None and not previous else ""
    return Opening(key=key, is_first=not begun and bool(key), prior=_prior(family, last), previous=previous)


def defers_itself(body: bytes, fields: Fields) -> bool:
    """Whether the client uses the API's own ways of deferring tools: then it is left alone."""
    if not any(sign in body for sign in _DEFERRAL):
        return False
    said = [fields[field] for field in ("messages", "input") if field in fields]
    return any(_has_sign(msgspec.json.decode(each), 8) for each in said)


def _has_sign(value: Any, depth: int) -> bool:
    if depth == 0:
        return False
    if isinstance(value, list):
        return any(_has_sign(each, depth - 1) for each in value)
    if not isinstance(value, dict):
        return False
    return value.get("type") in _SIGNS or _has_sign(value.get("content"), depth - 1)


def _items(said: msgspec.Raw) -> list[msgspec.Raw]:
    if bytes(said).lstrip()[:1] == b'"':
        return [msgspec.Raw(b'{"role":"user","content":%s}' % bytes(said))]
    return msgspec.json.decode(said, type=list[msgspec.Raw])


def _prior(family: Family, last: Any) -> str:
    """As `weave` marks it: by the last block of the last message."""
    if not isinstance(last, dict):
        return ""
    if family == "responses":
        return mark(last if "call_id" not in last else {"tool_call_id": last["call_id"]})
    content = last.get("content")
    blocks: list[Json] = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    if family == "messages" and blocks:
        return mark(blocks[-1])
    return mark({"type": "text", "text": text_of(last)}) if "tool_call_id" not in last else mark(last)


def _text(raw: msgspec.Raw | None) -> str:
    value: Any = msgspec.json.decode(raw) if raw is not None else None
    return value if isinstance(value, str) else ""
