"""How soon a command is there: `pegboard tools` from the cache beside bare Python and the SDK's import."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.measure import processes, table

AIM_MS = 100.0
ROUNDS = 15


def run(folder: Path) -> dict[str, object]:
    """Starts each process in turn; three small servers are cached."""
    server = Path(__file__).parents[1] / "tests" / "servers" / "plain.py"
    (folder / "pegboard.toml").write_text(
        f'[store]\ncache_dir = "{folder / "cache"}"\n'
        + "".join(f'[servers.s{n}]\ncommand = "{sys.executable}"\nargs = ["{server}"]\n' for n in range(3))
    )
    pegboard = [str(Path(sys.executable).with_name("pegboard"))]
    commands: dict[str, list[str]] = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "pegboard --version": [*pegboard, "--version"],
        "pegboard tools": [*pegboard, "tools"],
        "import mcp (the SDK)": [sys.executable, "-c", "import mcp"],
    }
    processes({"refresh": [*pegboard, "refresh"]}, rounds=0, cwd=folder)
    samples = processes(commands, rounds=ROUNDS, cwd=folder)
    rows = [sample.row(name) for name, sample in samples.items()]
    table("Process start to end, ms", ("", "wall", "CPU"), rows)
    over = float(rows[2][1]) - float(rows[0][1])
    print(f"  aim: within {AIM_MS:.0f} ms of bare Python: {over:.0f} ms over, {'met' if over <= AIM_MS else 'NOT met'}")
    return {name: {"wall_ms": float(wall), "cpu_ms": float(cpu)} for name, wall, cpu in rows}
