"""Gateways side by side over the same servers, in one run: start, what is shown, a call, many calls, a search, memory.

`python -m bench --only gateways`. A direct connection is the floor. All are up at once and take turns, so that each
sees the same machine; figures are medians, and comparisons are made within a round. Rivals are installed on demand;
one that cannot be had or does not work is told with the reason.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from bench import gateway_searches
from bench.line_client import WORD, LineClient, Silent, connected, own_environ
from bench.measure import bars, table
from bench.rivals.gateway_entries import NOT_DRIVEN, PEGBOARD, RIVALS, SERVER, Gateway, Launch, Servers
from bench.texts import labelled, multiplied, real_tools, sets
from pegboard.surface.tokens import WORD_PIECES, definition_tokens
from pegboard.types import Json

DIRECT = "direct"
SMALL, LARGE = "3 servers", "1,661 tools"
LARGE_SIZE = 1661
STARTS = {SMALL: 9, LARGE: 7}
ROUNDS, CALLS, ROUND_S = 12, 100, 0.6
CALLERS, FLOOD_S, FLOODS = (1, 16, 128), 0.5, 3
QUERIES = 40
PATIENCE_S = 60.0
AIM_START_MS, AIM_TOKENS, AIM_ADDED_MS, AIM_CPU_MS = 150.0, 700, 0.25, 0.25

Failures = dict[str, str]


def run(folder: Path) -> Json:
    """Every question, of every gateway that works here."""
    failed: Failures = dict(NOT_DRIVEN)
    gateways = [each for each in (PEGBOARD, *RIVALS) if not _is_missing(each, failed)]
    labels = {each.name: each.label() for each in gateways} | {DIRECT: DIRECT}
    sizes = {SMALL: _servers(folder / "small", 0), LARGE: _servers(folder / "large", LARGE_SIZE)}
    launches = {size: _launches(servers, gateways, failed) for size, servers in sizes.items()}
    print(f"  load at the start {_load()}; {', '.join(labels.values())}")
    lists = {size: _starts(size, each, failed) for size, each in launches.items()}
    result: Json = {
        "start": msgspec.to_builtins(lists),
        "shown": {size: _show_lists(size, each) for size, each in lists.items()},
    }
    result["calls"] = _calls(gateways, launches[SMALL], failed)
    result["searches"] = _searches(gateways, launches[LARGE], failed)
    result["large_catalog"] = gateway_searches.run()
    for name, reason in failed.items():
        print(f"  not measured: {name}: {reason}")
    print(f"  load at the end {_load()}")
    return {**result, "failed": failed, "versions": labels}


def _is_missing(gateway: Gateway, failed: Failures) -> bool:
    if missing := gateway.missing():
        failed[gateway.name] = f"not installed: {missing}"
    return bool(missing)


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores" if hasattr(os, "getloadavg") else "unknown"


def _servers(folder: Path, size: int) -> Servers:
    """Three servers: the plain one's nine tools each, and a third of this many real definitions."""
    folder.mkdir()
    files: dict[str, list[str]] = {f"s{number}": [] for number in range(3)}
    definitions = _definitions(size - 27) if size else []
    for number, name in enumerate(files if size else ()):
        path = folder / f"{name}.json"
        path.write_bytes(msgspec.json.encode(definitions[number::3]))
        files[name] = [str(path)]
    return Servers(folder, files)


def _definitions(size: int) -> list[Json]:
    """Real ones under names that every gateway takes."""
    found = []
    for number, tool in enumerate(multiplied(size)):
        given = msgspec.json.decode(tool.definition)
        schema = given.get("inputSchema")
        found.append(
            {
                "name": _spelt(tool.name, number),
                "description": given.get("description") or "",
                "inputSchema": {"type": "object", "required": [], **(schema if isinstance(schema, dict) else {})},
            }
        )
    return found


def _spelt(name: str, number: int) -> str:
    return f"{re.sub('[^A-Za-z0-9_]', '_', name)[:40]}_{number}"


def _launches(servers: Servers, gateways: Iterable[Gateway], failed: Failures) -> dict[str, list[Launch]]:
    """By name, what to start: one process, or each server itself."""
    environ = own_environ()
    found = {DIRECT: [Launch(command, environ, servers.folder) for command in servers.commands(DIRECT).values()]}
    for gateway in gateways:
        try:
            found[gateway.name] = [gateway.launch(servers)]
        except (OSError, ValueError) as error:
            failed[gateway.name] = str(error)
    return found


