"""What a proxy adds to the first byte of a reply and to each event of a stream, and what a request costs it.

Two bodies: one with a few tools, which Pegboard passes through, and one with a hundred in a conversation that has
searched, which it changes. Subjects take turns request by request, in another order each round and with a pause after
each: one that goes on working after its reply (LiteLLM does) would else be paid for by whoever comes next. Each has a
connection that is kept.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bench.measure import table
from bench.proxy import tools
from bench.proxy.caller import Caller, WrongAnswer
from bench.proxy.subjects import BRIDGE, DIRECT, LITE, NATIVE, NGINX, PASSES, Subject
from bench.proxy.upstream import Spec
from pegboard.types import Json

WARM, SHORT, LONG = 10, 400, 40
PAUSE_S = 0.02
SECONDS = 240.0
"""Of one body's measurements, at most; less is told."""
SHORT_SPEC, LONG_SPEC = Spec(events=20), Spec(events=200, gap_ms=1.0, stamped=True)
AIM_PASSED_MS, AIM_CHANGED_MS = 1.0, 3.0
CALLED = "mcp__github__create_issue"


class Measured(msgspec.Struct):
    """Of one subject with one body."""

    first_ms: list[float] = []
    delay_ms: list[float] = []
    """Medians of the events of one stream."""
    delay_p99_ms: list[float] = []
    cpu_ms: float = 0.0
    """A short request's."""
    cpu_stream_ms: float = 0.0
    """A long stream's."""


Bodies = Mapping[str, tuple[bytes, bytes]]
"""By subject, the request for a short reply and the one for a long stream."""


def run(subjects: Mapping[str, Subject], failed: dict[str, str]) -> Json:
    """Both bodies, and two tables."""
    callers = {name: Caller(subject) for name, subject in subjects.items()}
    result: Json = {}
    few = [name for name in (DIRECT, PASSES, NGINX, LITE) if name in subjects]
    many = [name for name in (DIRECT, NATIVE, BRIDGE, NGINX, LITE) if name in subjects]
    small = tools.few(SHORT_SPEC), tools.few(LONG_SPEC)
    result["few"] = _measured("few tools", callers, dict.fromkeys(few, small), failed)
    result["many"] = _measured("100 tools", callers, {name: _large(callers[name]) for name in many}, failed)
    for caller in callers.values():
        caller.close()
    _show(f"A request with 5 tools, {len(small[0]):,} bytes, passed through; ms", result["few"])
    size = len(_large_body(DIRECT, [], SHORT_SPEC))
    _show(f"A request with {tools.TOOLS} tools, some {size:,} bytes; Pegboard changes it; ms", result["many"])
    _verdicts(result)
    return msgspec.to_builtins(result)  # type: ignore[no-any-return]


# ── a conversation that has searched ─────────────────────────────────────────────────────────────────────────────────


def _large(caller: Caller) -> tuple[bytes, bytes]:
    """Later requests of a conversation whose first turn the subject has seen, with a search in it."""
    name = caller.subject.name
    search = {NATIVE: "native", BRIDGE: "bridge"}.get(name, "")
    if search:
        spec = Spec(search=search, query=tools.SEARCHED[CALLED], call=CALLED)
        got = caller.ask(_large_body(name, [], spec)).body
        if CALLED.encode() not in got or b"search" in got:
            raise WrongAnswer(f"{name} did not hide the search: {got[:300]!r}")
    call = {"type": "tool_use", "id": "toolu_1", "name": CALLED, "input": {}}
    done = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "It is issue 17."}
    turns: list[Any] = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [done]}]
    for number in range(8):
        turns += [_said("assistant", f"Step {number} is done. " * 20), _said("user", f"Go on with {number}. " * 20)]
    return _large_body(name, turns, SHORT_SPEC), _large_body(name, turns, LONG_SPEC)


