"""The blocks of a result: which there are too many of, which are too large, and what is said in their place.

Above: `shape`. Below: `visible`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

import msgspec

from pegboard.catalog.budget import deeper_than
from pegboard.invoke.visible import shown
from pegboard.types import Json

MEDIA_BYTES = 5 * 1024 * 1024
"""Of pictures, sounds and files in one result. What they cost a model is not their bytes, so text has its own limit."""
_HEAD_SHARE = 0.7
_NAME = 120
_DESCRIBED = 50
_UNTOLD = 1 << 40


class Budget:
    """What is left for the blocks that are not text."""

    def __init__(self, other_bytes: int, depth: int) -> None:
        self.depth = depth
        self._media, self._other = MEDIA_BYTES, other_bytes

    def takes(self, size: int, *, media: bool) -> bool:
        """Whether so much more fits; then it is taken."""
        left = (self._media if media else self._other) - size
        if left < 0:
            return False
        if media:
            self._media = left
        else:
            self._other = left
        return True


def is_text(block: Any) -> TypeGuard[Json]:
    """Whether it is a block of text."""
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)


def text_block(text: str) -> Json:
    """A block of text."""
    return {"type": "text", "text": text}


def fewer(blocks: list[Any], most: int) -> list[Any]:
    """At most so many blocks: the first and the last as they are, those between as one text."""
    if len(blocks) <= most:
        return blocks
    head = int((most - 1) * _HEAD_SHARE)
    tail = most - 1 - head
    between = blocks[head : len(blocks) - tail]
    return [*blocks[:head], text_block("\n".join(_as_lines(between))), *blocks[len(blocks) - tail :]]


def _as_lines(blocks: list[Any]) -> Iterator[str]:
    """The texts, and a line for each of the first others: to look at very many takes longer than it is worth."""
    others = 0
    for each in blocks:
        if is_text(each):
            yield each["text"]
        else:
            others += 1
            if others <= _DESCRIBED:
                yield described(each)
    if others > _DESCRIBED:
        yield f"[and {others - _DESCRIBED:,} more blocks that are no text]"


def fitting(block: Any, budget: Budget) -> list[Json]:
    """The block if the budget takes it, else what stands for it."""
    if not isinstance(block, dict):
        return [text_block(described(block))]
    if is_text(block):
        return [_lean(block, budget)]
    media, size = _media_size(block), _size(block)
    text = resource_text(block)
    if not budget.takes(media, media=True) or not budget.takes(max(0, size - media), media=False):
        return [text_block(described(block) + (f"\n{text}" if text else " (too large to hand on)"))]
    # Only now: to look how deep something is takes long where it is large, and this is not.
    if deeper_than(block, budget.depth):
        return [text_block(f"{described(block)} (nested more than {budget.depth} levels deep)")]
    return [block]


def resource_text(block: Json) -> str:
    """The text of an embedded resource; empty when it has none."""
    resource = block.get("resource")
    text = resource.get("text") if isinstance(resource, dict) else None
    return text if isinstance(text, str) else ""


def described(block: Any) -> str:
    """One line in place of a block: what it is, where it is from, how large."""
    if not isinstance(block, dict):
        return f"[a block that is none: {shown(block, _NAME) if isinstance(block, str) else type(block).__name__}]"
    resource = block.get("resource")
    about: Json = {**block, **resource} if isinstance(resource, dict) else block
    words = [shown(kind, _NAME) if isinstance(kind := block.get("type"), str) else "a block without a type"]
    words += [
        shown(value, _NAME) for key in ("name", "uri", "mimeType") if isinstance(value := about.get(key), str) and value
    ]
    size = _size(block)
    return f"[{', '.join(words)}, {f'{size:,} bytes' if size < _UNTOLD else 'no JSON'}]"


def _lean(block: Json, budget: Budget) -> Json:
    """A text block, without the fields beside its text when these are too large."""
    if len(block) == 2:
        return block
    beside = {key: value for key, value in block.items() if key not in ("type", "text")}
    fits = budget.takes(_size(beside), media=False) and not deeper_than(beside, budget.depth)
    return block if fits else text_block(block["text"])


def _media_size(block: Json) -> int:
    """Bytes of what is no text in it: the data of pictures and sounds, the blob of a resource."""
    resource = block.get("resource")
    blob = resource.get("blob") if isinstance(resource, dict) else None
    data = block.get("data") if block.get("type") in ("image", "audio") else blob
    return len(data) if isinstance(data, str) else 0


def _size(value: Any) -> int:
    """Bytes as JSON; more than any budget when it cannot be written as that."""
    try:
        return len(msgspec.json.encode(value))
    except (RecursionError, TypeError, ValueError):
        return _UNTOLD
