"""What the doctor's `plan`, `apply` and `undo` share: findings become plans, on this machine, with this Pegboard.

Above: the three commands. Below: the plans, the installers' view of the machine, and the ledger.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pegboard.cli import doctor_examine
from pegboard.cli.install_places import config_file, launch_of
from pegboard.cli.progress import Progress
from pegboard.cli.proxy_places import proxy_config, proxy_of, upstreams_file
from pegboard.config.importers.found import Places
from pegboard.config.installers.clients import Launch, Scope
from pegboard.config.installers.journal import Redirect
from pegboard.config.installers.redirect import Proxy
from pegboard.config.problems import nearest
from pegboard.doctor.diagnosis import diagnose
from pegboard.doctor.endpoint import Endpoints
from pegboard.doctor.facts import Evidence, Finding
from pegboard.doctor.plans.delegate import Installers
from pegboard.doctor.plans.installs import install_plan
from pegboard.doctor.plans.ledger import Ledger
from pegboard.doctor.plans.make import EDITS, Basis, blank, fix_of, plan_of, with_running
from pegboard.doctor.plans.plan import Plan
from pegboard.doctor.settings import claude_files, processes
from pegboard.errors import PegboardError
from pegboard.store.changed_files import text_of
from pegboard.store.installs import Installs
from pegboard.store.redirects import Redirects

if TYPE_CHECKING:
    from pegboard.doctor.settings.machine import Machine


class Looked(msgspec.Struct, frozen=True):
    """What was looked at, and what was found."""

    whole: Evidence
    """Of every agent and folder: settings of the user hold in those too that nobody asked about."""
    asked: Evidence
    """The part that somebody asked for."""
    findings: tuple[Finding, ...]
    """In that part; what it brings most comes first."""


class Desk:
    """One run of a command: where plans come from, and where they are written down."""

    def __init__(self, args: argparse.Namespace, machine: Machine | None = None) -> None:
        self._args = args
        self._config = proxy_config(args)
        self.machine = machine or doctor_examine.here()
        self._installs = Installs(self._config.state_dir)
        self._redirects = Redirects(self._config.state_dir)
        self._ahead: dict[Path, str] = {}
        self._taken: set[Path] = set()
        self.ledger = Ledger(
            self._config.state_dir,
            partial(processes.running, self.machine),
            Installers(self._installs, self._redirects),
        )
        self.endpoints = Endpoints(self._config.state_dir)

    def plan(self, finding: Finding, looked: Looked) -> Plan | None:
        """What mending the finding comes to, on the files as they are now; None when nothing can be planned."""
        basis = Basis(
            evidence=looked.whole,
            asked=looked.asked,
            verdicts=self.endpoints.verdicts(),
            user_settings=claude_files.base_folder(self.machine) / "settings.json",
            read=self.read,
            real=_real,
        )
        fix = fix_of(finding, basis)
        if fix is None:
            return None
        if fix.kind in EDITS:
            return plan_of(finding, fix, basis)
        return with_running(install_plan(blank(finding, fix, looked.whole), self), looked.whole.states)

    def plan_all(self, looked: Looked) -> list[tuple[Finding, Plan | None]]:
        """The plans of all that was found, each on what those before it would leave."""
        found: list[tuple[Finding, Plan | None]] = []
        for finding in looked.findings:
            plan = self.plan(finding, looked)
            if plan is not None and plan.is_applicable:
                plan = self._behind_those_above(plan)
            if plan is not None and plan.is_applicable:
                self._ahead.update({_real(each.file): each.after for each in plan.files})
                self._taken.update(map(_real, plan.touched if plan.install else ()))
            found.append((finding, plan))
        return found

    def _behind_those_above(self, plan: Plan) -> Plan:
        """An install knows only files as they are, and nobody knows beforehand what one leaves."""
        taken = {*self._taken, *(self._ahead if plan.install else ())}
        names = ", ".join(str(file) for file in dict.fromkeys(plan.touched) if _real(file) in taken)
        if not names:
            return plan
        return msgspec.structs.replace(
            plan, refusal=f"A plan above changes {names} too.", hint="Apply that first, then plan again."
        )

    # What the installers ask.

    @property
    def places(self) -> Places:
        """The machine, as no project sees it."""
        return Places(
            home=self.machine.home,
            cwd=self.machine.home,
            environ=self.machine.environ,
            platform=self.machine.platform,
        )

    def read(self, file: Path) -> str | None:
        """A file as text, with what plans before this one would have made of it."""
        if (real := _real(file)) in self._ahead:
            return self._ahead[real]
        raw = self._installs.read(file)
        return None if raw is None else text_of(file, raw)

    def launch(self, scope: Scope, places: Places, *, new_config: bool) -> Launch:
        """The command that starts this very Pegboard."""
        return launch_of(self._args, scope, places, new_config=new_config)

    def config_file(self, scope: Scope, places: Places) -> Path:
        """The pegboard.toml that servers move to."""
        return config_file(self._args, scope, places)

    def proxy(self) -> Proxy:
        """The proxy as agents are told of it."""
        return proxy_of(self._config)

    def upstreams_file(self) -> Path:
        """The pegboard.toml that new upstreams are written to."""
        return upstreams_file(self._args)

    def redirects(self, agent: str) -> Sequence[Redirect]:
        """What was written for an agent before."""
        return self._redirects.journal().redirects_of(agent)


def _real(file: Path) -> Path:
    return Path(os.path.realpath(file))


def examined(args: argparse.Namespace, machine: Machine) -> Looked:
    """All that can be known, and what was found in the part that was asked for."""
    with Progress() as progress:
        actions = doctor_examine.applied(args)
        whole = asyncio.run(doctor_examine.examine(machine, days=args.days, progress=progress, actions=actions))
    asked = doctor_examine.only(whole, agent=args.agent, project=args.project)
    return Looked(whole, asked, wanted(diagnose(asked, now=time.time()).findings, args.ids))


def wanted(findings: Sequence[Finding], ids: Sequence[str]) -> tuple[Finding, ...]:
    """Those with one of these ids, or of one of these causes; all when none is named."""
    known = {name for finding in findings for name in (finding.id, finding.cause)}
    for name in ids:
        if name not in known:
            near = nearest(name, known)
            there = ", ".join(finding.id for finding in findings) or "none"
            hint = f"Did you mean {near}?" if near else f"There are {there}."
            raise PegboardError(f"There is no finding {name!r}.", hint=hint)
    return tuple(each for each in findings if not ids or {each.id, each.cause} & set(ids))
