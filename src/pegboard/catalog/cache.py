"""The cache file of one server's tools: read before anything starts, ignored whenever it is in doubt.

The file is one JSON document. Its first line is the checksum of all that follows, its second the header, and
each tool's canonical definition has a line of its own, so that reading needs no re-encoding. Bytes in, values
out; the `Files` seam does the rest. Above: the engine. Below: `snapshot`.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from pegboard.catalog import snapshot as snapshots
from pegboard.catalog.naming import server_prefix
from pegboard.catalog.snapshot import CachedTool, Snapshot, cached_tool
from pegboard.config.model import ServerSpec
from pegboard.errors import PegboardError
from pegboard.protocols import Files
from pegboard.store.files import READ_CAP
from pegboard.types import Listing

__all__ = [
    "CacheKey",
    "CacheMiss",
    "CachedTool",
    "Snapshot",
    "cache_key",
    "cache_path",
    "decode",
    "encode",
    "read_snapshot",
    "snapshot_of",
    "write_snapshot",
]

_OPENING = b'{"checksum":"sha256:'
_CLOSING = b'",\n'
_BODY = len(_OPENING) + 64 + len(_CLOSING)
_TOOLS_OPEN = b'"tools":['
_TOOLS_CLOSE = b"]}"


class CacheKey(msgspec.Struct, frozen=True, kw_only=True):
    """What a cache file must have been made for, to be of use now."""

    manifest_version: str = ""
    launch: str = ""
    """Digest of how the server is launched; holds names, never values, of variables and headers."""
    principal: bytes = b""
    """Digest of whom the server sees. Only its salted hash is ever written."""


class CacheMiss(PegboardError):
    """Why a cache file is not used; `damaged` when someone should hear of it."""

    def __init__(self, reason: str, *, damaged: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.damaged = damaged


def cache_key(spec: ServerSpec, *, environ: Mapping[str, str] | None = None, identity: str = "") -> CacheKey:
    """The key of one server as it is configured now; `identity` is who is logged in to it, where that is known."""
    config = spec.config
    launch = (
        spec.transport,
        config.command,
        config.args,
        config.cwd,
        sorted(config.env),
        config.url,
        sorted(name.lower() for name in config.headers),
        spec.version,
    )
    principal = (
        os.getuid(),
        sorted(config.env.items()),
        sorted(config.headers.items()),
        _inherited(spec, os.environ if environ is None else environ),
        identity,
    )
    return CacheKey(
        manifest_version=spec.version,
        launch="sha256:" + hashlib.sha256(_exact(launch)).hexdigest(),
        principal=hashlib.sha256(_exact(principal)).digest(),
    )


def cache_path(cache_dir: Path, spec: ServerSpec) -> Path:
    """Where the server's list is cached: one file for each server of each configuration file."""
    if spec.cache_path is not None:
        return spec.cache_path
    # Servers of one name in two projects are two servers: they must not evict each other.
    which = hashlib.sha256(_exact((spec.name, str(spec.origin or "")))).hexdigest()[:8]
    return cache_dir / f"servers/{server_prefix(spec.name)}-{which}.json"


def snapshot_of(listing: Listing, key: CacheKey, now: float | None = None) -> Snapshot:
    """What `decode(encode(listing, …))` would give, without the bytes in between."""
    moment = time.time() if now is None else now
    return snapshots.snapshot_of(listing, now=moment, manifest_version=key.manifest_version, launch=key.launch)


def encode(listing: Listing | Snapshot, key: CacheKey, *, now: float, salt: bytes) -> bytes:
    """The content of the cache file."""
    found = listing if isinstance(listing, Snapshot) else snapshot_of(listing, key, now)
    header = msgspec.json.encode(_Header.of(found, key, salt))
    tools = b",\n".join(tool.definition for tool in found.tools)
    body = b"".join((header[1:-1], b",\n", _TOOLS_OPEN, b"\n", tools, b"\n" if tools else b"", _TOOLS_CLOSE, b"\n"))
    return b"".join((_OPENING, hashlib.sha256(body).hexdigest().encode(), _CLOSING, body))


def decode(content: bytes, key: CacheKey) -> Snapshot:
    """The snapshot in a cache file; raises CacheMiss when the file is damaged or made for something else."""
    if not (content.startswith(_OPENING) and content.startswith(_CLOSING, _BODY - len(_CLOSING))):
        raise CacheMiss("it is not a list of cached tools, or its beginning is damaged", damaged=True)
    checksum = hashlib.sha256(memoryview(content)[_BODY:]).hexdigest().encode()
    if checksum != content[len(_OPENING) : _BODY - len(_CLOSING)]:
        raise CacheMiss("its checksum does not match; it is damaged or cut short", damaged=True)
    lines = content.split(b"\n")
    header = _header_of(lines)
    _check_made_for(header, key)
    try:
        # All but the last definition end with the comma that separates them.
        tools = [cached_tool(line[:-1]) for line in lines[3:-3]]
        tools += [cached_tool(line) for line in lines[max(3, len(lines) - 3) : -2]]
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CacheMiss(f"it holds a definition that cannot be read: {error}", damaged=True) from None
    if any(type(tool.name) is not str for tool in tools):
        raise CacheMiss("it holds a tool without a name", damaged=True)
    return header.snapshot(tuple(tools))


