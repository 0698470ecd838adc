"""Pegboard's own tools as a model sees them. Short, and the same until the servers are others.

Above: `desk`. Below: `digest`. No server can take their names: `catalog.naming.RESERVED`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from pegboard.platform_tools.digest import Shelf, digest
from pegboard.types import Json

SEARCH, CALL, BATCH, READ = "search_tools", "call_tool", "batch_tools", "read_result"
CALL_READ, CALL_WRITE = "call_tool_read", "call_tool_write"
LOAD = "load_skill"
ALL = frozenset((SEARCH, CALL, CALL_READ, CALL_WRITE, BATCH, READ, LOAD))
"""Every one that there is, whatever the configuration offers."""
DIGEST_TOKENS = 250
MOST = 20
"""Tools that one answer may hold."""
DEFAULT_LIMIT = 5

_ALWAYS = {"anthropic/alwaysLoad": True}
_LOOKS_ONLY = {"readOnlyHint": True, "openWorldHint": False}
_READS = {"readOnlyHint": True, "openWorldHint": True}
_WRITES = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}


def definitions(
    every: Sequence[Shelf],
    count: Callable[[str], int],
    *,
    call_tools: Literal["one", "by-effect", "none"] = "one",
    batch_size: int = 20,
) -> tuple[Json, ...]:
    """All of them, in their order; with `none`, what is found is put on the list and called by its name."""
    if call_tools == "none":
        return (_search(every, count, "Loads them: then call each by its name."), _read())
    calls = (_call(),) if call_tools == "one" else (_call_read(), _call_write())
    return (_search(every, count), *calls, _batch(batch_size, reads_only=call_tools == "by-effect"), _read())


def names(call_tools: Literal["one", "by-effect"]) -> frozenset[str]:
    """What they are called."""
    calls = (CALL,) if call_tools == "one" else (CALL_READ, CALL_WRITE)
    return frozenset((SEARCH, *calls, BATCH, READ))


def load_skill(index: str) -> Json:
    """The one that reads skills; there only where skills are, and then always."""
    return _tool(
        LOAD,
        f"Read a skill, which says how a kind of task is done here, before you do such a task. Skills:{index}",
        {"name": {"type": "string"}, "file": {"type": "string"}},
        ["name"],
        _LOOKS_ONLY,
    )


def _search(every: Sequence[Shelf], count: Callable[[str], int], then: str = "Answers with how to call each.") -> Json:
    about = (
        f"Find tools for what you want to do, in plain words. {then} "
        "`select:a,b` gets exact names, `+word` demands a word."
    )
    servers = digest(every, DIGEST_TOKENS, count)
    return _tool(
        SEARCH,
        f"{about} Servers: {servers}." if servers else about,
        {
            "query": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": DEFAULT_LIMIT},
            "server": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "max_cost_usd": {"type": "number"},
            "max_latency_ms": {"type": "number", "description": "p95"},
            "detail": {"enum": ["signature", "schema", "names"], "default": "signature"},
        },
        ["query"],
        _LOOKS_ONLY,
    )


def _call() -> Json:
    return _tool(CALL, "Call a tool that search_tools found.", _ARGUMENTS, ["name"], _WRITES)


def _call_read() -> Json:
    return _tool(CALL_READ, "Call a tool that only reads, found by search_tools.", _ARGUMENTS, ["name"], _READS)


def _call_write() -> Json:
    return _tool(
        CALL_WRITE, "Call a tool that may change things, found by search_tools.", _ARGUMENTS, ["name"], _WRITES
    )


def _batch(size: int, *, reads_only: bool) -> Json:
    what = "tools that only read" if reads_only else "tools"
    call = {"type": "object", "properties": _ARGUMENTS, "required": ["name"]}
    return _tool(
        BATCH,
        f"Call up to {size} {what} at once; the results come in order.",
        {
            "calls": {"type": "array", "items": call, "minItems": 1, "maxItems": size},
            "stop_on_error": {"type": "boolean", "default": False, "description": "One by one; stop at a failure."},
        },
        ["calls"],
        _READS if reads_only else _WRITES,
    )


def _read() -> Json:
    return _tool(
        READ,
        "Read on in a result that was cut.",
        {"handle": {"type": "string"}, "page": {"type": "integer", "minimum": 1, "default": 1}},
        ["handle"],
        _LOOKS_ONLY,
    )


_ARGUMENTS: Json = {"name": {"type": "string"}, "arguments": {"type": "object"}}


def _tool(name: str, description: str, properties: Json, required: list[str], annotations: Json) -> Json:
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
        "annotations": annotations,
        "_meta": _ALWAYS,
    }
