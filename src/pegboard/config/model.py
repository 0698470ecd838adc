"""What configuration says, as frozen values. The same structs give the JSON Schema and the reference in the docs.

Below: nothing but the nouns. Above: `load` fills these from files, variables and flags.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pegboard.config.places import user_folder

Seconds = Annotated[float, Meta(gt=0, description="Seconds.")]
Bytes = Annotated[int, Meta(ge=1024, description="Bytes.")]
Count = Annotated[int, Meta(ge=1)]
Dollars = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(gt=0, le=1)]

Transport = Literal["stdio", "http", "sse"]
Trust = Literal["full", "limited"]
Protocol = Literal["auto", "handshake"]
EmbedderName = Literal["static", "none", "minilm", "fastembed", "sentence-transformers", "endpoint"]


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table in a configuration file: unknown keys are errors."""


class Requires(Table, frozen=True, kw_only=True):
    """What must be there for a server to work now; without it the server is not surfaced."""

    env: Annotated[tuple[str, ...], Meta(description="Environment variables that must be set.")] = ()
    command: Annotated[tuple[str, ...], Meta(description="Programs that must be on PATH.")] = ()
    url: Annotated[str | None, Meta(description="An address whose host must accept connections.")] = None


class ServerConfig(Table, frozen=True, kw_only=True):
    """One MCP server: how to reach it, which of its tools to use, and what it may cost."""

    command: Annotated[str | None, Meta(description="Program that speaks MCP on stdio.")] = None
    args: Annotated[tuple[str, ...], Meta(description="Its arguments.")] = ()
    env: Annotated[dict[str, str], Meta(description="Variables set for it, on top of what it inherits.")] = {}
    cwd: Annotated[str | None, Meta(description="Working directory; relative to the file that says so.")] = None
    url: Annotated[str | None, Meta(description="Address of a server that speaks MCP over HTTP.")] = None
    headers: Annotated[dict[str, str], Meta(description="Headers sent with every HTTP request.")] = {}
    transport: Annotated[
        Transport | None,
        Meta(description="`stdio`, `http` (streamable HTTP) or `sse` (legacy). Default: by command or url."),
    ] = None
    protocol: Annotated[
        Protocol,
        Meta(
            description="`handshake`: speak the revisions up to 2025-11-25, even if the server knows 2026-07-28; for "
            "tools that ask questions in the older way."
        ),
    ] = "auto"
    enabled: Annotated[bool, Meta(description="False: the server is never contacted.")] = True
    lazy: Annotated[bool, Meta(description="False: its tools are always on the surface.")] = True
    include: Annotated[tuple[str, ...], Meta(description="Globs; when given, only these tools.")] = ()
    exclude: Annotated[tuple[str, ...], Meta(description="Globs; not these, unless included.")] = ()
    tags: Annotated[tuple[str, ...], Meta(description="Words to find and filter its tools by.")] = ()
    scopes: Annotated[tuple[str, ...], Meta(description="Permissions its tools need.")] = ()
    cost_usd: Annotated[Dollars | None, Meta(description="What one call costs.")] = None
    aliases: Annotated[
        dict[str, str], Meta(description="More words to find a tool by, by the tool's own name; commas part them.")
    ] = {}
    trust: Annotated[
        Trust, Meta(description="`limited`: its tools may hold only a share of the places in a search's answer.")
    ] = "full"
    start_timeout: Annotated[Seconds | None, Meta(description="Seconds until it must be ready.")] = None
    call_timeout: Annotated[Seconds | None, Meta(description="Seconds until a call must be answered.")] = None
    idle_timeout: Annotated[Seconds | None, Meta(description="Seconds without a call before it is stopped.")] = None
    max_result_bytes: Annotated[Bytes | None, Meta(description="Largest message it may send.")] = None
    inherit_env: Annotated[
        bool | tuple[str, ...] | None,
        Meta(
            description="Default: the parent's environment without what looks like a secret, a DSN or an agent "
            "socket. A list: that, and these variables. true: all of it. false: PATH and HOME only."
        ),
    ] = None
    requires: Annotated[Requires | None, Meta(description="What must be there for it to work now.")] = None


class ToolsConfig(Table, frozen=True, kw_only=True):
    """Rules for all tools, whatever their server."""

    deny: Annotated[
        tuple[str, ...], Meta(description="Globs of tools that are never used, whatever else says so.")
    ] = ()
    plugin_dirs: Annotated[tuple[str, ...], Meta(description="Folders scanned for plugin.json manifests.")] = ()
    refresh_after: Annotated[
        float, Meta(ge=0, description="Seconds after which a cached list is asked anew, unless the server says.")
    ] = 3600.0


