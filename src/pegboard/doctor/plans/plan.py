"""The nouns of a plan: which texts become which, when that counts, what it risks, and why it may not be applied.

Above: `make` and `delegate`, which make them; the ledger, which applies them; the commands, which show them.
Below: the doctor's nouns, the edits, and the plans of the installers.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from pegboard.config.installers.documents import Format
from pegboard.config.installers.journal import digest
from pegboard.config.installers.plan import SitePlan
from pegboard.config.installers.redirect import Plan as RedirectPlan
from pegboard.doctor.facts import Agent, Fix
from pegboard.doctor.plans.actions import Delegated
from pegboard.doctor.plans.edits import Edit

TITLES: dict[Agent, str] = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "opencode": "opencode",
    "kilo": "Kilo",
    "cline": "Cline",
    "gemini": "Gemini CLI",
    "zed": "Zed",
    "cursor": "Cursor",
    "vscode": "VS Code",
}
"""What people call the agents."""


class FileEdit(msgspec.Struct, frozen=True, kw_only=True):
    """One file that would change."""

    file: Path
    format: Format
    before: str | None
    """None: there is no such file."""
    after: str
    edits: tuple[Edit, ...]
    rewritten_by: tuple[Agent, ...] = ()
    """Agents that write this file while they run: what is changed then may be lost, or lose what they wrote."""


class GatewayInstall(msgspec.Struct, frozen=True, kw_only=True):
    """Pegboard in an agent's settings, with its servers behind it; the installers know how."""

    sites: tuple[SitePlan, ...]
    config: Path
    """The pegboard.toml that servers move to."""
    config_before: str | None
    command: tuple[str, ...]
    """What the agent will start."""

    @property
    def parts(self) -> tuple[Delegated, ...]:
        """Each file, by which the records of the installers are found again."""
        parts = [Delegated(file=str(each.site.file), after=digest(each.after.encode())) for each in self.sites]
        text = self.sites[-1].imported.text if self.sites else ""
        if any(each.imported.servers for each in self.sites):
            parts.append(Delegated(file=str(self.config), after=digest(text.encode()), is_config=True))
        return tuple(parts)


class ProxyInstall(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's way through the proxy; the installers know how."""

    redirect: RedirectPlan

    @property
    def parts(self) -> tuple[Delegated, ...]:
        """Each file, by which the records of the installers are found again."""
        config = [self.redirect.config] if self.redirect.config else []
        return tuple(
            Delegated(file=str(each.file), after=digest(each.after.encode()), is_config=each.is_config)
            for each in (*self.redirect.files, *config)
        )


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What mending one finding comes to."""

    finding: str
    title: str
    fix: Fix
    files: tuple[FileEdit, ...] = ()
    install: GatewayInstall | ProxyInstall | None = None
    effect: str = ""
    """When it takes effect."""
    risks: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    """What a person has to change, because nobody else may."""
    refusal: str = ""
    """Why it is not to be applied as things are; empty when it may be."""
    hint: str = ""
    """What would make it possible."""
    rewritten_by: tuple[Agent, ...] = ()
    """Agents that write some of its files while they run."""

    @property
    def is_applicable(self) -> bool:
        """Whether there is something to do, and nothing against it."""
        return bool(not self.refusal and (self.files or self.install))

    @property
    def touched(self) -> tuple[Path, ...]:
        """Every file that it would write."""
        delegated = (Path(part.file) for part in self.install.parts) if self.install else ()
        return (*(each.file for each in self.files), *delegated)
