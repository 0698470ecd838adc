"""How each agent is set up in a home of its own, and started without a terminal. None may call home."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pegboard.types import Json
from tests.agents.books import NOUNS, VERBS
from tests.agents.play import COPIED, COPY, NOTE, SECRET, TOOL, Step, every

KEY = "sk-ant-nobody"
CLAUDE = "claude-sonnet-4-5"
GPT = "gpt-of-nobody"
SERVERS = ("books", "garden")
BOOKS = Path(__file__).with_name("books.py")
EDITOR = Path(__file__).with_name("editor.py")


class Place(NamedTuple):
    """Where an agent lives."""

    home: Path
    project: Path
    log: Path
    """What the MCP servers write to."""


class Line(NamedTuple):
    """What is to be said to an agent."""

    place: Place
    program: str
    words: str
    wire: str


class Agent(NamedTuple):
    """One agent."""

    id: str
    tool: str
    """What it calls the deferred tool."""
    own: Callable[[Place], tuple[tuple[str, Json], ...]]
    """Calls of tools of its own: one that reads the note, and one of its shell."""
    write: Callable[[Place, str, str], None]
    """Writes its settings: where, the model's API without `/v1`, and the wire."""
    command: Callable[[Line], list[str]]
    """What starts it to say something."""
    again: Callable[[Line], list[str]]
    """What starts it once more, to say something in the same conversation."""
    env: Mapping[str, str]
    install: str
    """What `pegboard proxy install` calls it."""
    settings: str = ""
    """The file in its home that is edited to point it; none when it is pointed by variables."""
    spare: str = "(?!)"
    """Those of its own tools that it can do without until they are found."""
    spare_step: Step | None = None
    """Has such a tool called."""

    @property
    def served(self) -> dict[str, str]:
        """All tools of the MCP servers as it calls them, and of which server each is."""
        return {
            self.tool.replace(SERVERS[0], server).replace(TOOL, f"{verb}_{noun}"): server
            for server in SERVERS
            for verb in VERBS
            for noun in NOUNS
        }

    def steps(self, place: Place) -> list[Step]:
        """What is done with it after the first: its own tools, then each tool of each server."""
        more = [self.spare_step] if self.spare_step else []
        return [Step(self.own(place), (SECRET, COPIED)), *more, every(self.served)]


def servers(place: Place) -> dict[str, list[str]]:
    """The command of each MCP server."""
    return {name: [sys.executable, str(BOOKS), "--name", name, "--log", str(place.log)] for name in SERVERS}


SIGN = f"printf '%s-%s' copied-and signed > {COPY}; cat {COPY}"
"""Its answer is no part of it, so nobody can know that without having run it."""


def _put(path: Path, value: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n")


# ── opencode and Kilo ────────────────────────────────────────────────────────────────────────────────────────────


def _opencode(folder: str, file: str) -> Callable[[Place, str, str], None]:
    def write(place: Place, base: str, wire: str) -> None:
        options = {"baseURL": f"{base}/v1", "apiKey": KEY}
        provider: Json = {"anthropic": {"options": options}}
        if wire == "completions":
            made = {"npm": "@ai-sdk/openai-compatible", "name": "Nobody", "models": {GPT: {"name": "Nobody's"}}}
            provider = {"nobody": {**made, "options": options}}
        if wire == "responses":
            provider = {"openai": {"options": options}}
        mcp = {name: {"type": "local", "command": line, "enabled": True} for name, line in servers(place).items()}
        settings = {"provider": provider, "mcp": mcp, "autoupdate": False, "share": "disabled", "permission": "allow"}
        _put(place.home / ".config" / folder / file, settings)

    return write


_OPENCODE_MODELS = {"messages": f"anthropic/{CLAUDE}", "completions": f"nobody/{GPT}", "responses": "openai/gpt-5.2"}


def _opencode_own(place: Place) -> tuple[tuple[str, Json], ...]:
    shell = {"command": SIGN, "description": "Copies and signs"}
    return ("read", {"filePath": str(place.project / NOTE)}), ("bash", shell)


def _opencode_command(line: Line) -> list[str]:
    return [line.program, "run", "--auto", "--model", _OPENCODE_MODELS[line.wire], line.words]


def _opencode_again(line: Line) -> list[str]:
    return [line.program, "run", "--continue", "--auto", "--model", _OPENCODE_MODELS[line.wire], line.words]


def _opencode_env(prefix: str) -> dict[str, str]:
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE", "PRESENCE", "SESSION_INGEST",
           "CODEBASE_INDEXING")  # fmt: skip
    return {f"{prefix}_DISABLE_{name}": "1" for name in off} | {f"{prefix}_TELEMETRY_LEVEL": "off"}


# ── Cline ────────────────────────────────────────────────────────────────────────────────────────────────────────


