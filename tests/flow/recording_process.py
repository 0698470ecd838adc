"""A process that records. python recording_process.py HOW DATABASE NAME COUNT

`write`: appends COUNT outcomes of tool NAME, one transaction each, and says which are kept, or why not.
`refresh`: works the priors out COUNT times. `full`: records under a limit on the size of files, then without it.
`powerless`: gives up its rights, then records.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path

from pegboard.errors import StoreError
from pegboard.store.sqlite import SqliteStore
from pegboard.telemetry.recorder import Recorder
from pegboard.types import Outcome

NOW = 1_800_000_000.0
NOBODY = 65534


def say(*words):
    print(*words, flush=True)


async def write(store, name, count):
    for number in range(count):
        try:
            await store.append([Outcome(at=NOW + number, tool=name, detail="x" * 200)])
        except StoreError as error:
            say("refused:", error.message)
        else:
            say(number)


async def refresh(store, name, count):
    for _ in range(count):
        await store.refresh_priors(NOW)


async def full(store, name, count):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    recorder = Recorder(store, on_warning=lambda text: say("warning:", text))
    for number in range(count):
        recorder.record(Outcome(at=NOW + number, tool=name, detail="x" * 500))
    await recorder.flush()
    say("written under the limit:", recorder.written)
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    await recorder.close()
    say("written:", recorder.written, "dropped:", recorder.dropped)


async def powerless(store, name, count):
    with tempfile.TemporaryDirectory() as folder:  # loads what may not be readable later
        warm = SqliteStore(Path(folder) / "warm.db")
        await warm.append([Outcome(at=NOW, tool=name)])
        await warm.close()
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    try:
        await store.append([Outcome(at=NOW, tool=name)])
    except StoreError as error:
        say("refused:", error.message)
        say("hint:", error.hint)


async def main():
    how, path, name, count = sys.argv[1:]
    store = SqliteStore(Path(path), on_warning=lambda text: say("warning:", text), busy_seconds=30.0)
    await {"write": write, "refresh": refresh, "full": full, "powerless": powerless}[how](store, name, int(count))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main())
