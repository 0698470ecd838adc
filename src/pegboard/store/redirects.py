"""Points agents at the proxy and away from it again: a journal, private backups, and writes that survive a crash.

Backup, journal, pegboard.toml, agent: an agent is pointed at an upstream only once the proxy can know it. Taking back
goes the other way. Above: `pegboard proxy install` and `uninstall`. Below: plans, and files that are replaced whole.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from pegboard.config.installers.documents import parse
from pegboard.config.installers.journal import Journal, Redirect, digest
from pegboard.config.installers.redirect import FilePlan, Plan
from pegboard.config.installers.settings import take_back, value_at
from pegboard.store.changed_files import ChangedFiles, missing_folders, naming, text_of


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What taking back did to one file."""

    file: Path
    action: str
    """`restored`: to the byte; `removed`: the file was made by the install; `edited`: it had been changed since;
    `gone`: there is no such file; `untouched`: the install had never reached it; `shared`: others need it."""
    is_config: bool = False
    settings: tuple[str, ...] = ()
    """Values that are what they were."""
    kept: tuple[str, ...] = ()
    """Values that someone has changed since; theirs stay."""
    shared: dict[str, str] = {}
    """Upstreams that stay, and the agent that goes through them too."""
    backup: Path | None = None
    """Where the file as it was is kept, when it was not restored to the byte."""


class Redirects(ChangedFiles):
    """The agents that one state folder has pointed at the proxy."""

    def apply(self, plan: Plan) -> list[Path | None]:
        """Writes one plan; says where the backup of each of its files is."""
        plans = [*([plan.config] if plan.config else []), *plan.files]
        with self._alone():
            raws = [None if each.before is None else each.before.encode() for each in plans]
            for each, raw in zip(plans, raws, strict=True):
                self._refuse_changed(each.file, raw)
            backups = [self._back_up(f"proxy-{plan.agent.id}", raw) for raw in raws]
            records = [
                _record(plan.agent.id, each, raw, backup)
                for each, raw, backup in zip(plans, raws, backups, strict=True)
            ]
            self._keep(self.journal().with_redirects(*records))
            for each, raw in zip(plans, raws, strict=True):
                self._refuse_changed(each.file, raw)
                self._write(each.file, each.after.encode())
        kept = [None if backup is None else self._backups / backup for backup in backups]
        return kept[len(kept) - len(plan.files) :]

    def undo(self, records: Sequence[Redirect]) -> list[Restored]:
        """Takes these records back: agents first, so that none is pointed at what the proxy no longer knows."""
        with self._alone():
            outcomes: list[Restored] = []
            for each in sorted(records, key=lambda record: record.is_config):
                record, journal, shared = _without_shared(each, self.journal().without_redirect(each))
                outcome = self._undo_one(record) if record.settings else _left(record)
                outcomes.append(msgspec.structs.replace(outcome, shared=shared))
                self._keep(journal)
                if outcome.backup is None:
                    self._forget_backup(record, journal)
            return outcomes

    def direct(self, record: Redirect) -> dict[str, str | None]:
        """What stood in the file before, by the keys that were set; None where nothing did."""
        raw = self._backup_of(record, "")
        document = parse("" if raw is None else raw.decode(), record.format)
        found = {setting.name: value_at(document, setting.path) for setting in record.settings}
        return {name: None if value is None else str(value) for name, value in found.items()}

    def _undo_one(self, record: Redirect) -> Restored:
        file = Path(record.file)
        raw = self.read(file)
        found = None if raw is None else digest(raw)
        names = tuple(setting.name for setting in record.settings)
        outcome = functools.partial(Restored, file=file, is_config=record.is_config)
        if found == record.before:
            return outcome(action="untouched", settings=names)
        if raw is None:
            return outcome(action="gone", backup=self.kept_at(record))
        before = self._backup_of(record, f"Set {', '.join(names)} in {file} by hand.")
        if found == record.after:
            if before is None:
                self._remove(file, record.folders)
                return outcome(action="removed", settings=names)
            self._write(file, before)
            return outcome(action="restored", settings=names)
        with naming(file):
            old = None if before is None else before.decode()
            back = take_back(text_of(file, raw), old, record.settings, record.format)
        if back.is_empty:
            self._remove(file, record.folders)
            return outcome(action="removed", settings=names)
        self._refuse_changed(file, raw)
        self._write(file, back.text.encode())
        return outcome(
            action="edited",
            settings=tuple(setting.name for setting in back.restored),
            kept=tuple(setting.name for setting in back.kept),
            backup=self.kept_at(record),
        )


def _record(agent: str, plan: FilePlan, raw: bytes | None, backup: str | None) -> Redirect:
    return Redirect(
        agent=agent,
        file=str(plan.file),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        format=plan.format,
        settings=plan.settings,
        upstreams=plan.upstreams,
        is_config=plan.is_config,
        before=None if raw is None else digest(raw),
        after=digest(plan.after.encode()),
        backup=backup,
        folders=missing_folders(plan.file),
    )


def _left(record: Redirect) -> Restored:
    return Restored(file=Path(record.file), action="shared", is_config=record.is_config)


def _without_shared(record: Redirect, journal: Journal) -> tuple[Redirect, Journal, dict[str, str]]:
    """The record without the upstreams that another agent goes through; that agent answers for them from now on."""
    shared: dict[str, str] = {}
    if not record.is_config:
        return record, journal, shared
    # What was the whole change may be only part of it now: the bytes before would take the rest away.
    after = record.after if len(record.settings) == 1 else ""
    for setting in record.settings:
        heir = next((each for each in journal.redirects if setting.path[-1] in each.upstreams), None)
        if heir is not None:
            shared[setting.path[-1]] = heir.agent
            theirs = msgspec.structs.replace(record, agent=heir.agent, settings=(setting,), after=after)
            journal = journal.with_redirects(theirs)
    mine = tuple(setting for setting in record.settings if setting.path[-1] not in shared)
    after = "" if shared else record.after
    return msgspec.structs.replace(record, settings=mine, after=after), journal, shared
