"""Python functions as tools: the schema from their types, the words from their docstrings, results as MCP has them.

Above: `board`. Below: the `Source` seam, `signatures`. Sync functions run in a thread: they may block.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from contextvars import copy_context
from functools import partial
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
            async with asyncio.timeout(context.timeout) as limit:
                return _result(await _called(reading.function, given))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - what a tool raises is its result: the model must hear
            if isinstance(error, TimeoutError) and limit.expired():
                return _failed(f"{tool} took longer than {context.timeout:g} s")
            return _failed(_words(error))


async def _called(function: Callable[..., Any], given: Json) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(**given)
    value, error = await _in_a_thread(partial(function, **given))
    if error is not None:
        raise error if isinstance(error, Exception) and not isinstance(error, StopIteration) else _Raised(_words(error))
    if inspect.isasyncgen(value):
        return [each async for each in value]
    return await value if inspect.isawaitable(value) else value


class _Raised(Exception):
    """What a coroutine cannot raise for a function in another thread: it would end more than the call."""


async def _in_a_thread(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """What it gives or raises. It has a thread of its own: one that blocks keeps neither others nor the end waiting."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((value, error))

    def run() -> None:
        value, raised = None, None
        try:
            value = context.run(work)
            if isinstance(value, Iterator):
                value = context.run(list, value)  # here, for a generator does its work only now
        except BaseException as error:  # noqa: BLE001
            raised = error
        with suppress(RuntimeError):  # the loop is gone, and nobody waits
            loop.call_soon_threadsafe(settle, value, raised)

    threading.Thread(target=run, name="pegboard function", daemon=True).start()
    return await done


def _result(value: Any) -> Json:
    """A `tools/call` result out of whatever a function returns."""
    if value is None:
        return {"content": []}
    try:
        plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_plain)
        text = plain if isinstance(value, str) else msgspec.json.encode(plain).decode()
    except (TypeError, ValueError, RecursionError):
        plain, text = None, str(value)  # the function has done its work: what JSON cannot say is no failure of it
    result: Json = {"content": [{"type": "text", "text": text}]}
    return {**result, "structuredContent": plain} if isinstance(plain, dict) else result


def _plain(value: Any) -> Any:
    for name, how in (("model_dump", {"mode": "json"}), ("tolist", {})):  # of pydantic and numpy, not imported here
        if callable(dump := getattr(value, name, None)) and not isinstance(value, type):
            return dump(**how)
    if isinstance(value, Mapping):
        return dict(value)
    several = isinstance(value, Iterator | Sequence | Set) and not isinstance(value, str)
    return list(value) if several else str(value)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ") if not isinstance(error, _Raised) else str(error)


def _failed(reason: str) -> Json:
    return {"content": [{"type": "text", "text": reason[:_LONGEST_REASON]}], "isError": True}
