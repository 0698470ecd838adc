"""One child process: started in a group of its own, watched by its pid, and ended with all it brought along.

The pipes are served by the loop directly. asyncio's own transports would need several turns of the loop to take them
over, in which a server may die or a caller give up; here a child is started in one step that cannot be interrupted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from pegboard.upstream.guard import MARK
from pegboard.upstream.guard_client import Guard
from pegboard.upstream.watch import Watch, watch

STDERR_BYTES = 64 * 1024
CHUNK = 64 * 1024
GRACE = 2.0
"""Seconds a server gets after its stdin closes, and again after SIGTERM."""
LAST_GASP = 0.2
"""Seconds between a closed pipe and the conclusion that the process lives on without it."""


class Child:
    """A running server process and its three pipes."""

    def __init__(
        self, on_stdout: Callable[[bytes], None], on_end: Callable[[], None], guard: Guard, watch: Watch = watch
    ) -> None:
        self._on_stdout = on_stdout
        self._on_end: Callable[[], None] | None = on_end
        self._guard = guard
        self._watch = watch
        self._mark = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._stdin: int | None = None
        self._unsent: memoryview | None = None
        self._taken = asyncio.Event()
        self._readers: dict[int, Callable[[], None]] = {}
        self._paused = False
        self._stderr = bytearray()
        self._verdict: asyncio.TimerHandle | None = None
        self.exited = asyncio.Event()
        self.returncode: int | None = None
        self.fault = ""
        """Set when it is of no use although it runs: which pipe it closed."""

    def start(self, command: Sequence[str], environ: Mapping[str, str], cwd: Path | None) -> None:
        """Starts the command; raises OSError or ValueError when it cannot be."""
        self._mark = self._guard.next_mark()
        # Blocks for the millisecond that fork and exec take; asyncio's own way costs a thread per child on 3.11.
        self._process = process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environ, MARK: self._mark},
            cwd=cwd,
            start_new_session=True,
            bufsize=0,
        )
        self._guard.started(process.pid)
        self._watch(process, self._exited)
        self._stdin = _nonblocking(process.stdin)
        self._read(_nonblocking(process.stdout), self._readable)
        self._read(_nonblocking(process.stderr), self._complained)

    def _read(self, descriptor: int, ready: Callable[[], None]) -> None:
        self._readers[descriptor] = ready
        asyncio.get_running_loop().add_reader(descriptor, ready)

    @property
    def pid(self) -> int | None:
        """The process, once it was started."""
        return self._process.pid if self._process is not None else None

    # ── stdout and stderr ────────────────────────────────────────────────────────────────────────────────────────

    def _readable(self) -> None:
        assert self._process is not None
        if data := _some(self._process.stdout):
            self._on_stdout(data)
        elif data is not None:
            self._no_more(self._process.stdout)
            self._lacks("stdout")

    def _complained(self) -> None:
        assert self._process is not None
        data = _some(self._process.stderr)
        if data is not None and not data:
            self._no_more(self._process.stderr)
        self._stderr += data or b""
        if len(self._stderr) > 2 * STDERR_BYTES:
            del self._stderr[:-STDERR_BYTES]

    def _no_more(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        if not pipe.closed:
            asyncio.get_running_loop().remove_reader(pipe.fileno())
            self._readers.pop(pipe.fileno(), None)
            pipe.close()

    @property
    def stderr(self) -> str:
        """The end of what it wrote on stderr."""
        return self._stderr[-STDERR_BYTES:].decode("utf-8", "replace")

    def pause(self) -> None:
        """Stops reading its stdout: a flood meets a full pipe instead of our loop."""
        self._paused = self._listen(paused=True)

    def resume(self) -> None:
        """Reads its stdout again."""
        if self._paused:
            self._paused = self._listen(paused=False)

    def _listen(self, *, paused: bool) -> bool:
        assert self._process is not None
        assert self._process.stdout is not None
        if not self._process.stdout.closed:
            descriptor = self._process.stdout.fileno()
            if paused:
                asyncio.get_running_loop().remove_reader(descriptor)
            else:
                asyncio.get_running_loop().add_reader(descriptor, self._readable)
        return paused

    # ── stdin ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def write(self, data: bytes) -> None:
        """Writes to its stdin; waits while it has not taken what was written before.

        One message at a time lies here: a server that does not read holds up its callers, not our memory.
        """
        while self._unsent is not None:
            await self._taken.wait()
        if self._stdin is None:
            return  # it has ended or is about to, and whoever waits for an answer is told why
        sent = self._send(data)
        if sent < len(data):
            self._unsent = memoryview(data)[sent:]
            self._taken.clear()
            asyncio.get_running_loop().add_writer(self._stdin, self._writable)

    def _send(self, data: bytes | memoryview) -> int:
        assert self._stdin is not None
        try:
            return os.write(self._stdin, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            self._lacks("stdin")
            return len(data)

    def _writable(self) -> None:
        assert self._unsent is not None
        rest = self._unsent[self._send(self._unsent) :]
        self._unsent = rest or None
        if not rest:
            self._unblock()

    def _unblock(self) -> None:
        assert self._stdin is not None
        asyncio.get_running_loop().remove_writer(self._stdin)
        self._unsent = None
        self._taken.set()

    def _close_stdin(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        if self._stdin is not None:
            self._unblock()
            self._stdin = None
        self._process.stdin.close()

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _lacks(self, pipe: str) -> None:
        """A pipe closed. Most likely it is just exiting; a server that lives on without it is of no use."""
        if self._verdict is None:
            self._verdict = asyncio.get_running_loop().call_later(LAST_GASP, self._give_up, pipe)

    def _give_up(self, pipe: str) -> None:
        if self.returncode is None:
            self.fault = f"closed its {pipe} but went on running"
            self._tell_end()

    def _tell_end(self) -> None:
        if self._on_end is not None:
            tell, self._on_end = self._on_end, None
            tell()

    def _exited(self) -> None:
        assert self._process is not None
        self._drain()
        # While the leader is an unreaped zombie its group id cannot be taken by anyone else.
        self._signal(signal.SIGKILL)
        self.returncode = self._process.wait()
        self._guard.ended(self._process.pid, self._mark)
        if self._verdict is not None:
            self._verdict.cancel()
        self._close_stdin()
        self._no_more(self._process.stdout)
        self._no_more(self._process.stderr)
        self.exited.set()
        self._tell_end()

    def _drain(self) -> None:
        # What it wrote before it died still lies in the pipes. A grandchild may go on writing: there is an end to it.
        for _ in range(16):
            for ready in list(self._readers.values()):
                ready()

    async def stop(self) -> None:
        """Closes stdin, then insists: SIGTERM, then SIGKILL, to the whole group."""
        if self._process is None:
            return
        self._close_stdin()
        if not self.fault and await self._exits_in_time():
            return
        for each in (signal.SIGTERM, signal.SIGKILL):
            self._signal(each)
            if await self._exits_in_time():
                return

    async def _exits_in_time(self) -> bool:
        try:
            async with asyncio.timeout(GRACE):
                await self.exited.wait()
        except TimeoutError:
            return False
        except asyncio.CancelledError:  # the loop is ending, and nobody will insist later
            self._signal(signal.SIGKILL)
            raise
        return True

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and not self.exited.is_set():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


def _nonblocking(pipe: IO[bytes] | None) -> int:
    assert pipe is not None
    os.set_blocking(pipe.fileno(), False)
    return pipe.fileno()


def _some(pipe: IO[bytes] | None) -> bytes | None:
    """What can be read now: nothing at the end of the pipe, None when there is just nothing yet."""
    assert pipe is not None
    if pipe.closed:
        return None
    try:
        return os.read(pipe.fileno(), CHUNK)
    except (BlockingIOError, InterruptedError):
        return None
    except OSError:
        return b""
