"""`python -m bench.doctor.subjects NAME FOLDER`: reads a made home in this process, and prints what that took.

A process of its own for every reading: memory is only honest there, and no reading warms another one's caches.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from pegboard.doctor.evidence.gather import read_sessions
from pegboard.doctor.evidence.kept import Kept
from pegboard.doctor.settings.machine import Machine


class Reading(msgspec.Struct, frozen=True):
    """What one reading took."""

    bytes: int
    replies: int
    """That were found: a subject that skips its work would show here."""
    wall: float
    cpu: float
    memory: int
    """The most that the process had at any time, in bytes."""

    @property
    def speed(self) -> float:
        """Megabytes in a second of CPU, which is what one core does."""
        return self.bytes / 1e6 / self.cpu


def doctor(home: Path) -> tuple[int, int]:
    """As the doctor reads the first time."""
    gathered = read_sessions(_machine(home))
    return gathered.read_bytes, sum(session.usage.messages for session in gathered.sessions)


def doctor_again(home: Path) -> tuple[int, int]:
    """As it reads every other time: what it kept is loaded, and saved if anything is new."""
    machine = _machine(home)
    gathered = read_sessions(machine, kept=Kept.of(machine))
    return gathered.read_bytes, sum(session.usage.messages for session in gathered.sessions)


def plain_json(home: Path) -> tuple[int, int]:
    """The obvious loop: every line through `json.loads`, and replies told apart by their ids."""
    size, replies = 0, set()
    for path in sorted((home / ".claude" / "projects").rglob("*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                size += len(line)
                record = json.loads(line)
                if record["type"] == "assistant":
                    replies.add(record["message"]["id"])
    return size, len(replies)


SUBJECTS: dict[str, Callable[[Path], tuple[int, int]]] = {
    "doctor": doctor,
    "doctor again": doctor_again,
    "json.loads": plain_json,
}


def _machine(home: Path) -> Machine:
    return Machine(home=home, cwd=home, environ={"HOME": str(home)}, platform="linux", root=home, starts=False)


def _peak() -> int:
    """Not `ru_maxrss` where it can be helped: that has in it what the parent had when it started us."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """One subject, one home."""
    subject, home = SUBJECTS[sys.argv[1]], Path(sys.argv[2])
    wall, cpu = time.perf_counter(), time.process_time()
    size, replies = subject(home)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    sys.stdout.write(msgspec.json.encode(Reading(size, replies, wall, cpu, _peak())).decode())


if __name__ == "__main__":
    main()
