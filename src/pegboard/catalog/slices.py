"""One server's part of the catalog: its tools named, filtered and checked, apart from all other servers.

A slice depends on nothing but its own inputs, so that the refresh of one server leaves the others as they are.
Above: `catalog` joins the slices. Below: `naming`, `filter`, `snapshot`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from pegboard.catalog.filter import Named, compile_globs, filter_of, matched, named, unmatched
from pegboard.catalog.naming import (
    SEPARATOR,
    all_plain_and_distinct,
    confusable,
    public_name_under,
    server_prefix,
)
from pegboard.catalog.snapshot import CachedTool, Snapshot
from pegboard.config.model import ServerSpec
from pegboard.types import ServerState, Tool


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """Something that is not in the catalog, and why; without a tool it is the whole server."""

    server: str
    tool: str
    reason: str


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One server as the catalog knows it."""

    name: str
    prefix: str
    """What stands before the `__` in the names of its tools."""
    enabled: bool = True
    problem: str = ""
    """Why it cannot be used: its configuration is wrong, or its name is taken."""
    unavailable: str = ""
    """What it requires and does not have now."""
    title: str = ""
    """What the server calls itself. For display only."""
    instructions: str = ""
    tool_count: int = 0
    """Tools that may be used."""
    listed: int | None = None
    """Tools the server has, fit or not; None when it was never listed."""
    cached_at: float | None = None
    ttl_ms: int | None = None
    server_version: str = ""
    protocol_version: str = ""

    @property
    def resting_state(self) -> ServerState:
        """Where it stands as long as nobody has started it."""
        if not self.enabled:
            return ServerState.DISABLED
        if self.problem:
            return ServerState.ERROR
        return ServerState.UNAVAILABLE if self.unavailable else ServerState.IDLE

    @property
    def usable(self) -> bool:
        """Whether its tools are in the catalog."""
        return self.resting_state is ServerState.IDLE


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """All that a slice is made from."""

    spec: ServerSpec
    snapshot: Snapshot | None = None
    deny: tuple[str, ...] = ()
    unavailable: str = ""
    refusal: str = ""
    """Why the server's name cannot be used."""

    def same_as(self, other: Inputs) -> bool:
        """Whether a slice made from these is that of the others; snapshots are told apart by identity."""
        return (
            self.snapshot is other.snapshot
            and (self.spec is other.spec or self.spec == other.spec)
            and (self.deny, self.unavailable, self.refusal) == (other.deny, other.unavailable, other.refusal)
        )


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """One server's part of the catalog."""

    inputs: Inputs
    entry: ServerEntry
    tools: tuple[Tool, ...] = ()
    refused: tuple[Refusal, ...] = ()
    filtered: tuple[Refusal, ...] = ()
    """Tools that the configuration leaves out."""
    warnings: tuple[str, ...] = ()
    deny_hits: frozenset[str] = frozenset()
    """The deny rules that matched one of its tools."""
    digest: bytes = b""
    """Hash of all that a user of the catalog can notice."""

    def names(self) -> Iterator[Named]:
        """Every tool the server has, under all its names."""
        if self.inputs.snapshot is not None:
            yield from _names(self.entry, self.inputs.snapshot)


def slice_of(inputs: Inputs) -> Slice:
    """The server's slice; a server that is disabled, gated or wrong contributes no tools."""
    spec, snapshot, config = inputs.spec, inputs.snapshot, inputs.spec.config
    blank = _entry(inputs)
    refused = [Refusal(spec.name, "", blank.problem)] if blank.problem else []
    if snapshot is None or not blank.usable:
        hits = _deny_hits(inputs.deny, blank, snapshot)
        digest = _digest(spec, blank, [])
        return Slice(inputs=inputs, entry=blank, refused=tuple(refused), deny_hits=hits, digest=digest)
    refused += [Refusal(spec.name, tool, reason) for tool, reason in snapshot.withheld.items()]
    wanted, filtered = _filtered(inputs, snapshot.tools)
    tools, clashing = _told_apart(spec, blank.prefix, wanted)
    entry = msgspec.structs.replace(blank, tool_count=len(tools))
    ruled = bool(config.include or config.exclude or config.aliases)
    return Slice(
        inputs=inputs,
        entry=entry,
        tools=tuple(tools),
        refused=(*refused, *clashing),
        filtered=filtered,
        warnings=unmatched(spec.name, config, tuple(_names(entry, snapshot))) if ruled else (),
        deny_hits=_deny_hits(inputs.deny, entry, snapshot),
        digest=_digest(spec, entry, tools),
    )


