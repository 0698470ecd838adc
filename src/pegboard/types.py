"""The nouns every part speaks of: frozen values that import nothing of ours but the errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, Literal

import msgspec

Json = dict[str, Any]
"""A JSON object as plain Python."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One capability of one server, with the name a model sees and the hash of its whole definition."""

    server: str
    """The server's key in our configuration, never what the server calls itself."""
    name: str
    """The tool's own name, as the server knows it."""
    public_name: str
    """`<server>__<tool>`, fit for every model API."""
    definition: bytes
    """The whole definition as canonical JSON, as the server sent it."""
    fingerprint: str
    """Hash of `definition`: any change of any part changes it."""
    title: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    cost_usd: float | None = None
    aliases: tuple[str, ...] = ()
    """Words the configuration adds to find it by."""
    lazy: bool = True
    """False when its server is configured to be always on the surface."""

    def parsed(self) -> Json:
        """The definition as the server sent it."""
        value: Json = msgspec.json.decode(self.definition)
        return value

    @property
    def input_schema(self) -> Json:
        """The JSON Schema of its arguments."""
        schema = self.parsed().get("inputSchema")
        return schema if isinstance(schema, dict) else {"type": "object"}

    @property
    def output_schema(self) -> Json | None:
        """The JSON Schema of its structured result, if it has one."""
        return self.parsed().get("outputSchema")

    @property
    def annotations(self) -> Json:
        """Hints the server gives about the tool. Untrusted."""
        return self.parsed().get("annotations") or {}

    @property
    def meta(self) -> Json:
        """The definition's `_meta`. Untrusted."""
        return self.parsed().get("_meta") or {}


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What one server said of itself and its tools, at one moment."""

    tools: tuple[Json, ...]
    """The definitions, exactly as they came."""
    server_name: str = ""
    """What the server calls itself. For display only."""
    server_version: str = ""
    protocol_version: str = ""
    instructions: str = ""
    ttl_ms: int | None = None
    """How long the server says the list stays fresh; None when it says nothing."""
    cache_scope: Literal["public", "private"] = "public"
    warnings: tuple[str, ...] = ()
    """What was odd about the list: pages cut short, entries that are not tools."""


class ServerState(StrEnum):
    """Where one server stands."""

    DISABLED = "disabled"
    """`enabled = false`: never contacted."""
    UNAVAILABLE = "unavailable"
    """Gated: something it requires is missing now."""
    IDLE = "idle"
    """Not running; starts when it is used."""
    STARTING = "starting"
    READY = "ready"
    ERROR = "error"
    """The last start failed, or its configuration is wrong. Cached tools stay."""


class Progress(msgspec.Struct, frozen=True):
    """How far a call has come, as the server tells it."""

    progress: float
    total: float | None = None
    message: str = ""


OnProgress = Callable[[Progress], None]
OnAsk = Callable[[str, Json], Awaitable[Json]]
"""Answers what a server asks during a call (`elicitation/create`, …): method and params in, result out."""


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """The caller's side of one call: how long it waits, and who hears progress and questions."""

    timeout: float | None = None
    """Seconds; None means the server's configured `call_timeout`."""
    on_progress: OnProgress | None = None
    on_ask: OnAsk | None = None
    asks: Json | None = None
    """What the caller can be asked, as the client capabilities that say so; None means forms and links."""
    meta: Json | None = None
    """Extra `_meta` for the request."""


class Priors(msgspec.Struct, frozen=True, kw_only=True):
    """What past calls say of one tool."""

    calls: float = 0.0
    """How many, older ones counting less."""
    success_rate: float = 0.5
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    cost_usd: float | None = None
    result_tokens: float | None = None
    last_used: float = 0.0
    """Unix time; 0 when never."""


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Why a tool was found: the parts of its score."""

    words: dict[str, tuple[str, ...]] = {}
    """Each word that matched, and the fields it was found in."""
    lexical: float = 0.0
    """What the matched words are worth together."""
    dense: float = 0.0
    """Cosine between the query's vector and the tool's."""
    fused: float = 0.0
    """Both halves, standardised over all tools and added up."""
    name_covered: float = 0.0
    """Share of the tool's own name that the query says."""
    query_covered: float = 0.0
    """Share of the query that the tool says."""
    server_named: float = 0.0
    verb_agrees: float = 0.0
    clause: float = 0.0
    """Score for the step of the task that it serves best."""
    prior: float = 0.0
    """What its record added or took away."""
    score: float = 0.0
    """The sum that decides the order."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One tool that answers an intent."""

    name: str
    """Its public name."""
    server: str
    confidence: float
    """How sure it is that the tool fits, from 0 to 1."""
    exact: bool = False
    """Whether the query is just its name."""
    also: tuple[str, ...] = ()
    """Public names of copies of it on other servers, which are not listed themselves."""
    match: Match = Match()


