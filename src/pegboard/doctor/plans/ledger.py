"""Applies plans and takes them back, so that a crash at any write leaves old bytes or new ones and the journal goes on.

Backup, journal (applying), files, journal (applied). Whatever comes between leaves a record from which the next command
goes on. Above: the commands. Below: `recovery`, the journal, and the installers.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import msgspec

from pegboard.config.installers.journal import digest
from pegboard.doctor.facts import Agent
from pegboard.doctor.plans.actions import Action, FileChange
from pegboard.doctor.plans.delegate import Installers
from pegboard.doctor.plans.plan import TITLES, FileEdit, Plan
from pegboard.doctor.plans.recovery import RecoverableActions, Undone
from pegboard.doctor.plans.rewritten import rewriters
from pegboard.doctor.report.baseline import Baseline
from pegboard.errors import PegboardError
from pegboard.store.changed_files import Files, missing_folders

Running = Callable[[], Collection[Agent]]
"""The agents that run now."""


class Ledger(RecoverableActions):
    """The actions of one state folder, and the files they change."""

    def __init__(self, state_dir: Path, running: Running, installers: Installers, files: Files | None = None) -> None:
        super().__init__(state_dir, installers, files)
        self._running = running

    def apply(self, plan: Plan, baseline: Baseline | None = None) -> Action:
        """Writes one plan, whole or not at all."""
        with self._alone():
            self._settle()
            if not plan.is_applicable:
                raise PegboardError(plan.refusal or "There is nothing to change.", hint=plan.hint)
            self._refuse_unfit(plan)
            action = self._intended(plan, baseline)
            done = msgspec.structs.replace(action, status="applied")
            try:
                self._record(action)
                self._carry_out(plan)
                self._record(done)
            except BaseException:  # whoever presses Ctrl-C wants it undone too
                self._roll_back(action)
                raise
            return done

    def undo(self, action: Action) -> Undone:
        """Gives every file its bytes back; refuses when one was changed since, and then touches none."""
        with self._alone():
            self._settle()
            current = next((each for each in self.actions() if each.id == action.id), None)
            if current is None or current.status == "undone":
                raise PegboardError(f"{action.id} was taken back already.", hint="There is nothing left of it.")
            self.refuse_undo(current)
            self._record(msgspec.structs.replace(current, status="undoing"))
            return self._take_back(current)

    # ── applying ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _refuse_unfit(self, plan: Plan) -> None:
        for each in plan.files:
            self._refuse_replanned(each)
        for file in plan.touched:
            _refuse_locked(file)
        self._refuse_running(plan.touched)

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
            backup=self._back_up(_plain_name(edit.file), raw),
            folders=missing_folders(edit.file),
        )

    def _carry_out(self, plan: Plan) -> None:
        for each in plan.files:
            self._refuse_running([each.file])
            self._refuse_replanned(each)
            self._write(each.file, each.after.encode())
        if plan.install is not None:
            self._refuse_running(plan.touched)
            self._installers.apply(plan.install)

    def _refuse_replanned(self, edit: FileEdit) -> None:
        """Nobody's change is lost: the file stays as somebody made it, and what was planned on is kept beside."""
        expected = _bytes(edit.before)
        if self.read(edit.file) == expected:
            return
        kept = "When this was planned, there was no such file."
        if expected is not None:
            aside = self._backups / f"{_plain_name(edit.file)}-{digest(expected)[:16]}.planned"
            self._write(aside, expected)
            kept = f"As it was when this was planned, it is kept in {aside}."
        raise PegboardError(
            f"{edit.file} was changed in the meantime, and was left as it is. {kept} Nothing was applied.",
            hint="Plan again on what it says now: `pegboard doctor plan`.",
        )

    def _refuse_running(self, files: Iterable[Path]) -> None:
        owned = {file: agents for file in files if (agents := rewriters(file))}
        active = self._running() if owned else ()
        for file, agents in owned.items():
            if names := " and ".join(TITLES[agent] for agent in agents if agent in active):
                raise PegboardError(
                    f"{names} runs, and writes {file} while it does; nothing was changed.",
                    hint=f"End every session of {names}, then run the command again.",
                )

    # ── taking back ──────────────────────────────────────────────────────────────────────────────────────────────

    def refuse_undo(self, action: Action) -> None:
        """Says why the action cannot be taken back as things are, if it cannot; writes nothing."""
        self._refuse_changed_since(action)
        self._refuse_running(map(Path, action.files))

    def _refuse_changed_since(self, action: Action) -> None:
        for change in action.changes:
            if not self._is_ours(change):
                keys = ", ".join(edit.name for edit in change.edits)
                way_out = f"Change {keys} back by hand, or put the kept file in its place."
                raise self._changed(action, change.file, self.kept_at(change), way_out)
            self._old_bytes(change)
        for each in self._installers.changed_since(action.delegated):
            way_out = f"`{each.command}` takes the install out of it and leaves the rest as it is."
            raise self._changed(action, each.file, each.backup, way_out)

    def _changed(self, action: Action, file: str, backup: Path | None, way_out: str) -> PegboardError:
        order = [each.id for each in self.actions()]
        later = [
            each.id
            for each in self.actions()
            if each.status == "applied" and file in each.files and order.index(each.id) > order.index(action.id)
        ]
        if later:
            way_out = f"It was changed by {later[-1]} too: `pegboard doctor undo {later[-1]}` first."
        kept = f"As it was before, it is kept in {backup}" if backup else "Before, there was no such file"
        return PegboardError(
            f"{file} was changed since, and was left as it is. {kept}. Nothing was undone.", hint=way_out
        )


def _refuse_locked(file: Path) -> None:
    """A file that nobody may write is somebody's on purpose; replacing it would go around that."""
    target = Path(os.path.realpath(file))
    try:
        found = target.stat()
    except OSError:
        return
    if stat.S_ISREG(found.st_mode) and (not found.st_mode & 0o222 or not os.access(target, os.W_OK)):
        raise PegboardError(f"{file} is read-only; it was left as it is.", hint="Change it where it is made, by hand.")


def _plain_name(file: Path) -> str:
    return file.name.lstrip(".")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
