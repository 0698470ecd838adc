"""What an HTTP server of MCP checks before it believes a request: that the headers say what the body says.

Whatever stands between (a balancer, a filter) may have decided on the headers; serving a body that says something else
would let a client slip past it. Pure functions; the gateway calls them before `ServerSide.receive`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pegboard.types import Json
from pegboard.wire.asked import meta_of, unsupported_version
from pegboard.wire.http import NAMED_METHODS, decode_value, mirrored_arguments, value_at
from pegboard.wire.messages import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    NotJsonRpc,
    Request,
    RpcError,
    parse,
    read_object,
)
from pegboard.wire.meta import META_VERSION
from pegboard.wire.versions import SPOKEN_VERSIONS, Era, era_of

VISIBLE = re.compile(r"[\x20-\x7e\t]*")
DECIMAL = re.compile(r"-?\d{1,400}(?:\.0{1,400})?", re.ASCII)
BAD_REQUEST_CODES = (
    PARSE_ERROR,
    INVALID_REQUEST,
    INVALID_PARAMS,
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    UNSUPPORTED_VERSION,
)

Headers = Iterable[tuple[str, str]]
"""Header lines as they came, repeated ones included."""


def status_of(error: RpcError | None, era: Era | None) -> int:
    """The HTTP status that goes with an answer. 404 means "session over" in the handshake era, so never there."""
    if error is None:
        return 200
    if era is Era.HANDSHAKE:
        return 400 if error.code in (PARSE_ERROR, INVALID_REQUEST) else 200
    if error.code == METHOD_NOT_FOUND:
        return 404
    return 400 if error.code in BAD_REQUEST_CODES else 200


def check_headers(headers: Headers, body: bytes, *, schema: Any = None) -> RpcError | None:
    """Why a POST must be refused, or None. `schema` is the input schema of the tool that is called, when known.

    A body that is no single request is not judged here: `ServerSide.receive` has the words for it.
    """
    asked = _single_request(body)
    if asked is None or asked[0] == "initialize":
        return None
    method, params = asked
    lines = _Lines(headers)
    stated = lines.get("mcp-protocol-version")
    version = meta_of(params).get(META_VERSION)
    if version is None:
        return lines.error or _without_version(stated)
    error = (
        lines.error
        or _compare("MCP-Protocol-Version", stated, version)
        or _compare("Mcp-Method", lines.get("mcp-method"), method)
        or _check_name(lines, method, params)
    )
    if error is None and schema is not None and method == "tools/call":
        return check_mirrored(lines.items(), params.get("arguments"), schema)
    return error


def _single_request(body: bytes) -> tuple[str, Json] | None:
    try:
        messages = parse(body)
        if len(messages) == 1 and isinstance(messages[0], Request):
            return messages[0].method, read_object(messages[0].params)
    except NotJsonRpc:
        pass
    return None


def check_mirrored(headers: Headers, arguments: Any, schema: Any) -> RpcError | None:
    """Whether each argument that the schema mirrors into a `Mcp-Param-*` header is there, and the same."""
    try:
        mirrored = mirrored_arguments(schema)
    except ValueError:
        return None  # clients leave out a tool whose annotations break the rules, and send no headers for it
    lines = _Lines(headers)
    for path, name in mirrored:
        header = f"Mcp-Param-{name}"
        stated = lines.get(header.lower())
        error = lines.error or _compare_argument(header, stated, value_at(arguments, path))
        if error is not None:
            return error
    return None


class _Lines:
    """Headers by lower-case name; the first that is repeated or malformed is remembered when it is asked for."""

    def __init__(self, headers: Headers) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in headers:
            self._values.setdefault(name.lower(), []).append(value)
        self.error: RpcError | None = None
        for name in ("mcp-protocol-version", "mcp-method", "mcp-name"):
            self.get(name)

    def get(self, name: str) -> str | None:
        values = self._values.get(name, [])
        if len(values) > 1:
            self.error = self.error or _mismatch(f"{name} is there more than once")
        elif values and not VISIBLE.fullmatch(values[0]):
            self.error = self.error or _mismatch(f"{name} contains characters that no header may have")
        return values[0].strip(" \t") if values else None

    def items(self) -> Headers:
        return [(name, value) for name, values in self._values.items() for value in values]


def _without_version(stated: str | None) -> RpcError | None:
    """A request of the handshake era, unless its header says otherwise."""
    if stated is None or era_of(stated) is Era.HANDSHAKE:
        return None
    if era_of(stated) is None:
        return unsupported_version(stated, SPOKEN_VERSIONS)
    return RpcError(INVALID_PARAMS, f"`params._meta` lacks {META_VERSION}, which must be a string")


def _check_name(lines: _Lines, method: str, params: Json) -> RpcError | None:
    field = NAMED_METHODS.get(method)
    if field is None or not isinstance(params.get(field), str):
        return None  # nothing to mirror; what is wrong with the params is for whoever serves them to say
    stated = lines.get("mcp-name")
    decoded = None if stated is None else decode_value(stated)
    if stated is not None and decoded is None:
        return _mismatch("Mcp-Name is not well-formed Base64")
    return _compare("Mcp-Name", decoded, params[field])


def _compare(header: str, stated: str | None, actual: object) -> RpcError | None:
    if stated is None:
        return _mismatch(f"{header} is missing")
    if stated != actual:
        return _mismatch(f"{header} says {stated[:200]!r}, the body {str(actual)[:200]!r}")
    return None


def _compare_argument(header: str, stated: str | None, actual: str | int | bool | None) -> RpcError | None:
    if actual is None:
        return None if stated is None else _mismatch(f"{header} is there, but the body has no such argument")
    if stated is None:
        return _mismatch(f"{header} is missing")
    decoded = decode_value(stated)
    if decoded is None:
        return _mismatch(f"{header} is not well-formed Base64")
    if isinstance(actual, int) and not isinstance(actual, bool):
        same = DECIMAL.fullmatch(decoded) is not None and int(decoded.partition(".")[0]) == actual
    else:
        same = decoded == (str(actual).lower() if isinstance(actual, bool) else actual)
    return None if same else _mismatch(f"{header} says {decoded[:200]!r}, the body something else")


def _mismatch(what: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"Header mismatch: {what}")
