"""The tools of an agent with many MCP servers, as each wire declares them."""

from __future__ import annotations

from typing import Any

CORE = ("Bash", "Read", "Edit", "Write", "Grep")
_SERVERS: dict[str, tuple[str, ...]] = {
    "github": ("create_issue", "list_issues", "merge_pull_request", "search_code", "fork_repository"),
    "calendar": ("create_event", "list_events", "delete_event", "find_free_time"),
    "weather": ("current_conditions", "forecast", "historical_rainfall"),
    "postgres": ("run_query", "describe_table", "list_tables", "explain_plan"),
    "mail": ("send_message", "search_inbox", "archive_thread"),
}
NAMES = tuple(f"mcp__{server}__{tool}" for server, tools in _SERVERS.items() for tool in tools)


def _about(name: str) -> tuple[str, dict[str, Any]]:
    words = name.removeprefix("mcp__").replace("__", " ").replace("_", " ").lower()
    text = f"{words.capitalize()}. Use it to {words} for the user with the given arguments; it returns what came of it."
    fields = ("title", "body", "place", "day") if name.startswith("mcp__") else ("path", "text")
    properties = {field: {"type": "string", "description": f"The {field} to {words} with"} for field in fields}
    return text, {"type": "object", "properties": properties, "required": [fields[0]]}


def messages_tools(marker: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """For the Messages API; the marker stands on the last, as agents do it."""
    tools: list[dict[str, Any]] = []
    for name in (*CORE, *NAMES):
        text, schema = _about(name)
        tools.append({"name": name, "description": text, "input_schema": schema})
    if marker is not None:
        tools[-1]["cache_control"] = marker
    return tools


def completions_tools() -> list[dict[str, Any]]:
    """For Chat Completions."""
    made = []
    for name in (*CORE, *NAMES):
        text, schema = _about(name)
        made.append({"type": "function", "function": {"name": name, "description": text, "parameters": schema}})
    return made


def responses_tools() -> list[dict[str, Any]]:
    """For Responses."""
    made = []
    for name in (*CORE, *NAMES):
        text, schema = _about(name)
        made.append({"type": "function", "name": name, "description": text, "parameters": schema, "strict": False})
    return made
