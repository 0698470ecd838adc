"""Which calls a person has to approve first: those that Pegboard's configuration names, and those that the server's
`require_approval` names. Looking for tools, and reading on in a result, is never one of them.

The framework asks, and makes no call before it has a yes; `Pegboard(..., approve=run_approval)` tells the call path of
it. Above: `server`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pegboard.catalog.filter import compile_globs, named
from pegboard.platform_tools.definitions import BATCH, CALL, CALL_READ, CALL_WRITE, READ, SEARCH
from pegboard.types import Caller, Json, Tool

LOOKING = frozenset((SEARCH, READ))
_CALLING = frozenset((CALL, CALL_READ, CALL_WRITE))

_approved: ContextVar[frozenset[str]] = ContextVar("pegboard_approved", default=frozenset())


async def run_approval(tool: Tool, _arguments: Json, _caller: Caller) -> bool:
    """Whether a run makes this call, and the framework has asked about it; a call from elsewhere is never approved."""
    return tool.public_name in _approved.get()


@contextmanager
def calling(approved: Iterable[str]) -> Iterator[None]:
    """While a call is made that the framework has asked about, if it was about one of these tools."""
    token = _approved.set(frozenset(approved))
    try:
        yield
    finally:
        _approved.reset(token)


class Approvals:
    """The tools whose calls Pegboard's configuration wants approved."""

    def __init__(self, globs: tuple[str, ...]) -> None:
        self._globs = compile_globs(globs)

    def __bool__(self) -> bool:
        return bool(self._globs)

    def wants(self, tool: Tool) -> bool:
        """Whether somebody has to be asked about each call of it."""
        return bool(self._globs) and self._globs.match(named(tool.server, tool.name, tool.public_name))


def names_called(name: str, arguments: Any) -> list[str]:
    """The tools that a call calls: itself, or those that one of Pegboard's own calls for it."""
    given = arguments if isinstance(arguments, dict) else {}
    if name in _CALLING:
        called = [given.get("name")]
    elif name == BATCH:
        calls = given.get("calls")
        called = [each.get("name") for each in calls if isinstance(each, dict)] if isinstance(calls, list) else []
    else:
        called = [name]
    return [each for each in called if isinstance(each, str) and each not in LOOKING]
