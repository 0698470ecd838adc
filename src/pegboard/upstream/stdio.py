"""A server on stdio: one message per line to and from a child process."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

from pegboard.config.environment import child_environment
from pegboard.config.model import ServerSpec
from pegboard.errors import ConnectionLost, ServerError, StartFailed
from pegboard.upstream.link import Inbox, Outgoing
from pegboard.upstream.process import Child, Guard
from pegboard.wire.framing import LineDecoder, Oversized

FLOOD = 20_000
"""Messages in a second after which a server has to wait."""
FLOOD_PAUSE = 0.1
STDERR_LINES = 8


class StdioLink:
    """Starts the server's command and speaks with it by lines."""

    def __init__(self, spec: ServerSpec, max_bytes: int, guard: Guard, environ: Mapping[str, str]) -> None:
        self._spec = spec
        self._guard = guard
        self._environ, self._withheld = child_environment(spec.config, environ)
        self._search_path = environ.get("PATH", os.defpath)
        self._decoder = LineDecoder(max_bytes)
        self._child: Child | None = None
        self._inbox: Inbox | None = None
        self._closing = False
        self._window = 0.0
        self._in_window = 0

    async def open(self, inbox: Inbox) -> None:
        """Starts the process."""
        self._inbox = inbox
        command = [self._program(), *self._spec.config.args]
        self._child = Child(self._received, self._exited, self._guard)
        cwd = Path(self._spec.config.cwd) if self._spec.config.cwd else None
        try:
            await self._child.start(command, self._environ, cwd)
        except OSError as error:
            self._child = None
            raise self._cannot_start(error, cwd) from None

    def _program(self) -> str:
        wanted = self._spec.config.command or ""
        path = self._environ.get("PATH", self._search_path)
        found = shutil.which(wanted, path=path)
        if found is None:
            raise StartFailed(
                self._spec.name,
                f"the command {wanted!r} was not found on PATH",
                hint=f"Install it, or give its full path as `command` of servers.{self._spec.name}.",
            )
        return found

    def _cannot_start(self, error: OSError, cwd: Path | None) -> StartFailed:
        if cwd is not None and not cwd.is_dir():
            return StartFailed(self._spec.name, f"its working directory {cwd} does not exist", hint="Mend `cwd`.")
        return StartFailed(self._spec.name, f"its command could not be started: {error.strerror or error}")

    async def send(self, message: Outgoing) -> None:
        """Writes one line; waits while the server does not read."""
        if self._child is not None:
            await self._child.write(message.data + b"\n")

    def agreed(self, version: str) -> None:
        """Nothing to listen for: everything comes on stdout."""

    def abandon(self, request_id: int) -> bool:
        """On stdio a notification has to say so."""
        return False

    async def close(self) -> None:
        """Ends the process and its group."""
        self._closing = True
        if self._child is not None:
            await self._child.stop()

    @property
    def last_words(self) -> str:
        """The last lines it wrote on stderr."""
        if self._child is None:
            return ""
        lines = [line.rstrip() for line in self._child.stderr.splitlines() if line.strip()]
        return "\n".join(lines[-STDERR_LINES:])

    def _received(self, data: bytes) -> None:
        assert self._inbox is not None
        lines = self._decoder.feed(data)
        for line in lines:
            if isinstance(line, Oversized):
                self._inbox.oversized(line)
            else:
                self._inbox.message(line)
        if len(lines) > 1:
            self._count(len(lines))

    def _count(self, messages: int) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._window > 1:
            self._window, self._in_window = now, 0
        self._in_window += messages
        if self._in_window > FLOOD and self._child is not None:
            self._child.pause(FLOOD_PAUSE)
            self._window, self._in_window = now, 0

    def _exited(self) -> None:
        assert self._inbox is not None
        self._inbox.closed(self._ending())

    def _ending(self) -> ServerError:
        assert self._child is not None
        if self._closing:
            return ConnectionLost(self._spec.name, "it was stopped")
        hint = f"It wrote on stderr:\n{self.last_words}" if self.last_words else ""
        if self._withheld and not hint:
            names = ", ".join(self._withheld[:6])
            hint = f"These variables were withheld from it: {names}. Name what it needs in its `inherit_env` or `env`."
        return ConnectionLost(self._spec.name, f"its process {describe_exit(self._child.returncode)}", hint=hint)

    @property
    def ended_cleanly(self) -> bool:
        """Whether the process ended by itself, with exit code 0."""
        return self._child is not None and self._child.returncode == 0


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
