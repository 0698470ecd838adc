"""All servers of one configuration: who may be contacted, and that they end together."""

from __future__ import annotations

import asyncio

import pytest

from pegboard.config.model import Config, GatewayConfig, ServerConfig, ServerSpec
from pegboard.errors import ServerNotFound, ServerUnavailable
from pegboard.types import ServerState
from pegboard.upstream.http import HttpLink
from pegboard.upstream.pool import Pool
from pegboard.upstream.server import Limits
from pegboard.upstream.sse import SseLink
from pegboard.upstream.stdio import StdioLink
from tests.pools import PLAIN_CALL, Seen, children, hostile, new_pool, plain, pool_of, run, text_of


def spec(name: str, *, problem: str = "", **config) -> ServerSpec:
    return ServerSpec(name=name, config=ServerConfig(**config), problem=problem)


def test_only_usable_servers_may_be_contacted_and_the_others_say_why():
    async def scenario() -> None:
        pool = new_pool(
            plain("good"),
            spec("off", command="true", enabled=False),
            spec("odd", command="true", problem="its manifest has no command"),
        )
        assert [server.name for server in pool.all()] == ["good"]
        with pytest.raises(ServerNotFound, match="There is no server named 'none'"):
            pool.get("none")
        with pytest.raises(ServerUnavailable, match="off: it is disabled") as off:
            pool.get("off")
        assert "enabled = true" in off.value.hint
        with pytest.raises(ServerUnavailable, match="odd: its manifest has no command"):
            pool.get("odd")
        await pool.close()

    run(scenario())


def test_a_pool_starts_nothing_by_itself():
    async def scenario() -> None:
        async with pool_of(plain("a"), plain("b")) as pool:
            assert [server.state for server in pool.all()] == [ServerState.IDLE, ServerState.IDLE]
            assert children() == []

    run(scenario())


def test_closing_ends_everything_whatever_it_was_doing_and_refuses_what_comes_later():
    seen = Seen()

    async def scenario() -> None:
        specs = [plain("idle"), plain("busy"), hostile("hang_at_start", name="starting"), plain("unused")]
        async with pool_of(*specs, seen=seen) as pool:
            await pool.get("idle").list_tools()
            await pool.get("busy").list_tools()
            busy = asyncio.create_task(pool.get("busy").call_tool("slow", {"seconds": 60}, PLAIN_CALL))
            starting = asyncio.create_task(pool.get("starting").list_tools())
            await asyncio.wait({busy, starting}, timeout=0.2)
            await pool.close()
            results = await asyncio.gather(busy, starting, return_exceptions=True)
            assert [str(result) for result in results] == [
                "busy: it was stopped",
                "starting: it was stopped before it was ready",
            ]
            for server in pool.all():
                with pytest.raises(ServerUnavailable, match="Pegboard is closing"):
                    await server.call_tool("echo", {"text": "x"}, PLAIN_CALL)
            await pool.close()

    run(scenario())
    assert seen.of("unused") == []


def test_a_server_has_its_own_limits_where_it_says_so_and_the_gateways_elsewhere():
    gateway = GatewayConfig(start_timeout=1, call_timeout=2, idle_timeout=3, max_result_bytes=4096, max_pages=5)
    own = Limits.of(spec("s", command="true", call_timeout=20, max_result_bytes=9999), gateway)
    assert (own.start_timeout, own.call_timeout, own.idle_timeout) == (1, 20, 3)
    assert (own.max_result_bytes, own.max_pages, own.max_tools) == (9999, 5, gateway.max_tools)


def test_the_way_to_a_server_follows_its_transport():
    remote = {"url": "http://127.0.0.1:9/mcp"}

    async def scenario() -> None:
        pool = Pool(
            Config(),
            on_state=lambda *_: None,
            on_tools_changed=lambda _: None,
            schema_of=lambda *_: None,
            known_version=lambda _: "",
            environ={},
        )

        def ways(one: ServerSpec) -> list[type]:
            return [type(link) for link in pool._links(one, Limits.of(one, GatewayConfig()))]

        assert ways(spec("a", command="true")) == [StdioLink]
        assert ways(spec("b", **remote)) == [HttpLink, SseLink]
        assert ways(spec("c", transport="sse", **remote)) == [SseLink]
        await pool.close()

    run(scenario())


def test_a_server_gets_the_environment_of_the_pool_without_its_secrets():
    environ = {"PATH": "/usr/bin:/bin", "EDITOR": "vi", "GITHUB_TOKEN": "secret", "PEGBOARD_X": "1"}

    async def scenario() -> None:
        async with pool_of(plain("p", env={"MY_TOKEN": "given"}), environ=environ) as pool:
            names = text_of(await pool.get("p").call_tool("env", {}, PLAIN_CALL)).split()
            assert {"PATH", "EDITOR", "MY_TOKEN"} <= set(names)
            assert "GITHUB_TOKEN" not in names
            assert "PEGBOARD_X" not in names

    run(scenario())
