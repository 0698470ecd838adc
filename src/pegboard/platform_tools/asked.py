"""What Pegboard's own tools are called with, as values that hold what their schemas promise.

The call path lets pass what it cannot judge, for a server has the last word on its tools; on these, we have it. Above:
`desk`. Below: the call path's mending of arguments.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pegboard.errors import ArgumentsError
from pegboard.invoke.repair import mend
from pegboard.invoke.schema import Rule, compile_schema
from pegboard.invoke.words import wrong_arguments
from pegboard.platform_tools.definitions import (
    BATCH,
    CALL,
    CALL_READ,
    CALL_WRITE,
    DEFAULT_LIMIT,
    LOAD,
    MOST,
    READ,
    SEARCH,
)
from pegboard.surface.render import Detail
from pegboard.types import Json

_LONGEST_REASON = 300
_CALLING = frozenset((CALL, CALL_READ, CALL_WRITE))
_LOOKING = frozenset((SEARCH, READ, LOAD))


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `search_tools` was called with."""

    query: str
    limit: int = DEFAULT_LIMIT
    server: str | None = None
    tags: tuple[str, ...] = ()
    max_cost_usd: float | None = None
    max_latency_ms: float | None = None
    detail: Detail = "signature"


class Wanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call of a tool by its name."""

    name: str
    arguments: Any = None


class Several(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `batch_tools` was called with."""

    calls: tuple[Wanted, ...]
    stop_on_error: bool = False


class Onward(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `read_result` was called with."""

    handle: str
    page: int = 1


class Reading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `load_skill` was called with."""

    name: str
    file: str = ""


_SHAPES: dict[str, type[msgspec.Struct]] = {
    SEARCH: Asked,
    CALL: Wanted,
    CALL_READ: Wanted,
    CALL_WRITE: Wanted,
    BATCH: Several,
    READ: Onward,
    LOAD: Reading,
}


class OwnArguments:
    """Reads the arguments of these tools."""

    def __init__(self, own: tuple[Json, ...]) -> None:
        self._schemas: dict[str, Json] = {each["name"]: each["inputSchema"] for each in own}
        self._rules: dict[str, Rule] = {name: compile_schema(_closed(each)) for name, each in self._schemas.items()}

    def read(self, name: str, arguments: Any) -> Any:
        """What the tool was called with, mended where there is no doubt; else an ArgumentsError with the schema."""
        try:
            return self._read(name, arguments)
        except ArgumentsError:
            meant = _meant(name, arguments)
            if meant == arguments:
                raise
        return self._read(name, meant)

    def _read(self, name: str, arguments: Any) -> Any:
        schema = self._schemas[name]
        given = {} if arguments is None else arguments
        mended = mend(given if name == LOAD else _gathered(given), self._rules[name])
        wrong = mended.wrong
        if not wrong:
            try:
                read = msgspec.convert(mended.arguments, _SHAPES[name], strict=False)
            except msgspec.ValidationError as error:
                wrong = (str(error)[:_LONGEST_REASON],)
            else:
                if not isinstance(read, Several) or 0 < len(read.calls) <= _most(schema):
                    return read
                wrong = (f"calls must have 1 to {_most(schema)} items, not {len(read.calls):,}",)
        raise ArgumentsError(wrong_arguments(name, wrong, schema), schema)

    def called(self, name: str, arguments: Any) -> list[str]:
        """The tools that this calls, as the desk takes it: the one of this name, or those that one of ours calls."""
        if name not in self._schemas:
            return [name]
        try:
            given = self.read(name, arguments)
        except ArgumentsError:
            return []  # nothing is called
        if isinstance(given, Several):
            return [each.name for each in given.calls if each.name not in _LOOKING]
        if not isinstance(given, Wanted):
            return []
        return [given.name] if given.name in _CALLING else self.called(given.name, given.arguments)


def _most(schema: Json) -> int:
    most: int = schema["properties"]["calls"]["maxItems"]
    return most


def _closed(schema: Json) -> Json:
    """The schema with nothing allowed that it does not name; a model is spared the words for it."""
    closed = {key: _closed(value) if isinstance(value, dict) else value for key, value in schema.items()}
    return {**closed, "additionalProperties": False} if "properties" in schema else closed


def _gathered(arguments: Any) -> Any:
    """The same, with a tool's own arguments where they belong: weak models put them beside its name."""
    if not isinstance(arguments, dict):
        return arguments
    if isinstance(calls := arguments.get("calls"), list):
        return {**arguments, "calls": [_gathered(each) for each in calls]}
    if "arguments" in arguments or not isinstance(arguments.get("name"), str):
        return arguments
    if any(key.lower() == "arguments" for key in arguments):
        return arguments
    beside = {key: value for key, value in arguments.items() if key != "name"}
    return {"name": arguments["name"], "arguments": beside} if beside else arguments


def _meant(name: str, arguments: Any) -> Any:
    """What was probably meant by arguments that do not fit; the same where that is not clear."""
    if not isinstance(arguments, dict):
        return arguments
    if name == SEARCH:
        limit = arguments.get("limit")
        return {**arguments, "limit": MOST} if isinstance(limit, int) and limit > MOST else arguments
    if name == BATCH and isinstance(calls := arguments.get("calls"), list):
        return {**arguments, "calls": [_with_name(each) for each in calls]}
    return _with_name(arguments) if name in (CALL, CALL_READ, CALL_WRITE) else arguments


def _with_name(call: Any) -> Any:
    """A call whose tool is named where it should be: weak models say `tool_name`, or put it among the arguments."""
    if not isinstance(call, dict) or "name" in call:
        return call
    inner = call.get("arguments")
    if isinstance(inner, dict) and len(call) == 1:
        call = inner
    key = next((key for key in ("name", "tool_name", "tool") if isinstance(call.get(key), str)), None)
    return call if key is None else {"name": call[key], **{other: call[other] for other in call if other != key}}