class Unlisted(msgspec.Struct, frozen=True):
    """A server whose tools nobody knows."""

    server: str
    asking: bool = True
    """Whether it is being asked now."""
    error: str = ""
    """What went wrong the last time."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a search found."""

    hits: tuple[Hit, ...] = ()
    """Best first. Empty when nothing fits."""
    nearest_servers: tuple[str, ...] = ()
    """Servers that come closest, best first."""
    unknown: tuple[str, ...] = ()
    """Names that `select:` asked for and no tool has."""
    notes: tuple[str, ...] = ()
    """What the searcher should know: that the search went by words alone, for instance."""


class Ending(StrEnum):
    """How a call ended."""

    OK = "ok"
    TOOL_ERROR = "tool_error"
    """The tool itself said that it failed."""
    REFUSED = "refused"
    """A rule forbids it, or nobody approved it."""
    BAD_ARGUMENTS = "bad_arguments"
    NOT_FOUND = "not_found"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


Via = Literal["direct", "call_tool", "batch", "code", "proxy", "framework", "cli"]
"""The way a call came."""


Reveal = Literal["listed", "called", "all"]
"""`listed`: what it loads is put on its list. `called`: its list stays as it is, and `call_tool` calls. `all`: nothing
is deferred for it."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who calls, in which conversation, and what they may use."""

    identity: str = ""
    """Who it is, as the edge made sure; empty for the local user."""
    conversation: str = ""
    """The key under which activations live. Never a connection."""
    allow: tuple[str, ...] | None = None
    """Globs of public or bare names; None allows everything."""
    within: tuple[tuple[str, ...], ...] = ()
    """Allowlists of those whose sub-agent it is: a tool must be on all of them as well."""
    scopes: tuple[str, ...] | None = None
    """Permissions the caller has; None means all."""
    reveal: Reveal | None = None
    """How it gets at tools that were deferred; None: as the configuration says."""

    @property
    def lists(self) -> tuple[tuple[str, ...], ...]:
        """Every allowlist that binds it."""
        return self.within if self.allow is None else (*self.within, self.allow)


class Outcome(msgspec.Struct, frozen=True, kw_only=True, tag="outcome", tag_field="record"):
    """How one call went."""

    at: float
    """Unix time when it began."""
    tool: str
    """Public name; what was asked for, where no such tool exists."""
    server: str = ""
    conversation: str = ""
    caller: str = ""
    via: Via = "direct"
    ending: Ending = Ending.OK
    duration_ms: float = 0.0
    request_bytes: int = 0
    result_bytes: int = 0
    """Of the result as the server gave it."""
    result_tokens: int = 0
    """Of the result as the caller got it."""
    cost_usd: float | None = None
    repairs: int = 0
    """Mendings that its arguments needed."""
    cached: bool = False
    detail: str = ""
    """What went wrong, in short."""


class Lookup(msgspec.Struct, frozen=True, kw_only=True, tag="lookup", tag_field="record"):
    """How one search went."""

    at: float
    query: str
    conversation: str = ""
    caller: str = ""
    found: tuple[str, ...] = ()
    """Public names in the answer, best first."""
    answer_tokens: int = 0
    request_tokens: int = 0
    duration_ms: float = 0.0


class Exposure(msgspec.Struct, frozen=True, kw_only=True, tag="exposure", tag_field="record"):
    """One tool list that was really sent, and what it would have been without Pegboard."""

    at: float
    conversation: str = ""
    caller: str = ""
    shown: int = 0
    deferred: int = 0
    shown_tokens: int = 0
    own_tokens: int = 0
    """Of these, Pegboard's own tools."""
    deferred_tokens: dict[str, int] = {}
    """Tokens of the schemas that were not sent, by server."""
    counted: str = ""
    """How tokens were counted."""


class SkillLoad(msgspec.Struct, frozen=True, kw_only=True, tag="skill_load", tag_field="record"):
    """One skill that was loaded, or one more file of it."""

    at: float
    skill: str
    file: str = ""
    """Empty for its body."""
    conversation: str = ""
    caller: str = ""
    tokens: int = 0
    """Of the answer."""


Record = Outcome | Lookup | Exposure | SkillLoad
