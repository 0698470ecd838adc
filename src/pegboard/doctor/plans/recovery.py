"""Finishes or takes back what a killed process left of an action, so that every file is old or new in whole.

A record in the journal says what was meant, and hashes say how far it came. Where somebody has changed a file since,
nothing is touched: only `undo` may decide about that. Above: the ledger. Below: the journal, and the installers.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from pegboard.config.installers.documents import parse
from pegboard.config.installers.journal import digest
from pegboard.doctor.plans.actions import Action, FileChange
from pegboard.doctor.plans.delegate import Installers
from pegboard.doctor.plans.edits import stands
from pegboard.doctor.plans.journal import ActionJournal
from pegboard.errors import PegboardError
from pegboard.store.changed_files import Files
from pegboard.store.files import sweep
from pegboard.store.installs import Outcome
from pegboard.store.redirects import Restored


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """What taking an action back did."""

    action: Action
    restored: tuple[Path, ...] = ()
    """To the byte."""
    removed: tuple[Path, ...] = ()
    """The action had made them."""
    installers: tuple[Outcome | Restored, ...] = ()


class RecoverableActions(ActionJournal):
    """The actions of one state folder, each of which can be taken back whole, however far it came."""

    def __init__(self, state_dir: Path, installers: Installers, files: Files | None = None) -> None:
        super().__init__(state_dir, files)
        self._installers = installers

    def recover(self) -> tuple[str, ...]:
        """Settles what a killed process left; says of each action what became of it."""
        if not self.is_unsettled():
            return ()  # nothing is written, not even a lock
        with self._alone():
            return self._settle()

    def backups(self, action: Action) -> tuple[Path, ...]:
        """Where the action's files are kept as they were before it."""
        own = (self.kept_at(change) for change in action.changes)
        found = (*(path for path in own if path is not None), *self._installers.backups(action.delegated))
        return tuple(dict.fromkeys(found))

    # ── one action ───────────────────────────────────────────────────────────────────────────────────────────────

    def _roll_back(self, action: Action) -> None:
        """What was written gets its bytes back, what was not is as it was; then it never happened."""
        for change in action.changes:
            if self._hash_of(change) == change.after != change.before:
                self._restore(change)
            _remove_empty(change.folders)
        if action.delegated:
            self._installers.undo(action.delegated)
        self._strike(action)
        self._forget_backups(action)

    def _take_back(self, action: Action) -> Undone:
        """Gives every file its bytes back, and remembers that it was so."""
        restored: list[Path] = []
        removed: list[Path] = []
        for change in action.changes:
            if self._hash_of(change) != change.before:
                self._restore(change)
                (removed if change.before is None else restored).append(Path(change.file))
            _remove_empty(change.folders)
        outcomes = self._installers.undo(action.delegated) if action.delegated else ()
        done = msgspec.structs.replace(action, status="undone", undone_at=time.time())
        self._record(done)
        self._forget_backups(done)
        return Undone(action=done, restored=tuple(restored), removed=tuple(removed), installers=outcomes)

    def _restore(self, change: FileChange) -> None:
        file, before = Path(change.file), self._old_bytes(change)
        if self._hash_of(change) != change.after:
            raise PegboardError(f"{file} was changed at this very moment, and was left as it is.", hint="Look at it.")
        if before is None:
            self._remove(file, change.folders)
        else:
            self._write(file, before)

    def _old_bytes(self, change: FileChange) -> bytes | None:
        """What the file was before; None when there was none. Refuses when that is no longer known."""
        if self._hash_of(change) == change.before:
            return self.read(Path(change.file))
        return self._backup_of(change, f"Change {', '.join(edit.name for edit in change.edits)} back by hand.")

    # ── after a crash ────────────────────────────────────────────────────────────────────────────────────────────

    def _settle(self) -> tuple[str, ...]:
        return tuple(self._settled(each) for each in self.actions() if each.status in ("applying", "undoing"))

    def _settled(self, action: Action) -> str:
        for folder in {self._backups, *(Path(os.path.realpath(file)).parent for file in action.files)}:
            sweep(folder, age=0)
        try:
            return self._settle_applying(action) if action.status == "applying" else self._settle_undoing(action)
        except PegboardError as error:
            # What cannot be settled must not keep everything else from working: undo will say so again.
            self._record(msgspec.structs.replace(action, status="applied"))
            return f"{action.id} ({action.finding}) had been cut short, and stays as it is: {error.message}"

    def _settle_applying(self, action: Action) -> str:
        is_written = all(self._is_new(change) for change in action.changes)
        foreign = [change.file for change in action.changes if self._is_new(change) and not self._is_ours(change)]
        foreign += [each.file for each in self._installers.changed_since(action.delegated)]
        if is_written and not foreign and self._installers.is_done(action.delegated):
            self._record(msgspec.structs.replace(action, status="applied"))
            return f"{action.id} ({action.finding}) had been cut short; it is whole."
        if foreign:
            # Somebody went on from what was written: only undo may decide about that.
            self._record(msgspec.structs.replace(action, status="applied"))
            return f"{action.id} ({action.finding}) had been cut short, and {foreign[0]} was changed since; it stays."
        self._roll_back(action)
        return f"{action.id} ({action.finding}) had been cut short; it was taken back whole."

    def _settle_undoing(self, action: Action) -> str:
        foreign = [change.file for change in action.changes if not self._is_ours(change)]
        foreign += [each.file for each in self._installers.changed_since(action.delegated)]
        if not foreign:
            self._take_back(action)
            return f"Undoing {action.id} ({action.finding}) had been cut short; it is done now."
        self._record(msgspec.structs.replace(action, status="applied"))
        return (
            f"Undoing {action.id} ({action.finding}) had been cut short, and {foreign[0]} was changed since; the rest "
            "of it stays."
        )

    def _is_ours(self, change: FileChange) -> bool:
        return self._hash_of(change) in (change.after, change.before)

    def _is_new(self, change: FileChange) -> bool:
        """Whether the file has the change, be it that somebody has written more since."""
        found = self._hash_of(change)
        if found in (change.after, change.before):
            return found == change.after
        raw = self.read(Path(change.file))
        try:
            document = parse("" if raw is None else raw.decode(), change.format)
        except (PegboardError, UnicodeDecodeError):
            return False
        return all(stands(document, edit) for edit in change.edits)

    def _hash_of(self, change: FileChange) -> str | None:
        raw = self.read(Path(change.file))
        return None if raw is None else digest(raw)


def _remove_empty(folders: tuple[str, ...]) -> None:
    """Folders that were made for a file that is not there, or no longer."""
    for folder in folders:
        with suppress(OSError):  # something lies in it, or it was never made
            Path(folder).rmdir()
