"""A call's result as a LangChain message: what every chat model takes goes in, the rest is told in words.

Pure. Above: `tools`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import ToolMessage

from pegboard.board.result import Result
from pegboard.integrations.dialects.content import PICTURES
from pegboard.types import Json

LOADED = "pegboard_loaded"
"""In a message's metadata: the tools that its call loaded first. Tools are revealed where their message is."""


def tool_message(result: Result, name: str, call_id: str, loaded: Sequence[str] = ()) -> ToolMessage:
    """The message that answers a tool call; its artifact is the result as MCP has it."""
    return ToolMessage(
        content=_content(result),
        name=name,
        tool_call_id=call_id,
        status="error" if result.is_error else "success",
        artifact=result.raw,
        response_metadata={LOADED: list(loaded)} if loaded else {},
    )


def _content(result: Result) -> str | list[str | dict[Any, Any]]:
    """One string where all is text: there are models that take nothing else."""
    blocks = [_block(block) for block in result.content]
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks) or result.text
    # There are models that refuse a block of blanks.
    return [block for block in blocks if block["type"] != "text" or block["text"].strip()]


def _block(block: Json) -> dict[str, Any]:
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": str(block.get("text", ""))}
    if kind == "image" and block.get("mimeType") in PICTURES and block.get("data"):
        return _picture(block["data"], block["mimeType"])
    if kind == "resource" and isinstance(resource := block.get("resource"), dict):
        return _resource(resource)
    if kind == "resource_link":
        words = [str(block[field]) for field in ("title", "name", "description") if block.get(field)]
        return {"type": "text", "text": f"{': '.join(words)} <{block.get('uri', '')}>".strip()}
    return _told(block.get("mimeType") or kind, block.get("data"))


def _resource(resource: Json) -> dict[str, Any]:
    if isinstance(resource.get("text"), str):
        return {"type": "text", "text": resource["text"]}
    kind = str(resource.get("mimeType") or "")
    if kind in PICTURES and resource.get("blob"):
        return _picture(resource["blob"], kind)
    return _told(kind or "a file", resource.get("blob"), str(resource.get("uri", "")))


def _picture(data: Any, kind: Any) -> dict[str, Any]:
    return {"type": "image", "base64": str(data), "mime_type": str(kind)}


def _told(kind: Any, data: Any, uri: str = "") -> dict[str, Any]:
    """What chat models refuse in a tool's result fails the whole request: sound, archives, drawings and the like."""
    size = f", {len(data) * 3 // 4:,} bytes" if isinstance(data, str) else ""
    return {"type": "text", "text": f"[{kind}{size}{' ' + uri if uri else ''}: not shown; it is in the artifact]"}
