"""What one call costs on stdio: through Pegboard, through the official SDK's client, and over a bare pipe."""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from bench.measure import bars, table
from pegboard.config.model import Config, ServerConfig, ServerSpec
from pegboard.types import CallContext
from pegboard.upstream.pool import Pool

SERVER = [sys.executable, str(Path(__file__).parents[1] / "tests" / "servers" / "plain.py"), "--era", "legacy"]
ROUNDS, CALLS = 15, 200
AIM_CPU_MS = 0.15

Call = Callable[[], Awaitable[None]]


def run() -> dict[str, object]:
    """Rounds of calls, one way after the other, so that all see the same machine."""
    return asyncio.run(_compare())


async def _compare() -> dict[str, object]:
    bare = _BarePipe()
    async with _pegboard() as board, _sdk() as sdk:
        ways: dict[str, Call] = {"bare pipe": bare.call, "Pegboard": board, "official SDK": sdk}
        wall: dict[str, list[float]] = {name: [] for name in ways}
        cpu: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(ROUNDS + 1):
            for name, call in ways.items():
                spent_wall, spent_cpu = await _round(call)
                if number:
                    wall[name].append(spent_wall)
                    cpu[name].append(spent_cpu)
    bare.close()
    return _report(wall, cpu)


async def _round(call: Call) -> tuple[float, float]:
    start, used = time.perf_counter(), time.process_time()
    for _ in range(CALLS):
        await call()
    return (time.perf_counter() - start) / CALLS * 1000, (time.process_time() - used) / CALLS * 1000


def _report(wall: dict[str, list[float]], cpu: dict[str, list[float]]) -> dict[str, object]:
    median = {name: (statistics.median(wall[name]), statistics.median(cpu[name])) for name in wall}
    base = median["bare pipe"]
    rows = [
        [name, f"{w:.3f}", f"{c:.3f}", f"{w - base[0]:+.3f}", f"{c - base[1]:+.3f}"] for name, (w, c) in median.items()
    ]
    table("One call of `echo` on stdio, ms", ("", "wall", "CPU here", "wall added", "CPU added"), rows)
    bars([(name, c) for name, (_, c) in median.items()], "ms CPU")
    added = median["Pegboard"][1] - base[1]
    print(f"  aim: at most {AIM_CPU_MS} ms of CPU over the bare pipe: {'met' if added <= AIM_CPU_MS else 'NOT met'}")
    return {name: {"wall_ms": w, "cpu_ms": c} for name, (w, c) in median.items()}


class _BarePipe:
    """Write a line, read a line: the least a call can cost from an event loop."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._number = 0
        self._streams: tuple[asyncio.StreamReader, asyncio.WriteTransport] | None = None

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.WriteTransport]:
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self._process.stdout)
        writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, self._process.stdin)
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        writer.write(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}).encode() + b"\n")
        await reader.readline()
        return reader, writer

    async def call(self) -> None:
        if self._streams is None:
            self._streams = await self._connect()
        reader, writer = self._streams
        self._number += 1
        params = {"name": "echo", "arguments": {"text": "hello"}}
        message = {"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params}
        writer.write(json.dumps(message).encode() + b"\n")
        json.loads(await reader.readline())

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.asynccontextmanager
async def _pegboard() -> AsyncIterator[Call]:
    spec = ServerSpec(name="plain", config=ServerConfig(command=SERVER[0], args=tuple(SERVER[1:])))
    pool = Pool(
        Config(servers={"plain": spec}),
        on_state=lambda *_: None,
        on_tools_changed=lambda _: None,
        schema_of=lambda *_: None,
        known_version=lambda _: "",
    )
    server = pool.get("plain")

    async def call() -> None:
        await server.call_tool("echo", {"text": "hello"}, CallContext())

    yield call
    await pool.close()


@contextlib.asynccontextmanager
async def _sdk() -> AsyncIterator[Call]:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    async with Client(StdioServerParameters(command=SERVER[0], args=SERVER[1:])) as client:

        async def call() -> None:
            await client.call_tool("echo", {"text": "hello"})

        yield call
