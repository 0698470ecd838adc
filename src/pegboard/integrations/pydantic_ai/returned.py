"""What a tool returned, as the framework hands it to a model: text as text, pictures and files as such.

Above: `toolset`. Below: the framework's content types.
"""

from __future__ import annotations

from base64 import b64decode

from pydantic_ai.messages import BinaryContent

from pegboard.board import Result
from pegboard.invoke.blocks import described, resource_text
from pegboard.types import Json

_SENDABLE = ("image/", "audio/", "video/", "application/pdf")
"""What models take as files; adapters refuse others, and the run with them."""

Returned = str | list[str | BinaryContent]


def returned(result: Result) -> Returned:
    """The text, or text and files in their order."""
    if all(block.get("type") == "text" for block in result.content):
        return result.text
    return [_part(block) for block in result.content]


def _part(block: Json) -> str | BinaryContent:
    if block.get("type") == "text":
        return str(block.get("text", ""))
    if block.get("type") == "resource_link":
        return f"{block.get('name', 'resource')}: {block.get('uri', '')}"
    return _file(block) or resource_text(block) or described(block)


def _file(block: Json) -> BinaryContent | None:
    """The bytes in it, if they are of a kind that models take."""
    inside = block.get("resource")
    about = inside if isinstance(inside, dict) else block
    data, kind = about.get("blob", about.get("data")), about.get("mimeType")
    if not isinstance(data, str) or not isinstance(kind, str) or not kind.startswith(_SENDABLE):
        return None
    try:
        return BinaryContent(data=b64decode(data, validate=True), media_type=kind)
    except ValueError:
        return None
