"""A result as it is handed on: within its budget of bytes, blocks and depth, and with nothing hidden in its text.

What fits goes through untouched, fields that we do not know included. What does not becomes text where it can, so
that it can be read on in pages, else a line that says what it was. Above: `path`. Below: `cut`, `blocks`, `visible`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pegboard.catalog.budget import deeper_than
from pegboard.invoke.blocks import Budget, described, fewer, fitting, is_text, resource_text, text_block
from pegboard.invoke.cut import head_end, size_of, tail_start
from pegboard.invoke.visible import is_clean, shown, visible
from pegboard.types import Json

MAX_DEPTH = 64
_MARKER_BYTES = 400
_HEAD_SHARE = 0.7
_NAMED = 8
_FIELDS = 1000
_COMPARED = 4 * 1024 * 1024

Keep = Callable[[str, int, int, int], tuple[str, int]]
"""Keeps a stretch of a text, of so many bytes: its handle (none if it is not kept), and about how many pages it is."""


class Caps(msgspec.Struct, frozen=True):
    """How much of a result is handed on at once."""

    text_bytes: int
    blocks: int
    depth: int = MAX_DEPTH


def encoded(result: Any) -> bytes | None:
    """The result, or a part of one, as JSON; None when it is nested too deeply, or holds what is not JSON."""
    try:
        return msgspec.json.encode(result)
    except (RecursionError, TypeError, ValueError):
        return None


def shape(result: Json, raw: bytes | None, caps: Caps, keep: Keep, *, promised: bool = False) -> Json:
    """The result within its caps; the very same object when nothing had to change. `raw` is what `encoded` gave.

    `promised`: the caller was shown an output schema, so its structured content must stay as it is.
    """
    content = result.get("content")
    blocks: list[Any] = content if isinstance(content, list) else [] if content is None else [content]
    if raw is not None and _is_small(result, raw, blocks, caps) and _is_plain(blocks):
        return result
    budget = Budget(caps.text_bytes, caps.depth)
    parts = [part for block in fewer(blocks, caps.blocks) for part in fitting(block, budget)]
    fields, notes = _fields(result, parts, caps, promised=promised)
    if notes:
        parts = fewer([*parts, text_block("\n".join(notes))], caps.blocks)
    parts = _within(parts, caps.text_bytes, keep)
    if "content" in result or parts:
        fields["content"] = parts
    return fields


def said(result: Json) -> str:
    """What a model reads of a result: its text, and as JSON what else is no picture or sound."""
    content = result.get("content")
    texts: list[str] = []
    for block in content if isinstance(content, list) else ():
        if is_text(block):
            texts.append(block["text"])
        elif isinstance(block, dict) and block.get("type") not in ("image", "audio"):
            texts.append(resource_text(block) or described(block))
    structured = result.get("structuredContent")
    if structured is not None and not texts:
        texts.append((encoded({"": structured}) or b"").decode("utf-8", "replace"))
    return "\n".join(texts)


def _is_small(result: Json, raw: bytes, blocks: list[Any], caps: Caps) -> bool:
    if len(raw) > caps.text_bytes or len(blocks) > caps.blocks:
        return False
    return raw.count(b"{") + raw.count(b"[") <= caps.depth or not deeper_than(result, caps.depth)


def _is_plain(blocks: list[Any]) -> bool:
    return all(not is_text(block) or is_clean(block["text"]) for block in blocks)


def _fields(result: Json, parts: list[Json], caps: Caps, *, promised: bool) -> tuple[Json, list[str]]:
    """Everything but the content, as far as it fits, in its order; and what to say of the rest."""
    fields: Json = {}
    notes: list[str] = []
    dropped: list[str] = []
    left: float = caps.text_bytes
    for key, value in result.items():
        if key == "content":
            fields[key] = []
        elif key == "structuredContent":
            raw = None if promised else _written(value, caps)
            if promised or (raw is not None and len(raw) <= caps.text_bytes):
                fields[key] = value
            else:
                notes += _structured_as_text(value, raw, parts, caps)
        elif len(fields) < _FIELDS and (size := _size(value, caps)) <= left:
            left -= size
            fields[key] = value
        else:
            dropped.append(key)
    if dropped:
        more = f" and {len(dropped) - _NAMED} more" if len(dropped) > _NAMED else ""
        notes.append(
            f"[left out of the result, being too large: {', '.join(shown(key, 60) for key in dropped[:_NAMED])}{more}]"
        )
    return fields, notes


def _size(value: Any, caps: Caps) -> float:
    """Bytes as JSON; without end when it is too deep."""
    raw = _written(value, caps)
    return float("inf") if raw is None else len(raw)


def _written(value: Any, caps: Caps) -> bytes | None:
    """The value as JSON; None when it is too deep. That is looked at only where it is not too large anyway."""
    raw = encoded(value)
    return None if raw is None or (len(raw) <= caps.text_bytes and deeper_than(value, caps.depth)) else raw


def _structured_as_text(value: Any, raw: bytes | None, parts: list[Json], caps: Caps) -> list[str]:
    if raw is None:
        return [f"[left out: structuredContent, which is nested more than {caps.depth} levels deep]"]
    texts = [part["text"] for part in parts if is_text(part)]
    if len(texts) == 1 and len(raw) <= _COMPARED and _same(texts[0], value):
        return [f"[structuredContent of {len(raw):,} bytes left out: the text above says the same]"]
    return [f"[structuredContent of {len(raw):,} bytes, as text:]", raw.decode()]


def _same(text: str, value: Any) -> bool:
    try:
        read = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return bool(read == value or {"result": read} == value)


def _within(parts: list[Json], limit: int, keep: Keep) -> list[Json]:
    """The blocks with all text visible and, together, no longer than the limit: the head, a marker, the tail."""
    parts = [_closed(part) for part in parts]
    whole = "\n".join(part["text"] for part in parts if is_text(part))
    total = size_of(whole)
    if total <= limit:
        cleaned = [{**part, "text": visible(part["text"])} if is_text(part) else part for part in parts]
        if size_of("\n".join(part["text"] for part in cleaned if is_text(part))) <= limit:
            return cleaned
    room = limit - _MARKER_BYTES
    head = head_end(whole, 0, len(whole), int(room * _HEAD_SHARE))
    tail = tail_start(whole, head, len(whole), room - int(room * _HEAD_SHARE))
    left = total - size_of(whole[:head]) - size_of(whole[tail:])
    handle, pages = keep(whole, head, tail, left)
    return _rebuilt(parts, whole, head, tail, _marker(left, total, handle, pages))


def _closed(part: Json) -> Json:
    """A text that ends in a lone return, with that spelled out: joined with the next it would pass for a line end."""
    if not is_text(part) or not part["text"].endswith("\r"):
        return part
    return {**part, "text": part["text"][:-1] + "\\r"}


def _marker(left: int, total: int, handle: str, pages: int) -> str:
    start = f"[… {left:,} of {total:,} bytes left out here"
    if not handle:
        return f"\n{start}, and too large to keep: ask for less. …]\n"
    return f'\n{start}: read_result(handle="{handle}", page=1) reads on, about {pages} page{"s"[: pages != 1]} …]\n'


def _rebuilt(parts: list[Json], whole: str, head: int, tail: int, marker: str) -> list[Json]:
    """The blocks around the gap; those that lay in it whole are gone, and the marker stands where it begins."""
    rebuilt: list[Json] = []
    at, marked = 0, False
    for part in parts:
        if not is_text(part):
            rebuilt.append(part)
            continue
        end = at + len(part["text"])
        text = visible(whole, at, min(end, head)) if at < head else ""
        if not marked and end >= head:
            text, marked = text + marker, True
        if end > tail:
            text += visible(whole, max(at, tail), end)
        if text:
            rebuilt.append({**part, "text": text})
        at = end + 1
    return rebuilt
