"""What the proxy says itself, in the shape that the client's library expects of the API. Pure.

An error that comes from an upstream is never put into other words; these are for when none came.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from pegboard.proxy.headers import Header
from pegboard.proxy.seam import Wire

Style = Literal["anthropic", "openai"]

_OF_WIRES: dict[Wire, Style] = {
    "messages": "anthropic",
    "count_tokens": "anthropic",
    "completions": "openai",
    "responses": "openai",
}
_KINDS = {400: "invalid_request_error", 403: "permission_error", 404: "not_found_error"}


def style_of(wire: Wire | None, headers: Iterable[Header]) -> Style:
    """Whose errors a client can read."""
    if wire is not None:
        return _OF_WIRES[wire]
    return "anthropic" if any(name.lower() == b"anthropic-version" for name, _ in headers) else "openai"


def error_body(style: Style, status: int, words: str) -> bytes:
    """An error as the API would word it."""
    kind = _KINDS.get(status, "api_error")
    if style == "anthropic":
        return msgspec.json.encode({"type": "error", "error": {"type": kind, "message": words}})
    return msgspec.json.encode({"error": {"message": words, "type": kind, "param": None, "code": None}})


def json_headers(body: bytes) -> list[Header]:
    """The headers of an answer of our own."""
    return [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