def _entry(inputs: Inputs) -> ServerEntry:
    spec, snapshot = inputs.spec, inputs.snapshot
    return ServerEntry(
        name=spec.name,
        prefix=_prefix(spec),
        enabled=spec.config.enabled,
        problem=spec.problem or inputs.refusal,
        unavailable=inputs.unavailable,
        title=snapshot.server_name if snapshot else "",
        instructions=snapshot.instructions if snapshot else "",
        listed=len(snapshot.tools) + len(snapshot.withheld) if snapshot else None,
        cached_at=snapshot.cached_at if snapshot else None,
        ttl_ms=snapshot.ttl_ms if snapshot else None,
        server_version=snapshot.server_version if snapshot else "",
        protocol_version=snapshot.protocol_version if snapshot else "",
    )


def _prefix(spec: ServerSpec) -> str:
    return "" if spec.bare else server_prefix(spec.name)


def _filtered(inputs: Inputs, tools: tuple[CachedTool, ...]) -> tuple[tuple[CachedTool, ...], tuple[Refusal, ...]]:
    """The tools that the configuration lets in, and those it leaves out."""
    server = inputs.spec.name
    rules = filter_of(inputs.spec.config, inputs.deny)
    if not rules:
        return tools, ()
    prefix = _prefix(inputs.spec)
    wanted, out = [], []
    for cached in tools:
        public = public_name_under(prefix, server, cached.name)
        verdict = rules.verdict(named(server, cached.name, public))
        if verdict is None:
            wanted.append(cached)
        else:
            out.append(Refusal(server, cached.name, verdict))
    return tuple(wanted), tuple(out)


def _told_apart(spec: ServerSpec, prefix: str, wanted: tuple[CachedTool, ...]) -> tuple[list[Tool], list[Refusal]]:
    """The tools under their public names, without those that cannot be told from an earlier one."""
    if prefix and all_plain_and_distinct(prefix, [cached.name for cached in wanted]):
        start = prefix + SEPARATOR
        return [_tool(spec, cached, start + cached.name) for cached in wanted], []
    taken = _Taken(prefix)
    tools, refused = [], []
    for cached in wanted:
        public = public_name_under(prefix, spec.name, cached.name)
        clash = taken.clash(cached.name, public)
        if clash is None:
            tools.append(_tool(spec, cached, public))
        else:
            refused.append(Refusal(spec.name, cached.name, clash))
    return tools, refused


class _Taken:
    """The names given out so far within one server."""

    def __init__(self, prefix: str) -> None:
        self._start = len(prefix) + len(SEPARATOR) if prefix else 0
        self._public: dict[str, str] = {}
        self._skeletons: dict[str, str] = {}

    def clash(self, name: str, public: str) -> str | None:
        """Why the name cannot be told from one that was taken before; takes it when it can."""
        twin = self._public.get(public)
        if twin is not None:
            if twin == name:
                return "the server lists this name twice; the first one stays"
            return f"its public name {public!r} is already that of {twin!r}"
        skeletons = {confusable(name), confusable(public[self._start :])}
        for skeleton in skeletons:
            if skeleton in self._skeletons:
                return f"its name is easily confused with {self._skeletons[skeleton]!r}, which the server lists first"
        self._public[public] = name
        self._skeletons.update(dict.fromkeys(skeletons, name))
        return None


def _tool(spec: ServerSpec, cached: CachedTool, public: str) -> Tool:
    config = spec.config
    return Tool(
        server=spec.name,
        name=cached.name,
        public_name=public,
        definition=cached.definition,
        fingerprint=cached.fingerprint,
        title=cached.title,
        description=cached.description,
        tags=config.tags,
        scopes=config.scopes,
        cost_usd=config.cost_usd,
        aliases=_aliases(config.aliases.get(cached.name, "")),
        lazy=config.lazy,
    )


def _aliases(text: str) -> tuple[str, ...]:
    return tuple(part for each in text.split(",") if (part := each.strip()))


def _names(entry: ServerEntry, snapshot: Snapshot) -> Iterator[Named]:
    for cached in snapshot.tools:
        yield named(entry.name, cached.name, public_name_under(entry.prefix, entry.name, cached.name))


def _deny_hits(deny: tuple[str, ...], entry: ServerEntry, snapshot: Snapshot | None) -> frozenset[str]:
    if not deny or snapshot is None:
        return frozenset()
    # One look with all rules together finds the few tools for which each rule is tried alone.
    everything = compile_globs(deny)
    return matched(deny, [names for names in _names(entry, snapshot) if everything.match(names)])


def _digest(spec: ServerSpec, entry: ServerEntry, tools: list[Tool]) -> bytes:
    config = spec.config
    # Ages and versions are left out: a list that was asked anew and came back the same is the same.
    about = (
        *(entry.name, entry.enabled, entry.problem, entry.unavailable, entry.title, entry.instructions),
        *(config.tags, config.scopes, config.cost_usd, config.lazy, sorted(config.aliases.items()), config.trust),
    )
    lines = [repr(about)]
    lines += [f"{tool.public_name} {tool.fingerprint}" for tool in tools]
    return hashlib.sha256("\n".join(lines).encode()).digest()
