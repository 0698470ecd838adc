"""Small values that the catalog's tests start from."""

from __future__ import annotations

from pathlib import Path

from pegboard.catalog.cache import cache_key, snapshot_of
from pegboard.config.model import Config, Requires, ServerConfig, ServerSpec, ToolsConfig
from pegboard.types import Listing

NOW = 1_790_000_000.25


def spec(name="github", *, requires=None, version="", origin=None, cache_path=None, problem="", **config):
    config.setdefault("command", "server")
    wanted = Requires(**requires) if requires is not None else None
    return ServerSpec(
        name=name,
        config=ServerConfig(requires=wanted, **config),
        version=version,
        origin=origin and Path(origin),
        cache_path=cache_path,
        problem=problem,
    )


def tool(name, description="", **more):
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


def listing(*tools, **more):
    return Listing(tools=tuple(tool(one) if isinstance(one, str) else one for one in tools), **more)


def snapshot(server, *tools, **more):
    """What one server's cache would give."""
    return snapshot_of(listing(*tools, **more), cache_key(server), NOW)


def config(*servers, deny=()):
    return Config(servers={server.name: server for server in servers}, tools=ToolsConfig(deny=tuple(deny)))
