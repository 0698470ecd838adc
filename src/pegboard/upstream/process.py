"""One child process: started in a group of its own, watched by its pid, and ended with all it brought along."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from pegboard.upstream import guard

STDERR_BYTES = 64 * 1024
GRACE = 2.0
"""Seconds a server gets after its stdin closes, and again after SIGTERM."""


class Guard:
    """Our end of the guard process; started with the first child, ends with us."""

    def __init__(self) -> None:
        self._token = secrets.token_hex(8)
        self._process: subprocess.Popen[bytes] | None = None
        self._count = 0

    def next_mark(self) -> str:
        """The mark for the next child's environment. Starts the guard if it does not run."""
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-I", "-S", guard.__file__, self._token]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, bufsize=0)
        self._count += 1
        return f"{self._token}.{self._count}"

    def started(self, group: int) -> None:
        """A child leads this process group."""
        self._tell(f"+{group}\n")

    def ended(self, group: int, mark: str) -> None:
        """The group is gone; whatever else carries the mark goes too."""
        self._tell(f"-{group} {mark}\n")

    def _tell(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            # A guard that was killed is started anew with the next child.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(line.encode())

    def close(self) -> None:
        """Closes the pipe: the guard cleans up and exits."""
        if self._process is None:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


class Child:
    """A running server process and its three pipes."""

    def __init__(self, on_stdout: Callable[[bytes], None], on_exit: Callable[[], None], children: Guard) -> None:
        self._on_stdout = on_stdout
        self._on_exit = on_exit
        self._guard = children
        self._mark = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._stdin_lost = False
        self._stdout: asyncio.ReadTransport | None = None
        self._stderr_end: asyncio.ReadTransport | None = None
        self._stderr: deque[bytes] = deque()
        self._stderr_size = 0
        self._writable = asyncio.Event()
        self._writable.set()
        self.exited = asyncio.Event()
        self.returncode: int | None = None

    async def start(self, command: Sequence[str], environ: dict[str, str], cwd: Path | None) -> None:
        """Starts the command; raises OSError when it cannot be."""
        self._mark = self._guard.next_mark()
        # Blocks for the millisecond that fork and exec take; asyncio's own way costs a thread per child on 3.11.
        self._process = subprocess.Popen(  # noqa: ASYNC220
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environ, guard.MARK: self._mark},
            cwd=cwd,
            start_new_session=True,
            bufsize=0,
        )
        self._guard.started(self._process.pid)
        self._watch(self._process)
        loop = asyncio.get_running_loop()
        process = self._process
        self._stdout, _ = await loop.connect_read_pipe(lambda: _ReadEnd(self._on_stdout, self._lost), process.stdout)
        self._stderr_end, _ = await loop.connect_read_pipe(lambda: _ReadEnd(self._heard, lambda: None), process.stderr)
        self._stdin, _ = await loop.connect_write_pipe(
            lambda: _WriteEnd(self._writable, self._unwritable), process.stdin
        )

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        # The pid is watched, not the pipe: a grandchild may hold stdout open long after the server died.
        loop = asyncio.get_running_loop()
        if hasattr(os, "pidfd_open"):
            fd = os.pidfd_open(process.pid)

            def ended() -> None:
                loop.remove_reader(fd)
                os.close(fd)
                self._ended()

            loop.add_reader(fd, ended)
            return

        def wait() -> None:
            # WNOWAIT leaves the zombie for _ended to reap, once its group has been killed.
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to tell
                loop.call_soon_threadsafe(self._ended)

        threading.Thread(target=wait, daemon=True).start()

    def _ended(self) -> None:
        self._drain()
        assert self._process is not None
        # While the leader is an unreaped zombie its group id cannot be taken by anyone else.
        self._signal(signal.SIGKILL)
        self.returncode = self._process.wait()
        self._guard.ended(self._process.pid, self._mark)
        self._release()
        self.exited.set()
        self._on_exit()

    def _release(self) -> None:
        assert self._process is not None
        for transport in (self._stdout, self._stderr_end):
            if transport is not None:
                transport.close()
        if self._stdin is not None and not self._stdin_lost and not self._closes_by_itself(self._stdin):
            self._stdin.abort()  # close() would wait for what a dead process will never read
        ends = (
            (self._process.stdout, self._stdout is None),
            (self._process.stderr, self._stderr_end is None),
            (self._process.stdin, self._stdin is None),
        )
        for pipe, untaken in ends:
            if untaken and pipe is not None:  # it died before its pipes were taken over
                pipe.close()

    @staticmethod
    def _closes_by_itself(transport: asyncio.WriteTransport) -> bool:
        return transport.is_closing() and transport.get_write_buffer_size() == 0

    def _drain(self) -> None:
        # What the server wrote before it died still lies in the pipe.
        assert self._process is not None
        assert self._process.stdout is not None
        if self._stdout is None or self._stdout.is_closing():
            return
        with contextlib.suppress(OSError, ValueError):
            for _ in range(64):
                data = os.read(self._process.stdout.fileno(), 65536)
                if not data:
                    return
                self._on_stdout(data)

    def _lost(self) -> None:
        """Stdout closed. A server that cannot answer is of no use, even if it lives."""
        if not self.exited.is_set():
            # A little later, so that a server which is just exiting keeps its own exit code.
            loop = asyncio.get_running_loop()
            loop.call_later(GRACE / 10, self._signal, signal.SIGTERM)
            loop.call_later(GRACE, self._signal, signal.SIGKILL)

    def _heard(self, data: bytes) -> None:
        self._stderr.append(data[-STDERR_BYTES:])
        self._stderr_size += len(self._stderr[-1])
        while self._stderr_size - len(self._stderr[0]) >= STDERR_BYTES:
            self._stderr_size -= len(self._stderr.popleft())

    @property
    def stderr(self) -> str:
        """The end of what it wrote on stderr."""
        return b"".join(self._stderr)[-STDERR_BYTES:].decode("utf-8", "replace")

    async def write(self, data: bytes) -> None:
        """Writes to its stdin; waits while the pipe is full."""
        if self._stdin is None or self._stdin.is_closing():
            return
        self._stdin.write(data)
        if not self._writable.is_set():
            await self._writable.wait()

    def _unwritable(self) -> None:
        self._stdin_lost = True
        self._writable.set()

    def pause(self, seconds: float) -> None:
        """Stops reading its stdout for a while: a flood meets a full pipe instead of our loop."""
        if self._stdout is not None and not self._stdout.is_closing():
            self._stdout.pause_reading()
            asyncio.get_running_loop().call_later(seconds, self._resume)

    def _resume(self) -> None:
        if self._stdout is not None and not self._stdout.is_closing():
            self._stdout.resume_reading()

    async def stop(self) -> None:
        """Closes stdin, then insists: SIGTERM, then SIGKILL, to the whole group."""
        if self._process is None:
            return
        if self._stdin is not None:
            self._stdin.close()
        for each in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.exited.wait(), GRACE)
                return
            self._signal(each)
        await self.exited.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


class _ReadEnd(asyncio.Protocol):
    def __init__(self, on_data: Callable[[bytes], None], on_lost: Callable[[], None]) -> None:
        self._on_data = on_data
        self._on_lost = on_lost

    def data_received(self, data: bytes) -> None:
        self._on_data(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._on_lost()


class _WriteEnd(asyncio.BaseProtocol):
    def __init__(self, writable: asyncio.Event, on_lost: Callable[[], None]) -> None:
        self._writable = writable
        self._on_lost = on_lost

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._on_lost()
