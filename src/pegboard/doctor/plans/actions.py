"""What is remembered of every change that was applied: enough to take it back, and to see later what it brought.

Above: `journal`, which keeps them, and the report. Below: edits, and the baseline.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from pegboard.config.installers.documents import Format
from pegboard.doctor.facts import Agent
from pegboard.doctor.plans.edits import Edit
from pegboard.doctor.report.baseline import Baseline

Kind = Literal[
    "defer-enable", "defer-alwaysload", "defer-threshold", "server-disable", "gateway-install", "proxy-install"
]
Status = Literal["applying", "applied", "undoing", "undone"]
"""The two that end in -ing are seen by others only when a process was killed at work."""


class FileChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file that was changed."""

    file: str
    format: Format = "json"
    edits: tuple[Edit, ...] = ()
    before: str | None = None
    """Hash of the file before; None when there was none."""
    after: str
    backup: str | None = None
    """Name of the backup in the folder of backups."""
    folders: tuple[str, ...] = ()
    """Folders that were made for the file, innermost first."""


class Delegated(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One record in the journal of the installers, which takes this part of the change back."""

    file: str
    after: str
    is_config: bool = False
    """The file is a pegboard.toml."""


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One plan that was applied."""

    id: str
    kind: Kind
    finding: str
    """The id of the finding it was to mend."""
    agent: Agent
    servers: tuple[str, ...] = ()
    applied_at: float
    undone_at: float | None = None
    status: Status
    changes: tuple[FileChange, ...] = ()
    delegated: tuple[Delegated, ...] = ()
    baseline: Baseline | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Every file it changed."""
        files = [*(each.file for each in self.changes), *(each.file for each in self.delegated)]
        return tuple(dict.fromkeys(files))
