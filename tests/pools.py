"""Pools of test servers, and what must be true once one is closed: no child, no task and no descriptor is left."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import psutil

from pegboard.config.model import Config, GatewayConfig, ServerConfig, ServerSpec
from pegboard.types import CallContext, Json, ServerState
from pegboard.upstream.pool import Pool
from tests.servers import hostile_command, plain_command

T = TypeVar("T")
DESCRIPTORS = Path("/dev/fd")


def server(name: str, command: list[str], **config: Any) -> ServerSpec:
    """A server on stdio; keywords are its settings."""
    return ServerSpec(name=name, config=ServerConfig(command=command[0], args=tuple(command[1:]), **config))


def plain(name: str = "plain", *arguments: str, **config: Any) -> ServerSpec:
    """A well-behaved server."""
    return server(name, plain_command(*arguments), **config)


def hostile(mode: str, *arguments: str, name: str = "hostile", **config: Any) -> ServerSpec:
    """A server that misbehaves in one way."""
    return server(name, hostile_command(mode, *arguments), **config)


class Seen:
    """What a pool told those around it."""

    def __init__(self) -> None:
        self.states: list[tuple[str, ServerState, str]] = []
        self.changed: list[str] = []

    def of(self, name: str) -> list[ServerState]:
        """The states one server went through."""
        return [state for who, state, _ in self.states if who == name]


def new_pool(
    *specs: ServerSpec,
    gateway: GatewayConfig | None = None,
    seen: Seen | None = None,
    environ: dict[str, str] | None = None,
    known_version: Callable[[str], str] = lambda _: "",
) -> Pool:
    """A pool that nobody has to close, as long as nothing was started."""
    seen = seen or Seen()
    return Pool(
        Config(servers={spec.name: spec for spec in specs}, gateway=gateway or GatewayConfig()),
        on_state=lambda *what: seen.states.append(what),
        on_tools_changed=seen.changed.append,
        schema_of=lambda _server, _tool: None,
        known_version=known_version,
        environ=environ,
    )


@asynccontextmanager
async def pool_of(*specs: ServerSpec, **options: Any) -> AsyncIterator[Pool]:
    """A pool that is closed at the end, and must then have left nothing running."""
    around = asyncio.all_tasks()
    pool = new_pool(*specs, **options)
    try:
        yield pool
    finally:
        await pool.close()
    assert children() == []
    assert asyncio.all_tasks() - around == set()


def children() -> list[psutil.Process]:
    """Everything that descends from this process, dead but unreaped ones included."""
    found: list[psutil.Process] = psutil.Process().children(recursive=True)
    return found


def still_alive(pids: list[int], *, seconds: float = 15) -> list[int]:
    """Those of the processes that do not end within the time; one that is dead and unreaped counts as ended."""
    found = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(found, timeout=seconds)
    return [process.pid for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def run(scenario: Coroutine[Any, Any, T], *, seconds: float = 50) -> T:
    """Runs a scenario, which must end in time and leave no descriptor behind."""
    gc.collect()
    before = set(DESCRIPTORS.iterdir())

    async def bounded() -> T:
        async with asyncio.timeout(seconds):
            return await scenario

    result = asyncio.run(bounded())
    gc.collect()
    assert set(DESCRIPTORS.iterdir()) - before == set()
    return result


async def until(condition: Callable[[], Any], *, seconds: float = 20) -> None:
    """Waits for something that only the outside world brings about."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def text_of(result: Json) -> str:
    """The text of a tool's result."""
    return "".join(block["text"] for block in result["content"])


def lines(log: Path) -> list[str]:
    """What a plain server has logged so far."""
    return log.read_text().splitlines() if log.exists() else []


def starts(log: Path) -> list[int]:
    """The pids of all processes that wrote this log."""
    return [int(line.split()[1]) for line in lines(log) if line.startswith("start ")]


PLAIN_CALL = CallContext()
