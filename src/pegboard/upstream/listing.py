"""Asks a server for all its tools: every page, within caps on pages, bytes and tools, without holding up the loop."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, Protocol

import msgspec

from pegboard.errors import CallTimeout, LimitExceeded, ProtocolViolation, RemoteError
from pegboard.types import Json, Listing
from pegboard.upstream.connection import Connection
from pegboard.wire.messages import METHOD_NOT_FOUND, NotJsonRpc, read
from pegboard.wire.paging import Pages

PAGES_PER_RESULT = 4
"""All pages together may be this many times as large as one message."""
LONGEST_LISTING = 4
"""All pages together may take this many times as long as one call."""
MOST_MS = 2**53
BREATHE = 200
"""Definitions decoded before other work gets a turn."""
LONGEST_INSTRUCTIONS = 16 * 1024

_PAGE = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRIES = msgspec.json.Decoder(list[msgspec.Raw])


class ListLimits(Protocol):
    """What bounds a listing."""

    @property
    def call_timeout(self) -> float: ...
    @property
    def max_result_bytes(self) -> int: ...
    @property
    def max_pages(self) -> int: ...
    @property
    def max_tools(self) -> int: ...


async def list_all(server: str, connection: Connection, limits: ListLimits) -> Listing:
    """Every tool the server has, as it defines them."""
    pages = Pages("tools", max_pages=limits.max_pages, max_entries=limits.max_tools)
    budget = PAGES_PER_RESULT * limits.max_result_bytes
    params: Json = {}
    cursor: str | None = ""
    loop = asyncio.get_running_loop()
    longest = LONGEST_LISTING * limits.call_timeout
    deadline = loop.time() + longest
    while cursor is not None:
        timeout = min(limits.call_timeout, deadline - loop.time())
        if timeout <= 0:
            raise CallTimeout(server, f"its list of tools did not come to an end within {longest:g} s")
        try:
            raw = await connection.request_raw("tools/list", params, timeout=timeout)
        except RemoteError as error:
            # A server that never spoke of tools has none; one that did has lost them, and that is an error.
            if error.code == METHOD_NOT_FOUND and "tools" not in connection.agreement.capabilities:
                return _listing(connection, [], {}, ["it has no tools"])
            raise
        budget -= memoryview(raw).nbytes
        if budget < 0:
            raise LimitExceeded(server, "its list of tools is larger than all its pages may be")
        cursor = pages.add(_page(server, raw))
        params = {"cursor": cursor}
    if pages.first.get("tools") is None:
        raise ProtocolViolation(server, "its answer to tools/list has no list of tools")
    tools, odd = await _definitions(pages.entries)
    warnings = [*pages.warnings, *([f"{odd} entries of its list are not tools"] if odd else [])]
    return _listing(connection, tools, pages.first, warnings)


def _page(server: str, raw: msgspec.Raw) -> Json:
    """One page, with its entries still raw."""
    try:
        page: Json = {key: value for key, value in _PAGE.decode(raw).items() if key != "_meta"}
        return {key: _entries(value) if key == "tools" else read(value) for key, value in page.items()}
    except (msgspec.MsgspecError, NotJsonRpc, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolViolation(server, f"its list of tools cannot be read: {error}") from None


def _entries(raw: msgspec.Raw) -> list[msgspec.Raw] | None:
    try:
        return _ENTRIES.decode(raw)
    except msgspec.MsgspecError:
        return None


async def _definitions(entries: list[Any]) -> tuple[list[Json], int]:
    tools: list[Json] = []
    odd = 0
    for number, raw in enumerate(entries):
        if number % BREATHE == BREATHE - 1:
            await asyncio.sleep(0)
        try:
            tool = read(raw)
        except NotJsonRpc:
            tool = None
        if isinstance(tool, dict):
            tools.append(tool)
        else:
            odd += 1
    return tools, odd


def _listing(connection: Connection, tools: list[Json], first: Json, warnings: list[str]) -> Listing:
    agreement = connection.agreement
    ttl = first.get("ttlMs")
    scope: Literal["public", "private"] = "private" if first.get("cacheScope") == "private" else "public"
    return Listing(
        tools=tuple(tools),
        server_name=agreement.server_name[:256],
        server_version=agreement.server_version[:256],
        protocol_version=agreement.version,
        instructions=agreement.instructions[:LONGEST_INSTRUCTIONS],
        ttl_ms=int(min(max(0, ttl), MOST_MS)) if isinstance(ttl, int | float) and not isinstance(ttl, bool) else None,
        cache_scope=scope,
        warnings=tuple(warnings),
    )
