"""The doctor's journal: every action that was applied, in one file that is replaced whole.

Undone actions stay in it, so that the report can tell of them. Above: the ledger and the report. Below: actions, and
files that are replaced whole.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from pegboard.doctor.plans.actions import Action
from pegboard.errors import ConfigError
from pegboard.store.changed_files import Files, RestorableFiles

VERSION = 1
FOLDER = "doctor"


class _Journal(msgspec.Struct, frozen=True, kw_only=True):
    version: int = VERSION
    actions: tuple[Action, ...] = ()


class ActionJournal(RestorableFiles):
    """The actions of one state folder."""

    def __init__(self, state_dir: Path, files: Files | None = None) -> None:
        folder = state_dir / FOLDER
        busy = "Another `pegboard doctor` is changing files."
        super().__init__(folder / "actions.json", folder / "backups", busy=busy, files=files)

    def actions(self) -> tuple[Action, ...]:
        """All of them, undone ones too, oldest first; those that end in -ing a process was killed over."""
        raw = self.read(self._path)
        return () if raw is None else _decode(raw, str(self._path))

    def is_unsettled(self) -> bool:
        """Whether a process was killed at work, and nobody has looked since."""
        return any(each.status in ("applying", "undoing") for each in self.actions())

    def _record(self, action: Action) -> None:
        """The journal with this action, in place of what it said of it before."""
        others = list(self.actions())
        places = [number for number, each in enumerate(others) if each.id == action.id]
        if places:
            others[places[0]] = action
        else:
            others.append(action)
        self._save(others)

    def _strike(self, action: Action) -> None:
        """The journal without this action: it never happened."""
        self._save([each for each in self.actions() if each.id != action.id])

    def _save(self, actions: list[Action]) -> None:
        encoded = msgspec.json.encode(_Journal(actions=tuple(actions)))
        self._write(self._path, msgspec.json.format(encoded, indent=1) + b"\n")

    def _forget_backups(self, action: Action) -> None:
        """Those that no other action needs, once its own are of no use."""
        kept = [change for each in self.actions() if _needs_backups(each) for change in each.changes]
        for change in action.changes:
            self._forget(change, kept)


def actions(state_dir: Path) -> tuple[Action, ...]:
    """The actions of this state folder, oldest first."""
    return ActionJournal(state_dir).actions()


def _needs_backups(action: Action) -> bool:
    return action.status != "undone"


def _decode(raw: bytes, where: str) -> tuple[Action, ...]:
    """What was written; a journal that cannot be understood is never overwritten."""
    hint = "It says how to undo what was applied. Move it away to start anew; the backups beside it stay."
    try:
        journal = msgspec.json.decode(raw, type=_Journal)
    except (ValueError, msgspec.DecodeError) as error:
        raise ConfigError(f"{where} cannot be understood: {error}.", hint=hint) from None
    if journal.version != VERSION:
        raise ConfigError(
            f"{where} was written by another version of Pegboard.", hint="Use that version, or a newer one."
        )
    return journal.actions
