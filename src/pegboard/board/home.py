"""The event loop that a board lives on, and the ways to it: from that loop, from another one, from code without any.

Above: `board`. A framework calls back from wherever it likes; what it asks for is done here, one thing at a time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from pegboard.errors import PegboardError

PATIENCE = 30.0
"""Seconds in which the board's loop must begin with what it is asked from another thread."""
_Answer = TypeVar("_Answer")
_Work = Coroutine[Any, Any, _Answer]


class Home:
    """One loop: whichever runs when the board is opened, or one in a thread of its own."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def settle(self) -> None:
        """The loop that runs now is the one."""
        self._loop = asyncio.get_running_loop()

    def leave(self) -> None:
        """There is none any more."""
        self._loop = None

    def move_out(self) -> None:
        """Starts a loop in a thread of its own, for code that has none."""
        ready = threading.Event()

        def live() -> None:
            with asyncio.Runner() as runner:
                self._loop = runner.get_loop()
                self._loop.call_soon(ready.set)
                self._loop.run_forever()

        self._thread = threading.Thread(target=live, name="pegboard", daemon=True)
        self._thread.start()
        ready.wait()

    def come_back(self) -> None:
        """Ends that thread."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop = self._thread = None

    @property
    def is_lived_in(self) -> bool:
        """Whether there is a loop."""
        return self._loop is not None and not self._loop.is_closed()

    @property
    def is_here(self) -> bool:
        """Whether the running code is on the board's own loop."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    async def run(self, work: Callable[[], _Work[_Answer]]) -> _Answer:
        """Has it done on the board's loop; a cancel goes there too."""
        loop = self._required()
        if self.is_here:
            return await work()
        try:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), loop))
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            raise _closed_meanwhile() from None

    def wait(self, work: _Work[_Answer]) -> _Answer:
        """Has it done on the board's loop and waits, in code that is not async."""
        try:
            loop = self._required()
            if self.is_here:
                raise PegboardError(
                    "The board's own event loop cannot wait for itself.",
                    hint="Await it, with the framework's async methods; or open the board with a plain `with`.",
                )
        except PegboardError:
            work.close()
            raise
        begun = threading.Event()
        future = asyncio.run_coroutine_threadsafe(_noting(begun, work), loop)
        if not begun.wait(PATIENCE):
            future.cancel()
            raise PegboardError(
                f"The board's event loop did nothing for {PATIENCE:g} s: whatever runs on it does not let go.",
                hint="Do not call sync code that uses the board from a coroutine on its loop; await instead.",
            )
        try:
            return future.result()
        except CancelledError:
            raise _closed_meanwhile() from None
        except BaseException:  # Ctrl-C, say: nobody waits for it any more
            future.cancel()
            raise

    def look(self, work: Callable[[], _Answer]) -> _Answer:
        """Does something short on the board's loop, from wherever."""
        if self.is_here:
            return work()

        async def looked() -> _Answer:
            return work()

        return self.wait(looked())

    def _required(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._loop.is_closed():
            raise not_open()
        return self._loop


def not_open() -> PegboardError:
    """The error for a board that is used before it is opened, or after it was closed."""
    return PegboardError("The board is not open.", hint="Use it inside `async with Pegboard(...)` or `with`.")


def _closed_meanwhile() -> PegboardError:
    return PegboardError("The board was closed before this was done.", hint="Close it when nothing uses it any more.")


async def _noting(begun: threading.Event, work: _Work[_Answer]) -> _Answer:
    begun.set()
    return await work
