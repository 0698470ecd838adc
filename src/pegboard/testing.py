"""Fakes of Pegboard's seams, for the tests of whoever builds on it. They keep the contracts of the real things.

`tests/contract` runs the same suite over each fake and what it stands for. Above: nothing but tests.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal

from pegboard.errors import CallTimeout, PegboardError, RemoteError
from pegboard.types import CallContext, Json, Listing
from pegboard.wire.messages import INVALID_PARAMS

Handler = Callable[[Json, CallContext], Json | Awaitable[Json]]
"""What a tool does: its arguments and the caller's side of the call in, a `tools/call` result out."""


def tool_definition(name: str, description: str = "", **more: Any) -> Json:
    """A tool as a server would list it; more fields (`inputSchema`, `annotations`, …) as keywords."""
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


def text_result(text: str, *, is_error: bool = False) -> Json:
    """A `tools/call` result with one block of text."""
    result: Json = {"content": [{"type": "text", "text": text}]}
    return {**result, "isError": True} if is_error else result


class FakeSource:
    """A `Source` in memory. Its tools answer as they were told to, and it remembers what it was asked.

    `results` says, by tool name, what a call gives: a result, an error to raise, or a function of arguments and
    context. A tool without one answers with its own name. `tools` and `listing_error` may be changed at any time.
    """

    def __init__(
        self,
        name: str,
        tools: Iterable[Json | str] = (),
        *,
        results: Mapping[str, Json | PegboardError | Handler] | None = None,
        call_timeout: float | None = None,
        server_version: str = "1.0",
        protocol_version: str = "2026-07-28",
        instructions: str = "",
        ttl_ms: int | None = None,
        cache_scope: Literal["public", "private"] = "public",
    ) -> None:
        self._name = name
        self._call_timeout = call_timeout
        self._listing = Listing(
            tools=(),
            server_name=name,
            server_version=server_version,
            protocol_version=protocol_version,
            instructions=instructions,
            ttl_ms=ttl_ms,
            cache_scope=cache_scope,
        )
        self.tools: list[Json] = [tool_definition(each) if isinstance(each, str) else each for each in tools]
        self.results = dict(results or {})
        self.listing_error: PegboardError | None = None
        """Set: listing fails with it."""
        self.listings = 0
        """How often it was asked for its tools."""
        self.calls: list[tuple[str, Json]] = []
        """Every call so far: tool and arguments."""

    @property
    def name(self) -> str:
        """Its key in the configuration."""
        return self._name

    async def list_tools(self) -> Listing:
        """All tools as they are now."""
        self.listings += 1
        if self.listing_error is not None:
            raise self.listing_error
        about = {field: getattr(self._listing, field) for field in Listing.__struct_fields__ if field != "tools"}
        return Listing(tools=tuple(self.tools), **about)

    async def call_tool(self, tool: str, arguments: Json, context: CallContext) -> Json:
        """What `results` has for the tool."""
        self.calls.append((tool, arguments))
        if not any(each.get("name") == tool for each in self.tools):
            raise RemoteError(self._name, INVALID_PARAMS, f"Unknown tool: {tool}")
        timeout = context.timeout or self._call_timeout
        try:
            async with asyncio.timeout(timeout):
                return await self._result(tool, arguments, context)
        except TimeoutError:
            raise CallTimeout(self._name, f"no answer to tools/call within {timeout} s") from None

    async def _result(self, tool: str, arguments: Json, context: CallContext) -> Json:
        result = self.results.get(tool, text_result(tool))
        if isinstance(result, PegboardError):
            raise result
        if isinstance(result, dict):
            return result
        answer = result(arguments, context)
        return await answer if inspect.isawaitable(answer) else answer
