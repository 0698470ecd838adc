"""Tools as servers offer them, and the versions of Claude Code between which something changed."""

from __future__ import annotations

import random
from typing import Any

import msgspec

_PROSE = (
    "returns the repository issue branch search query result page list of names that match a given filter in order "
    "creates an item with title body labels and assignees updates deletes fetches record user project file path"
)
WORDS = tuple(_PROSE.split())

BUILT_IN = (
    "Agent",
    "Bash",
    "Edit",
    "ListAgents",
    "Read",
    "ReportFindings",
    "ScheduleWakeup",
    "Skill",
    "Workflow",
    "Write",
)
"""Of Claude Code, always sent."""
DEFERRABLE_BUILT_IN = (
    "CronCreate", "CronDelete", "CronList", "EnterWorktree", "ExitWorktree", "Monitor", "NotebookEdit", "SendMessage",
    "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "WebFetch", "WebSearch",
)  # fmt: skip


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of one server."""

    name: str
    server: str = ""
    """Empty: Claude Code's own."""
    tokens: int = 400
    """About as many as its definition has."""
    plugin: str = ""

    @property
    def wire_name(self) -> str:
        """As Claude Code sends it."""
        if not self.server:
            return self.name
        server = f"plugin_{self.plugin}_{self.server}" if self.plugin else self.server
        return f"mcp__{server}__{self.name}"

    def definition(self, *, deferred: bool = False) -> dict[str, Any]:
        """As the Messages API gets it."""
        picked = random.Random(f"{self.server}/{self.name}")
        words = [picked.choice(WORDS) for _ in range(max(1, self.tokens - 40))]
        made: dict[str, Any] = {
            "name": self.wire_name,
            "description": " ".join(words),
            "input_schema": {
                "type": "object",
                "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
                "required": ["query"],
            },
        }
        return {**made, "defer_loading": True} if deferred else made


def server_tools(server: str, count: int, *, tokens: int = 400, plugin: str = "") -> tuple[ToolSpec, ...]:
    """`count` tools of one server, named tool_0, tool_1, …"""
    return tuple(
        ToolSpec(name=f"tool_{number}", server=server, tokens=tokens, plugin=plugin) for number in range(count)
    )


def built_in_tools() -> tuple[ToolSpec, ...]:
    """Claude Code's own, those it defers included."""
    resident = tuple(ToolSpec(name=name, tokens=900) for name in BUILT_IN)
    return resident + tuple(ToolSpec(name=name, tokens=700) for name in DEFERRABLE_BUILT_IN)


def versions() -> tuple[str, ...]:
    """On both sides of every change that matters, the first and the last included."""
    numbers = (7, 8, 9, 69, 70, 71, 72, 118, 119, 120, 121, 220, 221, 226, 227, 240, 265, 283, 303, 304, 306, 325)
    return tuple(f"2.1.{number}" for number in numbers)


def patch_of(version: str) -> int:
    """The last number of a version of Claude Code 2.1."""
    return int(version.rsplit(".", 1)[1])
