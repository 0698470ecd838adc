"""The doctor's nouns: what is known of sessions, settings and servers. They hold numbers and names, never texts.

Above: `evidence` and `settings` make them, `checks`, `plans` and `report` read them. Below: nothing.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec

Agent = Literal["claude-code", "codex", "opencode", "kilo", "cline", "gemini", "zed", "cursor", "vscode"]
FixKind = Literal[
    "defer-enable", "defer-alwaysload", "defer-threshold", "server-disable", "gateway-install", "proxy-install"
]


class Deferral(StrEnum):
    """Whether a session's tools were deferred."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


class Proof(StrEnum):
    """What says so, the strongest first."""

    REQUESTS = "the requests themselves"
    SNAPSHOT = "a snapshot of the prompt"
    BETAS = "the betas of its requests"
    SEARCHES = "searches for tools"
    NONE = "nothing"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of a session, each message of the model's counted once."""

    input: int = 0
    """Neither read from the cache nor written to it."""
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    messages: int = 0

    @property
    def all_input(self) -> int:
        """Everything that went in."""
        return self.input + self.cache_read + self.cache_write

    @property
    def hit_rate(self) -> float:
        """The share of the input that came from the cache."""
        return self.cache_read / self.all_input if self.all_input else 0.0


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One tool as a session had it."""

    name: str
    """On the wire."""
    server: str = ""
    """The MCP server it is from; empty for the agent's own."""
    tokens: int = 0
    """Of its definition, counted or estimated."""
    deferred: bool = False
    """Not paid for unless it was found."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One session of one agent, its sub-agents' included."""

    agent: Agent
    id: str
    project: str = ""
    """The folder it ran in."""
    version: str = ""
    """Of the agent, as of the latest record."""
    models: tuple[str, ...] = ()
    began_at: float = 0.0
    ended_at: float = 0.0
    usage: Usage = Usage()
    deferral: Deferral = Deferral.UNKNOWN
    proof: Proof = Proof.NONE
    definitions: tuple[Definition, ...] = ()
    """The tools of its requests, as the strongest proof has them; empty when nothing has."""
    counted: bool = False
    """Whether `definitions` were counted from what was sent, rather than estimated."""
    calls: dict[str, int] = {}
    """How often each tool was called, by its name on the wire."""
    server_calls: dict[str, int] = {}
    """How often each MCP server's tools were called."""
    searches: int = 0
    """Calls of the agent's own search for tools."""
    betas: tuple[str, ...] = ()
    refused: bool = False
    """Its endpoint refused deferral, and the agent gave it up."""
    resumed: bool = False
    compactions: int = 0
    announced: tuple[str, ...] = ()
    """Names that were announced as deferred. That alone proves nothing."""
    unknown_records: int = 0
    broken_lines: int = 0


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One value that counts, and where it is said."""

    name: str
    """`ENABLE_TOOL_SEARCH`, `ANTHROPIC_BASE_URL`, `permissions.deny`, …"""
    value: str
    file: Path | None = None
    """None: the environment of this very process."""
    line: int = 0
    scope: Literal["managed", "local", "project", "user", "shell", "environment"] = "user"
    key: tuple[str, ...] = ()
    """Where in the file."""
    changed_at: float = 0.0
    """When its file was last written; 0 when unknown, or when the agent rewrites it all the time."""

    @property
    def editable(self) -> bool:
        """Whether it lies in a file that may be changed."""
        return self.scope in ("local", "project", "user") and self.file is not None


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One MCP server as one file of one agent has it."""

    agent: Agent
    name: str
    file: Path
    scope: Literal["managed", "local", "project", "user", "plugin"]
    project: str = ""
    """The folder it is for; empty for all."""
    key: tuple[str, ...] = ()
    """Where in the file: `("mcpServers", "github")`."""
    always_load: bool | None = None
    enabled: bool = True
    launch: str = ""
    """A digest of what it starts or where it is: equal for one server under two names."""
    changed_at: float = 0.0
    """When its file was last written; 0 when unknown, or when the agent rewrites it all the time."""
    pending: bool = False
    """A project's server that nobody has approved yet: it is not started."""
    switch: Setting | None = None
    """What another file says on whether it is started, where that one's word counts."""


class AgentState(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent is set to, as it would start now in one folder."""

    agent: Agent
    installed: bool = False
    version: str = ""
    """As installed; empty when nobody could tell."""
    project: str = ""
    settings: tuple[Setting, ...] = ()
    """Those that count, after precedence; the strongest of each name."""
    overridden: tuple[Setting, ...] = ()
    """Those that do not count because a stronger one says otherwise."""
    servers: tuple[ServerEntry, ...] = ()
    running: bool = False
    """Whether it runs now: then files that it rewrites itself are not to be edited."""
    problems: tuple[str, ...] = ()
    """Files that could not be read, and why."""
    changed_at: float = 0.0
    """When the latest of the files that say so was written; files that the agent rewrites all the time aside."""
    looked_at: tuple[Path, ...] = ()
    """The files that were read, whether they are there or not."""

    def setting(self, name: str) -> Setting | None:
        """The value that counts."""
        return next((each for each in self.settings if each.name == name), None)


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the doctor knows."""

    sessions: tuple[Session, ...] = ()
    states: tuple[AgentState, ...] = ()
    read_bytes: int = 0
    read_files: int = 0
    broken_lines: int = 0
    unknown_records: int = 0
    notes: tuple[str, ...] = ()


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """What would mend a finding."""

    kind: FixKind
    agent: Agent
    settings: tuple[Setting, ...] = ()
    """Values to change or remove."""
    servers: tuple[ServerEntry, ...] = ()
    value: str = ""
    """What to set; empty to remove."""
    needs_version: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One cause of tokens that are paid for in vain."""

    id: str
    """Stable: `deferral-off-env`, `always-load:github`, …"""
    cause: str
    """Its kind, one of `checks.CAUSES`."""
    agent: Agent
    title: str
    why: str
    """In plain words, with the evidence."""
    proof: Proof = Proof.NONE
    confidence: Literal["high", "medium", "low"] = "medium"
    sessions: int = 0
    """Affected, in the time looked at."""
    tokens_per_session: dict[str, int] = {}
    """Definitions that are paid for, by server; the agent's own under the empty name."""
    call_rate: float | None = None
    """Calls of what is meant, per session."""
    saving_per_session: int = 0
    """Estimated tokens of definitions."""
    cost_per_session: float = 0.0
    """US dollars, at list prices for the models seen, cache and all; 0 when unknown."""
    fix: Fix | None = None
    by_hand: str = ""
    """What a person has to do, where no fix may; or why there is none."""
    claims: frozenset[tuple[str, str]] = frozenset()
    """(agent, server) pairs whose definitions this saving is about: overlapping savings are counted once."""
