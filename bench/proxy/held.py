"""Five hundred slow streams at once: whether all come whole, what each takes of memory, whether it is let go."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Mapping

import msgspec

from bench.measure import table
from bench.proxy import tools
from bench.proxy.caller import WrongAnswer, held
from bench.proxy.subjects import BRIDGE, DIRECT, NATIVE, Subject
from bench.proxy.upstream import Spec, whole
from pegboard.types import Json

STREAMS = 500
WARM = 50
GAP_MS, EVENTS = 400.0, 20
SECONDS = 120.0
SETTLE_S = 20.0
LOOK_S = 0.25
BEGINS = "Slow streams"


class Held(msgspec.Struct):
    """How one subject fared."""

    whole: int = 0
    """Streams that came to their end with the very bytes that were sent."""
    seconds: float = 0.0
    mb_before: float = 0.0
    mb_most: float = 0.0
    kb_each: float = 0.0
    descriptors_before: int = 0
    descriptors_most: int = 0
    descriptors_after: int = 0
    wrong: list[str] = []


def run(subjects: Mapping[str, Subject], failed: dict[str, str]) -> Json:
    """One subject after the other: each has the machine to itself."""
    found: dict[str, Held] = {}
    for name, subject in subjects.items():
        if name in failed and name != DIRECT:
            continue
        print(f"  {STREAMS} streams: {name} …", file=sys.stderr, flush=True)
        found[name] = asyncio.run(_held(subject))
    rows = [
        [
            name,
            f"{each.whole} of {STREAMS}",
            f"{each.seconds:.1f}",
            *(
                ["-"] * 4
                if name == DIRECT
                else [
                    f"{each.mb_before:.0f}",
                    f"{each.mb_most:.0f}",
                    f"{each.kb_each:.0f}",
                    f"{each.descriptors_before}, {each.descriptors_most}, {each.descriptors_after}",
                ]
            ),
        ]
        for name, each in found.items()
    ]
    headers = ("", "whole, same bytes", "s", "MB before", "MB most", "kB a stream", "descriptors before, most, after")
    table(f"{STREAMS} streams at once, {EVENTS} events each, one every {GAP_MS:g} ms", headers, rows)
    for name, each in found.items():
        for wrong in each.wrong[:2]:
            print(f"  {name}: {wrong}")
    return msgspec.to_builtins(found)  # type: ignore[no-any-return]


async def _held(subject: Subject) -> Held:
    await streams(subject, WARM, Spec(events=2), Held())
    await _settled(subject, 0)
    found = Held(mb_before=subject.rss_mb(), descriptors_before=subject.descriptors())
    watching = asyncio.ensure_future(_watch(subject, found))
    began = time.monotonic()
    await streams(subject, STREAMS, Spec(events=EVENTS, gap_ms=GAP_MS), found)
    found.seconds = time.monotonic() - began
    watching.cancel()
    found.kb_each = (found.mb_most - found.mb_before) * 1024 / STREAMS
    found.descriptors_after = await _settled(subject, found.descriptors_before)
    return found


async def streams(subject: Subject, count: int, spec: Spec, found: Held) -> None:
    """All at once; a conversation begins, so nothing has to be known of it before."""
    is_large = subject.name in (NATIVE, BRIDGE)

    async def one(number: int) -> None:
        wanted = msgspec.structs.replace(spec, seed=number)
        body = tools.many(wanted, [], begins=f"{BEGINS} {number}") if is_large else tools.few(wanted)
        try:
            async with asyncio.timeout(SECONDS):
                got = await held(subject, body)
        except (WrongAnswer, OSError, EOFError, TimeoutError, ValueError) as error:
            found.wrong.append(f"{type(error).__name__}: {error}"[:200])
            return
        if got == whole(wanted):
            found.whole += 1
        else:
            found.wrong.append(f"other bytes: {got[:100]!r}")

    await asyncio.gather(*(one(number) for number in range(count)))


async def _watch(subject: Subject, found: Held) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            found.mb_most = max(found.mb_most, subject.rss_mb())
            found.descriptors_most = max(found.descriptors_most, subject.descriptors())
            await asyncio.sleep(LOOK_S)


async def _settled(subject: Subject, baseline: int) -> int:
    """The descriptors once they are back at the baseline, or after a while; with none, once they stay the same."""
    ends, last = time.monotonic() + SETTLE_S, -1
    while time.monotonic() < ends:
        now = subject.descriptors()
        if now <= baseline or (not baseline and now == last):
            break
        last = now
        await asyncio.sleep(LOOK_S if baseline else 5.5)
    return subject.descriptors()