def _open(stack: ExitStack, launch: Launch) -> LineClient:
    return stack.enter_context(connected(launch.command, environ=launch.environ, cwd=launch.cwd, upstream=str(SERVER)))


# ── the start, and what is shown ─────────────────────────────────────────────────────────────────────────────────────


class Listed(msgspec.Struct):
    """What a gateway shows, and how soon."""

    tools: int = 0
    tokens: int = 0
    wire_bytes: int = 0
    wall_ms: list[float] = []
    cpu_ms: list[float] = []


def _starts(size: str, launches: Mapping[str, Sequence[Launch]], failed: Failures) -> dict[str, Listed]:
    listed: dict[str, Listed] = {}
    for number in range(STARTS[size] + 1):
        for name, each in launches.items():
            if name in failed:
                continue
            print(f"  {size}: start {number} of {name} …", file=sys.stderr, flush=True)
            try:
                wall, cpu, shown = _first_list(each)
            except Silent as silent:
                failed[name] = f"first list with {size}: {silent}"
                listed.pop(name, None)
                continue
            known = listed.setdefault(name, shown)
            if number:
                known.wall_ms.append(wall)
                known.cpu_ms.append(cpu)
    _show_starts(size, listed)
    return listed


def _first_list(launches: Sequence[Launch]) -> tuple[float, float, Listed]:
    """From the process's start to its tools; where there are several, until all have told theirs."""
    shown = Listed()
    with ExitStack() as stack:
        began = time.perf_counter()
        clients = [_open(stack, launch) for launch in launches]
        for client in clients:
            with client.within(PATIENCE_S):
                client.hello()
                tools = client.ask("tools/list", {})["tools"]
            shown.tools += len(tools)
            shown.tokens += sum(map(definition_tokens, tools))
            shown.wire_bytes += client.received
        wall = (time.perf_counter() - began) * 1000
        return wall, sum(client.cpu() for client in clients) * 1000, shown


def _show_starts(size: str, listed: Mapping[str, Listed]) -> None:
    own = statistics.median(listed[PEGBOARD.name].wall_ms)
    rows = [
        [name, *(f"{each:.0f}" for each in (*_middle(known.wall_ms), min(known.wall_ms), *_middle(known.cpu_ms))),
         f"{_middle(known.wall_ms)[0] / own:.1f}"]
        for name, known in listed.items()
    ]  # fmt: skip
    table(
        f"Process start to the first tools/list, ms, {size}",
        ("", "median", "best", "CPU of the gateway", "times Pegboard's"),
        rows,
    )
    best = min(listed[PEGBOARD.name].wall_ms)
    _verdict(f"first list with {size}: {own:.0f} ms (best {best:.0f})", own, AIM_START_MS, "ms")


def _middle(values: Sequence[float]) -> list[float]:
    return [statistics.median(values)]


def _show_lists(size: str, listed: Mapping[str, Listed]) -> Json:
    floor = listed[DIRECT].tokens
    rows = [
        [name, f"{each.tools:,}", f"{each.wire_bytes:,}", f"{each.tokens:,}", f"{each.tokens / floor:.1%}"]
        for name, each in listed.items()
    ]
    table(f"Shown in tools/list, {size}; {WORD_PIECES.name}", ("", "tools", "bytes", "tokens", "of all schemas"), rows)
    own = listed[PEGBOARD.name].tokens
    _verdict(f"tokens shown with {size}: {own}", own, AIM_TOKENS, "tokens")
    return {
        name: {"tools": each.tools, "tokens": each.tokens, "bytes": each.wire_bytes} for name, each in listed.items()
    }


def _verdict(what: str, value: float, aim: float, unit: str) -> None:
    print(f"  aim: {what}, at most {aim:g} {unit}: {'met' if value <= aim else 'NOT met'}")


# ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Called(msgspec.Struct):
    """What calls took, round by round."""

    p50: list[float] = []
    p95: list[float] = []
    cpu: list[float] = []
    """A call's, with what was done after the round before: records are written once the calls are over."""
    spent: float | None = None
    """Seconds of CPU by the end of the last round."""
    rates: dict[int, list[float]] = {}
    memory_mb: float = 0.0


