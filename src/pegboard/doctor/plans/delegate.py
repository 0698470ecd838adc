"""Hands installs of the gateway and the proxy to those who know them, and has them taken back there.

Above: the ledger. Below: `store.installs` and `store.redirects`, with a journal of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from pegboard.config.installers.clients import client_named
from pegboard.config.installers.journal import Install, Redirect, digest
from pegboard.doctor.plans.actions import Delegated
from pegboard.doctor.plans.plan import GatewayInstall, ProxyInstall
from pegboard.store.changed_files import text_of
from pegboard.store.installs import Installs, Outcome
from pegboard.store.redirects import Redirects, Restored


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """A file of an agent that somebody has changed since the install."""

    file: str
    backup: Path | None
    """Where it is kept as it was before; None when there was none."""
    command: str
    """What takes the install out of it and leaves the rest."""


class Installers:
    """The installers of one state folder."""

    def __init__(self, installs: Installs, redirects: Redirects) -> None:
        self._installs = installs
        self._redirects = redirects

    def apply(self, install: GatewayInstall | ProxyInstall) -> None:
        """Writes the plan; each file is checked to be what was planned on."""
        if isinstance(install, ProxyInstall):
            self._redirects.apply(install.redirect)
            return
        before = install.config_before
        for site in install.sites:
            self._installs.apply(site, install.config, before)
            raw = self._installs.read(install.config)
            before = None if raw is None else text_of(install.config, raw)

    def is_done(self, parts: Sequence[Delegated]) -> bool:
        """Whether every file of an agent is as the plan would have it."""
        return all(self._hash_of(part.file) == part.after for part in parts if not part.is_config)

    def changed_since(self, parts: Sequence[Delegated]) -> tuple[Changed, ...]:
        """The agent's files that are neither as the install left them nor as it found them."""
        return tuple(
            Changed(file=each.file, backup=self._installs.kept_at(each), command=_uninstall(each))
            for each in self._records(parts)
            if not _is_config(each) and self._hash_of(each.file) not in (each.after, each.before)
        )

    def backups(self, parts: Sequence[Delegated]) -> tuple[Path, ...]:
        """Where files are kept as they were before the install."""
        found = (self._installs.kept_at(each) for each in self._records(parts))
        return tuple(dict.fromkeys(path for path in found if path is not None))

    def undo(self, parts: Sequence[Delegated]) -> tuple[Outcome | Restored, ...]:
        """Takes back what the installers have on record of these files; nothing when they have nothing."""
        outcomes: list[Outcome | Restored] = []
        records = tuple(self._records(parts))
        outcomes += [self._installs.undo(each) for each in records if isinstance(each, Install)]
        redirects = [each for each in records if isinstance(each, Redirect)]
        return (*outcomes, *(self._redirects.undo(redirects) if redirects else ()))

    def _records(self, parts: Sequence[Delegated]) -> Iterator[Install | Redirect]:
        """What is on record of these files, newest first."""
        known = self._installs.journal()
        wanted = {(part.file, part.after) for part in parts}
        records: tuple[Install | Redirect, ...] = (*known.installs, *known.redirects)
        for each in reversed(records):
            if (each.file, each.after) in wanted:
                yield each

    def _hash_of(self, file: str) -> str | None:
        raw = self._installs.read(Path(file))
        return None if raw is None else digest(raw)


def _is_config(record: Install | Redirect) -> bool:
    return isinstance(record, Redirect) and record.is_config


def _uninstall(record: Install | Redirect) -> str:
    if isinstance(record, Redirect):
        return f"pegboard proxy uninstall {record.agent}"
    folder = f" --project {_project(record)}" if record.scope == "project" else ""
    return f"pegboard uninstall {record.client}{folder}"


def _project(record: Install) -> Path:
    """The folder in which the client looks for this file."""
    file = Path(record.file)
    names = [Path(name) for name in client_named(record.client).project_files]
    depth = next((len(name.parts) for name in names if file.parts[-len(name.parts) :] == name.parts), 1)
    return file.parents[depth - 1]
