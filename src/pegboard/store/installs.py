"""Writes installs and takes them back: a journal, private backups, and an order of writes that survives a crash.

Backup, journal, pegboard.toml, client: whatever comes between leaves a record whose hashes say how far it came, and
`undo` or the next install goes on from there. Above: `pegboard install` and `uninstall`. Below: plans, and files that
are replaced whole.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from pegboard.config.installers.journal import ConfigChange, Install, Journal, digest, digest_of
from pegboard.config.installers.plan import SitePlan
from pegboard.config.installers.undo import parse, servers_at, take_back, without_servers
from pegboard.store.changed_files import ChangedFiles, missing_folders, naming, text_of

_SERVERS = ("servers",)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What taking back one install did."""

    file: Path
    scope: str
    action: str
    """`restored`: to the byte; `removed`: the file was made by the install; `edited`: it had been changed since;
    `gone`: there is no such file; `untouched`: the install had never reached it."""
    servers: tuple[str, ...] = ()
    """Servers that the client has again."""
    kept: tuple[str, ...] = ()
    """Servers that the client had been given again in the meantime."""
    taken_out: tuple[str, ...] = ()
    """Keys that left the pegboard.toml."""
    left_in: dict[str, str] = {}
    """Keys that stay in the pegboard.toml, and why."""
    config: Path | None = None
    backup: Path | None = None
    """Where the file as it was is kept, when it was not restored to the byte."""


class Installs(ChangedFiles):
    """The installs of one state folder."""

    def apply(self, plan: SitePlan, config_file: Path, config_before: str | None) -> Path | None:
        """Writes one plan; says where the backup is."""
        file = plan.site.file
        with self._alone():
            raw = None if plan.before is None else plan.before.encode()
            config_raw = None if config_before is None else config_before.encode()
            self._refuse_changed(file, raw)
            self._refuse_changed(config_file, config_raw)
            backup = self._back_up(plan.site.client.id, raw)
            # A record that a kill left behind stays: it answers for what it had added to the pegboard.toml.
            journal = self.journal()
            config = _config_change(plan, config_file, config_raw, journal)
            install = _install(plan, raw, backup, config)
            self._keep(journal.with_install(install))
            if plan.imported.servers:
                self._write(config_file, plan.imported.text.encode())
            self._refuse_changed(file, raw)
            self._write(file, plan.after.encode())
            return None if backup is None else self._backups / backup

    def undo(self, install: Install) -> Outcome:
        """Takes one install back: the client first, so that no server is ever in neither file."""
        with self._alone():
            journal = self.journal()
            install = next((each for each in journal.installs if each == install), install)
            outcome = self._undo_client(install)
            journal = journal.without(install)
            if install.config is not None:
                returned = {install.keys[name] for name in (*outcome.servers, *outcome.kept) if name in install.keys}
                taken, left, journal = self._undo_config(install.config, returned, journal, outcome.action)
                outcome = msgspec.structs.replace(
                    outcome, taken_out=taken, left_in=left, config=Path(install.config.file)
                )
            self._keep(journal)
            if outcome.backup is None:
                self._forget_backup(install, journal)
            return outcome

    def _undo_client(self, install: Install) -> Outcome:
        file = Path(install.file)
        raw = self.read(file)
        found = None if raw is None else digest(raw)
        outcome = functools.partial(Outcome, file=file, scope=install.scope)
        moved = install.change.moved
        if found == install.before:
            return outcome(action="untouched", servers=moved)
        if raw is None:
            return outcome(action="gone", backup=self.kept_at(install))
        before = self._backup_of(install, f"Take the entry {install.change.name!r} out of {file} by hand.")
        if found == install.after:
            if before is None:
                self._remove(file, install.folders)
                return outcome(action="removed")
            self._write(file, before)
            return outcome(action="restored", servers=moved)
        with naming(file):
            undone = take_back(text_of(file, raw), None if before is None else before.decode(), install.change)
        if undone.is_empty:
            self._remove(file, install.folders)
            return outcome(action="removed")
        self._refuse_changed(file, raw)
        self._write(file, undone.text.encode())
        backup = self.kept_at(install)
        return outcome(action="edited", servers=undone.restored, kept=undone.kept, backup=backup)

    def _undo_config(
        self, config: ConfigChange, returned: set[str], journal: Journal, action: str
    ) -> tuple[tuple[str, ...], dict[str, str], Journal]:
        """Takes out what this install added and nobody else needs; says what goes, what stays and why."""
        file = Path(config.file)
        raw = self.read(file)
        if raw is None or not config.added:
            return (), {}, journal
        text = text_of(file, raw)
        with naming(file):
            tables = servers_at(parse(text, "toml"), _SERVERS)
        left: dict[str, str] = {}
        for key, written in config.added.items():
            if key not in tables:
                continue
            heir = next((each for each in journal.installs if _needs(each, file, key)), None)
            if heir is not None:
                journal = _inherited(journal, heir, key, written)
                left[key] = f"{heir.client} has it behind Pegboard too"
            elif digest_of(tables[key]) != written:
                left[key] = "it was changed since"
            elif key not in returned:
                left[key] = "its client's file is gone" if action == "gone" else "its client did not get it back"
        taken = tuple(key for key in config.added if key in tables and key not in left)
        if taken:
            self._refuse_changed(file, raw)
            with naming(file):
                content = _config_without(raw, text, config, taken, bool(left))
            self._write_config(file, content, config, journal)
        return taken, left, journal

    def _write_config(self, file: Path, content: bytes, config: ConfigChange, journal: Journal) -> None:
        used = any(each.config is not None and each.config.file == config.file for each in journal.installs)
        if config.created and not used and not content.decode().removeprefix("\ufeff").strip():
            self._remove(file, ())
        else:
            self._write(file, content)


