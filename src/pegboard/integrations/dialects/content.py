"""What a tool gave back, in the parts a model API can take: text, pictures, documents; the rest in one line each.

Above: the dialects. Below: `invoke.blocks`, which has the words for what cannot be shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeGuard

import msgspec

from pegboard.invoke.blocks import described, resource_text
from pegboard.types import Json

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
NOTHING = "(no output)"


class Given(Protocol):
    """A result as the library hands it out."""

    @property
    def content(self) -> Sequence[Json]:
        """Its blocks, as MCP has them."""

    @property
    def text(self) -> str:
        """Its text."""

    @property
    def is_error(self) -> bool:
        """Whether the call failed."""


class Part(msgspec.Struct, frozen=True):
    """One part of a result: text, or data of a kind with its media type."""

    text: str = ""
    media_type: str = ""
    data: str = ""
    name: str = ""


def parts(result: Given) -> list[Part]:
    """The result's parts, in their order; never none."""
    # No API takes a block of blanks, and every later request would hold it.
    found = [part for block in result.content for part in _parts(block) if part.media_type or part.text.strip()]
    return found or [Part(text=result.text if result.text.strip() else NOTHING)]


def said(part: Part) -> str:
    """The part in words, for a wire that cannot take it."""
    if not part.media_type:
        return part.text
    kind = "image" if part.media_type.startswith("image/") else "file"
    return f"[{kind}, {part.media_type}, {len(part.data) * 3 // 4:,} bytes: this model cannot be shown it]"


def only_text(result: Given) -> str:
    """The whole result as text; a failure says that it is one."""
    text = "\n".join(said(part) for part in parts(result))
    return marked(text) if result.is_error else text


def marked(text: str) -> str:
    """The text of a failure, for a wire that has no flag for it."""
    return text if text.lower().startswith("error") else f"Error: {text}"


def _parts(block: Any) -> Iterator[Part]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text":
        yield Part(text=str(block.get("text", "")))
    elif kind == "image" and block.get("mimeType") in PICTURES and _is_data(block.get("data")):
        yield Part(media_type=block["mimeType"], data=block["data"])
    elif kind == "resource":
        yield from _resource(block)
    elif kind == "resource_link":
        words = (block.get("title") or block.get("name"), block.get("uri"), block.get("description"))
        yield Part(text=" — ".join(str(word) for word in words if word))
    else:
        yield Part(text=described(block))


def _resource(block: Json) -> Iterator[Part]:
    resource = block.get("resource")
    about: Json = resource if isinstance(resource, dict) else {}
    kind, blob = about.get("mimeType"), about.get("blob")
    if text := resource_text(block):
        yield Part(text=text)
    elif _is_data(blob) and (kind in PICTURES or kind == "application/pdf"):
        yield Part(media_type=str(kind), data=blob, name=str(about.get("uri", "")))
    else:
        yield Part(text=described(block))


def _is_data(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value)
