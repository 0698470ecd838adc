"""A reply of 200 MB to a client that reads a trickle: what it costs the proxy of memory before the client leaves."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from bench.measure import table
from bench.proxy import tools
from bench.proxy.caller import request
from bench.proxy.subjects import BRIDGE, DIRECT, NATIVE, Subject
from bench.proxy.upstream import Spec
from pegboard.types import Json

BULK_MB = 200
SECONDS = 10.0
STEP_S = 0.05
READ = 16 * 1024
AFTER_S = 3.0


class Slow(msgspec.Struct):
    """How one subject fared."""

    mb_before: float
    mb_most: float
    mb_after: float
    """A while after the client has left."""
    read_mb: float
    descriptors_left: int
    """More than before."""


def run(subjects: Mapping[str, Subject], failed: dict[str, str]) -> Json:
    """Each subject for some seconds."""
    found = {}
    for name, subject in subjects.items():
        if name == DIRECT or name in failed:
            continue
        print(f"  slow reader: {name} …", file=sys.stderr, flush=True)
        found[name] = _slow(subject)
    rows = [
        [
            name,
            *(f"{each:.1f}" for each in (slow.read_mb, slow.mb_before, slow.mb_most, slow.mb_most - slow.mb_before)),
            f"{slow.mb_after:.1f}",
            str(slow.descriptors_left),
        ]
        for name, slow in found.items()
    ]
    headers = ("", "MB read", "MB before", "MB most", "grown by", "MB after", "descriptors left")
    title = f"A reply of {BULK_MB} MB, read at {READ / STEP_S / 2**20:.2f} MB/s for {SECONDS:g} s, then left"
    table(title, headers, rows)
    return msgspec.to_builtins(found)  # type: ignore[no-any-return]


def _slow(subject: Subject) -> Slow:
    spec = Spec(bulk_mb=BULK_MB)
    is_large = subject.name in (NATIVE, BRIDGE)
    body = tools.many(spec, [], begins="A long reply") if is_large else tools.few(spec)
    before, descriptors, most, read = subject.rss_mb(), subject.descriptors(), 0.0, 0
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        wire.settimeout(5)
        wire.connect(("127.0.0.1", subject.port))
        wire.sendall(request(subject, body))
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            with suppress(TimeoutError):
                piece = wire.recv(READ)
                if not piece:
                    break
                read += len(piece)
            most = max(most, subject.rss_mb())
            time.sleep(STEP_S)
    time.sleep(AFTER_S)
    left = subject.descriptors() - descriptors
    return Slow(before, most, subject.rss_mb(), read / 2**20, left)
