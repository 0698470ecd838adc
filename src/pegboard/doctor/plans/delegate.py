"""Hands installs of the gateway and the proxy to those who know them, and has them taken back there.

Above: the ledger. Below: `store.installs` and `store.redirects`, with a journal of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pegboard.config.installers.journal import Install, Redirect, digest
from pegboard.doctor.plans.actions import Delegated
from pegboard.doctor.plans.plan import GatewayInstall, ProxyInstall
from pegboard.store.changed_files import text_of
from pegboard.store.installs import Installs, Outcome
from pegboard.store.redirects import Redirects, Restored


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
        return all(self._is_reached(part) for part in parts if not part.is_config)

    def undo(self, parts: Sequence[Delegated]) -> tuple[Outcome | Restored, ...]:
        """Takes back what the installers have on record of these files; nothing when they have nothing."""
        known = self._installs.journal()
        wanted = {(part.file, part.after) for part in parts}
        installs = [each for each in reversed(known.installs) if _is_of(each, wanted)]
        redirects = [each for each in reversed(known.redirects) if _is_of(each, wanted)]
        outcomes: list[Outcome | Restored] = [self._installs.undo(each) for each in installs]
        outcomes += self._redirects.undo(redirects) if redirects else []
        return tuple(outcomes)

    def _is_reached(self, part: Delegated) -> bool:
        raw = self._installs.read(Path(part.file))
        return raw is not None and digest(raw) == part.after


def _is_of(record: Install | Redirect, wanted: set[tuple[str, str]]) -> bool:
    return (record.file, record.after) in wanted