_CLINE_MODELS = {
    "messages": ("anthropic", CLAUDE),
    "completions": ("openai-compatible", GPT),
    "responses": ("openai-native", "gpt-5.2"),
}


def _cline(place: Place, base: str, wire: str) -> None:
    folder = place.home / ".cline" / "data" / "settings"
    provider, model = _CLINE_MODELS[wire]
    settings = {"provider": provider, "apiKey": KEY, "model": model, "baseUrl": f"{base}/v1"}
    entry = {"settings": settings, "updatedAt": "2026-11-01T00:00:00.000Z", "tokenSource": "manual"}
    providers = {"version": 1, "lastUsedProvider": provider, "modes": {}, "providers": {provider: entry}}
    _put(folder / "providers.json", providers)
    mcp = {name: {"command": line[0], "args": line[1:]} for name, line in servers(place).items()}
    _put(folder / "cline_mcp_settings.json", {"mcpServers": mcp})


def _cline_own(place: Place) -> tuple[tuple[str, Json], ...]:
    return ("read_files", {"files": [{"path": str(place.project / NOTE)}]}), ("run_commands", {"commands": [SIGN]})


def _cline_command(line: Line) -> list[str]:
    provider, model = _CLINE_MODELS[line.wire]
    return [line.program, "--json", "--provider", provider, "--model", model, "--timeout", "120", line.words]


def _cline_again(line: Line) -> list[str]:
    """By its command line it goes on with a session before a person only; an editor may do so too."""
    provider, model = _CLINE_MODELS[line.wire]
    folder = line.place.home / ".cline" / "data" / "sessions"
    [session] = [each.name for each in folder.iterdir() if each.is_dir()]
    chosen = ["env", f"CLINE_PROVIDER={provider}", f"CLINE_MODEL={model}"]
    return [*chosen, sys.executable, str(EDITOR), session, line.words, line.program, "--acp"]


# ── Claude Code ──────────────────────────────────────────────────────────────────────────────────────────────────


def _claude(place: Place, _base: str, _wire: str) -> None:
    mcp = {name: {"type": "stdio", "command": line[0], "args": line[1:]} for name, line in servers(place).items()}
    _put(place.home / "mcp.json", {"mcpServers": mcp})


def _claude_own(place: Place) -> tuple[tuple[str, Json], ...]:
    shell = {"command": SIGN, "description": "Copies and signs"}
    return ("Read", {"file_path": str(place.project / NOTE)}), ("Bash", shell)


def _claude_command(line: Line, *more: str) -> list[str]:
    mcp = ["--strict-mcp-config", "--mcp-config", str(line.place.home / "mcp.json")]
    allowed = ["--model", CLAUDE, "--dangerously-skip-permissions"]
    return [line.program, "--print", *more, *allowed, *mcp, "--", line.words]


_CLAUDE = Agent(
    id="claude",
    tool=f"mcp__books__{TOOL}",
    own=_claude_own,
    write=_claude,
    command=_claude_command,
    again=lambda line: _claude_command(line, "--continue"),
    env={
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",
    },
    install="claude-code",
)
AGENTS = {
    each.id: each
    for each in (
        Agent(
            id="opencode",
            tool=f"books_{TOOL}",
            own=_opencode_own,
            write=_opencode("opencode", "opencode.json"),
            command=_opencode_command,
            again=_opencode_again,
            env=_opencode_env("OPENCODE"),
            install="opencode",
            settings=".config/opencode/opencode.json",
        ),
        Agent(
            id="kilo",
            tool=f"books_{TOOL}",
            own=_opencode_own,
            write=_opencode("kilo", "kilo.json"),
            command=_opencode_command,
            again=_opencode_again,
            env=_opencode_env("KILO"),
            install="kilo",
            settings=".config/kilo/kilo.json",
        ),
        Agent(
            id="cline",
            tool=f"books__{TOOL}",
            own=_cline_own,
            write=_cline,
            command=_cline_command,
            again=_cline_again,
            env={
                "CLINE_NO_AUTO_UPDATE": "1",
                "CLINE_NO_INTERACTIVE": "1",
                "CLINE_TELEMETRY_DISABLED": "1",
                "CLINE_API_KEY": KEY,
            },
            install="cline",
            settings=".cline/data/settings/providers.json",
            spare="team_.*",
            spare_step=Step((("team_status", {}),), ("taskCounts",), {"team_status": "team status snapshot"}),
        ),
        _CLAUDE,
        _CLAUDE._replace(
            id="claude without its search",
            env={**_CLAUDE.env, "ENABLE_TOOL_SEARCH": "false"},
            spare="Cron.*|.*Worktree|Monitor|SendMessage",
            spare_step=Step((("CronList", {}),), ("No scheduled jobs",), {"CronList": "list cron jobs"}),
        ),
    )
}
