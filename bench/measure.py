"""Measuring on a noisy machine: interleaved rounds, medians, CPU beside wall time."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

BYTECODE = Path(tempfile.gettempdir()) / "pegboard-bench-bytecode"


class Sample:
    """Wall and CPU milliseconds of one thing, over all rounds."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def row(self, name: str) -> list[str]:
        return [name, f"{statistics.median(self.wall):.2f}", f"{statistics.median(self.cpu):.2f}"]


def processes(commands: Mapping[str, Sequence[str]], *, rounds: int, cwd: Path) -> dict[str, Sample]:
    """Runs each command once a round, in turn; the first round only warms caches."""
    samples = {name: Sample() for name in commands}
    # Installed packages have their bytecode compiled; a source checkout gets the same chance here.
    environ = {**os.environ, "PYTHONPYCACHEPREFIX": str(BYTECODE)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for number in range(rounds + 1):
        for name, command in commands.items():
            wall, cpu = _run(command, cwd, environ)
            if number:
                samples[name].wall.append(wall)
                samples[name].cpu.append(cpu)
    return samples


def _run(command: Sequence[str], cwd: Path, environ: dict[str, str]) -> tuple[float, float]:
    before, start = _children_cpu(), time.perf_counter()
    subprocess.run(command, cwd=cwd, env=environ, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000, (_children_cpu() - before) * 1000


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def in_fresh_process(code: str, *arguments: str) -> str:
    """Runs code in a new interpreter and gives what it printed: memory is only honest there."""
    environ = {**os.environ, "PYTHONPYCACHEPREFIX": str(BYTECODE)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environ, check=True, capture_output=True, text=True
    )
    return done.stdout


def table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table people would rather look at."""
    lines = [list(headers), *[list(row) for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    print(f"\n{title}")
    for number, line in enumerate(lines):
        print("  " + "  ".join(cell.ljust(width) if not column else cell.rjust(width)
                               for column, (cell, width) in enumerate(zip(line, widths, strict=True))))  # fmt: skip
        if not number:
            print("  " + "  ".join("─" * width for width in widths))


def bars(rows: Sequence[tuple[str, float]], unit: str) -> None:
    """A plot in the terminal, longest bar first to full width."""
    widest = max(value for _, value in rows)
    label = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"  {name.ljust(label)} {'█' * max(1, round(40 * value / widest))} {value:.3g} {unit}")