def read_snapshot(files: Files, path: Path, key: CacheKey) -> tuple[Snapshot | None, str]:
    """The cached snapshot if it is of use, and a warning if the file is there and should have been."""
    try:
        return decode(files.read(path), key), ""
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, f"cached tools ignored: {path} cannot be read: {error.strerror or error}"
    except CacheMiss as miss:
        return None, f"cached tools ignored: {path}: {miss.reason}" if miss.damaged else ""


def write_snapshot(files: Files, path: Path, listing: Listing | Snapshot, key: CacheKey) -> str:
    """Caches what a server said; gives a warning, and never raises, when the file cannot be written."""
    content = encode(listing, key, now=time.time(), salt=os.urandom(16))
    if len(content) > READ_CAP:
        return f"tools not cached: the list has {len(content):,} bytes, more than {READ_CAP:,}"
    try:
        files.write(path, content)
    except OSError as error:
        return f"tools not cached: {path} cannot be written: {error.strerror or error}"
    return ""


class _Version(msgspec.Struct):
    manifest: str
    server: str
    launch: str


class _Principal(msgspec.Struct):
    salt: str
    hash: str


class _Header(msgspec.Struct, rename="camel", kw_only=True):
    """All of a cache file but the checksum and the tools; unknown members are skipped."""

    format: Literal[1] = 1
    version: _Version
    cached_at: datetime
    ttl_ms: int | None
    cache_scope: Literal["public", "private"]
    principal: _Principal | None
    protocol_version: str
    server_name: str
    instructions: str
    withheld: dict[str, str]

    @classmethod
    def of(cls, found: Snapshot, key: CacheKey, salt: bytes) -> _Header:
        private = found.cache_scope == "private"
        return cls(
            version=_Version(key.manifest_version, found.server_version, key.launch),
            cached_at=datetime.fromtimestamp(found.cached_at, UTC),
            ttl_ms=found.ttl_ms,
            cache_scope=found.cache_scope,
            principal=_Principal(salt.hex(), _salted(salt.hex(), key)) if private else None,
            protocol_version=found.protocol_version,
            server_name=found.server_name,
            instructions=found.instructions,
            withheld=found.withheld,
        )

    def snapshot(self, tools: tuple[CachedTool, ...]) -> Snapshot:
        return Snapshot(
            tools=tools,
            cached_at=self.cached_at.timestamp(),
            ttl_ms=self.ttl_ms,
            cache_scope=self.cache_scope,
            manifest_version=self.version.manifest,
            launch=self.version.launch,
            server_version=self.version.server,
            protocol_version=self.protocol_version,
            server_name=self.server_name,
            instructions=self.instructions,
            withheld=self.withheld,
        )


_header = msgspec.json.Decoder(_Header)


def _header_of(lines: list[bytes]) -> _Header:
    # The checksum held, so this is what some version of Pegboard wrote: what is not as expected is another format.
    try:
        if lines[2] != _TOOLS_OPEN or lines[-2:] != [_TOOLS_CLOSE, b""]:
            raise ValueError("the lines are not where they should be")
        return _header.decode(b"{" + lines[1][:-1] + b"}")
    except (msgspec.MsgspecError, ValueError, IndexError, RecursionError) as error:
        raise CacheMiss(f"it is in a format that this version does not know: {error}", damaged=False) from None


def _check_made_for(header: _Header, key: CacheKey) -> None:
    if header.version.manifest != key.manifest_version:
        raise CacheMiss("it was made for another version of the plug-in", damaged=False)
    if header.version.launch != key.launch:
        raise CacheMiss("it was made for a server that was launched in another way", damaged=False)
    if header.cache_scope == "private":
        owner = header.principal
        if owner is None or owner.hash != _salted(owner.salt, key):
            raise CacheMiss("it is private to someone else", damaged=False)


def _salted(salt: str, key: CacheKey) -> str:
    return hashlib.sha256(salt.encode() + key.principal).hexdigest()


def _inherited(spec: ServerSpec, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """The variables a server gets from our own environment that may say who it acts for."""
    wanted = set(spec.config.requires.env) if spec.config.requires else set()
    passed = spec.config.inherit_env
    if isinstance(passed, tuple):
        wanted.update(passed)
    elif passed is True:
        from pegboard.config.environment import looks_secret

        wanted.update(name for name, value in environ.items() if looks_secret(name, value))
    return sorted((name, environ[name]) for name in wanted if name in environ)


def _exact(parts: tuple[Any, ...]) -> bytes:
    """One spelling for one value, even for text that is not valid Unicode, as variables may be."""
    return repr(parts).encode()
