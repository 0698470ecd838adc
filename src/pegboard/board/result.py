"""What a call came to, as an agent's code wants to look at it."""

from __future__ import annotations

from typing import Any

import msgspec

from pegboard.types import Json


class Result(msgspec.Struct, frozen=True):
    """A `tools/call` result. A tool that failed is a result too: `is_error`, with words a model can act on."""

    raw: Json
    """The result as it is on the wire of MCP."""

    @property
    def content(self) -> list[Json]:
        """Its blocks: text, images, audio, resources and links to them."""
        blocks = self.raw.get("content")
        return [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []

    @property
    def text(self) -> str:
        """All its text; the structured content as JSON where there is no text."""
        texts = [str(block.get("text", "")) for block in self.content if block.get("type") == "text"]
        if not texts and self.structured is not None:
            return msgspec.json.encode(self.structured).decode()
        return "\n".join(texts)

    @property
    def structured(self) -> Any:
        """Its structured content, if it has any."""
        return self.raw.get("structuredContent")

    @property
    def is_error(self) -> bool:
        """Whether the call failed."""
        return self.raw.get("isError") is True

    @property
    def meta(self) -> Json:
        """What else there is to know: what a search found, for instance, under `pegboard/found`."""
        meta = self.raw.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def found(self) -> tuple[str, ...]:
        """The public names that a search found, best first."""
        names = self.meta.get("pegboard/found")
        return tuple(map(str, names)) if isinstance(names, list) else ()