class SearchConfig(Table, frozen=True, kw_only=True):
    """How tools are found."""

    embedder: Annotated[
        EmbedderName, Meta(description="What turns texts into vectors; `none` searches by words alone.")
    ] = "static"
    model: Annotated[
        str | None, Meta(description="Model of the embedder: a name, or a folder; each embedder has its own default.")
    ] = None
    url: Annotated[str | None, Meta(description="Address of an OpenAI-compatible embeddings endpoint.")] = None
    api_key_env: Annotated[
        str | None, Meta(description="Variable that holds the endpoint's key. The key itself is never stored.")
    ] = None
    max_server_share: Annotated[
        Share, Meta(description="Share of the places in an answer that a server of limited trust may hold.")
    ] = 0.4


class SurfaceConfig(Table, frozen=True, kw_only=True):
    """What a model sees of the tools."""

    mode: Annotated[
        Literal["off", "auto", "on"],
        Meta(description="`on` defers every tool that is not pinned, `off` none; `auto` defers above the threshold."),
    ] = "auto"
    threshold: Annotated[
        Annotated[str, Meta(pattern=r"^\d{1,3}(\.\d+)?%$")] | Annotated[int, Meta(ge=0)],
        Meta(description="Where `auto` begins to defer: a share of the context window (`10%`), or tokens."),
    ] = "10%"
    context_window: Annotated[Count, Meta(description="Tokens of the model's context window.")] = 200_000
    pinned: Annotated[tuple[str, ...], Meta(description="Globs of tools that are always shown.")] = ()
    max_active: Annotated[
        int, Meta(ge=0, description="Tools a conversation may have loaded at once; 0 turns deferral off.")
    ] = 24
    activation_ttl: Annotated[Seconds, Meta(description="Seconds of disuse after which they are forgotten.")] = 86_400.0
    list_active: Annotated[
        bool,
        Meta(
            description="Put loaded tools into `tools/list`, for clients of the handshake era; it breaks their prompt "
            "cache whenever the list grows."
        ),
    ] = False
    call_tools: Annotated[
        Literal["one", "by-effect"],
        Meta(description="`by-effect`: call_tool_read and call_tool_write instead of one call_tool."),
    ] = "one"


class CallsConfig(Table, frozen=True, kw_only=True):
    """What a call may do, and how much of its result is handed on at once."""

    approve: Annotated[tuple[str, ...], Meta(description="Globs of tools whose calls somebody has to approve.")] = ()
    repair: Annotated[bool, Meta(description="Mend arguments where the schema leaves no doubt.")] = True
    result_bytes: Annotated[Bytes, Meta(description="Of a result's text, handed on at once.")] = 40_000
    result_blocks: Annotated[Count, Meta(description="Blocks of a result, handed on at once.")] = 100
    page_bytes: Annotated[Bytes, Meta(description="Size of a page of the rest.")] = 20_000
    pages_ttl: Annotated[Seconds, Meta(description="Seconds for which the rest can be read.")] = 3600.0
    batch_size: Annotated[Count, Meta(description="Calls in one batch.")] = 20
    batch_parallel: Annotated[Count, Meta(description="Of these, at the same time.")] = 5
    cache_seconds: Annotated[
        float, Meta(ge=0, description="For which results of read-only and idempotent tools are used again; 0: never.")
    ] = 0.0


class RecordConfig(Table, frozen=True, kw_only=True):
    """What is kept of what happened."""

    enabled: Annotated[bool, Meta(description="False: no call or search is recorded.")] = True
    queries: Annotated[bool, Meta(description="Keep the words of searches.")] = True
    keep_days: Annotated[Count, Meta(description="Days after which records are dropped.")] = 90
    priors_every: Annotated[Seconds, Meta(description="Seconds between refreshes of the priors.")] = 3600.0


class SkillsConfig(Table, frozen=True, kw_only=True):
    """Where skills are looked for, and how much of them a model is told unasked."""

    enabled: Annotated[
        bool | None,
        Meta(description="True: skills are offered; false: never. Default: when roots or agent_folders are given."),
    ] = None
    roots: Annotated[
        tuple[str, ...], Meta(description="Folders of skills, weakest first; stronger than all that is built in.")
    ] = ()
    agent_folders: Annotated[
        bool,
        Meta(description="Also .claude/skills and .agents/skills, in the home folder and in the project."),
    ] = False
    index_tokens: Annotated[
        int, Meta(ge=0, description="Tokens for the descriptions of skills in the index; names always stand there.")
    ] = 200


class GatewayConfig(Table, frozen=True, kw_only=True):
    """How Pegboard runs its connections; the timeouts are defaults for every server."""

    max_starting: Annotated[Count, Meta(description="Servers that may be starting at the same time.")] = 4
    background_refresh: Annotated[
        bool, Meta(description="Ask stale servers for their tools, at the start and every few minutes.")
    ] = True
    start_timeout: Annotated[Seconds, Meta(description="Seconds until a server must be ready.")] = 30.0
    call_timeout: Annotated[Seconds, Meta(description="Seconds until a call must be answered.")] = 120.0
    idle_timeout: Annotated[Seconds, Meta(description="Seconds without a call before a server is stopped.")] = 300.0
    max_result_bytes: Annotated[Bytes, Meta(description="Largest message a server may send.")] = 16 * 1024 * 1024
    max_pages: Annotated[Count, Meta(description="Pages of tools read from one server.")] = 100
    max_tools: Annotated[Count, Meta(description="Tools taken from one server.")] = 10_000


