"""Calls that a person has to approve: Pegboard's call path says which, the framework asks.

`Pegboard(..., approve=run_approval)` lets the path ask the run it is called from. A call that was not approved yet is
put off by the framework's own means, and made when the run goes on with the approval. Above: `toolset`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pydantic_ai.exceptions import ApprovalRequired, ToolFailed

from pegboard.platform_tools.definitions import BATCH
from pegboard.types import Caller, Json, Tool


class Asked:
    """Whether the call of a run is approved, and which tools the path asked about when it was not."""

    def __init__(self, *, approved: bool) -> None:
        self.approved = approved
        self.about: list[tuple[Tool, Json]] = []


_asked: ContextVar[Asked | None] = ContextVar("pegboard_asked", default=None)


async def run_approval(tool: Tool, arguments: Json, _: Caller) -> bool:
    """Whether the run that makes this call has it approved; a call from elsewhere never is."""
    asked = _asked.get()
    if asked is None or asked.approved:
        return asked is not None
    asked.about.append((tool, arguments))
    return False


@contextmanager
def of_run(*, approved: bool) -> Iterator[Asked]:
    """While a call is made: what `run_approval` answers, and notes."""
    asked = Asked(approved=approved)
    token = _asked.set(asked)
    try:
        yield asked
    finally:
        _asked.reset(token)


def deferred(asked: Asked, name: str, *, is_own: bool) -> None:
    """Puts the call off until somebody has approved it, if the path asked for that; nothing was called then.

    Of several calls at once some were made: to put all off would make these twice, so their refusal is the answer.
    """
    if not asked.about or name == BATCH:
        return
    tool, arguments = asked.about[0]
    if not is_own and name != tool.public_name:
        # A run that goes on later knows the tool by this name only.
        raise ToolFailed(f"{tool.public_name} needs the approval of a person. Call it by this name to ask for it.")
    raise ApprovalRequired(metadata={"tool": tool.public_name, "arguments": arguments})
