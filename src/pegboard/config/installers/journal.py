"""What is remembered of every install, so that it can be taken back: a list of records, newest last.

Servers are not in it: the bytes of a file before an install lie in a backup beside the journal, and what was written
is known by its hash. Above: `store.installs`. Below: the change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from pegboard.config.installers.documents import Format
from pegboard.config.installers.settings import Setting
from pegboard.config.installers.undo import Change
from pegboard.errors import ConfigError

VERSION = 1


class ConfigChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an install added to a pegboard.toml."""

    file: str
    before: str
    """Hash of the file before; of nothing when there was none."""
    after: str
    size: int
    """Bytes of the file before: an install only ever adds at the end."""
    added: dict[str, str] = {}
    """Each server that was added, with the hash of what was written."""
    created: bool = False
    """The file was made by an install."""


class Install(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One install in one file."""

    client: str
    scope: str
    file: str
    at: str
    """When, in ISO 8601."""
    change: Change
    keys: dict[str, str] = {}
    """Each server that was moved, with its key in the pegboard.toml."""
    before: str | None = None
    """Hash of the file before; None when there was none."""
    after: str
    backup: str | None = None
    """Name of the backup beside the journal."""
    folders: tuple[str, ...] = ()
    """Folders that were made for the file, innermost first."""
    config: ConfigChange | None = None


class Redirect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Values that were set in one file, so that an agent's requests go through the proxy."""

    agent: str
    file: str
    at: str
    """When, in ISO 8601."""
    format: Format
    settings: tuple[Setting, ...]
    upstreams: tuple[str, ...] = ()
    """The upstreams that an agent's file now speaks of; empty for a pegboard.toml, which says where they are."""
    is_config: bool = False
    """The file is a pegboard.toml, and the values are addresses of upstreams."""
    before: str | None = None
    """Hash of the file before; None when there was none."""
    after: str
    backup: str | None = None
    folders: tuple[str, ...] = ()


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """All installs, of the gateway and of the proxy, that have not been taken back."""

    version: int = VERSION
    installs: tuple[Install, ...] = ()
    redirects: tuple[Redirect, ...] = ()

    def of(self, client: str, scope: str = "", file: str = "") -> tuple[Install, ...]:
        """Those of one client, newest first."""
        return tuple(
            install
            for install in reversed(self.installs)
            if install.client == client and scope in {"", install.scope} and file in {"", install.file}
        )

    def without(self, *gone: Install) -> Journal:
        """The journal without these records."""
        kept = tuple(install for install in self.installs if not any(install is other for other in gone))
        return msgspec.structs.replace(self, installs=kept)

    def with_install(self, install: Install) -> Journal:
        """The journal with this record as the newest."""
        return msgspec.structs.replace(self, installs=(*self.installs, install))

    def redirects_of(self, agent: str) -> tuple[Redirect, ...]:
        """Those of one agent, newest first."""
        return tuple(redirect for redirect in reversed(self.redirects) if redirect.agent == agent)

    def with_redirects(self, *redirects: Redirect) -> Journal:
        """The journal with these records as the newest."""
        return msgspec.structs.replace(self, redirects=(*self.redirects, *redirects))

    def without_redirect(self, gone: Redirect) -> Journal:
        """The journal without this record."""
        return msgspec.structs.replace(self, redirects=tuple(each for each in self.redirects if each != gone))


def decode(raw: bytes, where: str) -> Journal:
    """The journal as it was written; one that cannot be understood is never overwritten."""
    hint = "It says how to undo installs. Move it away to start anew; the backups beside it stay."
    try:
        journal = msgspec.json.decode(raw, type=Journal)
    except (ValueError, msgspec.DecodeError) as error:
        raise ConfigError(f"{where} cannot be understood: {error}.", hint=hint) from None
    if journal.version != VERSION:
        raise ConfigError(
            f"{where} was written by another version of Pegboard.", hint="Use that version, or a newer one."
        )
    return journal


def encode(journal: Journal) -> bytes:
    """The journal as it is written."""
    return msgspec.json.format(msgspec.json.encode(journal), indent=2) + b"\n"


def digest(content: bytes) -> str:
    """The hash by which content is known again."""
    return hashlib.sha256(content).hexdigest()


def digest_of(table: Mapping[str, Any]) -> str:
    """The hash of what a table says, however it is written."""
    return digest(msgspec.json.encode(table, order="deterministic", enc_hook=str))
