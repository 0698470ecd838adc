"""Applies plans and takes them back, so that a crash at any write leaves old bytes or new ones and the journal goes on.

Backup, journal (applying), files, journal (applied). Whatever comes between leaves a record whose hashes say how far it
came; the next command goes on from there. Above: the commands. Below: the journal, and the installers.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from pegboard.config.installers.documents import parse
from pegboard.config.installers.journal import digest
from pegboard.doctor.facts import Agent
from pegboard.doctor.plans.actions import Action, FileChange
from pegboard.doctor.plans.delegate import Installers
from pegboard.doctor.plans.edits import stands
from pegboard.doctor.plans.journal import ActionJournal
from pegboard.doctor.plans.plan import FileEdit, Plan
from pegboard.doctor.plans.rewritten import rewriters
from pegboard.doctor.report.baseline import Baseline
from pegboard.errors import PegboardError
from pegboard.store.changed_files import Files, missing_folders
from pegboard.store.installs import Outcome
from pegboard.store.redirects import Restored

Running = Callable[[], Collection[Agent]]
"""The agents that run now."""


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """What taking an action back did."""

    action: Action
    restored: tuple[Path, ...] = ()
    """To the byte."""
    removed: tuple[Path, ...] = ()
    """The action had made them."""
    installers: tuple[Outcome | Restored, ...] = ()


class Ledger(ActionJournal):
    """The actions of one state folder, and the files they change."""

    def __init__(self, state_dir: Path, running: Running, installers: Installers, files: Files | None = None) -> None:
        super().__init__(state_dir, files)
        self._running = running
        self._installers = installers

    def apply(self, plan: Plan, baseline: Baseline | None = None) -> Action:
        """Writes one plan, whole or not at all."""
        with self._alone():
            self._settle()
            if not plan.is_applicable:
                raise PegboardError(plan.refusal or "There is nothing to change.", hint=plan.hint)
            self._refuse_unfit(plan)
            action = self._intended(plan, baseline)
            self._record(action)
            try:
                self._carry_out(plan)
            except PegboardError:
                self._roll_back(action)
                raise
            action = msgspec.structs.replace(action, status="applied")
            self._record(action)
            return action

    def undo(self, action: Action) -> Undone:
        """Gives every file its bytes back; refuses when one was changed since, and then touches none."""
        with self._alone():
            self._settle()
            current = next((each for each in self.actions() if each.id == action.id), action)
            if current.status == "undone":
                raise PegboardError(f"{action.id} was undone already.")
            self._refuse_changed_since(current)
            self._refuse_running(_rewriters(current))
            self._record(msgspec.structs.replace(current, status="undoing"))
            return self._take_back(current)

    def recover(self) -> tuple[str, ...]:
        """Settles what a killed process left; says of each action what became of it."""
        with self._alone():
            return self._settle()

    # ── applying ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _refuse_unfit(self, plan: Plan) -> None:
        for each in plan.files:
            self._refuse_changed(each.file, _bytes(each.before))
            _refuse_locked(each.file)
        self._refuse_running(plan.rewritten_by)

    def _intended(self, plan: Plan, baseline: Baseline | None) -> Action:
        return Action(
            id=secrets.token_hex(6),
            kind=plan.fix.kind,
            finding=plan.finding,
            agent=plan.fix.agent,
            servers=tuple(dict.fromkeys(each.name for each in plan.fix.servers)),
            applied_at=time.time(),
            status="applying",
            changes=tuple(self._change(each) for each in plan.files),
            delegated=plan.install.parts if plan.install else (),
            baseline=baseline,
        )

    def _change(self, edit: FileEdit) -> FileChange:
        raw = _bytes(edit.before)
        return FileChange(
            file=str(edit.file),
            format=edit.format,
            edits=edit.edits,
            before=None if raw is None else digest(raw),
            after=digest(edit.after.encode()),
            backup=self._back_up(edit.file.name.lstrip("."), raw),
            folders=missing_folders(edit.file),
        )

    def _carry_out(self, plan: Plan) -> None:
        for each in plan.files:
            self._refuse_running(each.rewritten_by)
            self._refuse_changed(each.file, _bytes(each.before))
            self._write(each.file, each.after.encode())
        if plan.install is not None:
            self._refuse_running(plan.rewritten_by)
            self._installers.apply(plan.install)

    def _roll_back(self, action: Action) -> None:
        """What was written gets its bytes back; what was not is as it was."""
        for change in action.changes:
            if self._hash_of(change) == change.after and change.before != change.after:
                self._restore(change)
        if action.delegated:
            self._installers.undo(action.delegated)
        self._strike(action)
        self._forget_backups(action)

    def _refuse_running(self, agents: Iterable[Agent]) -> None:
        wanted = set(agents)
        if wanted and (active := sorted(wanted & set(self._running()))):
            names = " and ".join(active)
            raise PegboardError(
                f"{names} runs, and writes this file while it does; nothing was changed.",
                hint=f"End every session of {names}, then run the command again.",
            )

    # ── taking back ──────────────────────────────────────────────────────────────────────────────────────────────

    def _refuse_changed_since(self, action: Action) -> None:
        for change in action.changes:
            if self._hash_of(change) in (change.after, change.before):
                continue
            backup = self._kept_backup(change)
            kept = f"; as it was before, it is kept in {backup}" if backup else "; before, there was no such file"
            raise PegboardError(
                f"{change.file} was changed since, and was left as it is{kept}. Nothing was undone.",
                hint=self._way_out(action, change),
            )

    def _way_out(self, action: Action, change: FileChange) -> str:
        later = [
            each.id
            for each in self.actions()
            if each.status == "applied" and each.applied_at > action.applied_at and change.file in each.files
        ]
        if later:
            return f"It was changed by {later[-1]} too: `pegboard doctor undo {later[-1]}` first."
        keys = ", ".join(edit.name for edit in change.edits)
        return f"Change {keys} back by hand, or put the kept file in its place."

    def _take_back(self, action: Action) -> Undone:
        restored: list[Path] = []
        removed: list[Path] = []
        for change in action.changes:
            if self._hash_of(change) != change.before:
                self._restore(change)
                (removed if change.before is None else restored).append(Path(change.file))
        outcomes = self._installers.undo(action.delegated) if action.delegated else ()
        done = msgspec.structs.replace(action, status="undone", undone_at=time.time())
        self._record(done)
        self._forget_backups(done)
        return Undone(action=done, restored=tuple(restored), removed=tuple(removed), installers=outcomes)

    def _restore(self, change: FileChange) -> None:
        file = Path(change.file)
        before = self._backup_of(change, f"Change {', '.join(edit.name for edit in change.edits)} back by hand.")
        if before is None:
            self._remove(file, change.folders)
        else:
            self._write(file, before)

    # ── after a crash ────────────────────────────────────────────────────────────────────────────────────────────

    def _settle(self) -> tuple[str, ...]:
        return tuple(self._settled(each) for each in self.actions() if each.status in ("applying", "undoing"))

    def _settled(self, action: Action) -> str:
        try:
            return self._settle_applying(action) if action.status == "applying" else self._settle_undoing(action)
        except PegboardError as error:
            # What cannot be settled must not keep everything else from working: undo will say so again.
            self._record(msgspec.structs.replace(action, status="applied"))
            return f"{action.id} ({action.finding}) had been cut short, and stays as it is: {error.message}"

    def _settle_applying(self, action: Action) -> str:
        is_written = all(self._is_new(change) for change in action.changes)
        if is_written and self._installers.is_done(action.delegated):
            self._record(msgspec.structs.replace(action, status="applied"))
            return f"{action.id} ({action.finding}) had been cut short; it is whole."
        foreign = [change.file for change in action.changes if self._is_new(change) and not self._is_ours(change)]
        if foreign:
            # Somebody went on from what was written: only undo may decide about that.
            self._record(msgspec.structs.replace(action, status="applied"))
            return f"{action.id} ({action.finding}) had been cut short, and {foreign[0]} was changed since; it stays."
        self._roll_back(action)
        return f"{action.id} ({action.finding}) had been cut short; it was taken back whole."

    def _settle_undoing(self, action: Action) -> str:
        if all(self._hash_of(change) in (change.after, change.before) for change in action.changes):
            self._take_back(action)
            return f"Undoing {action.id} ({action.finding}) had been cut short; it is done now."
        self._record(msgspec.structs.replace(action, status="applied"))
        return f"Undoing {action.id} ({action.finding}) had been cut short, and a file was changed since; it stays."

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


def chosen(actions: Sequence[Action], name: str) -> Action:
    """The action that `last`, an id or the beginning of one means, among those that were applied."""
    open_ones = [each for each in actions if each.status != "undone"]
    if not open_ones and (name == "last" or not actions):
        raise PegboardError(
            "There is nothing to undo.", hint="All that was applied is undone." if actions else "Nothing was applied."
        )
    if name == "last":
        return max(open_ones, key=lambda each: each.applied_at)
    found = [each for each in actions if each.id == name] or [each for each in actions if each.id.startswith(name)]
    if not found:
        known = ", ".join(each.id for each in open_ones) or "none"
        raise PegboardError(f"No action is called {name}.", hint=f"There are {known}; `last` is the latest.")
    if len(found) > 1:
        raise PegboardError(f"{name} may be any of {', '.join(each.id for each in found)}.", hint="Say more of the id.")
    if found[0].status == "undone":
        raise PegboardError(f"{found[0].id} was undone already.", hint="There is nothing left of it to take back.")
    return found[0]


def _rewriters(action: Action) -> set[Agent]:
    return {agent for file in action.files for agent in rewriters(Path(file))}


def _refuse_locked(file: Path) -> None:
    """A file that nobody may write is somebody's on purpose; replacing it would go around that."""
    try:
        found = Path(os.path.realpath(file)).stat()
    except OSError:
        return
    if stat.S_ISREG(found.st_mode) and not found.st_mode & 0o222:
        raise PegboardError(f"{file} is read-only; it was left as it is.", hint="Change it where it is made, by hand.")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
