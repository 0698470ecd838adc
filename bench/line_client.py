"""A client that is a line out and a line in, and what the processes behind it cost. Used on every gateway alike."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
WORD = "hello-from-the-bench"
"""What is echoed: an answer without it is no answer."""
LAST_WORDS = 300


class Silent(Exception):
    """The process ended, or was ended because it took too long; carries the last it said on stderr."""


class LineClient:
    """One process on stdio. Nothing but the standard library is between the clock and the pipe."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path, upstream: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid = process.pid
        self._process, self._said, self._upstream = process, said, upstream
        self._write, self._flush, self._read = process.stdin.write, process.stdin.flush, process.stdout.readline
        self._number = 0
        self.received = 0
        """Bytes of the last answer."""

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Ends the process when this takes longer."""
        timer = threading.Timer(seconds, self._process.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def hello(self) -> None:
        """The handshake."""
        self.ask("initialize", HELLO)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: Any) -> Any:
        """One request, and its result."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            line = self._line()
            answer = json.loads(line)
            if answer.get("id") == self._number and "method" not in answer:
                self.received = len(line)
                if "result" not in answer:
                    raise Silent(str(answer.get("error"))[:LAST_WORDS])
                return answer["result"]

    def flood(self, params: Any, callers: int, seconds: float) -> float:
        """Calls a second while this many are always under way."""
        line = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": params})
        head, tail = line.split('"id": 0', 1)
        word, done, began = WORD.encode(), 0, time.perf_counter()

        def send() -> None:
            self._number += 1
            self._write(f'{head}"id": {self._number}{tail}\n'.encode())
            self._flush()

        for _ in range(callers):
            send()
        waiting, taken = callers, 0.0
        while waiting:
            answer = self._line()
            if b'"method"' in answer:
                continue  # a notification
            if word not in answer:
                raise Silent(f"a wrong answer: {answer[:LAST_WORDS].decode(errors='replace')}")
            done += 1
            waiting -= 1
            taken = time.perf_counter() - began
            if taken < seconds:
                send()
                waiting += 1
        return done / taken

    def cpu(self) -> float:
        """Seconds that the process and its helpers have used so far; the servers behind it are not its own."""
        return sum(_cpu(each) for each in self.own())

    def memory(self) -> int:
        """Resident bytes of the same processes."""
        total = 0
        for each in self.own():
            with suppress(psutil.Error):
                total += each.memory_info().rss
        return total

    def own(self) -> list[psutil.Process]:
        """The process and its children, without the servers."""
        found = [psutil.Process(self.pid)]
        with suppress(psutil.Error):
            found += [each for each in found[0].children(recursive=True) if not self._is_upstream(each)]
        return found

    def _is_upstream(self, process: psutil.Process) -> bool:
        try:
            return self._upstream in process.cmdline()[:3]
        except psutil.Error:
            return True

    def _send(self, message: Any) -> None:
        try:
            self._write(json.dumps(message).encode() + b"\n")
            self._flush()
        except OSError as error:
            raise Silent(self._last_words()) from error

    def _line(self) -> bytes:
        while line := self._read():
            if line.startswith(b"{"):
                return line
        raise Silent(self._last_words())

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._said.read_text(errors="replace").splitlines() if line.strip()]
        return (lines[-1] if lines else "it ended, or took too long, without a word")[:LAST_WORDS]


def _cpu(process: psutil.Process) -> float:
    """By the scheduler's clock, thread by thread, where there is one: the other ticks a hundred times a second."""
    clocks = list(Path(f"/proc/{process.pid}/task").glob("*/schedstat"))
    try:
        if clocks:
            return sum(int(clock.read_text().split()[0]) for clock in clocks) / 1e9
        used = process.cpu_times()
        return used.user + used.system
    except (OSError, psutil.Error):
        return 0.0


@contextmanager
def connected(
    command: Sequence[str], *, environ: Mapping[str, str], cwd: Path, upstream: str = ""
) -> Iterator[LineClient]:
    """Starts the process; afterwards nothing of it is left, servers included."""
    with tempfile.NamedTemporaryFile() as said:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, env=dict(environ), cwd=cwd
        )
        try:
            yield LineClient(process, Path(said.name), upstream)
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(psutil.Error):
        family = psutil.Process(process.pid).children(recursive=True)
        with suppress(OSError, ValueError, subprocess.TimeoutExpired):
            process.communicate(timeout=5)
        for each in psutil.wait_procs(family, timeout=2)[1]:
            with suppress(psutil.Error):
                each.kill()
    process.kill()
    process.wait()


def own_environ(**more: str) -> dict[str, str]:
    """What every process gets: threads kept to one core, bytecode kept where it can be written."""
    from bench.measure import BYTECODE

    environ = {**os.environ, "PYTHONPYCACHEPREFIX": str(BYTECODE), "OPENBLAS_NUM_THREADS": "1", **more}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return environ
