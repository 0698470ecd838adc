"""Every tool that may be used now, as one immutable, versioned value.

Something changes: a new catalog is built beside the old one from the slices that did change, and swapped in.
Above: the engine, the index and all that shows tools. Below: `slices`, `naming`, `filter`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec

from pegboard.catalog.filter import unmatched_deny
from pegboard.catalog.naming import RESERVED, SEPARATOR, by_bare_name, public_name, refused_servers, split
from pegboard.catalog.nearest import nearest
from pegboard.catalog.slices import Inputs, Refusal, ServerEntry, Slice, slice_of
from pegboard.catalog.snapshot import Snapshot
from pegboard.config.model import Config
from pegboard.errors import ToolNotFound
from pegboard.types import Tool

__all__ = ["Catalog", "Changes", "Refusal", "ServerEntry", "build", "diff", "join", "slice_of"]

_NEAR = 3
_CANDIDATES = 8


class Catalog(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All tools, by public name, in one order: by server key, then as the server lists them."""

    version: str
    """Hash of all that a user of the catalog can notice."""
    tools: dict[str, Tool]
    servers: dict[str, ServerEntry]
    refused: tuple[Refusal, ...] = ()
    """Tools and servers that cannot be used, and why."""
    warnings: tuple[str, ...] = ()
    slices: dict[str, Slice] = {}
    """What it was joined from; `build` takes over those that did not change."""

    def get(self, name: str) -> Tool | None:
        """The tool of this public name, else of this bare name if one server has it, else of `<key>__<tool>`."""
        found = self.tools.get(name)
        if found is not None:
            return found
        bearers = self._bearers(name)
        return bearers[0] if len(bearers) == 1 else self._as_written(name)

    def find(self, name: str) -> Tool:
        """The same; where there is none, the error says which are near, which takes a while with many tools."""
        found = self.get(name)
        if found is not None:
            return found
        if bearers := self._bearers(name):
            raise _ambiguous(name, bearers)
        raise ToolNotFound(name, self._nearest_tools(name), self._why_not(name))

    def _bearers(self, name: str) -> list[Tool]:
        return [] if name in RESERVED else self._by_bare_name.get(name, [])

    def nearest_servers(self, name: str) -> tuple[str, ...]:
        """The servers that a mistyped name probably meant."""
        return nearest(name, self.servers, _NEAR)

    @cached_property
    def _by_bare_name(self) -> dict[str, list[Tool]]:
        return by_bare_name(self.tools.values())

    @cached_property
    def _by_prefix(self) -> dict[str, ServerEntry]:
        # A prefix may be shared with a server that gave way: the one that is in use comes last and stays.
        entries = sorted(self.servers.values(), key=lambda entry: entry.usable)
        return {entry.prefix: entry for entry in entries}

    def _as_written(self, name: str) -> Tool | None:
        """The tool that someone means who puts the server's key and the tool's own name together."""
        at = name.find(SEPARATOR)
        while at >= 0:
            part = self.slices.get(name[:at])
            own = name[at + len(SEPARATOR) :]
            if part is not None:
                for tool in part.tools:
                    if tool.name == own:
                        return tool
            at = name.find(SEPARATOR, at + 1)
        return None

    def _why_not(self, name: str) -> str:
        """What became of a name that is known but not in use; empty when it is not known at all."""
        if name in RESERVED:
            return f"The name {name!r} is kept for Pegboard itself."
        for refusal in (*self.refused, *(out for part in self.slices.values() for out in part.filtered)):
            if refusal.tool and name in _spellings(refusal.server, refusal.tool):
                return f"The tool {refusal.tool!r} of server {refusal.server!r} is not used: {refusal.reason}."
        entry = self._server_meant(name)
        if entry is not None:
            return _why_no_tools(name, entry)
        return "" if SEPARATOR in name else self._who_was_never_asked(name)

    def _who_was_never_asked(self, name: str) -> str:
        unlisted = [entry.name for entry in self.servers.values() if entry.usable and entry.listed is None]
        if not unlisted:
            return ""
        more = f" and {len(unlisted) - _CANDIDATES} more" if len(unlisted) > _CANDIDATES else ""
        names = ", ".join(unlisted[:_CANDIDATES]) + more
        return f"There is no tool named {name!r}. Not listed yet: {names}; `pegboard refresh` asks for their tools."

    def _server_meant(self, name: str) -> ServerEntry | None:
        """The server whose tool this would be, if that server has no tools to show now."""
        prefix, tool = split(name)
        entry = self._by_prefix.get(prefix) or self.servers.get(prefix)
        if tool and entry is not None:
            return entry if not entry.usable or entry.listed is None else None
        for part in self.slices.values():
            snapshot = part.inputs.snapshot
            if not part.entry.usable and snapshot and any(cached.name == name for cached in snapshot.tools):
                return part.entry
        return None

    def _nearest_tools(self, name: str) -> tuple[str, ...]:
        prefix, own = split(name)
        entry = self._by_prefix.get(prefix) or self.servers.get(prefix)
        if own and entry is not None:
            tools = self.slices[entry.name].tools
            close = _bearers(nearest(own, (tool.name for tool in tools), _NEAR), tools)
            if close:
                return close
        if own:
            return nearest(name, self.tools, _NEAR)
        return _bearers(nearest(name, self._by_bare_name, _NEAR), self.tools.values())