def _calls(gateways: Iterable[Gateway], launches: Mapping[str, Sequence[Launch]], failed: Failures) -> Json:
    ways = {DIRECT: ("echo", {"text": WORD}), **{each.name: each.call for each in gateways}}
    called = {name: Called() for name in ways if name not in failed}
    with ExitStack() as stack:
        clients = {name: _open(stack, launches[name][0]) for name in called}

        def each_in_turn(what: str, rounds: int, measure: Callable[[str, Json], None]) -> None:
            for number in range(rounds):
                print(f"  {what}: round {number + 1} of {rounds} …", file=sys.stderr, flush=True)
                for name in [name for name in called if name not in failed]:
                    tool, arguments = ways[name]
                    try:
                        with clients[name].within(PATIENCE_S):
                            measure(name, {"name": tool, "arguments": arguments})
                    except (Silent, OSError) as silent:
                        failed[name] = f"{what}: {silent}"

        def flooded(callers: int) -> Callable[[str, Json], None]:
            def measure(name: str, params: Json) -> None:
                rate = clients[name].flood(params, callers, FLOOD_S)
                called[name].rates.setdefault(callers, []).append(rate)

            return measure

        each_in_turn("first call", 1, lambda name, params: _warm(clients[name], params))
        each_in_turn("calls", ROUNDS, lambda name, params: _round(clients[name], params, called[name]))
        for callers in CALLERS:
            each_in_turn(f"{callers} at once", FLOODS, flooded(callers))
        for name, each in called.items():
            if name not in failed:
                each.memory_mb = clients[name].memory() / 2**20
    _show_calls({name: each for name, each in called.items() if each.p50})
    return msgspec.to_builtins(called, str_keys=True)  # type: ignore[no-any-return]


def _warm(client: LineClient, params: Json) -> None:
    client.hello()
    client.ask("tools/list", {})
    answer = msgspec.json.encode(client.ask("tools/call", params))
    if WORD.encode() not in answer:
        raise Silent(f"a wrong answer: {answer[:200].decode(errors='replace')}")
    for _ in range(20):
        client.ask("tools/call", params)


def _round(client: LineClient, params: Json, called: Called) -> None:
    taken: list[float] = []
    ends = time.perf_counter() + ROUND_S
    before = called.spent
    while len(taken) < CALLS and (len(taken) < 5 or time.perf_counter() < ends):
        began = time.perf_counter()
        client.ask("tools/call", params)
        taken.append((time.perf_counter() - began) * 1000)
    quantiles = statistics.quantiles(taken, n=20)
    called.p50.append(quantiles[9])
    called.p95.append(quantiles[18])
    called.spent = client.cpu()
    if before is not None:  # the first round has nothing before it to tell apart from the start
        called.cpu.append((called.spent - before) / len(taken) * 1000)


def _added(each: Sequence[float], floor: Sequence[float]) -> float:
    """The median of what a round adds to the same round's direct calls."""
    return statistics.median(own - direct for own, direct in zip(each, floor, strict=False))


def _show_calls(called: Mapping[str, Called]) -> None:
    """Two tables; direct and Pegboard are always there, for without them there is nothing to compare."""
    floor, own = called[DIRECT], called[PEGBOARD.name]
    added = {name: _added(each.p50, floor.p50) for name, each in called.items()}
    # The mean: what falls into few rounds is paid all the same.
    cpu = {name: statistics.mean(each.cpu) for name, each in called.items()}
    rows = [
        [
            name,
            *(f"{statistics.median(value):.2f}" for value in (each.p50, each.p95)),
            f"{added[name]:.2f}" if name != DIRECT else "-",
            f"{_added(each.p95, floor.p95):.2f}" if name != DIRECT else "-",
            f"{cpu[name]:.2f}" + (" (the server's)" if name == DIRECT else ""),
            f"{cpu[name] / cpu[PEGBOARD.name]:.1f}" if name != DIRECT else "-",
            f"{each.memory_mb:.0f}",
        ]
        for name, each in called.items()
    ]
    headers = ("", "p50", "p95", "added p50", "added p95", "CPU of the gateway", "CPU, times Pegboard's", "RSS MB")
    table("One call of `echo` on stdio, ms; one after the other", headers, rows)
    bars([(name, max(value, 0.001)) for name, value in added.items() if name != DIRECT], "ms added")
    _verdict(f"added p50 {added[PEGBOARD.name]:.2f} ms", added[PEGBOARD.name], AIM_ADDED_MS, "ms")
    _verdict(f"CPU a call {cpu[PEGBOARD.name]:.2f} ms", cpu[PEGBOARD.name], AIM_CPU_MS, "ms")
    _show_rates(called, own)


