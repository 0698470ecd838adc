"""Our end of the guard: tells it which process groups live, and starts it anew should it be killed.

Below: `guard`, the program itself, which knows nothing of the rest of Pegboard. Above: `process` and the pool.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys

from pegboard.upstream import guard
from pegboard.upstream.watch import watch

PATIENCE = 5.0
"""Seconds the guard gets to clean up when it is no longer needed."""
TOO_SOON = 1.0
MOST_LOSSES = 3
"""After so many guards in a row that ended too soon it seems they cannot run here: the next child may try again."""


class Guard:
    """The guard process of one pool; started with the first child, ends with us."""

    def __init__(self) -> None:
        self._token = os.urandom(8).hex()
        self._process: subprocess.Popen[bytes] | None = None
        self._gone = asyncio.Event()
        self._launched = 0.0
        self._losses = 0
        self._groups: set[int] = set()
        self._count = 0

    def next_mark(self) -> str:
        """The mark for the next child's environment. Starts the guard if it does not run."""
        if self._process is None:
            self._launch()
        self._count += 1
        return f"{self._token}.{self._count}"

    def started(self, group: int) -> None:
        """A child leads this process group."""
        self._groups.add(group)
        self._tell(f"+{group}\n")

    def ended(self, group: int, mark: str) -> None:
        """The group is gone; whatever else carries the mark goes too."""
        self._groups.discard(group)
        self._tell(f"-{group} {mark}\n")

    async def close(self) -> None:
        """Says farewell and closes the pipe: the guard cleans up and exits."""
        self._tell(f"{guard.FAREWELL}\n")
        process, self._process = self._process, None
        self._groups.clear()
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._gone.wait()
        if not self._gone.is_set():
            process.kill()
            await self._gone.wait()

    @property
    def pid(self) -> int | None:
        """The guard's process, while there is one."""
        return self._process.pid if self._process is not None else None

    def _launch(self) -> None:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, self._token],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            # Under another Pegboard we carry a mark ourselves, and the guard must outlive us.
            env={name: value for name, value in os.environ.items() if name != guard.MARK},
            start_new_session=True,
            bufsize=0,
        )
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        gone = asyncio.Event()
        watch(process, lambda: self._ended(process, gone))
        self._process, self._gone = process, gone
        self._launched = asyncio.get_running_loop().time()
        self._tell("".join(f"+{group}\n" for group in self._groups))

    def _tell(self, line: str) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            os.write(self._process.stdin.fileno(), line.encode())
        except OSError:
            self._process.kill()  # it reads no more, if it lives at all; the next one learns everything anew

    def _ended(self, process: subprocess.Popen[bytes], gone: asyncio.Event) -> None:
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
        gone.set()
        if process is self._process:
            self._process = None
            lasted = asyncio.get_running_loop().time() - self._launched
            self._losses = 1 if lasted > TOO_SOON else self._losses + 1
            if self._groups and self._losses <= MOST_LOSSES:
                self._launch()
