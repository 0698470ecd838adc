"""What is kept on disk of all servers: their cached tools, and why the last try failed. All through the Files seam.

Above: the engine. Below: `cache` knows what a file means, `store` how it is written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from pegboard.catalog.cache import CacheKey, cache_key, cache_path, read_snapshot, snapshot_of, write_snapshot
from pegboard.catalog.snapshot import Snapshot
from pegboard.config.model import Config, ServerSpec
from pegboard.errors import PegboardError
from pegboard.protocols import Files
from pegboard.types import Listing


class LastError(msgspec.Struct, frozen=True, kw_only=True):
    """Why a server could not be reached the last time it was tried."""

    message: str
    hint: str = ""
    at: float
    """Seconds since the epoch."""


class Shelf:
    """The files of one configuration's servers."""

    def __init__(self, config: Config, files: Files, identity_of: Callable[[ServerSpec], str] | None = None) -> None:
        """`identity_of` says who is signed in to a server: private lists are kept apart by it."""
        self._config = config
        self._files = files
        self._identity_of = identity_of

    def snapshots(self) -> tuple[dict[str, Snapshot], list[str]]:
        """What is cached of every server that may be used, and what was wrong with the files."""
        found: dict[str, Snapshot] = {}
        warnings: list[str] = []
        for spec in _usable(self._config.servers.values()):
            snapshot, warning = read_snapshot(self._files, self._path(spec), self._key(spec))
            if snapshot is not None:
                found[spec.name] = snapshot
            if warning:
                warnings.append(f"{spec.name}: {warning}")
        return found, warnings

    def put(self, spec: ServerSpec, listing: Listing) -> tuple[Snapshot, str]:
        """Keeps what a server said; a file that cannot be written is a warning, and the tools serve all the same."""
        key = self._key(spec)
        snapshot = snapshot_of(listing, key)
        warning = write_snapshot(self._files, self._path(spec), snapshot, key)
        self._write_error(spec, None)
        return snapshot, warning

    def put_error(self, spec: ServerSpec, error: PegboardError) -> None:
        """Keeps why a server could not be reached."""
        self._write_error(spec, LastError(message=error.message, hint=error.hint, at=time.time()))

    def clear_error(self, spec: ServerSpec) -> None:
        """It works again."""
        self._write_error(spec, None)

    def error_of(self, spec: ServerSpec) -> LastError | None:
        """Why the last try failed, if it did."""
        try:
            return msgspec.json.decode(self._files.read(self._error_path(spec)), type=LastError | None)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def _write_error(self, spec: ServerSpec, error: LastError | None) -> None:
        if error is None and self.error_of(spec) is None:
            return
        try:
            self._files.write(self._error_path(spec), msgspec.json.encode(error))
        except OSError:
            return  # it is a note for `pegboard servers`; losing it loses no data

    def _key(self, spec: ServerSpec) -> CacheKey:
        return cache_key(spec, identity=self._identity_of(spec) if self._identity_of else "")

    def _path(self, spec: ServerSpec) -> Path:
        return cache_path(self._config.cache_dir, spec)

    def _error_path(self, spec: ServerSpec) -> Path:
        # Never beside a plug-in's manifest: the folder belongs to the plug-in, the failure to this machine.
        own = msgspec.structs.replace(spec, cache_path=None)
        return cache_path(self._config.cache_dir / "errors", own)


def _usable(specs: Iterable[ServerSpec]) -> Iterable[ServerSpec]:
    return (spec for spec in specs if spec.config.enabled and not spec.problem and not spec.local)
