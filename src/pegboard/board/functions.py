"""Python functions as tools: the schema from their types, the words from their docstrings, results as MCP has them.

Above: `board`. Below: the `Source` seam, `signatures`. Sync functions run in a thread: they may block.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import msgspec

from pegboard.board.signatures import Reading, read_function
from pegboard.errors import ConfigError, RemoteError
from pegboard.types import CallContext, Json, Listing
from pegboard.wire.messages import INVALID_PARAMS

_LONGEST_REASON = 1000


class FunctionSource:
    """A `Source` of functions."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._known: dict[str, tuple[Reading, Json]] = {}

    @property
    def name(self) -> str:
        """Its key in the configuration."""
        return self._name

    def add(
        self, function: Callable[..., Any], *, name: str = "", description: str = "", read_only: bool | None = None
    ) -> None:
        """Makes a function a tool; a name that is taken is an error."""
        reading = read_function(function, name)
        if reading.name in self._known:
            raise ConfigError(
                f"Two functions are tools named {reading.name!r}.", hint="Give one of them a `name` of its own."
            )
        definition: Json = {
            "name": reading.name,
            "description": description or reading.description,
            "inputSchema": reading.schema,
        }
        if read_only is not None:
            definition["annotations"] = {"readOnlyHint": read_only}
        self._known[reading.name] = (reading, definition)

    def listing(self) -> Listing:
        """All tools as they are now."""
        return Listing(tools=tuple(definition for _, definition in self._known.values()), server_name=self._name)

    async def list_tools(self) -> Listing:
        """All tools as they are now."""
        return self.listing()

    async def call_tool(self, tool: str, arguments: Json, context: CallContext) -> Json:
        """What the function returns, or what it raised, in words."""
        if tool not in self._known:
            raise RemoteError(self._name, INVALID_PARAMS, f"Unknown tool: {tool}")
        reading, _ = self._known[tool]
        try:
            given = reading.given(arguments, context)
        except (msgspec.ValidationError, ValueError) as error:
            return _failed(f"Wrong arguments for {tool}: {error}")
        try:
            async with asyncio.timeout(context.timeout):
                return _result(await _called(reading.function, given))
        except TimeoutError:
            return _failed(f"{tool} took longer than {context.timeout:g} s" if context.timeout else f"{tool} timed out")
        except Exception as error:  # noqa: BLE001 - what a tool raises is its result: the model must hear of it
            return _failed(f"{type(error).__name__}: {error}".rstrip(": "))


async def _called(function: Callable[..., Any], given: Json) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(**given)
    value = await asyncio.to_thread(function, **given)
    return await value if inspect.isawaitable(value) else value


def _result(value: Any) -> Json:
    """A `tools/call` result out of whatever a function returns."""
    if value is None:
        return {"content": []}
    if isinstance(value, str):
        return {"content": [{"type": "text", "text": value}]}
    plain = msgspec.to_builtins(value, enc_hook=_plain)
    result: Json = {"content": [{"type": "text", "text": msgspec.json.encode(plain).decode()}]}
    return {**result, "structuredContent": plain} if isinstance(plain, dict) else result


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)  # a pydantic model; pydantic itself is never imported here
    return dump(mode="json") if callable(dump) else str(value)


def _failed(reason: str) -> Json:
    return {"content": [{"type": "text", "text": reason[:_LONGEST_REASON]}], "isError": True}
