"""The seams, all on one page. Each is small enough to fake in a few lines; `pegboard.testing` has the fakes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pegboard.types import CallContext, Json, Listing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Source(Protocol):
    """Something that has tools: an MCP server, and whatever else can list and call."""

    @property
    def name(self) -> str:
        """Its key in the configuration."""
        ...

    async def list_tools(self) -> Listing:
        """All tools, asked anew; starts the server if need be."""
        ...

    async def call_tool(self, tool: str, arguments: Json, context: CallContext) -> Json:
        """The `tools/call` result as plain JSON; a tool's own failure is a result with `isError`."""
        ...


class Files(Protocol):
    """Where cached listings lie. Both raise OSError; the policy of what that means is the catalog's."""

    def read(self, path: Path) -> bytes:
        """The whole file."""
        ...

    def write(self, path: Path, content: bytes) -> None:
        """Replaces the file whole or not at all, durably."""
        ...


class Embedder(Protocol):
    """Texts into vectors. Any failure is an EmbedderError; the search then goes on by words."""

    @property
    def identity(self) -> str:
        """Which model, in which version: vectors of different identities are never mixed."""
        ...

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """One row for each text, of length 1 (or 0 where there is nothing to go by)."""
        ...
