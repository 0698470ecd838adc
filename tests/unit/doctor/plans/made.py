"""Findings, states and a ledger made by hand, in a folder of the test's own."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

from pegboard.doctor.facts import AgentState, Evidence, Finding, Fix, ServerEntry, Setting
from pegboard.doctor.plans.delegate import Installers
from pegboard.doctor.plans.ledger import Ledger
from pegboard.doctor.plans.make import Basis, fix_of, plan_of
from pegboard.doctor.plans.plan import Plan
from pegboard.store.installs import Installs
from pegboard.store.redirects import Redirects

SEARCH = "ENABLE_TOOL_SEARCH"


class Bench:
    """A home folder, and a ledger whose state lies beside it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.state = folder / "state"
        self.home.mkdir(parents=True, exist_ok=True)
        self.running: set[Any] = set()
        self.asked = 0
        installers = Installers(Installs(self.state), Redirects(self.state))
        self.ledger = Ledger(self.state, self._running, installers)

    def _running(self):
        self.asked += 1
        return self.running

    def put(self, name: str, text: str | bytes, mode: int = 0o640) -> Path:
        file = self.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        file.chmod(mode)
        return file

    def read(self, file: Path) -> str | None:
        return file.read_bytes().decode() if file.exists() else None

    def plan(self, fix: Fix, evidence: Evidence | None = None, *, cause: str = "x", by_hand: str = "", verdicts=None):
        found = finding(fix, cause=cause, by_hand=by_hand)
        basis = self.basis(evidence, verdicts)
        wanted = fix_of(found, basis)
        assert wanted is not None
        return plan_of(found, wanted, basis)

    def basis(self, evidence: Evidence | None = None, verdicts=None) -> Basis:
        user = self.home / ".claude/settings.json"
        return Basis(evidence or Evidence(), verdicts or {}, user, self.read, Path.resolve)

    def apply(self, fix: Fix, **about: Any):
        return self.ledger.apply(self.plan(fix, **about))

    def everything(self) -> dict[str, Any]:
        """Every file with its bytes and its mode, every folder and every link."""
        found: dict[str, Any] = {}
        for path in sorted(self.home.rglob("*")):
            name = str(path.relative_to(self.home))
            if path.is_symlink():
                found[name] = ("link", str(path.readlink()))
            elif path.is_file():
                found[name] = (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
            else:
                found[name] = "folder"
        return found


def finding(fix: Fix | None, *, cause: str = "x", by_hand: str = "") -> Finding:
    agent = fix.agent if fix else "claude-code"
    return Finding(id=f"{cause}:1", cause=cause, agent=agent, title="t", why="w", fix=fix, by_hand=by_hand)


def setting(file: Path | None, *key: str, value: str = "false", scope: Any = "user", name: str = SEARCH) -> Setting:
    return Setting(name=name, value=value, file=file, scope=scope, key=key or ("env", name))


def enable(*settings: Setting, value: str = "", **about: Any) -> Fix:
    return Fix(kind="defer-enable", agent="claude-code", settings=settings, value=value, **about)


def entry(file: Path, *key: str, agent: Any = "claude-code", scope: Any = "user", project: str = "") -> ServerEntry:
    return ServerEntry(agent=agent, name=key[-1], file=file, scope=scope, key=key, project=project)


def disable(*entries: ServerEntry) -> Fix:
    return Fix(kind="server-disable", agent=entries[0].agent, servers=entries)


def unpin(*entries: ServerEntry, value: str = "") -> Fix:
    return Fix(kind="defer-alwaysload", agent="claude-code", servers=entries, value=value, needs_version="2.1.121")


def state(version: str = "2.1.325", url: str = "", project: str = "", **about: Any) -> AgentState:
    address = Setting(name="ANTHROPIC_BASE_URL", value=url, scope="shell", file=Path("/h/.zshrc"), line=3)
    settings = (*about.pop("settings", ()), *((address,) if url else ()))
    return AgentState(agent="claude-code", installed=True, version=version, settings=settings, project=project, **about)


def evidence(*states: AgentState) -> Evidence:
    return Evidence(states=states)


__all__ = ["Bench", "Plan", "disable", "enable", "entry", "evidence", "finding", "setting", "state", "unpin"]
