"""One or more remote servers behind a pool, as the engine would have them, for tests that call them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from pegboard.config.model import Config, GatewayConfig, ServerConfig, ServerSpec, StoreConfig
from pegboard.types import CallContext, Json, ServerState
from pegboard.upstream.pool import Pool

T = TypeVar("T")


class Heard:
    """What the pool told about its servers."""

    def __init__(self) -> None:
        self.states: list[tuple[str, ServerState, str]] = []
        self.tools_changed = asyncio.Event()
        self.offers_changed = asyncio.Event()

    def state(self, name: str, state: ServerState, error: str) -> None:
        self.states.append((name, state, error))


def spec(name: str, url: str, **options: Any) -> ServerSpec:
    """A remote server, as configuration would have it."""
    return ServerSpec(name=name, config=ServerConfig(url=url, **options))


@asynccontextmanager
async def pool_of(
    *specs: ServerSpec,
    heard: Heard | None = None,
    schemas: dict[str, Json] | None = None,
    known_version: str = "",
    state_dir: Path | None = None,
    **gateway: Any,
) -> AsyncIterator[Pool]:
    """A pool that is closed at the end, whatever happens."""
    heard = heard or Heard()
    config = Config(
        servers={each.name: each for each in specs},
        gateway=GatewayConfig(**{"start_timeout": 10.0, "call_timeout": 10.0, **gateway}),
        store=StoreConfig(state_dir=str(state_dir) if state_dir else "/nonexistent"),
    )
    pool = Pool(
        config,
        on_state=heard.state,
        on_tools_changed=lambda _: heard.tools_changed.set(),
        on_offers_changed=lambda _: heard.offers_changed.set(),
        schema_of=lambda _, tool: (schemas or {}).get(tool),
        known_version=lambda _: known_version,
    )
    try:
        yield pool
    finally:
        await pool.close()


async def call(pool: Pool, tool: str, arguments: Json | None = None, *, server: str = "far", **context: Any) -> Json:
    """One call of a tool."""
    return await pool.get(server).call_tool(tool, arguments or {}, CallContext(**context))


class Browser:
    """A browser without a window, whose owner agrees to everything: it goes where it is sent and follows."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self._visits: list[asyncio.Task[httpx2.Response]] = []

    async def open(self, url: str) -> None:
        """Sets out; does not wait for the page."""
        self.urls.append(url)
        self._visits.append(asyncio.create_task(self._visit(url)))

    async def _visit(self, url: str) -> httpx2.Response:
        async with httpx2.AsyncClient(follow_redirects=True) as client:
            return await client.get(url)

    async def close(self) -> list[httpx2.Response]:
        """The pages it ended up at."""
        return [await visit for visit in self._visits]


def text_of(result: Json) -> str:
    """The text of a result's first block."""
    text = result["content"][0]["text"]
    assert isinstance(text, str)
    return text


def run(scenario: Callable[[], Awaitable[T]], seconds: float = 45) -> T:
    """Runs a scenario to its end, and sees that it left no task behind."""

    async def bounded() -> T:
        async with asyncio.timeout(seconds):
            result = await scenario()
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert not left, f"tasks left behind: {left}"
        return result

    result = asyncio.run(bounded())
    gc.collect()  # a socket that was not closed warns now, in the test that left it
    return result
