"""Servers that other people wrote: the reference ones from PyPI, the examples, and an npm one where Node is there."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from pegboard.config.model import Config, GatewayConfig, ServerConfig, ServerSpec, StoreConfig
from pegboard.engine import Engine, load_catalog
from tests.servers import EXAMPLES, example_http

NPM_SERVER = "@modelcontextprotocol/server-everything@2026.8.31"


def with_servers(folder: Path, work: Callable[[Engine], Awaitable[None]], **servers: ServerConfig) -> Config:
    config = Config(
        servers={name: ServerSpec(name=name, config=server) for name, server in servers.items()},
        gateway=GatewayConfig(start_timeout=60, call_timeout=60),
        store=StoreConfig(cache_dir=str(folder / "cache"), state_dir=str(folder / "state")),
    )

    async def scenario() -> None:
        async with asyncio.timeout(100), Engine(config, refresh=False) as engine:
            outcomes = await engine.refresh()
            assert {outcome.server: outcome.error for outcome in outcomes} == dict.fromkeys(servers, "")
            await work(engine)

    asyncio.run(scenario())
    return config


def module(name: str, *arguments: str) -> ServerConfig:
    return ServerConfig(command=sys.executable, args=("-m", name, *arguments))


def test_the_reference_git_and_time_servers_are_listed_cached_and_called(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    (repository / "new.txt").write_text("hello")

    async def work(engine: Engine) -> None:
        status = await engine.call("git__git_status", {"repo_path": str(repository)})
        assert "new.txt" in json.dumps(status)
        now = await engine.call("get_current_time", {"timezone": "Europe/Rome"})
        assert "Europe/Rome" in json.dumps(now)

    config = with_servers(tmp_path, work, git=module("mcp_server_git"), time=module("mcp_server_time"))
    catalog = load_catalog(config)
    assert {"git__git_status", "git__git_log", "time__convert_time"} <= set(catalog.tools)
    assert catalog.tools["git__git_status"].input_schema["properties"]


def test_the_examples_work_on_stdio(tmp_path: Path) -> None:
    async def work(engine: Engine) -> None:
        result = await engine.call("units__convert", {"value": 1, "from_unit": "km", "to_unit": "m"})
        assert result["structuredContent"]["value"] == 1000
        saved = await engine.call("add_note", {"text": "buy milk", "tags": ["home"]})
        assert saved["structuredContent"]["tags"] == ["home"]

    def example(name: str) -> ServerConfig:
        return ServerConfig(command=sys.executable, args=(str(EXAMPLES / f"{name}.py"),))

    config = with_servers(
        tmp_path, work, units=example("units"), notes=example("notes"), calendar=example("calendar_server")
    )
    assert load_catalog(config).tools["notes__add_note"].output_schema is not None


def test_an_example_works_over_http(tmp_path: Path) -> None:
    async def work(engine: Engine) -> None:
        result = await engine.call("units__convert", {"value": 1, "from_unit": "km", "to_unit": "m"})
        assert result["structuredContent"]["value"] == 1000

    with example_http("units") as url:
        with_servers(tmp_path, work, units=ServerConfig(url=url))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("npx") is None, reason="Node is not on this machine")
def test_an_npm_server_is_started_through_npx_and_leaves_nothing_behind(tmp_path: Path) -> None:
    # Fetched beforehand: a download is no part of a start.
    fetched = subprocess.run(
        ["npm", "install", "--silent", "--no-audit", "--no-fund", NPM_SERVER],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    if fetched.returncode:
        pytest.skip(f"npm could not fetch {NPM_SERVER}: {fetched.stderr[-300:]}")

    async def work(engine: Engine) -> None:
        result = await engine.call("everything__echo", {"message": "hello"})
        assert "hello" in json.dumps(result)

    server = ServerConfig(command="npx", args=("--no-install", "mcp-server-everything"), cwd=str(tmp_path))
    with_servers(tmp_path, work, everything=server)
    assert [
        each for each in psutil.process_iter(["cmdline"]) if "mcp-server-everything" in str(each.info["cmdline"])
    ] == []