class ProxyConfig(Table, frozen=True, kw_only=True):
    """The proxy before a model's API: where it listens, where requests go, and when it defers tools."""

    listen: Annotated[str, Meta(description="Host and port; anything but this machine has to be said here.")] = (
        "127.0.0.1:8722"
    )
    upstreams: Annotated[
        dict[str, str],
        Meta(description="Where `/<name>/…` goes: the address before `/v1/…`. Added to anthropic, openai and gemini."),
    ] = {}
    executor: Annotated[
        Literal["auto", "native", "bridge", "off"],
        Meta(
            description="`native`: the model's API searches, where it can. `bridge`: Pegboard does. `auto`: native "
            "where the upstream is Anthropic's own, else the bridge. `off`: everything goes through as it is."
        ),
    ] = "auto"
    min_tools: Annotated[Count, Meta(description="Tools that could be deferred before any is.")] = 12
    min_tokens: Annotated[int, Meta(ge=0, description="Tokens of their definitions before any is deferred.")] = 4_000
    keep: Annotated[tuple[str, ...], Meta(description="Globs of tools that are never deferred.")] = ()
    deny_models: Annotated[tuple[str, ...], Meta(description="Globs of models whose requests go through as is.")] = ()
    search_results: Annotated[Count, Meta(description="Tools that a search of the bridge answers with.")] = 5
    max_rounds: Annotated[Count, Meta(description="Inner rounds in one turn of a model's.")] = 12
    idle_seconds: Annotated[Seconds, Meta(description="Seconds without a byte before a reply counts as dead.")] = 300.0
    conversation_ttl: Annotated[Seconds, Meta(description="Seconds of disuse after which one is forgotten.")] = (
        14 * 86_400.0
    )
    max_body_bytes: Annotated[Bytes, Meta(description="Larger requests go through as they are.")] = 64 * 1024 * 1024


class StoreConfig(Table, frozen=True, kw_only=True):
    """Where Pegboard keeps files."""

    cache_dir: Annotated[str | None, Meta(description="Cached tool lists. Default: the platform's cache folder.")] = (
        None
    )
    state_dir: Annotated[
        str | None, Meta(description="Tokens, the record, installs. Default: the platform's state folder.")
    ] = None


class ServerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A server as resolved from all layers: variables expanded, defaults filled, origin known."""

    name: str
    """The key it has in the configuration."""
    config: ServerConfig
    origin: Path | None = None
    """The file that said so."""
    version: str = ""
    """The plug-in manifest's version."""
    cache_path: Path | None = None
    """Where its listing is cached, when not in the cache folder (plug-ins keep theirs beside the manifest)."""
    problem: str = ""
    """Why it cannot be used, when its configuration is wrong; the server is then in state `error`."""
    local: bool = False
    """It is in this process: nothing is started or cached for it."""
    bare: bool = False
    """Its tools keep their own names, where these cannot be taken for anybody else's."""
    variables: dict[str, tuple[str, ...]] = {}
    """The environment variables each value was filled in from, by its key: `env.TOKEN`, `args[1]`, `url`."""

    @property
    def transport(self) -> Transport:
        """How to reach it."""
        return self.config.transport or ("http" if self.config.url else "stdio")


class SkillRoot(msgspec.Struct, frozen=True):
    """A folder that skills are looked for in."""

    path: Path
    named: bool = False
    """Whether the configuration names it; the ones that are built in need not be there."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, merged."""

    servers: dict[str, ServerSpec] = {}
    tools: ToolsConfig = ToolsConfig()
    search: SearchConfig = SearchConfig()
    surface: SurfaceConfig = SurfaceConfig()
    calls: CallsConfig = CallsConfig()
    record: RecordConfig = RecordConfig()
    skills: SkillsConfig = SkillsConfig()
    gateway: GatewayConfig = GatewayConfig()
    proxy: ProxyConfig = ProxyConfig()
    store: StoreConfig = StoreConfig()
    skill_roots: tuple[SkillRoot, ...] = ()
    """Where skills are looked for, weakest first; empty when they are off."""
    files: tuple[Path, ...] = ()
    """The files that were read, weakest first."""
    warnings: tuple[str, ...] = ()

    @property
    def cache_dir(self) -> Path:
        """The folder of cached listings."""
        return Path(self.store.cache_dir) if self.store.cache_dir else user_folder("cache")

    @property
    def state_dir(self) -> Path:
        """The folder of tokens."""
        return Path(self.store.state_dir) if self.store.state_dir else user_folder("state")
