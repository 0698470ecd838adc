"""Fakes of Pegboard's seams, for the tests of whoever builds on it. They keep the contracts of the real things.

`tests/contract` runs the same suite over each fake and what it stands for. Above: nothing but tests.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from pegboard.errors import CallTimeout, PegboardError, RemoteError, StoreError, ToolNotFound
from pegboard.telemetry.priors import Digest, fold, priors_of
from pegboard.types import CallContext, Caller, Exposure, Json, Listing, Lookup, Outcome, Priors, Record, SkillLoad
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


class FakeStore:
    """A `Store` in memory. `failure` may be set at any time: everything then fails with it, until it is None again."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._activations: dict[str, tuple[bytes, float]] = {}
        self._proxied: dict[str, tuple[bytes, float]] = {}
        self._priors: tuple[dict[str, Priors], float] = ({}, 0.0)
        self.records: list[Record] = []
        """Everything that was appended and not forgotten."""
        self.failure: StoreError | None = None
        self.is_closed = False

    async def append(self, records: Sequence[Record]) -> None:
        """Keeps these."""
        self._check()
        self.records.extend(records)

    async def visit(
        self,
        visitor: Callable[[Record], None],
        *,
        since: float = 0.0,
        until: float = math.inf,
        conversation: str | None = None,
    ) -> None:
        """Shows every record of that time, in order of time."""
        self._check()
        order = (Exposure, Lookup, SkillLoad, Outcome)
        for record in sorted(self.records, key=lambda each: (each.at, order.index(type(each)))):
            if since <= record.at < until and conversation in (None, record.conversation):
                visitor(record)

    async def forget_before(self, at: float) -> int:
        """Drops what is older, and activations that have expired."""
        self._check()
        now, before = self._clock(), len(self.records) + len(self._activations) + len(self._proxied)
        self.records = [record for record in self.records if record.at >= at]
        self._activations = {key: kept for key, kept in self._activations.items() if kept[1] > now}
        self._proxied = {key: kept for key, kept in self._proxied.items() if kept[1] > now}
        return before - len(self.records) - len(self._activations) - len(self._proxied)

    async def keep_activation(self, conversation: str, state: bytes, expires_at: float) -> None:
        """Keeps what a conversation has loaded, until then."""
        self._check()
        self._activations[conversation] = (state, expires_at)

    async def activation(self, conversation: str) -> bytes | None:
        """What was kept for a conversation."""
        self._check()
        state, expires_at = self._activations.get(conversation, (None, 0.0))
        return state if expires_at > self._clock() else None

    async def keep_proxied(self, conversation: str, state: bytes, expires_at: float) -> None:
        """Keeps what the proxy remembers of a conversation, until then."""
        self._check()
        self._proxied[conversation] = (state, expires_at)

    async def proxied(self, conversation: str) -> bytes | None:
        """What the proxy remembered of a conversation."""
        self._check()
        state, expires_at = self._proxied.get(conversation, (None, 0.0))
        return state if expires_at > self._clock() else None

    async def keep_priors(self, priors: Mapping[str, Priors], at: float) -> None:
        """Replaces all priors."""
        self._check()
        self._priors = dict(priors), at

    async def priors(self) -> tuple[dict[str, Priors], float]:
        """All priors, and when they were worked out."""
        self._check()
        priors, at = self._priors
        return dict(priors), at

    async def refresh_priors(self, now: float) -> dict[str, Priors]:
        """Works all priors out from the outcomes it holds, and keeps them."""
        self._check()
        digests: dict[str, Digest] = {}
        fold(digests, (record for record in self.records if isinstance(record, Outcome)), now)
        self._priors = priors_of(digests, now), now
        return dict(self._priors[0])

    async def skills_used(self) -> dict[str, float]:
        """When each skill was last loaded."""
        self._check()
        loads = [record for record in self.records if isinstance(record, SkillLoad)]
        return {load.skill: max(each.at for each in loads if each.skill == load.skill) for load in loads}

    async def close(self) -> None:
        """From now on, everything fails."""
        self.is_closed = True

    def _check(self) -> None:
        if self.is_closed:
            raise StoreError("The store was closed.")
        if self.failure is not None:
            raise self.failure


class FakeDesk:
    """A gateway's desk in memory: shows the tools it was given, and remembers who called what.

    `results` is as for `FakeSource`. `shown` may be changed at any time, and so may `loaded`: what a conversation has
    on top of it.
    """

    def __init__(
        self,
        tools: Iterable[Json | str] = (),
        *,
        results: Mapping[str, Json | PegboardError | Handler] | None = None,
        instructions: str = "",
    ) -> None:
        self._instructions = instructions
        self.shown: list[Json] = [tool_definition(each) if isinstance(each, str) else each for each in tools]
        self.loaded: dict[str, list[Json]] = {}
        self.results = dict(results or {})
        self.calls: list[tuple[str, Any, Caller]] = []
        """Every call so far: tool, arguments and caller."""
        self.viewers: list[Caller] = []
        """Everybody who was shown the list."""

    def instructions(self, caller: Caller) -> str:
        """What it was told to say."""
        return self._instructions

    def remembers(self, caller: Caller) -> bool:
        """Nothing has to be fetched."""
        return True

    async def recall(self, caller: Caller) -> None:
        """There is nothing to fetch."""

    def definition(self, name: str, caller: Caller) -> Json | None:
        """One of the tools."""
        known = [*self.shown, *self.loaded.get(caller.conversation, [])]
        return next((each for each in known if each["name"] == name), None)

    def tools(self, caller: Caller) -> Sequence[Json]:
        """The tools as they are now."""
        self.viewers.append(caller)
        return [*self.shown, *self.loaded.get(caller.conversation, [])]

    def version(self, caller: Caller) -> str:
        """The names, which is as good as a version where definitions do not change."""
        return " ".join(str(each["name"]) for each in [*self.shown, *self.loaded.get(caller.conversation, [])])

    async def call_tool(self, name: str, arguments: Any, caller: Caller, context: CallContext) -> Json:
        """What `results` has for the tool."""
        self.calls.append((name, arguments, caller))
        result = self.results.get(name)
        if result is None:
            if any(each["name"] == name for each in self.shown):
                return text_result(name)
            raise ToolNotFound(name)
        if isinstance(result, PegboardError):
            raise result
        if isinstance(result, dict):
            return result
        answer = result(arguments, context)
        return await answer if inspect.isawaitable(answer) else answer
