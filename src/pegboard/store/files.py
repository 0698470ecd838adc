"""Files on disk that are replaced whole or not at all, so that a crash leaves the old content or the new.

Above: the catalog's cache says what the bytes mean and what a failure means. Below: the operating system.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

READ_CAP = 64 * 1024 * 1024
_LEFTOVER_AGE = 3600.0
_TEMP_PREFIX = ".pegboard-"
_TEMP_SUFFIX = ".tmp"
# Some file systems cannot sync a folder, and a folder may be writable yet unreadable: the rename still holds.
_FOLDER_CANNOT_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EBADF})


class DiskFiles:
    """The `Files` seam on the local disk."""

    __slots__ = ("_read_cap",)

    def __init__(self, read_cap: int = READ_CAP) -> None:
        self._read_cap = read_cap

    def read(self, path: Path) -> bytes:
        """The whole file; refuses what is no regular file or is larger than the cap."""
        fd = open_regular(path)
        try:
            return _read_all(fd, os.fstat(fd).st_size, self._read_cap, path)
        finally:
            os.close(fd)

    def write(self, path: Path, content: bytes) -> None:
        """Replaces the file whole or not at all, durably; keeps its mode and owner and follows symbolic links."""
        replace_file(path, (content,))


def open_regular(path: Path) -> int:
    """A descriptor to read the file by; refuses what is no regular file."""
    # O_NONBLOCK: opening a FIFO that someone left there must not hang.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    return fd


def replace_file(path: Path, chunks: Iterable[Buffer]) -> None:
    """Replaces a file by these chunks, whole or not at all, durably; keeps its mode and owner, follows links."""
    target = Path(os.path.realpath(path))
    folder = target.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    temp = folder / f"{_TEMP_PREFIX}{os.urandom(8).hex()}{_TEMP_SUFFIX}"
    try:
        _write_new(temp, chunks, _like(target))
        temp.replace(target)
    except BaseException:
        with suppress(OSError):
            temp.unlink()
        raise
    _sync_folder(folder)
    sweep(folder)


def _read_all(fd: int, size: int, cap: int, path: Path) -> bytes:
    if size > cap:
        raise _too_large(size, cap, path)
    content = os.read(fd, size + 1)
    if len(content) == size:
        return content
    # The file grew or shrank since it was measured, or the kernel gave less than asked.
    parts = [content]
    total = len(content)
    while part := os.read(fd, 1 << 20):
        parts.append(part)
        total += len(part)
        if total > cap:
            raise _too_large(total, cap, path)
    return b"".join(parts)


def _too_large(size: int, cap: int, path: Path) -> OSError:
    return OSError(errno.EFBIG, f"File too large ({size} bytes, at most {cap} are read)", str(path))


def _like(target: Path) -> os.stat_result | None:
    """What to keep of the file that is replaced; refuses what is no regular file, as a device someone linked to."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", str(target))
    return found


def _write_new(temp: Path, chunks: Iterable[Buffer], like: os.stat_result | None) -> None:
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        for chunk in chunks:
            view = memoryview(chunk)
            while view:
                view = view[os.write(fd, view) :]
        if like is not None:
            _take_after(fd, like)
        os.fsync(fd)
    finally:
        os.close(fd)


def _take_after(fd: int, like: os.stat_result) -> None:
    """The mode of the file that is replaced, and its owner: with `sudo`, a person's file stays the person's."""
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.fchown(fd, like.st_uid, like.st_gid)
        except PermissionError:
            # Only root gives files away, but who shares one through a group keeps it shared.
            with suppress(PermissionError):
                os.fchown(fd, -1, like.st_gid)
    os.fchmod(fd, stat.S_IMODE(like.st_mode))


def _sync_folder(folder: Path) -> None:
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        if error.errno not in _FOLDER_CANNOT_SYNC:
            raise


def sweep(folder: Path, age: float = _LEFTOVER_AGE) -> None:
    """Removes temp files that a killed process left behind; names are never reused, so old means dead."""
    before = time.time() - age
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_TEMP_PREFIX) and entry.name.endswith(_TEMP_SUFFIX):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < before:
                        (folder / entry.name).unlink()
