"""`python -m bench.doctor [--megabytes N] [--rounds N] [--json FILE]`: the doctor's reading of transcripts.

Four homes of made transcripts: a tenth of the size, the whole of it in sessions of 4 MB, the whole in one file, and the
whole in short lines. `--megabytes 1000` is the largest that the doctor is meant for.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from bench.doctor.subjects import Reading
from bench.measure import BYTECODE, bars, table
from pegboard.types import Json
from tests.homes.builder import HomeBuilder
from tests.homes.bulk import SESSION, write_transcripts

MEGABYTES = 200
ROUNDS = 5
AIM_SPEED = 150.0
"""Megabytes a second, on one core."""
AIM_MEMORY = 200
"""MiB, at any size."""
APPENDED = 1_000_000
MIB = 1024 * 1024


def run(folder: Path, *, megabytes: int = MEGABYTES, rounds: int = ROUNDS) -> Json:
    """Makes the homes, reads them, shows what it took."""
    whole = megabytes * 1_000_000
    homes = {
        f"{megabytes / 10:g} MB": _made(folder / "tenth", whole // 10),
        f"{megabytes} MB": _made(folder / "whole", whole),
        f"{megabytes} MB in one file": _made(folder / "one", whole, session_bytes=whole),
        f"{megabytes} MB in short lines": _made(folder / "terse", whole, terse=True),
    }
    main, terse = homes[f"{megabytes} MB"], homes[f"{megabytes} MB in short lines"]
    compared, in_short_lines = _compared(main, rounds), _compared(terse, rounds)
    memory = {name: _read("doctor", home).memory for name, home in homes.items()}
    again = _again(main)
    _show_speed(compared, f"{megabytes} MB of transcripts")
    _show_speed(in_short_lines, f"{megabytes} MB in short lines")
    _show_rest(memory, again)
    _show_aims({**compared, "short": in_short_lines["doctor"]}, memory)
    return {
        "megabytes": megabytes,
        "mb_per_second": {name: _median_speed(readings) for name, readings in compared.items()},
        "mb_per_second_in_short_lines": {name: _median_speed(readings) for name, readings in in_short_lines.items()},
        "readings": {name: msgspec.to_builtins(readings) for name, readings in compared.items()},
        "memory_bytes": memory,
        "again": {name: msgspec.to_builtins(reading) for name, reading in again.items()},
    }


def _made(folder: Path, size: int, *, session_bytes: int = SESSION, terse: bool = False) -> Path:
    home = HomeBuilder(folder)
    write_transcripts(home, size, session_bytes=session_bytes, terse=terse)
    return home.folder


def _compared(home: Path, rounds: int) -> dict[str, list[Reading]]:
    """In turn, so that what else the machine does falls on all alike; the first round only warms the disk's cache."""
    readings: dict[str, list[Reading]] = {"doctor": [], "json.loads": []}
    for number in range(rounds + 1):
        for name, found in readings.items():
            reading = _read(name, home)
            if number:
                found.append(reading)
    return readings


def _again(home: Path) -> dict[str, Reading]:
    """The first reading that is kept, one with nothing new, and one after a session went on."""
    readings = {"first, and kept": _read("doctor again", home), "nothing new": _read("doctor again", home)}
    file = min(home.rglob("*.jsonl"))
    more = HomeBuilder(home.parent / "more")
    write_transcripts(more, APPENDED)
    with file.open("ab") as opened:
        opened.write(b"".join(each.read_bytes() for each in sorted(more.folder.rglob("*.jsonl"))))
    return {**readings, f"{APPENDED / 1e6:g} MB new": _read("doctor again", home)}


def _read(subject: str, home: Path) -> Reading:
    environ = {**os.environ, "PYTHONPYCACHEPREFIX": str(BYTECODE)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "bench.doctor.subjects", subject, str(home)]
    done = subprocess.run(command, env=environ, check=True, capture_output=True)
    return msgspec.json.decode(done.stdout, type=Reading)


def _median_speed(readings: list[Reading]) -> float:
    return statistics.median(reading.speed for reading in readings)


def _show_speed(compared: dict[str, list[Reading]], what: str) -> None:
    rows = [
        [
            name,
            f"{_median_speed(readings):.0f}",
            f"{statistics.median(each.bytes / 1e6 / each.wall for each in readings):.0f}",
            f"{max(each.memory for each in readings) / MIB:.0f}",
            f"{readings[0].replies:,}",
        ]
        for name, readings in compared.items()
    ]
    headers = ("", "MB/s of CPU", "MB/s of wall", "memory MiB", "replies found")
    table(f"Reading {what}, medians of {len(compared['doctor'])}, in turn", headers, rows)
    bars([(name, _median_speed(readings)) for name, readings in compared.items()], "MB/s of CPU")
    # Each round beside its own: what else the machine did then, it did to both.
    ratios = [mine.speed / plain.speed for mine, plain in zip(*compared.values(), strict=True)]
    print(f"  the doctor is {statistics.median(ratios):.2f} times as fast, median of the rounds' ratios")


def _show_rest(memory: dict[str, int], again: dict[str, Reading]) -> None:
    table("Memory by size", ("", "MiB"), [[name, f"{most / MIB:.0f}"] for name, most in memory.items()])
    rows = [
        [name, f"{each.bytes / 1e6:.1f}", f"{each.wall * 1e3:.0f}", f"{each.cpu * 1e3:.0f}", f"{each.memory / MIB:.0f}"]
        for name, each in again.items()
    ]
    table("Again, with what was kept", ("", "MB read", "wall ms", "CPU ms", "memory MiB"), rows)


def _show_aims(compared: dict[str, list[Reading]], memory: dict[str, int]) -> None:
    for name, what in (("doctor", ""), ("short", " in short lines")):
        speed = _median_speed(compared[name])
        print(f"  aim: {AIM_SPEED:.0f} MB/s on one core{what}: {speed:.0f}, {_met(speed >= AIM_SPEED)}")
    most = max(memory.values()) / MIB
    print(f"  aim: within {AIM_MEMORY} MiB at any size: {most:.0f}, {_met(most <= AIM_MEMORY)}")


def _met(is_met: bool) -> str:
    return "met" if is_met else "NOT met"


def main() -> None:
    """This size, this often."""
    parser = argparse.ArgumentParser(prog="bench.doctor", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=MEGABYTES, metavar="N", help="of transcripts")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="readings of each, in turn")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), megabytes=args.megabytes, rounds=args.rounds)
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