def _show_rates(called: Mapping[str, Called], own: Called) -> None:
    rows = []
    for name, each in called.items():
        rates = [statistics.median(each.rates[callers]) if each.rates.get(callers) else 0.0 for callers in CALLERS]
        most = statistics.median(own.rates[CALLERS[-1]]) if own.rates.get(CALLERS[-1]) else 1.0
        rows.append([name, *(f"{rate:,.0f}" if rate else "failed" for rate in rates), f"{rates[-1] / most:.2f}"])
    headers = ("", *(f"{callers} at once" for callers in CALLERS), f"at {CALLERS[-1]}, times Pegboard's")
    table("Calls a second on one connection, one server behind it", headers, rows)


# ── searches ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Searched(msgspec.Struct):
    """What answers cost and whether they have what was wanted."""

    tokens: list[int] = []
    wire_bytes: list[int] = []
    ms: list[float] = []
    right: int = 0


def _searches(gateways: Iterable[Gateway], launches: Mapping[str, Sequence[Launch]], failed: Failures) -> Json:
    asked = _asked()
    searched: dict[str, Searched] = {}
    for gateway in gateways:
        if gateway.search is None or gateway.name in failed:
            continue
        print(f"  searches: {gateway.name} …", file=sys.stderr, flush=True)
        with ExitStack() as stack:
            client = _open(stack, launches[gateway.name][0])
            try:
                with client.within(2 * PATIENCE_S):
                    searched[gateway.name] = _search(client, gateway, asked)
            except (Silent, OSError) as silent:
                failed[f"{gateway.name}, searches"] = str(silent)
    _show_searches({each.name: each for each in gateways}, searched, len(asked))
    return msgspec.to_builtins(searched)  # type: ignore[no-any-return]


def _asked() -> list[tuple[str, list[str]]]:
    """Queries for tools that are there, and what those are called here; no two want the same tools."""
    known = {tool.public_name: _spelt(tool.name, number) for number, tool in enumerate(multiplied(LARGE_SIZE - 27))}
    found: dict[tuple[str, ...], str] = {}
    for query in labelled("mcp_mega", 20_000)[1] if "mcp_mega" in sets() else gateway_searches.suite_queries():
        wanted = [known[name] for group in query.groups for name in group if name in known]
        if wanted and all(any(name in known for name in group) for group in query.groups):
            found.setdefault(tuple(sorted(wanted)), query.query)
    return [(query, list(wanted)) for wanted, query in found.items()][:QUERIES]


def _search(client: LineClient, gateway: Gateway, asked: Sequence[tuple[str, list[str]]]) -> Searched:
    assert gateway.search is not None
    client.hello()
    client.ask("tools/list", {})
    for tool, arguments in (*gateway.warm, gateway.search(asked[0][0])):
        client.ask("tools/call", {"name": tool, "arguments": arguments})
    searched = Searched()
    for query, wanted in asked:
        tool, arguments = gateway.search(query)
        began = time.perf_counter()
        answer = client.ask("tools/call", {"name": tool, "arguments": arguments})
        searched.ms.append((time.perf_counter() - began) * 1000)
        text = "\n".join(block.get("text", "") for block in answer["content"])
        searched.tokens.append(WORD_PIECES.count(text))
        searched.wire_bytes.append(client.received)
        searched.right += any(re.search(rf"{re.escape(name)}\b", text) is not None for name in wanted)
    return searched


def _show_searches(gateways: Mapping[str, Gateway], searched: Mapping[str, Searched], asked: int) -> None:
    own = statistics.median(searched[PEGBOARD.name].tokens)
    rows = []
    for name, gateway in gateways.items():
        label = f"{name} ({gateway.discovery})" if gateway.discovery else name
        each = searched.get(name)
        if each is None:
            rows.append([label, *["-"] * 6])
            continue
        tokens = statistics.median(each.tokens)
        figures: list[Any] = [f"{tokens:,.0f}", f"{sorted(each.tokens)[int(0.95 * (len(each.tokens) - 1))]:,}"]
        figures += [f"{tokens / own:.1f}", f"{statistics.median(each.wire_bytes):,.0f}"]
        rows.append(
            [
                label,
                *figures,
                f"{statistics.median(each.ms):.1f}",
                "-" if gateway.discovery else f"{each.right}/{asked}",  # to list a server is not to find
            ]
        )
    headers = ("", "tokens", "p95", "times Pegboard's", "bytes", "ms", "names a right tool")
    kind = real_tools()[1]
    table(f"A search's answer with {LARGE} ({kind}), median of {asked}; {WORD_PIECES.name}", headers, rows)
