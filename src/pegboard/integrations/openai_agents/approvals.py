"""Which calls a person has to approve first: those that Pegboard's configuration names, and those that the server's
`require_approval` names. Looking for tools, and reading skills and results, is never one of them.

The framework asks, and makes no call before it has a yes; `Pegboard(..., approve=run_approval)` tells the call path of
it. Above: `server`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pegboard.catalog.filter import compile_globs, named
from pegboard.platform_tools.definitions import LOAD, READ, SEARCH
from pegboard.types import Caller, Json, Tool

LOOKING = frozenset((SEARCH, READ, LOAD))

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
