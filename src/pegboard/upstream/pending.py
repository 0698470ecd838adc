"""A request under way: its future, its caller, and how long it may still take."""

from __future__ import annotations

import asyncio

import msgspec

from pegboard.types import CallContext

LONGEST_CALL = 10
"""Progress keeps a call alive, up to this many times its timeout."""


class Pending:
    """A request under way, and the caller it belongs to."""

    __slots__ = ("_deadline", "_held_since", "_questions", "clock", "context", "future", "timeout")

    def __init__(
        self, future: asyncio.Future[msgspec.Raw], context: CallContext, timeout: float | None, now: float
    ) -> None:
        self.future = future
        self.context = context
        self.timeout = timeout
        self.clock: asyncio.Timeout | None = None
        self._deadline = now + LONGEST_CALL * (timeout or 0)
        self._questions = 0
        self._held_since = 0.0

    def extend(self, now: float) -> None:
        """Something happened: the wait begins anew, up to the longest a call may last."""
        if self.timeout is not None and not self._questions:
            self._set_clock(min(now + self.timeout, self._deadline))

    def hold(self, now: float) -> None:
        """A question is open: people take their time, and it is not the server's."""
        self._questions += 1
        if self._questions == 1:
            self._held_since = now
            self._set_clock(None)

    def release(self, now: float) -> None:
        """A question was answered; after the last one the wait begins anew."""
        self._questions -= 1
        if not self._questions and self.timeout is not None:
            self._deadline += now - self._held_since
            self._set_clock(min(now + self.timeout, self._deadline))

    def limit(self, now: float) -> float:
        """The seconds it was given and did not keep to: its timeout, or the longest that progress could make of it."""
        timeout = self.timeout or 0.0
        return LONGEST_CALL * timeout if now >= self._deadline else timeout

    def _set_clock(self, when: float | None) -> None:
        # A question may outlive the call it belonged to, whose clock has stopped for good then.
        if self.clock is not None and not self.clock.expired() and not self.future.done():
            self.clock.reschedule(when)
