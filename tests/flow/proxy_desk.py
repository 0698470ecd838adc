"""A machine of one's own on which `pegboard proxy` is run, and nothing of it runs on when the test is over."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PATIENCE = 40
PEGBOARD = (sys.executable, "-m", "pegboard")


class ProxyDesk:
    """A home folder, its agents' settings, and the command line run in a project below it."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home of zoë"
        self.cwd = self.home / "project"
        self.cwd.mkdir(parents=True)
        self.config = self.home / ".config" / "pegboard" / "pegboard.toml"
        self.state = self.home / ".local" / "state" / "pegboard"
        self.port = free_port()
        self.more: dict[str, str] = {}
        """What else the environment has."""
        self.put(".config/pegboard/pegboard.toml", f'[proxy]\nlisten = "127.0.0.1:{self.port}"\n')

    @property
    def base(self) -> str:
        """The proxy's address."""
        return f"http://127.0.0.1:{self.port}"

    def put(self, place: str, content: str) -> Path:
        """Writes a file in the home folder."""
        path = self.home / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
        return path

    def variables(self) -> dict[str, str]:
        """What the command finds in its environment."""
        source = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        # No proxy of the machine's may be asked for what is on it.
        odd = {"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **source, **odd, **self.more}

    def run(self, *args: str, code: int = 0, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """`pegboard proxy` with these words."""
        done = subprocess.run(
            [*PEGBOARD, "proxy", *args],
            cwd=self.cwd,
            env=self.variables(),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def json(self, *args: str, code: int = 0) -> Any:
        """The same, for scripts."""
        return json.loads(self.run(*args, "--json", code=code).stdout)

    def popen(self, *args: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """The same, running on."""
        return subprocess.Popen(
            [*PEGBOARD, "proxy", *args],
            cwd=self.cwd,
            env=self.variables(),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def everything(self) -> dict[Path, bytes]:
        """Every file but Pegboard's own state."""
        files = (path for path in self.home.rglob("*") if path.is_file() and self.state not in path.parents)
        return {path: path.read_bytes() for path in files}

    def kill_leftover(self) -> None:
        """Ends the proxy that a failed test left behind."""
        with suppress(OSError, ValueError):
            pid = json.loads((self.state / "proxy.json").read_bytes())["pid"]
            if "pegboard" in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[Any]:
    """The process, which is not there afterwards."""
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
