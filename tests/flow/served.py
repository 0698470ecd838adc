"""`pegboard serve` as a client starts it: a process, lines of JSON, nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.flow.shell import Shell

PATIENCE = 40


class Served:
    """One connection to a gateway of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._next = 0
        self.notices: list[str] = []

    def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """The result, or the error, of a request."""
        self._next += 1
        self._send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params or {}})
        while True:
            message = self._read()
            if message.get("id") == self._next:
                return message.get("result", message.get("error"))
            self.notices.append(message["method"])

    def hear(self, notice: str) -> None:
        """Waits until it is told this."""
        while notice not in self.notices:
            self.notices.append(self._read()["method"])

    def greet(self, name: str = "test") -> Any:
        """The handshake."""
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
        answer = self.ask("initialize", about)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def tools(self) -> list[str]:
        """The names on the list."""
        return [tool["name"] for tool in self.ask("tools/list")["tools"]]

    def call(self, name: str, arguments: Any = None, **params: Any) -> Any:
        """The result of a call."""
        return self.ask("tools/call", {"name": name, "arguments": arguments or {}, **params})

    def say(self, name: str, arguments: Any = None, **params: Any) -> str:
        """The words of a call's result."""
        return "\n".join(block["text"] for block in self.call(name, arguments, **params)["content"])

    def _send(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read() if self.process.stderr else "it ended"
        return json.loads(line)


@contextmanager
def served(shell: Shell, *arguments: str) -> Iterator[Served]:
    """`pegboard serve` in the shell's folder; ends as clients end it, by closing its stdin."""
    home = str(shell.folder / "home")
    environ = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home}
    process = subprocess.Popen(
        [sys.executable, "-m", "pegboard", "serve", *arguments],
        cwd=shell.folder,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Served(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait(PATIENCE)
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()
