"""Replies of 200 MB to clients that read a trickle: what each costs the proxy of memory before its client leaves.

One comes first and is not counted: what a process takes once, it keeps.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress

import msgspec

from bench.measure import table
from bench.proxy import tools
from bench.proxy.caller import request
from bench.proxy.subjects import BRIDGE, DIRECT, NATIVE, Subject
from bench.proxy.upstream import Spec
from pegboard.types import Json

READERS = 8
BULK_MB = 200
SECONDS = 10.0
WARM_S = 3.0
STEP_S = 0.05
READ = 16 * 1024
AFTER_S = 6.0
AIM_MB = 4.0


class Slow(msgspec.Struct):
    """How one subject fared."""

    read_mb: float
    """By each client."""
    mb_before: float
    mb_most: float
    mb_after: float
    """A while after the clients have left."""

    @property
    def mb_each(self) -> float:
        """What a stream took."""
        return (self.mb_most - self.mb_before) / READERS


def run(subjects: Mapping[str, Subject], failed: dict[str, str]) -> Json:
    """Each subject for some seconds."""
    found = {}
    for name, subject in subjects.items():
        if name == DIRECT or name in failed:
            continue
        print(f"  slow readers: {name} …", file=sys.stderr, flush=True)
        _slow(subject, 1, WARM_S)
        found[name] = _slow(subject, READERS, SECONDS)
    rows = [
        [name, *(f"{each:.1f}" for each in (slow.read_mb, slow.mb_before, slow.mb_most, slow.mb_each, slow.mb_after))]
        for name, slow in found.items()
    ]
    headers = ("", "MB read", "MB before", "MB most", "MB a stream", "MB after")
    title = f"{READERS} replies of {BULK_MB} MB, each read at up to {READ / STEP_S / 2**20:.2f} MB/s for {SECONDS:g} s"
    table(title, headers, rows)
    for name, slow in found.items():
        if "Pegboard" in name:
            verdict = "met" if slow.mb_each <= AIM_MB else "NOT met"
            print(f"  aim: {name}: {slow.mb_each:.1f} MB a stream, at most {AIM_MB:g}: {verdict}")
    return {name: {**msgspec.to_builtins(slow), "mb_each": slow.mb_each} for name, slow in found.items()}


def _slow(subject: Subject, readers: int, seconds: float) -> Slow:
    spec = Spec(bulk_mb=BULK_MB)
    before, most, read = subject.rss_mb(), 0.0, 0
    with ExitStack() as stack:
        wires = [stack.enter_context(_asked(subject, spec, number)) for number in range(readers)]
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for wire in wires:
                with suppress(BlockingIOError):
                    read += len(wire.recv(READ))
            most = max(most, subject.rss_mb())
            time.sleep(STEP_S)
    time.sleep(AFTER_S)
    return Slow(read / readers / 2**20, before, most, subject.rss_mb())


def _asked(subject: Subject, spec: Spec, number: int) -> socket.socket:
    """A client with a small window that has sent its request; from now on it never blocks."""
    is_large = subject.name in (NATIVE, BRIDGE)
    body = tools.many(spec, [], begins=f"A long reply {number}") if is_large else tools.few(spec)
    wire = socket.socket()
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    wire.settimeout(5)
    wire.connect(("127.0.0.1", subject.port))
    wire.sendall(request(subject, body))
    wire.setblocking(False)
    return wire
