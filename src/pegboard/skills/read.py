"""Files of one skill, and of nothing else: what is asked for must lie in its folder, be a file, and be text.

Links are followed as long as they stay inside. The path is then opened folder by folder without following any, so that
nothing swapped in between leads elsewhere. Above: `source`, and whoever loads a skill. Below: the errors.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from pegboard.errors import SkillUnreadable

MAX_BYTES = 256 * 1024
"""Of a file that is read at all."""
MOST_FILES = 200
_MOST_ENTRIES = 2_000
_DEEPEST = 6
_LONGEST_PATH = 1024
_PASSED_OVER = frozenset({"__pycache__", "node_modules"})


class FileInfo(msgspec.Struct, frozen=True):
    """One more file of a skill."""

    path: str
    """Relative to the skill's folder, with `/`."""
    size: int


class Listing(msgspec.Struct, frozen=True):
    """The files of a skill besides SKILL.md."""

    files: tuple[FileInfo, ...] = ()
    complete: bool = True
    """False when there are more than are looked at."""


def read_text(folder: Path, path: str) -> str:
    """A file of the skill as text."""
    raw = read_bytes(folder, path, MAX_BYTES + 1, whole=True)
    shown = shown_path(path)
    if b"\0" in raw:
        raise SkillUnreadable(f"{shown} is not text, and is not shown ({len(raw):,} bytes).")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SkillUnreadable(
            f"{shown} is not UTF-8 text, and is not shown: line {line} has the byte 0x{raw[error.start]:02x}."
        ) from None


def read_bytes(folder: Path, path: str, most: int, *, whole: bool = False) -> bytes:
    """At most so many bytes of a file of the skill; `whole`: one that has more than may be read is refused."""
    shown = shown_path(path)
    try:
        handle = _opened(folder, _inside(folder, path))
    except FileNotFoundError:
        raise SkillUnreadable(f"The skill has no file {shown}.") from None
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle are a RuntimeError of Python's
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a possible path"
        raise SkillUnreadable(f"{shown} cannot be read: {reason}.") from None
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise SkillUnreadable(f"{shown} is not a file.")
        if whole and about.st_size > MAX_BYTES:
            raise SkillUnreadable(f"{shown} has {about.st_size:,} bytes, more than the {MAX_BYTES:,} that are read.")
        try:
            raw = file.read(most)
        except OSError as error:
            raise SkillUnreadable(f"{shown} cannot be read: {error.strerror or error}.") from None
    if whole and len(raw) > MAX_BYTES:
        raise SkillUnreadable(f"{shown} has more than the {MAX_BYTES:,} bytes that are read.")
    return raw


def further_files(folder: Path, main: str) -> Listing:
    """What else the folder holds, sorted; hidden files and what leads out are passed over."""
    found: list[FileInfo] = []
    real = _real(folder)
    todo, looked_at = [("", 0)], 0
    while todo:
        below, depth = todo.pop()
        for name in _names(folder / below):
            looked_at += 1
            if looked_at > _MOST_ENTRIES or len(found) >= MOST_FILES:
                return Listing(tuple(sorted(found, key=lambda each: each.path)), complete=False)
            path = f"{below}/{name}" if below else name
            if path == main:
                continue
            info = _looked_at(folder, real, path)
            if isinstance(info, FileInfo):
                found.append(info)
            elif info and depth < _DEEPEST:
                todo.append((path, depth + 1))
    return Listing(tuple(sorted(found, key=lambda each: each.path)))


def shown_path(path: str) -> str:
    """A path that somebody chose, fit to be quoted."""
    short = path if len(path) <= 200 else path[:199] + "…"
    return repr(short)


def _inside(folder: Path, path: str) -> tuple[str, ...]:
    """The parts of the path below the skill's folder, links resolved."""
    if not path.strip() or "\0" in path or len(path) > _LONGEST_PATH:
        raise SkillUnreadable(f"{shown_path(path)} is not a possible path.")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith(("/", "~")) or ".." in parts or not parts:
        raise SkillUnreadable(
            f"{shown_path(path)} is not a path inside the skill's folder.",
            hint="Paths are relative to the skill's folder, without `..`.",
        )
    if any(part.startswith(".") for part in parts):  # .env and .git may hold secrets; a link to them is meant
        raise SkillUnreadable(f"{shown_path(path)} is hidden, and is not read.")
    real = folder.resolve(strict=True)
    target = real.joinpath(*parts).resolve(strict=True)
    if not target.is_relative_to(real) or target == real:
        raise SkillUnreadable(f"{shown_path(path)} leads out of the skill's folder, and is not read.")
    return target.relative_to(real).parts


def _opened(folder: Path, parts: tuple[str, ...]) -> int:
    """The file, opened step by step; what is no file is not opened at all, for opening some devices does things."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = below
        if not stat.S_ISREG(os.stat(parts[-1], dir_fd=at, follow_symlinks=False).st_mode):
            raise SkillUnreadable(f"{shown_path('/'.join(parts))} is not a file.")
        return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    finally:
        os.close(at)


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as found:
            names = [entry.name for _, entry in zip(range(_MOST_ENTRIES), found, strict=False)]
    except OSError:
        return []
    fit = (name for name in names if not name.startswith(".") and name not in _PASSED_OVER and name.isprintable())
    return sorted(fit)


def _looked_at(folder: Path, real: Path | None, path: str) -> FileInfo | bool:
    """A file; True for a folder to look into; False for what is passed over."""
    place = folder / path
    try:
        about = place.lstat()
        if stat.S_ISLNK(about.st_mode):
            if real is None or not place.resolve(strict=True).is_relative_to(real):
                return False
            about = place.stat()
            return FileInfo(path, about.st_size) if stat.S_ISREG(about.st_mode) else False
    except (OSError, RuntimeError):
        return False
    return FileInfo(path, about.st_size) if stat.S_ISREG(about.st_mode) else stat.S_ISDIR(about.st_mode)


def _real(folder: Path) -> Path | None:
    try:
        return folder.resolve(strict=True)
    except (OSError, RuntimeError):
        return None
