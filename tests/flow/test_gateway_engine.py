"""From the official client through the gateway and the engine to a real server, in every pairing of the two eras."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard.config.model import Config, ServerConfig, ServerSpec, StoreConfig, SurfaceConfig
from pegboard.engine import Engine
from pegboard.gateway.http import HttpGateway
from pegboard.gateway.lobby import Lobby
from pegboard.gateway.relay import ServerRelay
from pegboard.types import Json, Progress
from pegboard.wire.admission import Admission
from tests.conformance.everything import BareDesk
from tests.contract.wire_links import SdkLink, sdk_link, served
from tests.servers import plain_command

PAIRS = [(client, server) for client in ("legacy", "auto") for server in ("legacy", "modern")]


@asynccontextmanager
async def through(folder: Path, mode: str, era: str, clients: int = 1) -> AsyncIterator[list[SdkLink]]:
    """Clients at one gateway over one server of this era."""
    program, *rest = plain_command("--era", era, "--log", str(folder / "log"))
    spec = ServerSpec(name="far", config=ServerConfig(command=program, args=tuple(rest)))
    store = StoreConfig(cache_dir=str(folder), state_dir=str(folder))
    config = Config(servers={"far": spec}, store=store, surface=SurfaceConfig(mode="off"))
    async with Engine(config, refresh=False) as engine:
        await engine.refresh()
        relay = ServerRelay(engine)
        lobby = Lobby(BareDesk(engine), relay)
        async with served(HttpGateway(lobby, Admission())) as url:
            links = [sdk_link(url, mode) for _ in range(clients)]
            opened = [await link.__aenter__() for link in links]
            try:
                yield opened
            finally:
                for link in reversed(links):
                    await link.__aexit__(None, None, None)
        await lobby.close()
        await relay.close()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 50))


@pytest.mark.parametrize(("mode", "era"), PAIRS)
def test_a_question_from_a_real_server_reaches_the_client_that_called(tmp_path: Path, mode: str, era: str) -> None:
    def reply(params: Json) -> Json:
        fields = params["requestedSchema"]["properties"]
        return {"action": "accept", "content": dict.fromkeys(fields, "Ada")}

    async def scenario() -> None:
        async with through(tmp_path, mode, era) as [link]:
            result = await link.call("far__ask", {}, reply=reply)
            assert not result["isError"]
            assert "Ada" in result["text"]

    run(scenario())


@pytest.mark.parametrize(("mode", "era"), PAIRS)
def test_progress_of_a_real_server_reaches_the_client_that_called(tmp_path: Path, mode: str, era: str) -> None:
    async def scenario() -> None:
        async with through(tmp_path, mode, era) as [link]:
            heard: list[Progress] = []
            await link.call("far__progress", {"steps": 3}, hear=heard.append)
            assert [each.progress for each in heard] == sorted({each.progress for each in heard})
            assert heard

    run(scenario())


@pytest.mark.parametrize(("mode", "era"), PAIRS)
def test_clients_of_one_server_get_their_own_answers(tmp_path: Path, mode: str, era: str) -> None:
    async def scenario() -> None:
        async with through(tmp_path, mode, era, clients=5) as links:
            said = [(link, f"client {n} call {m}") for n, link in enumerate(links) for m in range(10)]
            results = await asyncio.gather(*(link.call("far__echo", {"text": text}) for link, text in said))
            assert [result["text"] for result in results] == [text for _, text in said]

    run(scenario())


@pytest.mark.parametrize(("mode", "era"), PAIRS)
def test_a_cancelled_call_is_cancelled_at_the_real_server(tmp_path: Path, mode: str, era: str) -> None:
    async def scenario() -> None:
        async with through(tmp_path, mode, era) as [link]:
            began = asyncio.Event()
            arguments = {"seconds": 30}
            call = asyncio.ensure_future(link.call("far__slow", arguments, hear=lambda _: began.set()))
            log = tmp_path / "log"
            while "slow" not in log.read_text():
                await asyncio.sleep(0.01)
            call.cancel()
            await asyncio.wait({call})
            while "cancel" not in log.read_text():
                await asyncio.sleep(0.01)

    run(scenario())
