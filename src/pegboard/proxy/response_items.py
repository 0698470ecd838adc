"""Items of the Responses API: which of them the model said, and what each is known by when it comes back.

Above: `opening`, the editors of that wire. Below: `memory`. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pegboard.proxy.memory import mark
from pegboard.types import Json

NAMED = "item:"
"""Begins the mark of an item that is only named, and that nobody knows."""


class _Output(msgspec.Struct):
    """What a client's tool gave, as far as it says where it belongs: the bulk of most histories."""

    type: Any = None
    call_id: Any = None


_OUTPUT = msgspec.json.Decoder(_Output)


def brief(raw: msgspec.Raw) -> Any:
    """An item; of outputs only what they are of."""
    output = _OUTPUT.decode(raw)
    if not str(output.type).endswith("_output"):
        return msgspec.json.decode(raw)
    return {"type": output.type, "call_id": output.call_id}


def is_reference(item: Any) -> bool:
    """Whether it only names an item that the API keeps: the type may be left out."""
    if not isinstance(item, dict):
        return False
    return item.get("type") == "item_reference" or ("id" in item and not item.get("type") and not item.get("role"))


def is_models(item: Any) -> bool:
    """Whether the model said this; the rest is the client's. What is named has been kept, and so it is the model's."""
    if not isinstance(item, dict):
        return False
    if is_reference(item):
        return True
    kind = str(item.get("type") or "message")
    return item.get("role") == "assistant" if kind == "message" else not kind.endswith(("_output", "_response"))


def known(item: Any) -> Json:
    """An item as it is marked: a call and its output have one id. Texts are marked as such, as ids are often left."""
    if not isinstance(item, dict):
        return {}
    kind = str(item.get("type") or "message")
    if kind.endswith("_output"):
        return {"tool_call_id": item.get("call_id")}
    if kind == "message":
        return item
    if kind == "reasoning":
        return {"encrypted_content": item.get("encrypted_content") or item.get("id")}
    return item if item.get("encrypted_content") else {"call_id": item.get("call_id") or item.get("id")}


def mark_of(item: Any, named: Mapping[str, str]) -> str:
    """What an item is known by; `named` has the marks of items that may be named instead of said."""
    if is_reference(item):
        return named.get(str(item.get("id")), f"{NAMED}{item.get('id')}")
    return mark(known(item))


def said_by(item: Any) -> str:
    """What a message of the model's says, where that is text and nothing else: such a message can be taken apart."""
    if not isinstance(item, dict) or item.get("role") != "assistant":
        return ""
    content = item.get("content")
    if isinstance(content, list) and all(map(_is_plain, content)):
        return "".join(part["text"] for part in content)
    return content if isinstance(content, str) else ""


def halves(item: Json, length: int) -> tuple[Json, Json]:
    """Such a message as two, the first with so much of the text. Neither is what the API knows by the id."""
    kept = {key: value for key, value in item.items() if key != "id"}
    content = item["content"]
    if isinstance(content, str):
        return {**kept, "content": content[:length]}, {**kept, "content": content[length:]}
    first: list[Json] = []
    second: list[Json] = []
    for part in content:
        for half, text in ((first, part["text"][:length]), (second, part["text"][length:])):
            if text:
                half.append({**part, "text": text})
        length = max(length - len(part["text"]), 0)
    return {**kept, "content": first}, {**kept, "content": second}


def _is_plain(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str) and not part.get("annotations")
