"""Where rivals live: a virtual environment beside ours, made on demand. One that cannot be had is told, not fatal."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from pegboard.types import Tool

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv-bench"
BIN = "Scripts" if os.name == "nt" else "bin"
PYTHON = VENV / BIN / "python"
INSTALL_S = 600.0
GRACE_S = 600.0
"""What a script may take beyond the time it has for its queries: to build."""

_VERSION = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A search that is measured: a script and what it needs."""

    name: str
    script: str
    option: str = ""
    needs: tuple[str, ...] = ()
    """Packages with their lower bounds; none means that it runs in our own environment."""
    most_tools: int | None = None
    """Larger catalogs are left out unless all are asked for."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a script found, or why it found nothing."""

    about: str = ""
    build_s: float = 0.0
    build_cpu_s: float = 0.0
    ms: dict[str, float] = {}
    cpu_ms: dict[str, float] = {}
    found: list[list[list[str]]] = []
    failed: str = ""


OWN = tuple(
    Entry(name=name, script="pegboard_itself", option=option, most_tools=most)
    for name, option, most in (
        ("Pegboard", "static", None),
        ("Pegboard, minilm", "minilm", 5_000),
        ("Pegboard, words only", "none", None),
        ("Pegboard, dense only", "dense", None),
    )
)
_BM25S = ("bm25s>=0.3", "PyStemmer>=2.2")
OTHERS = (
    Entry(name="plain BM25", script="plain_bm25", needs=_BM25S),
    Entry(name="plain BM25 + parameter names", script="plain_bm25", option="parameters", needs=_BM25S),
    Entry(name="fastmcp BM25", script="fastmcp_bm25", needs=("fastmcp>=4.1",)),
    Entry(name="pydantic-ai keywords", script="pydantic_ai_keywords", needs=("pydantic-ai-slim>=2.60",)),
    Entry(name="ratel-ai BM25", script="ratel_bm25", needs=("ratel-ai>=0.12",)),
)


def write_tools(tools: Sequence[Tool], path: Path) -> None:
    """The tools as a file of definitions, one a line."""
    rows = (
        msgspec.json.encode({**msgspec.json.decode(each.definition), "id": each.public_name, "server": each.server})
        for each in tools
    )
    path.write_bytes(b"\n".join(rows) + b"\n")


def ask(entry: Entry, tools: Path, queries: Sequence[str], seconds: float) -> Outcome:
    """Runs the script on its own, on one thread; whatever goes wrong is in the outcome."""
    missing = installed(entry.needs) if entry.needs else ""
    if missing:
        return Outcome(failed=f"not installed: {missing}")
    python = str(PYTHON) if entry.needs else sys.executable
    with tempfile.TemporaryDirectory() as folder:
        asked, out = Path(folder, "queries.json"), Path(folder, "out.json")
        asked.write_bytes(msgspec.json.encode(list(queries)))
        arguments = [str(tools), str(asked), str(out), "--option", entry.option, "--seconds", str(seconds)]
        try:
            done = _run([python, "-m", f"bench.rivals.{entry.script}", *arguments], seconds + GRACE_S)
        except subprocess.TimeoutExpired:
            return Outcome(failed=f"failed: not done after {seconds + GRACE_S:.0f} s")
        if done.returncode:
            return Outcome(failed=f"failed: {_last_line(done.stderr)}")
        return msgspec.json.decode(out.read_bytes(), type=Outcome)


@functools.cache
def installed(needs: tuple[str, ...], venv: Path = VENV) -> str:
    """Makes sure that the packages are there; gives why not, or nothing."""
    python = venv / BIN / "python"
    try:
        if not python.exists():
            print(f"  making {venv.name} …", file=sys.stderr, flush=True)
            _checked([sys.executable, "-m", "venv", str(venv)])
        if not versions(needs, venv):
            print(f"  installing {', '.join(needs)} into {venv.name} …", file=sys.stderr, flush=True)
            _checked([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needs])
    except (OSError, subprocess.SubprocessError) as error:
        return _last_line(getattr(error, "stderr", "") or str(error))
    return ""


def versions(needs: tuple[str, ...], venv: Path = VENV) -> str:
    """The versions that are installed; nothing when one is not."""
    names = [each.partition(">=")[0] for each in needs]
    done = _run([str(venv / BIN / "python"), "-c", _VERSION, *names], INSTALL_S)
    return "" if done.returncode else done.stdout.strip()


def _checked(command: Sequence[str]) -> None:
    _run(command, INSTALL_S).check_returncode()


def _run(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    threads: dict[str, Any] = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environ = {**os.environ, **threads}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=seconds, check=False)


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip() and "WARNING" not in line]
    return (lines[-1] if lines else "it did not say why")[:160]
