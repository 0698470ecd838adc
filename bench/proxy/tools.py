"""The tools and the requests of an agent: ten of its own, and those of MCP servers out of the suite's definitions."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from bench.proxy.upstream import Spec
from pegboard.index.evaluate import read_tools
from pegboard.index.intents import SUITE
from pegboard.surface.tokens import definition_tokens
from pegboard.types import Json

MODEL = "claude-sonnet-5"
TOOLS = 100
_CORE = {
    "Bash": ("command", "Runs a command in a shell that keeps its folder, with a timeout."),
    "Read": ("file_path", "Reads a file from the disk, with the numbers of its lines."),
    "Edit": ("file_path", "Replaces a text in a file by another; the text must occur once."),
    "Write": ("file_path", "Writes a file, over what was there before."),
    "Grep": ("pattern", "Searches the contents of files by a regular expression."),
    "Glob": ("pattern", "Finds files by their names."),
    "LS": ("path", "Lists a folder."),
    "Task": ("prompt", "Gives a task of several steps to an agent of its own."),
    "TodoWrite": ("todos", "Keeps the list of what is to be done in this session."),
    "WebFetch": ("url", "Fetches a page and answers a question about it."),
}
_MANNERS = (
    " Use absolute paths. Prefer this to doing the same in a shell. Several calls that do not need each other's results"
    " are made at once. The answer is cut when it is too long, and says so; ask for the part that is wanted then. Never"
    " use it to tell the user something. Do not repeat a call that failed without a change to its arguments."
)
SEARCHED = {
    "mcp__github__create_issue": "open an issue in a repository",
    "mcp__slack__send_message": "send a message to a channel",
    "mcp__stripe__create_refund": "refund a payment",
    "mcp__jira__createJiraIssue": "create a ticket in a project",
    "mcp__google_calendar__create_event": "put a meeting into the calendar",
}
"""What the sessions need of the deferred tools, and how a model would look for each."""


@cache
def definitions(count: int = TOOLS) -> tuple[Json, ...]:
    """The agent's own first, then as many of servers."""
    made = [_core(name, field, text) for name, (field, text) in _CORE.items()]
    for tool in read_tools(SUITE / "tools.jsonl"):
        given = msgspec.json.decode(tool.definition)
        name = f"mcp__{tool.server}__{tool.name}"[:64]
        made.append({"name": name, "description": given["description"], "input_schema": given["inputSchema"]})
    kept = made[: len(_CORE)] + sorted(made[len(_CORE) :], key=lambda each: each["name"] not in SEARCHED)
    return tuple(kept[:count])


def _core(name: str, field: str, text: str) -> Json:
    fields = {
        field: {"type": "string", "description": f"What to do it with: the {field.replace('_', ' ')}."},
        "limit": {"type": "integer", "description": "How much of the answer is wanted at most."},
    }
    schema = {"type": "object", "properties": fields, "required": [field]}
    return {"name": name, "description": text + _MANNERS, "input_schema": schema}


def tokens(tool: Json) -> int:
    """The weight of one definition."""
    schema = tool.get("input_schema") or {key: value for key, value in tool.items() if key == "type"}
    about = {"name": tool.get("name"), "description": tool.get("description") or "", "inputSchema": schema}
    return definition_tokens(about)


def few(spec: Spec) -> bytes:
    """A request with five tools, which nothing is deferred of."""
    return _body(spec, definitions(5), _history("Just a few tools", []))


def many(spec: Spec, turns: list[Any], *, begins: str) -> bytes:
    """A request with a hundred, after these messages."""
    return _body(spec, definitions(), _history(begins, turns))


def _history(begins: str, turns: list[Any]) -> list[Any]:
    return [{"role": "user", "content": begins}, *turns]


def _body(spec: Spec, tools: tuple[Json, ...], messages: list[Any]) -> bytes:
    return msgspec.json.encode(
        {
            "model": MODEL,
            "max_tokens": 1000,
            "stream": True,
            "system": f"{spec.said()} " + "You are an agent that works on code. " * 40,
            "tools": tools,
            "messages": messages,
        }
    )
