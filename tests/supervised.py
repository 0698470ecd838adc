"""One supervised server over scripted links, on a clock that jumps, and what is left of it when it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from pegboard.config.model import GatewayConfig, ServerConfig, ServerSpec
from pegboard.errors import ConnectionLost, PegboardError
from pegboard.types import CallContext, Json, ServerState
from pegboard.upstream.link import Link
from pegboard.upstream.server import Limits, Server, Surroundings
from tests.scripted import ScriptedLink, answer, run_jumping

OK: Json = {"content": []}
GONE = ConnectionLost("s", "its process exited with code 1", hint="It wrote on stderr:\nboom")
IDLE, STARTING, READY, ERROR = ServerState.IDLE, ServerState.STARTING, ServerState.READY, ServerState.ERROR


def sober(_link: ScriptedLink, message: Json) -> Iterable[Json]:
    return [answer(message, OK)] if message.get("method") == "tools/call" else ()


def mute(_link: ScriptedLink, _message: Json) -> Iterable[Json]:
    return [{}]


def dies_at(*methods: str) -> Callable[[ScriptedLink, Json], Iterable[Json]]:
    def script(link: ScriptedLink, message: Json) -> Iterable[Json]:
        if message.get("method") in methods:
            link.die(GONE)
            return [{}]
        return sober(link, message)

    return script


class Sluggish(ScriptedLink):
    """Takes its time to end."""

    async def close(self) -> None:
        if not self.closes:
            await asyncio.sleep(4)
        await super().close()


class House:
    """A server and every link that was made for it."""

    def __init__(self, script: Any = sober, *, slots: int = 4, make: Callable[[], Link] | None = None, **config: Any):
        self.script = script
        self.made: list[ScriptedLink] = []
        self.make = make or (lambda: ScriptedLink(self.script))
        self.states: list[ServerState] = []
        self.known_version = "2025-11-25"
        spec = ServerSpec(name="s", config=ServerConfig(command="x", **config))
        around = Surroundings(
            links=lambda _spec, _limits: [self._link()],
            starting=asyncio.Semaphore(slots),
            on_state=lambda _name, state, _why: self.states.append(state),
            on_tools_changed=lambda _name: None,
            schema_of=lambda _name, _tool: None,
            known_version=lambda _name: self.known_version,
        )
        self.server = Server(spec, Limits.of(spec, GatewayConfig()), around)

    def _link(self) -> Link:
        link = self.make()
        self.made.append(link)  # type: ignore[arg-type]  # the tests make scripted ones only
        return link

    def call(self, timeout: float | None = None) -> asyncio.Task[Json]:
        return asyncio.ensure_future(self.server.call_tool("t", {}, CallContext(timeout=timeout)))

    async def fails(self) -> PegboardError:
        with pytest.raises(PegboardError) as caught:
            await self.call()
        return caught.value


def now() -> float:
    return asyncio.get_running_loop().time()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def check(scenario: Callable[[], Any]) -> None:
    """Runs it, and sees that no task is left when the server is closed."""

    async def checked() -> None:
        house = await scenario()
        await house.server.close()
        await settle()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert all(link.closes for link in house.made)

    run_jumping(checked())
