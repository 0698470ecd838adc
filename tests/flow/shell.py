"""A folder with a configuration, and the command line run in it as a person would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.servers import plain_command


class Shell:
    """A folder with a configuration, and `pegboard` run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._config: list[str] = [f'[store]\ncache_dir = "{folder}/cache"\nstate_dir = "{folder}/state"\n']

    def server(self, name: str, command: list[str], extra: str = "") -> None:
        program, *arguments = command
        self._config.append(
            f"[servers.{name}]\ncommand = {json.dumps(program)}\nargs = {json.dumps(arguments)}\n{extra}\n"
        )
        (self.folder / "pegboard.toml").write_text("".join(self._config))

    def plain(self, name: str, *arguments: str, extra: str = "") -> None:
        self.server(name, plain_command("--log", str(self.folder / f"{name}.log"), *arguments), extra)

    def started(self, name: str) -> bool:
        return (self.folder / f"{name}.log").exists()

    def run(self, *arguments: str, stdin: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
        home = str(self.folder / "home")
        environ = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home, "COLUMNS": "200"}
        done = subprocess.run(
            [sys.executable, "-m", "pegboard", *arguments],
            cwd=self.folder,
            env=environ,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert "Traceback" not in done.stderr
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", code=code).stdout)
