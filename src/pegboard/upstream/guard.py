"""Kills what a killed Pegboard leaves behind. Runs as its own tiny process, with the standard library alone.

Pegboard holds the write end of this process's stdin and says which process groups it started and stopped. When that
pipe closes, however Pegboard ended, every group that is still known is killed, and so is every process that carries
the spawn mark in its environment: that finds daemons which moved to a session of their own. A child that was being
started when Pegboard was killed still holds that pipe. It lets go of it a moment *before* its own, marked environment
can be read, for the kernel closes files first: so the last sweep goes on until nothing was found for a while. A
Pegboard that ends in order says so, as none of its children is just being started: then one look is enough.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

MARK = "PEGBOARD_SPAWN"
FAREWELL = "."
"""The line that says that Pegboard ends in order."""
MOST_PASSES = 10
LAST_PAUSE = 0.04
LAST_QUIET = 25
"""Passes of the last sweep that must find nothing, one after the other: a second in all."""
LAST_MOST = 500


def main() -> None:
    """Reads `+pgid`, `-pgid mark` and `.` lines until the pipe closes, then cleans up."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    token = sys.argv[1]
    groups: set[int] = set()
    is_orderly = False
    for line in sys.stdin:
        is_orderly = line.rstrip() == FAREWELL
        sign, words = line[:1], line[1:].split()
        if not words or not words[0].isdigit():
            continue
        if sign == "+":
            groups.add(int(words[0]))
        else:
            groups.discard(int(words[0]))
            for mark in words[1:]:
                sweep(mark)
    for group in groups:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    (sweep if is_orderly else last_sweep)(f"{token}.")


def last_sweep(mark: str) -> None:
    """Kills every process that carries the mark, until none has come up for a second."""
    needle = f"{MARK}={mark}".encode()
    quiet = 0
    for _ in range(LAST_MOST):
        quiet = 0 if _sweep_once(needle) else quiet + 1
        if quiet == LAST_QUIET:
            return
        time.sleep(LAST_PAUSE)


def sweep(mark: str) -> None:
    """Kills every process whose environment carries the mark; again while there are any, for some fork meanwhile."""
    needle = f"{MARK}={mark}".encode()
    for number in range(MOST_PASSES):
        if not _sweep_once(needle) and number:
            return


def _sweep_once(needle: bytes) -> bool:
    found = False
    for entry in _process_ids():
        try:
            with open(f"/proc/{entry}/environ", "rb") as environ:  # noqa: PTH123  pathlib would double the start-up
                marked = any(_matches(each, needle) for each in environ.read().split(b"\0"))
            if marked:
                found = True
                os.kill(int(entry), signal.SIGKILL)
        except OSError:
            continue
    return found


def _matches(variable: bytes, needle: bytes) -> bool:
    # A whole mark must match to its end: spawn 1 is not spawn 12.
    return variable == needle or (needle.endswith(b".") and variable.startswith(needle))


def _process_ids() -> list[str]:
    try:
        return [entry for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208  as above
    except OSError:
        return []


if __name__ == "__main__":
    main()
