"""What a request says of the conversation it belongs to: how that began, and whether it is the beginning.

Above: `planner`. Below: `memory`, `response_items`. Pure. Most of a long history is never parsed for this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import msgspec

from pegboard.proxy.declared import Family
from pegboard.proxy.memory import digest, mark, text_of
from pegboard.proxy.response_items import is_models, mark_of
from pegboard.types import Json

Fields = Mapping[str, msgspec.Raw]
_DEFERRAL = re.compile(rb'"(?:tool_(?:reference|addition|removal|search)|additional_tools)')
LATEST = 3
"""Replies at the end of a history that are looked at."""
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
    """A message or an item: what tells of its place. What it says is not read."""

    role: str | None = None
    type: str | None = None
    content: msgspec.Raw = msgspec.Raw(b'""')
    tool_calls: msgspec.Raw = msgspec.Raw(b"null")
    tool_call_id: Any = None
    call_id: Any = None
    id: Any = None
    encrypted_content: Any = None

    def brief(self) -> Json:
        """Without what it says."""
        names = ("role", "type", "tool_call_id", "call_id", "id", "encrypted_content")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def read(self) -> Json:
        """As marks are made of it."""
        content: Any = msgspec.json.decode(self.content)
        return {**self.brief(), "content": content, "tool_calls": msgspec.json.decode(self.tool_calls)}


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """Where in which conversation a request stands."""

    key: str
    """The same for all requests of one conversation; empty when the request does not say how it began."""
    is_first: bool
    prior: str
    """The mark of what the model is to answer."""
    previous: str = ""
    """The reply it goes on from, where the API keeps the history."""
    row: int = 0
    """Which message the reply will be in the client's history, or which run of items; 0 where nobody knows."""
    said: frozenset[str] = frozenset()
    """Marks of the model's first and latest replies."""


def opening(family: Family, fields: Fields, *context: str) -> Opening | None:
    """What a request says; None when it is not what the wire says it is. `context` tells conversations apart, too."""
    said = fields.get("input" if family == "responses" else "messages")
    if said is None:
        return None
    try:
        heads = _heads(said)
        previous = _text(fields.get("previous_response_id"))
        first = next((head for head in heads if head.role == "user"), None)
        text = text_of(msgspec.json.decode(first.content)) if first is not None else ""
        replies = [head for head in heads if _is_reply(family, head)]
        prior = _prior(family, heads[-1].read()) if heads else ""
        marks = frozenset(
            known
            for head in {id(each): each for each in (*replies[:1], *replies[-LATEST:])}.values()
            for known in _marks(family, head.read())
        )
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    if not heads:
        return None
    key = digest(family, *context, text) if first is not None and not previous else ""
    return Opening(
        key=key,
        is_first=bool(key) and not previous and not replies,
        prior=prior,
        previous=previous,
        row=_row(family, heads) if not previous else 0,
        said=marks,
    )


def defers_itself(fields: Fields) -> bool:
    """Whether the client uses the API's own ways of deferring tools: then it is left alone."""
    said = [fields[field] for field in ("messages", "input") if field in fields]
    return any(_DEFERRAL.search(memoryview(each)) and _has_sign(msgspec.json.decode(each), 8) for each in said)


def _has_sign(value: Any, depth: int) -> bool:
    if depth == 0:
        return False
    if isinstance(value, list):
        return any(_has_sign(each, depth - 1) for each in value)
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    return (isinstance(kind, str) and kind in _SIGNS) or _has_sign(value.get("content"), depth - 1)


def _heads(said: msgspec.Raw) -> list[_Head]:
    if bytes(memoryview(said)[:1]) == b'"':
        return [_Head(role="user", content=said)]
    return msgspec.json.decode(said, type=list[_Head])


def _is_reply(family: Family, head: _Head) -> bool:
    return is_models(head.brief()) if family == "responses" else head.role == "assistant"


def _row(family: Family, heads: list[_Head]) -> int:
    """Where the reply will be: a message of its own, or a run of items, which goes on where the model spoke last."""
    if family != "responses":
        return len(heads)
    sides = [side for side, _ in groupby(_is_reply(family, head) for head in heads)]
    return len(sides) - sides[-1]


def _marks(family: Family, reply: Json) -> list[str]:
    """As `turn` marks what it shows."""
    content = reply["content"]
    if family == "messages":
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        return [mark(block) for block in blocks]
    if family == "completions":
        calls = reply["tool_calls"] if isinstance(reply["tool_calls"], list) else []
        ids = [{"call_id": each.get("id")} for each in calls if isinstance(each, dict)]
        return [mark(each) for each in ({"type": "text", "text": text_of(content)}, *ids)]
    return [mark_of(reply, {})]


def _prior(family: Family, last: Json) -> str:
    """As `weave` marks it: by the last block of the last message."""
    if family == "responses":
        return mark_of(last, {})
    content = last.get("content")
    blocks: list[Json] = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    if family == "messages" and blocks:
        return mark(blocks[-1])
    return mark({"type": "text", "text": text_of(last)}) if "tool_call_id" not in last else mark(last)


def _text(raw: msgspec.Raw | None) -> str:
    value: Any = msgspec.json.decode(raw) if raw is not None else None
    return value if isinstance(value, str) else ""
