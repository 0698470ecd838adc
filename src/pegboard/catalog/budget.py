"""What one tool's definition may cost whoever validates against it; what costs more is withheld with a reason.

Runs when a server is listed, never when a cached list is read. Nothing is expanded, fetched or compiled here:
a reference counts what its target counts. Above: `cache` keeps the reasons. Below: nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pegboard.types import Json

MAX_BYTES = 256 * 1024
MAX_DEPTH = 64
MAX_SUBSCHEMAS = 10_000

_SCHEMAS = ("inputSchema", "outputSchema")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_DATA = frozenset({"const", "default", "enum", "example", "examples"})
"""Keywords whose values are instances, not schemas: what looks like a reference in there is none."""
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
"""Keywords whose values map names to schemas: the keys in there are names, not keywords."""

_HEADER = "x-mcp-header"
_HEADER_TYPES = ("string", "integer", "boolean")
_WORTH_A_LOOK = tuple(word.encode() for word in (*_REFERENCES, _HEADER))
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def over_budget(definition: Json, encoded_size: int) -> str | None:
    """Why the tool is withheld; None when its definition is fit to use."""
    if encoded_size > MAX_BYTES:
        return f"its definition has {encoded_size:,} bytes, more than {MAX_BYTES:,}"
    if deeper_than(definition, MAX_DEPTH):
        return f"its definition is nested more than {MAX_DEPTH} levels deep"
    subschemas = 0
    for key in _SCHEMAS:
        schema = definition.get(key)
        if isinstance(schema, dict):
            elsewhere = _reference_elsewhere(schema)
            if elsewhere is not None:
                return f"its {key} refers to {elsewhere[:200]!r}, which is outside of it and is never fetched"
            subschemas += _expanded_size(schema)
    if subschemas > MAX_SUBSCHEMAS:
        return f"its schemas stand for more than {MAX_SUBSCHEMAS:,} subschemas once references are followed"
    return header_problem(definition.get("inputSchema"))


def plainly_within(encoded: bytes) -> bool:
    """Whether the bytes alone show that there is nothing to look into; true of most tools, and quick to see."""
    if len(encoded) > MAX_BYTES or encoded.count(b"{") + encoded.count(b"[") > MAX_DEPTH:
        return False
    return not any(word in encoded for word in _WORTH_A_LOOK)


def header_problem(schema: object) -> str | None:
    """Which `x-mcp-header` annotation breaks the rules of MCP 2026-07-28 (Streamable HTTP, custom headers)."""
    taken: dict[str, str] = {}
    for path, node in _positions(schema):
        if _HEADER not in node:
            continue
        if not path:
            return f"its inputSchema has {_HEADER} where no chain of properties leads"
        where, header = ".".join(path)[:200], node[_HEADER]
        if not isinstance(header, str) or not _TOKEN.fullmatch(header):
            return f"{_HEADER} of its parameter {where!r} is not a header name"
        if node.get("type") not in _HEADER_TYPES:
            return f"{_HEADER} of its parameter {where!r} is on a type other than {', '.join(_HEADER_TYPES)}"
        if header.lower() in taken:
            return f"{_HEADER} {header[:200]!r} is on both {taken[header.lower()]!r} and {where!r}"
        taken[header.lower()] = where
    return None


def deeper_than(value: object, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [child for node in level for child in _inside(node) if isinstance(child, dict | list)]
        if not level:
            return False
    return True


def _inside(node: object) -> Iterator[object]:
    if isinstance(node, dict):
        yield from node.values()
    elif isinstance(node, list):
        yield from node


def _subschemas(schema: Json) -> Iterator[tuple[str | None, Json]]:
    """The schemas directly inside one, each with its property name when it is under `properties`.

    Keywords unknown to us count as schemas too: a reference may point into them.
    """
    for keyword, value in schema.items():
        if keyword in _DATA:
            continue
        if isinstance(value, list):
            yield from ((None, item) for item in value if isinstance(item, dict))
        elif isinstance(value, dict) and keyword in _MAPS:
            named = keyword == "properties"
            yield from ((name if named else None, item) for name, item in value.items() if isinstance(item, dict))
        elif isinstance(value, dict):
            yield None, value


def _positions(schema: object) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Every schema in here, with the chain of properties that leads to it; empty when there is no such chain."""
    if not isinstance(schema, dict):
        return
    stack: list[tuple[tuple[str, ...], Json, bool]] = [((), schema, True)]
    while stack:
        path, node, reachable = stack.pop()
        yield (path if reachable else ()), node
        for name, child in _subschemas(node):
            on = reachable and name is not None
            stack.append(((*path, name) if on and name is not None else (), child, on))


def _reference_elsewhere(schema: Json) -> str | None:
    """A reference that does not stay inside the document."""
    for _, node in _positions(schema):
        for keyword in _REFERENCES:
            target = node.get(keyword)
            if isinstance(target, str) and not target.startswith("#"):
                return target
    return None


def _expanded_size(root: Json) -> int:
    """How many schemas this stands for when every local reference is followed; a cycle is followed once.

    Each schema is counted once and its count reused, so a chain that doubles thirty times costs thirty steps.
    """
    anchors: dict[str, Json] | None = None
    sizes: dict[int, int] = {}
    stack: list[tuple[Json, list[Json] | None]] = [(root, None)]
    while stack:
        node, parts = stack.pop()
        if parts is not None:
            sizes[id(node)] = 1 + sum(sizes[id(part)] for part in parts)
            if sizes[id(node)] > MAX_SUBSCHEMAS:
                break
            continue
        if id(node) in sizes:
            continue
        sizes[id(node)] = 1  # what a cycle that comes back here sees
        parts = [child for _, child in _subschemas(node)]
        references = [target for keyword in _REFERENCES if isinstance(target := node.get(keyword), str)]
        if references:
            anchors = _anchors(root) if anchors is None else anchors
            parts += [found for target in references if (found := _target(root, anchors, target)) is not None]
        stack.append((node, parts))
        stack.extend((part, None) for part in parts)
    return max(sizes.values())


def _anchors(root: Json) -> dict[str, Json]:
    named: dict[str, Json] = {"#": root}
    for _, node in _positions(root):
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(name := node.get(keyword), str):
                named.setdefault("#" + name, node)
        if isinstance(name := node.get("$id"), str) and name.startswith("#"):
            named.setdefault(name, node)
    return named


def _target(root: Json, anchors: dict[str, Json], reference: str) -> Json | None:
    """The schema a local reference means; None when there is none, which is the validator's to report."""
    if not reference.startswith("#/"):
        return anchors.get(reference)
    if "%" in reference:
        from urllib.parse import unquote

        reference = unquote(reference)
    node: Any = root
    for escaped in reference[2:].split("/"):
        step = escaped.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = node.get(step)
        elif isinstance(node, list) and re.fullmatch("[0-9]{1,6}", step) and int(step) < len(node):
            node = node[int(step)]
        else:
            return None
    return node if isinstance(node, dict) else None