def _said(role: str, text: str) -> Json:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _large_body(name: str, turns: list[Any], spec: Spec) -> bytes:
    return tools.many(spec, turns, begins=f"A conversation of {name}")


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _measured(what: str, callers: Mapping[str, Caller], bodies: Bodies, failed: dict[str, str]) -> dict[str, Measured]:
    measured = {name: Measured() for name in bodies}
    ends, order = time.monotonic() + SECONDS, random.Random(len(bodies))

    def rounds(count: int, *, long: bool, counts: bool = True) -> dict[str, float]:
        before = {name: callers[name].subject.cpu_ms() for name in measured}
        done = 0
        for number in range(count):
            if time.monotonic() > ends:
                break
            names = [each for each in measured if each not in failed]
            for name in order.sample(names, len(names)):
                time.sleep(PAUSE_S)
                try:
                    _once(callers[name], bodies[name][long], measured[name], counts=counts, long=long)
                except (WrongAnswer, OSError, ValueError) as error:
                    failed[name] = f"{what}: {error}"
            done = number + 1
        return {name: (callers[name].subject.cpu_ms() - before[name]) / max(done, 1) for name in measured}

    print(f"  {what}: {', '.join(bodies)} …", file=sys.stderr, flush=True)
    rounds(WARM, long=False, counts=False)
    short, long = rounds(SHORT, long=False), rounds(LONG, long=True)
    for name, each in measured.items():
        each.cpu_ms, each.cpu_stream_ms = short[name], long[name]
    return {name: each for name, each in measured.items() if each.delay_ms}


def _once(caller: Caller, body: bytes, measured: Measured, *, counts: bool, long: bool) -> None:
    timed = caller.ask(body)
    if b"message_stop" not in timed.body:
        raise WrongAnswer("a reply without its end")
    if not counts:
        return
    if not long:
        measured.first_ms.append(timed.first_ms)
        return
    if len(timed.delays_ms) != LONG_SPEC.events:
        raise WrongAnswer(f"{len(timed.delays_ms)} events of {LONG_SPEC.events} came")
    measured.delay_ms.append(statistics.median(timed.delays_ms))
    measured.delay_p99_ms.append(_p99(timed.delays_ms))


def _p99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


# ── telling ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _added(each: Sequence[float], floor: Sequence[float]) -> float:
    """The median of what is added within one round."""
    return statistics.median(own - direct for own, direct in zip(each, floor, strict=False))


def _show(title: str, measured: Mapping[str, Measured]) -> None:
    floor = measured[DIRECT]
    own = next(each for name, each in measured.items() if name != DIRECT)
    rows = []
    for name, each in measured.items():
        is_floor = name == DIRECT
        added = [_added(each.first_ms, floor.first_ms), _added(each.delay_ms, floor.delay_ms)]
        rows.append(
            [
                name,
                f"{statistics.median(each.first_ms):.2f}",
                f"{_p99(each.first_ms):.2f}",
                "-" if is_floor else f"{added[0]:.2f}",
                "-" if is_floor else f"{_p99(each.first_ms) - _p99(floor.first_ms):.2f}",
                "-" if is_floor else f"{added[1]:.3f}",
                "-" if is_floor else f"{_added(each.delay_p99_ms, floor.delay_p99_ms):.3f}",
                "-" if is_floor else f"{each.cpu_ms:.2f}",
                "-" if is_floor else f"{each.cpu_stream_ms:.1f}",
                "-" if is_floor else f"{each.cpu_ms / own.cpu_ms:.1f}" if own.cpu_ms else "?",
            ]
        )
    headers = ("", "first byte p50", "p99", "added p50", "added p99", "an event later by", "p99",
               "CPU, 20 events", "CPU, 200 events", "CPU, times Pegboard's")  # fmt: skip
    table(title, headers, rows)


def _verdicts(result: Mapping[str, Mapping[str, Measured]]) -> None:
    aims = (("few", PASSES, AIM_PASSED_MS), ("many", NATIVE, AIM_CHANGED_MS), ("many", BRIDGE, AIM_CHANGED_MS))
    for body, name, aim in aims:
        if name in result[body]:
            added = _added(result[body][name].first_ms, result[body][DIRECT].first_ms)
            verdict = "met" if added <= aim else "NOT met"
            print(f"  aim: {name}: {added:.2f} ms to the first byte, at most {aim:g}: {verdict}")
