"""The board that the tests of the plug-in for the OpenAI Agents SDK hang their tools on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agents import Agent

from pegboard import Pegboard
from pegboard.integrations.openai_agents import PegboardServer
from pegboard.testing import FakeSource, tool_definition
from tests.flow.openai_agents_model import PlayedModel

ISSUE = tool_definition(
    "create_issue",
    "Create an issue in a repository.",
    inputSchema={"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
)
DELETE = tool_definition("delete_repository", "Delete a repository for good.")
OWN = ("search_tools", "read_result")


def filler(count: int) -> list[dict[str, Any]]:
    return [tool_definition(f"tool_{number}", f"Turns wheel number {number}.") for number in range(count)]


def forge(count: int = 40, **more: Any) -> FakeSource:
    """A server of many tools, two of which say what they are for."""
    return FakeSource("forge", [ISSUE, DELETE, *filler(count)], **more)


@asynccontextmanager
async def opened(
    *sources: FakeSource, calls: dict[str, Any] | None = None, approve: Any = None, **surface: Any
) -> AsyncIterator[Pegboard]:
    """A board that defers, and keeps nothing on the disk."""
    settings = {"surface": {"mode": "on", **surface}, "record": {"enabled": False}, "calls": calls or {}}
    async with Pegboard(sources=sources or (forge(),), settings=settings, approve=approve) as board:
        await board.refresh()
        await board.ready()
        yield board


def agent(server: PegboardServer, model: Any, name: str = "agent", **more: Any) -> Agent[Any]:
    return Agent(name, model=model, mcp_servers=[server], **more)


def names(model: PlayedModel) -> list[tuple[str, ...]]:
    """What was on each list that the model was sent, after Pegboard's own."""
    assert all(shown.names[:2] == OWN for shown in model.shown)
    return [shown.names[2:] for shown in model.shown]
