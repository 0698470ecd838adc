"""Files of other programs that are changed and can be restored: one journal, private backups, one writer at a time.

Above: `installs`, `redirects` and the doctor's actions, which say what changes. Below: files that are replaced whole.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from pegboard.config.installers.journal import Journal, decode, digest, encode
from pegboard.errors import ConfigError, PegboardError
from pegboard.store.files import DiskFiles

_AGAIN = "Run the command again."


class Files(Protocol):
    """Reads whole files and replaces them whole."""

    def read(self, path: Path) -> bytes: ...

    def write(self, path: Path, content: bytes) -> None: ...


class Kept(Protocol):
    """What a record says of the file before: its hash, and the name of its backup."""

    @property
    def before(self) -> str | None: ...

    @property
    def backup(self) -> str | None: ...


class RestorableFiles:
    """Files that are changed so that each can have its bytes back, beside a journal that says which they are."""

    def __init__(self, journal: Path, backups: Path, *, busy: str, files: Files | None = None) -> None:
        self._files = files or DiskFiles()
        self._path = journal
        self._backups = backups
        self._busy = busy

    def read(self, path: Path) -> bytes | None:
        """The content of a file; None when there is none."""
        try:
            return self._files.read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PegboardError(f"{path} cannot be read: {error.strerror or error}.") from None

    def _back_up(self, owner: str, raw: bytes | None) -> str | None:
        if raw is None:
            return None
        name = f"{owner}-{digest(raw)[:16]}.bak"
        self._write(self._backups / name, raw)
        return name

    def _backup_of(self, record: Kept, hint: str) -> bytes | None:
        if record.backup is None:
            return None
        path = self._backups / record.backup
        raw = self.read(path)
        if raw is None or digest(raw) != record.before:
            raise PegboardError(
                f"The backup {path} is {'missing' if raw is None else 'not what was written'}.", hint=hint
            )
        return raw

    def kept_at(self, record: Kept) -> Path | None:
        """Where the file as it was before is kept; None when there was none."""
        return None if record.backup is None else self._backups / record.backup

    def _forget(self, record: Kept, others: Iterable[Kept]) -> None:
        """Removes a backup that no other record needs."""
        if record.backup and not any(each.backup == record.backup for each in others):
            with suppress(OSError):
                (self._backups / record.backup).unlink()

    def _refuse_changed(self, file: Path, expected: bytes | None) -> None:
        """Nobody's change is lost: what is not as it was when the plan was made is not replaced."""
        if self.read(file) != expected:
            raise PegboardError(f"{file} was changed in the meantime; it was left as it is.", hint=_AGAIN)

    def _write(self, path: Path, content: bytes) -> None:
        try:
            self._files.write(path, content)
        except OSError as error:
            raise PegboardError(f"{path} cannot be written: {error.strerror or error}.", hint=_AGAIN) from None

    def _remove(self, file: Path, folders: tuple[str, ...]) -> None:
        try:
            Path(os.path.realpath(file)).unlink()
        except OSError as error:
            raise PegboardError(f"{file} cannot be removed: {error.strerror or error}.") from None
        for folder in folders:
            with suppress(OSError):  # someone else keeps something there by now
                Path(folder).rmdir()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One writer at a time: they share the journal, and often the files."""
        path = self._path.with_suffix(".lock")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise PegboardError(f"{path} cannot be written: {error.strerror or error}.") from None
        try:
            _lock(descriptor, self._busy)
            yield
        finally:
            os.close(descriptor)


class ChangedFiles(RestorableFiles):
    """The files that installs of one state folder have changed."""

    def __init__(self, state_dir: Path, files: Files | None = None) -> None:
        busy = "Another `pegboard install` is at work."
        super().__init__(state_dir / "installs.json", state_dir / "install-backups", busy=busy, files=files)

    def journal(self) -> Journal:
        """All that is remembered."""
        raw = self.read(self._path)
        return Journal() if raw is None else decode(raw, str(self._path))

    def _keep(self, journal: Journal) -> None:
        self._write(self._path, encode(journal))

    def _forget_backup(self, record: Kept, journal: Journal) -> None:
        self._forget(record, [*journal.installs, *journal.redirects])


def _lock(descriptor: int, busy: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PegboardError(busy, hint=_AGAIN) from None


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Says which file it is that cannot be understood; once it is mended, the same command goes on."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{file}: {error.message}", hint=f"{error.hint} Then run the command again.") from None


def missing_folders(file: Path) -> tuple[str, ...]:
    """The folders that will have to be made for a file, innermost first."""
    target = Path(os.path.realpath(file))
    return tuple(str(folder) for folder in target.parents if not os.path.lexists(folder))


def text_of(file: Path, raw: bytes) -> str:
    """The file as text."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise PegboardError(f"{file} is not UTF-8 text.", hint="Save it as UTF-8 first.") from None
