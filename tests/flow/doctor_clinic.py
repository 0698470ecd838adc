"""`pegboard doctor` in a home whose machine is a folder: nothing outside of it is read or written.

In this process, where many commands are run; `python doctor_clinic.py ROOT KILL doctor …` in one of its own, which is
killed at its Nth write when KILL is `before:N` or `after:N`, and is not when it is `-`.
"""

from __future__ import annotations

import json
import os
import pty
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pegboard.cli import doctor_examine
from pegboard.cli.main import main
from pegboard.doctor.settings.machine import Machine
from pegboard.store.files import DiskFiles
from tests.homes import HomeBuilder

PATIENCE = 60
_OWN = (".local/state/pegboard", ".cache/pegboard")


class Clinic:
    """One home, and the commands that are run in it."""

    def __init__(self, home: HomeBuilder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys
        for name in list(os.environ):
            monkeypatch.delenv(name)
        for name, value in self.variables().items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(home.project)
        monkeypatch.setattr(doctor_examine, "here", lambda: machine_below(home.root))

    @property
    def state(self) -> Path:
        """Where Pegboard remembers things."""
        return self.home.folder / ".local/state/pegboard"

    def variables(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [self.home.environ.get("PATH"), "/usr/bin", "/bin"]))
        source = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        return {"LANG": "C.UTF-8", **source, **self.home.environ, "PATH": path}

    def run(self, *words: str, code: int = 0) -> tuple[str, str]:
        """What a command says, and what it warns of."""
        self._capsys.readouterr()
        ended = main(["doctor", *words])
        out, err = self._capsys.readouterr()
        assert ended == code, (out, err)
        return out, err

    def json(self, *words: str, code: int = 0) -> Any:
        """What a command says to scripts."""
        return json.loads(self.run(*words, "--json", code=code)[0])

    def process(self, *words: str, kill: str = "-") -> subprocess.CompletedProcess[str]:
        """The same in a process of its own."""
        done = subprocess.run(
            [sys.executable, __file__, str(self.home.root), kill, "doctor", *words],
            cwd=self.home.project,
            env={**self.variables(), "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def at_terminal(self, *words: str, typed: Sequence[tuple[str, str]]) -> tuple[int, str]:
        """The same with a person at a terminal, who types each answer once its question has come."""
        terminal, inside = pty.openpty()
        with subprocess.Popen(
            [sys.executable, __file__, str(self.home.root), "-", "doctor", *words],
            cwd=self.home.project,
            env={**self.variables(), "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm"},
            start_new_session=True,
            stdin=inside,
            stdout=inside,
            stderr=inside,
        ) as process:
            os.close(inside)
            shown, seen, left = "", 0, list(typed)
            while data := _read(terminal):
                shown += data
                if left and left[0][0] in shown[seen:]:
                    seen = len(shown)
                    os.write(terminal, left.pop(0)[1].encode())
        os.close(terminal)
        assert "Traceback" not in shown
        return process.returncode, shown

    def files(self) -> dict[str, Any]:
        """Every file with its bytes and mode and every link, but for what Pegboard and databases keep."""
        found: dict[str, Any] = {}
        for path in sorted(self.home.root.rglob("*")):
            name = str(path.relative_to(self.home.root))
            if ".db" in path.name or any(f"/{own}/" in f"/{name}/" for own in _OWN):
                continue
            if path.is_symlink():
                found[name] = str(path.readlink())
            elif path.is_file():
                found[name] = (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        return found


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 4096).decode(errors="replace")
    except OSError:  # how Linux says that nobody has the other end open any more
        return ""


def machine_below(root: Path) -> Machine:
    """This machine, as if the folder were its root."""
    return Machine(home=Path.home(), cwd=Path.cwd(), environ=os.environ, platform="linux", root=root, starts=False)


def _arm(kill: str) -> None:
    when, _, which = kill.partition(":")
    write = DiskFiles.write
    seen = 0

    def struck(self: DiskFiles, path: Path, content: bytes) -> None:
        nonlocal seen
        seen += 1
        if seen == int(which) and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, path, content)
        if seen == int(which):
            os.kill(os.getpid(), signal.SIGKILL)

    DiskFiles.write = struck  # type: ignore[method-assign]


if __name__ == "__main__":
    doctor_examine.here = lambda: machine_below(Path(sys.argv[1]))
    if sys.argv[2] != "-":
        _arm(sys.argv[2])
    sys.exit(main(sys.argv[3:]))
