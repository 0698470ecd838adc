"""The seams the gateway talks to: a desk that has tools, and a relay that has prompts and resources.

Above: `session` translates the wire into calls of these. Below: the engine's desk, and `relay`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pegboard.types import CallContext, Caller, Json
from pegboard.wire.subscriptions import Kind


class Desk(Protocol):
    """What a caller is shown and may call."""

    def instructions(self, caller: Caller) -> str:
        """Short guidance for whoever connects."""
        ...

    def tools(self, caller: Caller) -> Sequence[Json]:
        """The definitions, in their order. From memory: nothing is started, nothing is waited for."""
        ...

    def remembers(self, caller: Caller) -> bool:
        """Whether `tools` can be asked at once; where not, `recall` comes first."""
        ...

    async def recall(self, caller: Caller) -> None:
        """Fetches what the list needs and memory does not have."""
        ...

    def definition(self, name: str, caller: Caller) -> Json | None:
        """One of `tools`, which does not count as shown by that; None when it is not on the list."""
        ...

    def version(self, caller: Caller) -> str:
        """Another one whenever `tools` would give something else."""
        ...

    async def call_tool(self, name: str, arguments: Any, caller: Caller, context: CallContext) -> Json:
        """A `tools/call` result; raises a PegboardError only where the request itself is refused."""
        ...


class Relay(Protocol):
    """What else the servers behind the desk offer: prompts, resources, completions."""

    def capabilities(self) -> Json:
        """What to tell a client of it."""
        ...

    def serves(self, method: str) -> bool:
        """Whether `answer` knows this method."""
        ...

    async def answer(self, method: str, params: Json, context: CallContext) -> Json:
        """The result; raises a PegboardError where there is none."""
        ...

    def watch(self, changed: Callable[[Kind], None]) -> None:
        """From now on tells of lists that are others than before."""
        ...
