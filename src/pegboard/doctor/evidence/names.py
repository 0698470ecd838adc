"""What may pass for a name, and which server a tool's name tells of. Whatever is no name is not kept.

Above: the readers. Below: nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from pegboard.doctor.facts import Agent

_NAME = re.compile(r"[A-Za-z0-9_.:/@+\[\]<>-]{1,200}")
_NO_LETTER = re.compile(r"[^A-Za-z0-9_-]")
_PATH_CAP = 4096
_OPENCODE_OWN = frozenset({
    "apply_patch", "background_process", "code_search", "plan_enter", "plan_exit", "todo_read", "todo_write",
    "tool_search", "web_fetch", "web_search",
})  # fmt: skip
"""Tools of opencode's and Kilo's own with a name that looks as if a server were in it."""


def name_of(text: object) -> str:
    """The text if it can be a name; else empty, so that no words of anybody's get any further."""
    return text if isinstance(text, str) and _NAME.fullmatch(text) else ""


def text_of(name: str) -> str:
    """The name of a file, with what is no text spelled out: it may be of any bytes, and then cannot be written down."""
    return name.encode(errors="backslashreplace").decode()


def path_of(text: object) -> str:
    """The text if it can be an absolute path."""
    if not isinstance(text, str) or len(text) > _PATH_CAP or "\n" in text or "\0" in text:
        return ""
    return text if text.startswith(("/", "\\\\")) or text[1:3] == ":\\" else ""


def server_of(agent: Agent, tool: str, servers: Collection[str] = ()) -> str:
    """The MCP server that a tool is from, as it is named on the wire; empty for the agent's own tools."""
    if agent in ("claude-code", "codex"):
        server, _, name = tool[5:].partition("__") if tool.startswith("mcp__") else ("", "", "")
        return server if name else ""
    joint = "__" if agent == "cline" else "_"
    known = [wire for wire in map(wire_name, servers) if tool.startswith(wire + joint)]
    if known:
        return max(known, key=len)
    server, _, name = tool.partition(joint)
    return server if name and tool not in _OPENCODE_OWN else ""


def wire_name(server: str) -> str:
    """A server's name as it stands in the names of its tools."""
    return _NO_LETTER.sub("_", server)
