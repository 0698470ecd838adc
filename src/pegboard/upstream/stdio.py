"""A server on stdio: one message per line to and from a child process."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from pegboard.config.environment import child_environment
from pegboard.config.model import ServerSpec
from pegboard.errors import ConnectionLost, ServerError, StartFailed
from pegboard.upstream.guard_client import Guard
from pegboard.upstream.link import Inbox, Outgoing
from pegboard.upstream.process import Child
from pegboard.wire.framing import EDGE, LineDecoder, Oversized, answered_id

TURN = 128
"""Messages taken from one server before everybody else gets a turn of the loop."""
FLOOD = 20_000
"""Messages in a second after which a server has to wait."""
FLOOD_PAUSE = 0.1
STDERR_LINES = 8
LONGEST_LINE = 400
NAMES_SHOWN = 6
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")
"""Colours, cursor moves and window titles."""


class StdioLink:
    """Starts the server's command and speaks with it by lines."""

    def __init__(self, spec: ServerSpec, max_bytes: int, guard: Guard, environ: Mapping[str, str]) -> None:
        self._spec = spec
        self._environ, self._withheld = child_environment(spec.config, environ)
        self._search_path = environ.get("PATH", os.defpath)
        self._cwd = Path(spec.config.cwd) if spec.config.cwd else None
        self._max_bytes = max_bytes
        self._decoder = LineDecoder(max_bytes)
        self._unended = 0
        self._head = b""
        self._child = Child(self._received, self._ended, guard)
        self._inbox: Inbox | None = None
        self._lines: deque[bytes | Oversized] = deque()
        self._is_over = False
        self._closing = False
        self._settled = False
        self._window = 0.0
        self._in_window = 0

    # ── starting and stopping ────────────────────────────────────────────────────────────────────────────────────

    async def open(self, inbox: Inbox) -> None:
        """Starts the process."""
        self._inbox = inbox
        program = self._program()
        try:
            self._child.start([program, *self._spec.config.args], self._environ, self._cwd)
        except (OSError, ValueError) as error:
            raise self._cannot_start(program, error) from None

    def _program(self) -> str:
        wanted = self._spec.config.command or ""
        # A relative path is meant from where the server runs, as it would be in a shell there.
        is_path = os.sep in wanted
        local = str(self._cwd / wanted) if self._cwd and is_path else wanted
        found = shutil.which(local, path=self._environ.get("PATH", self._search_path))
        if found is not None:
            return found
        if is_path and Path(local).is_file():
            raise StartFailed(self._spec.name, f"the command {local!r} is not executable", hint=f"chmod +x {local}")
        where = "does not exist" if is_path else "was not found on PATH"
        raise StartFailed(
            self._spec.name,
            f"the command {local!r} {where}",
            hint=f"Install it, or give its full path as `command` of servers.{self._spec.name}.",
        )

    def _cannot_start(self, program: str, error: OSError | ValueError) -> StartFailed:
        if self._cwd is not None and not self._cwd.is_dir():
            return StartFailed(
                self._spec.name,
                f"its working directory {self._cwd} does not exist",
                hint=f"Mend `cwd` of servers.{self._spec.name}.",
            )
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return StartFailed(self._spec.name, f"its command {program} could not be started: {reason}")

    def agreed(self, version: str) -> None:
        """Everything comes on stdout: there is nothing more to listen for."""
        self._settled = True

    async def close(self) -> None:
        """Ends the process and its group."""
        self._closing = True
        await self._child.stop()

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def send(self, message: Outgoing) -> None:
        """Writes one line; waits while the server does not read."""
        await self._child.write(message.data + b"\n")

    def abandon(self, request_id: int) -> bool:
        """On stdio a notification has to say so."""
        return False

    def _received(self, data: bytes) -> None:
        lines = self._decoder.feed(data)
        if self._unended or not data.endswith(b"\n"):
            self._measure(data)
        if len(lines) == 1 and not self._lines:
            self._deliver(lines[0])
        elif lines:
            is_scheduled = bool(self._lines)
            self._lines.extend(lines)
            self._count(len(lines))
            if not is_scheduled:
                self._take_turn()

    def _measure(self, data: bytes) -> None:
        """A line that is over the limit and has no end fails its call now: the end may never come."""
        cut = data.rfind(b"\n") + 1
        before = 0 if cut else self._unended
        if not before:
            self._head = b""
        self._head += data[cut : cut + EDGE - len(self._head)]
        self._unended = before + len(data) - cut
        line = Oversized(self._unended, self._head, b"")
        if before <= self._max_bytes < self._unended and answered_id(line) is not None:
            self._deliver(line)

    def _deliver(self, line: bytes | Oversized) -> None:
        assert self._inbox is not None
        if isinstance(line, Oversized):
            self._inbox.oversized(line)
        else:
            self._inbox.message(line)

    def _take_turn(self) -> None:
        """Delivers some of what came; while there is more, the server is not read from."""
        for _ in range(min(TURN, len(self._lines))):
            self._deliver(self._lines.popleft())
        loop = asyncio.get_running_loop()
        if self._lines:
            self._child.pause()
            loop.call_soon(self._take_turn)
        elif self._is_over:
            self._hang_up()
        elif self._in_window > FLOOD:
            self._in_window = 0
            self._child.pause()
            loop.call_later(FLOOD_PAUSE, self._child.resume)
        else:
            self._child.resume()

    def _count(self, messages: int) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._window > 1:
            self._window, self._in_window = now, 0
        self._in_window += messages

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _ended(self) -> None:
        self._is_over = True
        if not self._lines:
            self._hang_up()

    def _hang_up(self) -> None:
        assert self._inbox is not None
        self._inbox.closed(self._ending())

    def _ending(self) -> ServerError:
        if self._closing:
            return ConnectionLost(self._spec.name, "it was stopped")
        if self._child.fault:
            return ConnectionLost(self._spec.name, f"it {self._child.fault}", hint=self._hint())
        return ConnectionLost(
            self._spec.name, f"its process {describe_exit(self._child.returncode)}", hint=self._hint()
        )

    def _hint(self) -> str:
        hints = [f"It wrote on stderr:\n{self.last_words}"] if self.last_words else []
        if self._withheld and not self._settled:
            rest = len(self._withheld) - NAMES_SHOWN
            names = ", ".join(self._withheld[:NAMES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
            hints.append(f"Withheld from it: {names}. Name what it needs in its `inherit_env` or `env`.")
        return "\n".join(hints)

    @property
    def last_words(self) -> str:
        """The last lines it wrote on stderr, fit for a terminal."""
        lines = [_printable(line)[:LONGEST_LINE] for line in self._child.stderr.split("\n")]
        return "\n".join([line for line in lines if line][-STDERR_LINES:])

    @property
    def ended_cleanly(self) -> bool:
        """Whether the process ended by itself, with exit code 0."""
        return self._child.returncode == 0


def _printable(line: str) -> str:
    plain = _ESCAPES.sub("", line).replace("\t", " ")
    return "".join(letter for letter in plain if letter.isprintable()).strip()


def describe_exit(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None:
        return "is running"
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