class Changes(msgspec.Struct, frozen=True):
    """How one server's tools differ, by public name."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def build(
    config: Config,
    snapshots: Mapping[str, Snapshot],
    unavailable: Mapping[str, str] | None = None,
    previous: Catalog | None = None,
) -> Catalog:
    """The catalog of these servers as far as their tools are known.

    Slices of `previous` are taken over where a server's snapshot is the same object and nothing else changed.
    """
    gated = unavailable or {}
    refusals = refused_servers(config.servers)
    before = previous.slices if previous is not None else {}
    slices: dict[str, Slice] = {}
    for name in sorted(config.servers):
        inputs = Inputs(
            spec=config.servers[name],
            snapshot=snapshots.get(name),
            deny=config.tools.deny,
            unavailable=gated.get(name, ""),
            refusal=refusals.get(name, ""),
        )
        old = before.get(name)
        slices[name] = old if old is not None and inputs.same_as(old.inputs) else slice_of(inputs)
    return join(slices)


def join(slices: Mapping[str, Slice]) -> Catalog:
    """One catalog out of all servers' slices."""
    parts = [slices[name] for name in sorted(slices)]
    tools: dict[str, Tool] = {}
    for part in parts:
        for tool in part.tools:
            tools[tool.public_name] = tool
    return Catalog(
        version="sha256:" + hashlib.sha256(b"".join(part.digest for part in parts)).hexdigest(),
        tools=tools,
        servers={part.entry.name: part.entry for part in parts},
        refused=tuple(refusal for part in parts for refusal in part.refused),
        warnings=(*(warning for part in parts for warning in part.warnings), *_deny_warnings(parts)),
        slices={part.entry.name: part for part in parts},
    )


def diff(old: Catalog, new: Catalog) -> dict[str, Changes]:
    """What changed, for each server that did."""
    changes: dict[str, Changes] = {}
    for server in sorted({*old.slices, *new.slices}):
        before, after = old.slices.get(server), new.slices.get(server)
        if before is after:
            continue
        was, now = _fingerprints(before), _fingerprints(after)
        found = Changes(
            added=tuple(name for name in now if name not in was),
            removed=tuple(name for name in was if name not in now),
            changed=tuple(name for name in now if name in was and was[name] != now[name]),
        )
        if found != Changes():
            changes[server] = found
    return changes


def _fingerprints(part: Slice | None) -> dict[str, str]:
    return {tool.public_name: tool.fingerprint for tool in part.tools} if part is not None else {}


def _deny_warnings(parts: list[Slice]) -> tuple[str, ...]:
    rules = dict.fromkeys(rule for part in parts for rule in part.inputs.deny)
    hit: set[str] = set()
    hit.update(*(part.deny_hits for part in parts))
    idle = [rule for rule in rules if rule not in hit]
    if not idle:
        return ()
    unlisted = [part.entry for part in parts if part.entry.listed is None]
    return unmatched_deny(
        idle,
        [names for part in parts for names in part.names()],
        {entry.prefix for entry in unlisted},
        more_to_come=any(entry.enabled and not entry.problem for entry in unlisted),
    )


def _ambiguous(name: str, bearers: list[Tool]) -> ToolNotFound:
    names = tuple(tool.public_name for tool in bearers[:_CANDIDATES])
    return ToolNotFound(name, names, f"{len(bearers)} servers have a tool named {name!r}; say which one.")


def _why_no_tools(name: str, entry: ServerEntry) -> str:
    start = f"The tool {name!r} belongs to server {entry.name!r}, "
    if not entry.enabled:
        return start + "which is disabled in the configuration (`enabled = false`)."
    if entry.problem:
        return start + f"which cannot be used: {entry.problem.rstrip('.')}."
    if entry.unavailable:
        return start + f"which cannot work now: it {entry.unavailable}."
    return start + f"whose tools are not known yet; `pegboard refresh {entry.name}` asks for them."


def _spellings(server: str, tool: str) -> tuple[str, str, str]:
    return tool, server + SEPARATOR + tool, public_name(server, tool)


def _bearers(names: Iterable[str], tools: Iterable[Tool]) -> tuple[str, ...]:
    """The public names of the tools of these own names, in the order of the names."""
    order = {name: position for position, name in enumerate(names)}
    found = sorted((order[tool.name], tool.public_name) for tool in tools if tool.name in order)
    return tuple(public for _, public in found[:_NEAR])
