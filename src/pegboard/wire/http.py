"""The HTTP headers MCP wants: version, method and name, and the tool arguments that a schema mirrors into headers."""

from __future__ import annotations

import base64
import re
from typing import Any

from pegboard.types import Json
from pegboard.wire.versions import Era, era_of

ACCEPT = "application/json, text/event-stream"
NAMED_METHODS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
SENTINEL = re.compile(r"=\?base64\?.*\?=", re.DOTALL)
PLAIN = re.compile(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
PRIMITIVES = ("string", "integer", "boolean")
DATA_KEYWORDS = ("enum", "const", "default", "examples")
MAP_KEYWORDS = ("$defs", "definitions", "patternProperties", "dependentSchemas")

Mirrored = tuple[tuple[tuple[str, ...], str], ...]
"""Which arguments go into which `Mcp-Param-*` header: (path of the argument, header name)."""


def request_headers(version: str, method: str, params: Json, mirrored: Mirrored = ()) -> dict[str, str]:
    """The headers of one request; what they mirror is read from the body, so the two always agree."""
    headers = {"MCP-Protocol-Version": version}
    if era_of(version) is not Era.STATELESS:
        return headers
    headers["Mcp-Method"] = method
    named = params.get(NAMED_METHODS.get(method, ""))
    if isinstance(named, str):
        headers["Mcp-Name"] = encode_value(named)
    arguments = params.get("arguments")
    for path, name in mirrored:
        value = value_at(arguments, path)
        if value is not None:
            headers[f"Mcp-Param-{name}"] = encode_value(value)
    return headers


def encode_value(value: str | int | bool) -> str:
    """A header value: plain when it is safe, Base64 in MCP's sentinel otherwise."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    # Wider than SENTINEL: a reader that looks only at the two ends must not take `=?base64?=` for an encoding.
    looks_encoded = text.startswith("=?base64?") and text.endswith("?=")
    if PLAIN.fullmatch(text) and not looks_encoded:
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="


def decode_value(text: str) -> str | None:
    """What a header value says; None when it is not well formed."""
    if not SENTINEL.fullmatch(text):
        return text
    try:
        return base64.b64decode(text[9:-2], validate=True).decode()
    except ValueError:
        return None


def value_at(arguments: Any, path: tuple[str, ...]) -> str | int | bool | None:
    """The argument at a path, when it is there and of a kind that a header can carry."""
    for key in path:
        arguments = arguments.get(key) if isinstance(arguments, dict) else None
    if isinstance(arguments, float) and arguments.is_integer():
        arguments = int(arguments)
    return arguments if isinstance(arguments, str | int | bool) else None


def mirrored_arguments(schema: Any) -> Mirrored:
    """The `x-mcp-header` annotations of a tool's input schema; raises ValueError when one breaks the rules."""
    found: list[tuple[tuple[str, ...], str]] = []
    _walk(schema, (), found, reachable=True, depth=0)
    names = [name.lower() for _, name in found]
    if len(names) != len(set(names)):
        raise ValueError("two arguments are mirrored into the same header")
    return tuple(found)


def _walk(
    schema: Any,
    path: tuple[str, ...],
    found: list[tuple[tuple[str, ...], str]],
    *,
    reachable: bool,
    depth: int,
) -> None:
    if depth > 100:
        raise ValueError("the schema is nested too deeply")
    if isinstance(schema, list):
        for each in schema:
            _walk(each, path, found, reachable=False, depth=depth + 1)
    if not isinstance(schema, dict):
        return
    if "x-mcp-header" in schema:
        found.append((path, _checked(schema, path, reachable=reachable)))
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            for name, each in value.items():
                _walk(each, (*path, name), found, reachable=reachable, depth=depth + 1)
        elif key not in DATA_KEYWORDS:
            # The keys of these are names, not keywords.
            inside = list(value.values()) if key in MAP_KEYWORDS and isinstance(value, dict) else value
            _walk(inside, path, found, reachable=False, depth=depth + 1)


def _checked(schema: Json, path: tuple[str, ...], *, reachable: bool) -> str:
    name = schema["x-mcp-header"]
    if not isinstance(name, str) or not TOKEN.fullmatch(name):
        raise ValueError(f"x-mcp-header {name!r} is not a header name")
    if not reachable or not path:
        raise ValueError(f"x-mcp-header {name!r} stands where an argument cannot be read from")
    if schema.get("type") not in PRIMITIVES:
        raise ValueError(f"x-mcp-header {name!r} is on an argument that is not a string, integer or boolean")
    return name
