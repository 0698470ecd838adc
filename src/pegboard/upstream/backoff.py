"""When a server that failed may be tried again: pure, with the clock passed in.

A failure makes the next try wait, longer each time. Five in a row open the breaker: calls fail at once until a rest
is over, then one try is let through. Only sustained uptime wipes the slate, not a mere start. A server that refuses
our credentials rests until someone signs in or asks for a retry.
"""

from __future__ import annotations

from collections.abc import Callable

FIRST_DELAY = 0.5
LONGEST_DELAY = 8.0
FAILURES_TO_OPEN = 5
FIRST_REST = 60.0
LONGEST_REST = 600.0
SUSTAINED = 60.0


class Backoff:
    """One server's record of failures."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._failures = 0
        self._not_before = 0.0
        self._up_since: float | None = None
        self._refused = False

    def started(self, now: float) -> None:
        """It is ready; the slate is wiped only if it stays so."""
        self._up_since = now

    def failed(self, now: float) -> None:
        """It could not start, or died."""
        if self._up_since is not None and now - self._up_since >= SUSTAINED:
            self._failures = 0
        self._up_since = None
        self._failures += 1
        self._not_before = now + self._pause()

    def ended(self, now: float) -> None:
        """It ended as it should."""
        if self._up_since is not None and now - self._up_since >= SUSTAINED:
            self._failures = 0
        self._up_since = None

    def refused(self) -> None:
        """It turned our credentials down: trying again by itself would only be noise."""
        self._refused = True

    def reset(self) -> None:
        """A person asks for a fresh start."""
        self._failures, self._not_before, self._refused = 0, 0.0, False

    def _pause(self) -> float:
        base: float
        over = self._failures - FAILURES_TO_OPEN
        if over >= 0:
            base = min(FIRST_REST * 2**over, LONGEST_REST)
        else:
            base = min(FIRST_DELAY * 2 ** (self._failures - 1), LONGEST_DELAY)
        return base * (0.75 + 0.5 * self._random())

    @property
    def is_refused(self) -> bool:
        """Whether it waits for someone to sign in."""
        return self._refused

    @property
    def failures(self) -> int:
        """How often it failed in a row."""
        return self._failures

    def wait(self, now: float) -> float:
        """Seconds until it may be tried again."""
        return max(0.0, self._not_before - now)

    def is_open(self, now: float) -> bool:
        """Whether calls should fail at once rather than wait."""
        return self._failures >= FAILURES_TO_OPEN and self.wait(now) > 0
