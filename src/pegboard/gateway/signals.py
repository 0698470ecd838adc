"""SIGTERM and SIGINT as an event: both edges end the same way, in order and without a traceback."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator

_ENDING = (signal.SIGTERM, signal.SIGINT)
_NOT_HERE = (NotImplementedError, ValueError, RuntimeError)  # another platform, or not the main thread


@contextlib.contextmanager
def ending_on_signals(over: asyncio.Event) -> Iterator[None]:
    """Sets the event instead of killing the process."""
    loop = asyncio.get_running_loop()
    for number in _ENDING:
        with contextlib.suppress(*_NOT_HERE):
            loop.add_signal_handler(number, over.set)
    try:
        yield
    finally:
        for number in _ENDING:
            with contextlib.suppress(*_NOT_HERE):
                loop.remove_signal_handler(number)
