"""A line that shows how far long work has come, on a terminal; silent elsewhere, and for what is over at once."""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType
from typing import Self

PATIENCE = 0.4
"""Seconds of work before a line is shown."""
_EVERY = 0.1
_WIDTH = 30


class Progress:
    """Call it with what is being done, how much is done and how much there is. Use as a context manager."""

    def __init__(self) -> None:
        self._shows = sys.stderr.isatty()
        self._next = monotonic() + PATIENCE
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, what: str, done: int, total: int) -> None:
        if not self._shows or monotonic() < self._next:
            return
        self._next = monotonic() + _EVERY
        self._shown = True
        filled = round(_WIDTH * done / max(total, 1))
        sys.stderr.write(f"\r{what} {'█' * filled}{'░' * (_WIDTH - filled)} {done:,} of {total:,}\x1b[K")
        sys.stderr.flush()
