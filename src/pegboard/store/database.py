"""Opening the SQLite file: private, up to date, ours. A damaged one is set aside, never lost; a newer one is refused.

Above: `sqlite` keeps the connection. Below: `migrate` makes the tables. Everything here blocks; it runs in a thread.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pegboard.errors import StoreError
from pegboard.store.migrate import Step, migrate, steps, version_of

APPLICATION_ID = 0x50454742
"""Marks the file as ours: `PEGB`."""
BUSY_SECONDS = 5.0
"""How long to wait for another process that writes."""
SET_ASIDE_CAP = 5
"""Damaged files kept beside the good one; more than that, and it is the disk that needs help."""
_WAL_TRIES = 50
_PAUSE = 0.02
_WAL_LIMIT = 16 << 20
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_HINTS = {
    sqlite3.SQLITE_FULL: "The disk is full, or a limit is reached: make room, or set store.state_dir.",
    sqlite3.SQLITE_READONLY: "Make it writable, or set store.state_dir to a folder that is.",
    sqlite3.SQLITE_CANTOPEN: "Make sure that it and its folder can be written, or set store.state_dir.",
    sqlite3.SQLITE_PERM: "Make sure that it and its folder can be written, or set store.state_dir.",
    sqlite3.SQLITE_BUSY: "Another process is writing to it for long; try again.",
    sqlite3.SQLITE_LOCKED: "Another process is writing to it for long; try again.",
    sqlite3.SQLITE_IOERR: "The disk does not do its work: see whether it is full or faulty, or set store.state_dir.",
}


Identity = tuple[int, int]
"""Which file it is, whatever its name."""


class Damaged(Exception):
    """The file is not a database any more. Never leaves this package."""

    def __init__(self, message: str, identity: Identity | None) -> None:
        super().__init__(message)
        self.identity = identity


def connect(
    path: Path, todo: Sequence[Step] | None = None, *, busy_seconds: float = BUSY_SECONDS
) -> sqlite3.Connection:
    """A connection to the file, made or brought up to date as need be. StoreError, Damaged or OSError when it fails."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # One process at a time opens, makes or sets aside: none finds the file gone between two looks at it.
    with _locked(path, busy_seconds):
        make_private(path)
        identity = identity_of(path)
        connection: sqlite3.Connection | None = None
        try:
            connection = _open(path, busy_seconds)
            _prepare(connection, path, steps() if todo is None else todo)
        except BaseException as error:
            if connection is not None:
                connection.close()
            if not isinstance(error, sqlite3.Error):
                raise
            raise (Damaged(str(error), identity) if is_damage(error) else told(error, path)) from error
        return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing. The file must be there, and up to date. May raise sqlite3.Error."""
    return _open(path, BUSY_SECONDS, "ro")


def make_private(path: Path) -> None:
    """Makes the file if there is none, for its owner's eyes only; refuses what is no regular file. Raises OSError."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        # SQLite would make it readable for everyone; its companions take over this file's mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600))
    else:
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))


def identity_of(path: Path) -> Identity | None:
    """Which file it is, whatever its name; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def set_aside(path: Path, identity: Identity | None) -> Path | None:
    """Renames a damaged file and its companions, so that a new one can begin; None when somebody else already did.

    A process that still has the old one open does no harm: SQLite notices the new name, and leaves the new file alone.
    """
    real = Path(os.path.realpath(path))
    with _locked(real, BUSY_SECONDS):
        if identity is None or identity_of(real) != identity:
            return None
        if sum(1 for _ in real.parent.glob(f"{real.name}.damaged-*[0-9]")) >= SET_ASIDE_CAP:
            raise StoreError(
                f"{path} is damaged again, and {SET_ASIDE_CAP} damaged ones lie beside it.",
                hint="See whether the disk is faulty; then delete them.",
            )
        aside = real.with_name(f"{real.name}.damaged-{time.time_ns()}")
        real.rename(aside)
        for ending in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                real.with_name(real.name + ending).rename(aside.with_name(aside.name + ending))
    return aside


def told(error: sqlite3.Error | OSError, path: Path) -> StoreError:
    """What went wrong with the file, in words."""
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return StoreError(
            f"{path} cannot be used: {reason}.", hint="Set store.state_dir to a folder that can be written."
        )
    hint = _HINTS.get(_code(error), "`pegboard status` shows where it lies.")
    return StoreError(f"{path} cannot be used: {error}.", hint=hint)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is broken, rather than out of reach for now."""
    return _code(error) in _DAMAGE


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF  # the rest of the number goes into detail


def _open(path: Path, busy_seconds: float, mode: str = "rw") -> sqlite3.Connection:
    # A connection moves between threads but is used by one at a time: the store sees to that.
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
    )


def _prepare(connection: sqlite3.Connection, path: Path, todo: Sequence[Step]) -> None:
    newest = todo[-1].number
    # All three as of one moment: another process may be making the tables just now.
    connection.execute("BEGIN")
    [objects] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    [application] = connection.execute("PRAGMA application_id").fetchone()
    known = version_of(connection)
    connection.execute("COMMIT")
    if known > newest and application == APPLICATION_ID:
        raise StoreError(
            f"{path} was written by a newer Pegboard (its tables are of version {known}, this one knows {newest}).",
            hint="Upgrade Pegboard, or set store.state_dir to another folder.",
        )
    if objects and application != APPLICATION_ID:
        raise StoreError(
            f"{path} is a database, but not one of Pegboard's.",
            hint="Move it away, or set store.state_dir to another folder.",
        )
    if not objects:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only possible before the first table
    _use_wal(connection)
    # NORMAL: a power cut may lose the last records, never the file. Nothing kept here is worth a sync for each batch.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
    if known < newest:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        migrate(connection, todo)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Readers and the writer do not wait for each other. Where the file system cannot do that, the old way serves."""
    for tries_left in range(_WAL_TRIES, -1, -1):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # Two processes that make the file at once: SQLite does not wait here by itself, whatever its timeout.
            if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or not tries_left:
                raise
            time.sleep(_PAUSE)
        else:
            return


@contextmanager
def _locked(path: Path, patience: float) -> Iterator[None]:
    """Keeps other processes from opening or renaming the file: by a lock on its folder, which leaves no litter."""
    import fcntl

    fd = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StoreError(
                        f"{path} is being opened by another process for long.", hint="Try again."
                    ) from None
                time.sleep(_PAUSE)
            except OSError:
                break  # a file system without such locks: what they prevent is rare
            else:
                break
        yield
    finally:
        os.close(fd)
