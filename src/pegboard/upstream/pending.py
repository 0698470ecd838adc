"""A request under way: its future, its caller, and how long it may still take."""

from __future__ import annotations

import asyncio

import msgspec

from pegboard.types import CallContext

LONGEST_CALL = 10
"""Progress keeps a call alive, up to this many times its timeout."""


class Pending:
    """A request under way, and the caller it belongs to."""

    __slots__ = ("clock", "context", "deadline", "future", "timeout")

    def __init__(self, future: asyncio.Future[msgspec.Raw], context: CallContext, timeout: float | None) -> None:
        self.future = future
        self.context = context
        self.timeout = timeout
        self.clock: asyncio.Timeout | None = None
        self.deadline = asyncio.get_running_loop().time() + LONGEST_CALL * (timeout or 0)

    def extend(self, now: float) -> None:
        """Something happened: the wait begins anew, up to the longest a call may last."""
        if self.clock is not None and self.timeout is not None and self.clock.when() is not None:
            self.clock.reschedule(min(now + self.timeout, self.deadline))

    def hold(self) -> None:
        """A question is open: people take their time."""
        if self.clock is not None:
            self.clock.reschedule(None)

    def release(self, now: float) -> None:
        """The question was answered."""
        if self.clock is not None and self.timeout is not None:
            self.clock.reschedule(now + self.timeout)
