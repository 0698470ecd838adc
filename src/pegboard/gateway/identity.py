"""Who calls, and in which conversation: from what the edge made sure of and what the caller says, never a connection.

A client reconnects, restarts, or opens three connections at once: its conversation stays the same. Pure functions.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from pegboard.types import Caller, Json, Reveal
from pegboard.wire.asked import Asked, meta_of
from pegboard.wire.versions import Era

META_CONVERSATION = "pegboard/conversation"
HEADER_CONVERSATION = "pegboard-conversation"
LONGEST_KEY = 200
_DIGEST = 24


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What the edge knows of whoever is at the other end."""

    identity: str = ""
    """Who it is, as a credential proved; empty for the local user."""
    conversation: str = ""
    """The handle that a flag or a header gave."""
    place: str = ""
    """Where the client works, when the edge can tell: the folder it started us in."""
    allow: tuple[str, ...] | None = None


def caller_of(origin: Origin, asked: Asked) -> Caller:
    """Who asks this. A handle in the request itself comes first, then the edge's, then what client and place say."""
    said = _text(meta_of(asked.params).get(META_CONVERSATION))
    handle = said or _text(origin.conversation) or _default(origin, asked.client)
    # A handle proves nothing: whoever guesses another caller's must not end up in that one's conversation.
    key = f"{origin.identity}:{handle}" if origin.identity else handle
    # Where a list may not depend on the conversation, nothing must be said to have been put on it.
    reveal: Reveal | None = "called" if asked.era is Era.STATELESS else None
    return Caller(identity=origin.identity, conversation=key, allow=origin.allow, reveal=reveal)


def viewer_of(origin: Origin, asked: Asked) -> Caller:
    """For whom the tools are listed: in the stateless era a list may depend on who asks, not on the conversation."""
    if asked.era is Era.STATELESS:
        return Caller(identity=origin.identity, allow=origin.allow)
    return caller_of(origin, asked)


def passed_on(params: Json) -> Json | None:
    """The `_meta` of a request that is meant for whoever serves it: what is neither the protocol's nor ours."""
    kept = {
        key: value
        for key, value in meta_of(params).items()
        if key != "progressToken" and not key.startswith(("io.modelcontextprotocol/", "pegboard/"))
    }
    return kept or None


def _default(origin: Origin, client: Json) -> str:
    name = _text(client.get("name")) or "client"
    return _text(f"{name}@{origin.place}") if origin.place else name


def _text(value: Any) -> str:
    """A handle as a key: printable, and of bounded length without two long ones becoming the same."""
    if not isinstance(value, str):
        return ""
    text = value if value.isprintable() else "".join(each for each in value if each.isprintable())
    text = text.strip()
    if len(text) <= LONGEST_KEY:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{text[: LONGEST_KEY - _DIGEST - 1]}~{digest}"
