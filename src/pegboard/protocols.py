"""The seams, all on one page. Each is small enough to fake in a few lines; `pegboard.testing` has the fakes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pegboard.types import CallContext, Json, Listing, Priors, Record

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


class Store(Protocol):
    """What outlives a process. Losing it loses history, never a call: every failure is a StoreError."""

    async def append(self, records: Sequence[Record]) -> None:
        """Keeps these, in one transaction. Text is cut and numbers are brought into range where they would not fit."""
        ...

    async def visit(
        self,
        visitor: Callable[[Record], None],
        *,
        since: float = 0.0,
        until: float = math.inf,
        conversation: str | None = None,
    ) -> None:
        """Shows every record from `since` to before `until` to the visitor, by time; maybe in another thread."""
        ...

    async def forget_before(self, at: float) -> int:
        """Drops records that are older and what conversations have kept and has expired; how many that were."""
        ...

    async def keep_activation(self, conversation: str, state: bytes, expires_at: float) -> None:
        """Keeps what a conversation has loaded, until then."""
        ...

    async def activation(self, conversation: str) -> bytes | None:
        """What was kept for a conversation; None when nothing was, or it has expired."""
        ...

    async def keep_proxied(self, conversation: str, state: bytes, expires_at: float) -> None:
        """Keeps what the proxy remembers of a conversation, until then."""
        ...

    async def proxied(self, conversation: str) -> bytes | None:
        """What the proxy remembered of a conversation; None when nothing, or it has expired."""
        ...

    async def keep_priors(self, priors: Mapping[str, Priors], at: float) -> None:
        """Replaces all priors; `at` is when they were worked out."""
        ...

    async def priors(self) -> tuple[dict[str, Priors], float]:
        """All priors by public name, and when they were worked out; 0 when never."""
        ...

    async def refresh_priors(self, now: float) -> dict[str, Priors]:
        """Works all priors out from the outcomes so far, keeps them as of now, and gives them."""
        ...

    async def skills_used(self) -> dict[str, float]:
        """When each skill was last loaded, as far back as records are kept."""
        ...

    async def close(self) -> None:
        """Writes what is still to be written, and lets go of the file or the connections."""
        ...