def _install(plan: SitePlan, raw: bytes | None, backup: str | None, config: ConfigChange | None) -> Install:
    return Install(
        client=plan.site.client.id,
        scope=plan.site.scope,
        file=str(plan.site.file),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        change=plan.change,
        keys={move.name: move.key for move in plan.moves},
        before=None if raw is None else digest(raw),
        after=digest(plan.after.encode()),
        backup=backup,
        folders=missing_folders(plan.site.file),
        config=config,
    )


def _config_change(plan: SitePlan, file: Path, raw: bytes | None, journal: Journal) -> ConfigChange | None:
    if not plan.moves:
        return None
    text = plan.imported.text if plan.imported.servers else (raw or b"").decode()
    tables = servers_at(parse(text, "toml"), _SERVERS)
    earlier = [each.config for each in journal.installs if each.config and each.config.file == str(file)]
    before = raw or b""
    return ConfigChange(
        file=str(file),
        before=digest(before),
        after=digest(text.encode()),
        size=len(before),
        added={key: digest_of(tables[key]) for key in plan.imported.servers},
        created=raw is None or any(each.created for each in earlier),
    )


def _config_without(raw: bytes, text: str, config: ConfigChange, taken: tuple[str, ...], partly: bool) -> bytes:
    """What an untouched file was to the byte; otherwise the file without these tables."""
    before = raw[: config.size]
    if digest(raw) == config.after and digest(before) == config.before and not partly:
        raw, text = before, before.decode()
    there = servers_at(parse(text, "toml"), _SERVERS)
    names = [key for key in taken if key in there]
    return without_servers(text, _SERVERS, names).encode() if names else raw


def _needs(install: Install, file: Path, key: str) -> bool:
    return key in install.keys.values() and install.config is not None and install.config.file == str(file)


def _inherited(journal: Journal, heir: Install, key: str, written: str) -> Journal:
    """The journal in which another install answers for a server that it shares."""
    assert heir.config is not None
    config = msgspec.structs.replace(heir.config, added={**heir.config.added, key: written})
    richer = msgspec.structs.replace(heir, config=config)
    return msgspec.structs.replace(
        journal, installs=tuple(richer if each is heir else each for each in journal.installs)
    )
