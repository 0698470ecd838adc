"""Files that an agent writes while it runs: they are changed only when none does.

Above: `make` and the ledger. Below: the doctor's nouns.
"""

from __future__ import annotations

from pathlib import Path

from pegboard.doctor.facts import Agent

_EXTENSION = "saoudrizwan.claude-dev"
"""Cline in an editor, which writes its settings as the editor's process."""


def rewriters(file: Path) -> tuple[Agent, ...]:
    """The agents that write this file by themselves."""
    if file.name == ".claude.json":
        return ("claude-code",)
    if _EXTENSION in file.parts:
        return ("cline", "vscode", "cursor")
    if file.name == "cline_mcp_settings.json" or (file.name == "providers.json" and file.parent.name == "settings"):
        return ("cline",)
    return ()
