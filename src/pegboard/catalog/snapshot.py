"""What is known of one server's tools: the same value whether it came from the server or from its cache file.

Only what lists and searches show is taken out of a definition; the rest stays as the bytes it came in, so that
seventeen thousand schemas cost no parsing and little memory. Above: `cache` and `catalog`. Below: `budget`, `naming`.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import msgspec

from pegboard.catalog.budget import over_budget, plainly_within
from pegboard.catalog.naming import name_problem
from pegboard.types import Json, Listing

MAX_TTL_SECONDS = 24 * 3600.0


class CachedTool(msgspec.Struct, frozen=True, gc=False):
    """One tool as its server defined it."""

    name: str
    title: str
    description: str
    definition: bytes
    """Canonical JSON: keys sorted, no white space, every key the server sent."""
    fingerprint: str


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One server's tools at one moment."""

    tools: tuple[CachedTool, ...]
    cached_at: float
    """Seconds since the epoch."""
    ttl_ms: int | None = None
    cache_scope: Literal["public", "private"] = "public"
    manifest_version: str = ""
    launch: str = ""
    """Digest of how the server is launched."""
    server_version: str = ""
    protocol_version: str = ""
    server_name: str = ""
    instructions: str = ""
    withheld: dict[str, str] = {}
    """Tools that are not fit to use, each with the reason."""

    def is_fresh(self, now: float, refresh_after: float) -> bool:
        """Whether the list need not be asked anew; a stale list still serves."""
        # Zero is what SDKs send when the author said nothing: taken at its word, no list would ever be fresh.
        lifetime = min(self.ttl_ms / 1000, MAX_TTL_SECONDS) if self.ttl_ms else refresh_after
        # A moment in the future means that a clock was set back: nothing is known of the age then.
        return 0 <= now - self.cached_at < lifetime


class _Shown(msgspec.Struct):
    """The few members that are looked at, whatever their types; the decoder skips over all others."""

    name: Any = None
    title: Any = None
    description: Any = None
    annotations: Any = None


_shown = msgspec.json.Decoder(_Shown)


def canonical(definition: Json) -> bytes:
    """The one encoding of a definition: keys sorted, compact, UTF-8."""
    return msgspec.json.encode(definition, order="sorted")


def fingerprint(definition: bytes) -> str:
    """The hash of a canonical definition."""
    return "sha256:" + hashlib.sha256(definition).hexdigest()


def cached_tool(definition: bytes) -> CachedTool:
    """The light record of a canonical definition."""
    shown = _shown.decode(definition)
    title, description = shown.title, shown.description
    if title is None and type(shown.annotations) is dict:
        title = shown.annotations.get("title")
    return CachedTool(
        shown.name,
        title if type(title) is str else "",
        description if type(description) is str else "",
        definition,
        "sha256:" + hashlib.sha256(definition).hexdigest(),
    )


def snapshot_of(listing: Listing, *, now: float, manifest_version: str = "", launch: str = "") -> Snapshot:
    """What a live listing says, with unfit tools withheld."""
    tools: list[CachedTool] = []
    withheld: dict[str, str] = {}
    for position, definition in enumerate(listing.tools, 1):
        fit = _examined(definition)
        if isinstance(fit, bytes):
            tools.append(cached_tool(fit))
        else:
            withheld[_label(definition, position)] = fit
    return Snapshot(
        tools=tuple(tools),
        # Cache files keep milliseconds: rounding here makes both ways in give the same value.
        cached_at=round(now, 3),
        ttl_ms=None if listing.ttl_ms is None else max(0, listing.ttl_ms),
        cache_scope=listing.cache_scope,
        manifest_version=manifest_version,
        launch=launch,
        server_version=_writable(listing.server_version),
        protocol_version=_writable(listing.protocol_version),
        server_name=_writable(listing.server_name),
        instructions=_writable(listing.instructions),
        withheld=withheld,
    )


def _examined(definition: Json) -> bytes | str:
    """The canonical definition, or why it is withheld."""
    problem = name_problem(definition.get("name"))
    if problem is not None:
        return problem
    try:
        encoded = canonical(definition)
    except RecursionError:
        return "its definition is nested too deeply"
    except (TypeError, ValueError) as error:
        return f"its definition cannot be written as JSON: {error}"
    if plainly_within(encoded):
        return encoded
    return over_budget(definition, len(encoded)) or encoded


def _label(definition: Json, position: int) -> str:
    """What a withheld tool is called: its name, or its place in the list when it has none to speak of."""
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        return f"#{position}"
    printable = _writable(name)
    return printable if len(printable) <= 80 else printable[:79] + "…"


def _writable(text: str) -> str:
    """The text, with what is no character spelled out: half surrogate pairs cannot be written as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()
