"""Skills as the disk has them: names and descriptions of all, at once; of a file that did not change nothing is read.

A folder with a SKILL.md is a skill; it lies one or two levels below a root, or is the root. Of two skills of one name
the one in the later root stands. What is wrong with a file costs that file alone. Above: the engine and the command
line. Below: `parse`, `read`.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from pegboard.config.model import SkillRoot
from pegboard.errors import SkillNotFound, SkillUnreadable
from pegboard.skills.parse import MAX_HEADER, Header, Malformed, body_of, header_in
from pegboard.skills.read import MAX_BYTES, Listing, further_files, read_bytes, read_text

FILES = ("SKILL.md", "skill.md")
LOOK_SECONDS = 2.0
"""How often, at most, the disk is looked at again."""
MAX_FOLDERS = 2_000
"""Folders looked into below one root; a home directory given by mistake must not take minutes."""
_MOST_NAMED = 40
_NEAR = 3

Stamp = tuple[int, int, int, int]


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """One skill, but for its body and its files."""

    name: str
    description: str
    tools: tuple[str, ...] = ()
    folder: Path
    root: Path
    file: str = FILES[0]
    stamp: Stamp = (0, 0, 0, 0)
    """Of the file, as it was when its header was read."""
    remarks: tuple[str, ...] = ()

    def body(self) -> str:
        """What it says, read now."""
        return body_of(read_text(self.folder, self.file))

    def text(self, path: str) -> str:
        """One of its files, read now."""
        return read_text(self.folder, path)

    def files(self) -> Listing:
        """What else its folder holds."""
        return further_files(self.folder, self.file)


class Skills(msgspec.Struct, frozen=True, kw_only=True):
    """All skills there are: an immutable value, replaced when something changes."""

    version: str = ""
    """Another one whenever a skill comes, goes, or says something else of itself."""
    skills: dict[str, Skill] = {}
    """By name, sorted."""
    problems: tuple[str, ...] = ()
    """What was skipped or is odd, and why."""

    def find(self, name: str) -> Skill:
        """The skill of this name, whatever its case and however its words are joined."""
        found = self.skills.get(name.strip())
        if found is not None:
            return found
        loosely = [each for each in self.skills if _loose(each) == _loose(name)]
        if len(loosely) == 1:
            return self.skills[loosely[0]]
        raise SkillNotFound(name[:100], _nearest(name, self.skills), tuple(self.skills)[:_MOST_NAMED])


class SkillSource:
    """Looks for skills in some roots, weakest first. May be used from any thread."""

    def __init__(self, roots: Sequence[SkillRoot], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._roots = tuple(roots)
        self._clock = clock
        self._lock = threading.Lock()
        self._read: dict[Path, tuple[Stamp, Header | str]] = {}
        self._known: Skills | None = None
        self._looked = 0.0

    @property
    def known(self) -> Skills:
        """What was there when it was last looked; the first time, it is looked."""
        return self._known if self._known is not None else self.look()

    @property
    def is_due(self) -> bool:
        """Whether the next look would go to the disk."""
        return self._known is None or self._clock() - self._looked >= LOOK_SECONDS

    def look(self, *, at_once: bool = False) -> Skills:
        """What is there now; seldom more often than every few seconds. The same value while nothing changed."""
        with self._lock:
            if self._known is not None and not at_once and not self.is_due:
                return self._known
            found = self._scanned()
            if self._known is None or found != self._known:
                self._known = found
            self._looked = self._clock()
            return self._known

    def _scanned(self) -> Skills:
        skills: dict[str, Skill] = {}
        problems: list[str] = []
        seen: dict[Path, tuple[Stamp, Header | str]] = {}
        for root in self._roots:
            here: dict[str, Skill] = {}
            for folder in _folders(root, problems):
                skill = self._skill(root, folder, seen, problems)
                if skill is None:
                    continue
                first = here.setdefault(skill.name, skill)
                if first.stamp != skill.stamp:  # one file by two ways, as links make them, is one skill
                    problems.append(f"{folder / skill.file}: skipped: {first.folder} has the name {skill.name} too")
            skills |= here
        self._read = seen
        ordered = {name: skills[name] for name in sorted(skills)}
        for skill in ordered.values():
            problems += (f"{skill.folder / skill.file}: {remark}" for remark in skill.remarks)
        told = (problem.replace("\n", "\\n") for problem in dict.fromkeys(problems))  # folders have any name
        return Skills(version=_version(ordered.values()), skills=ordered, problems=tuple(told))

    def _skill(
        self, root: SkillRoot, folder: Path, seen: dict[Path, tuple[Stamp, Header | str]], problems: list[str]
    ) -> Skill | None:
        for file in FILES:
            path = folder / file
            stamp = _stamp(path)
            if stamp is None:
                continue
            known = self._read.get(path)
            header = known[1] if known is not None and known[0] == stamp else _header(folder, file, stamp)
            seen[path] = (stamp, header)
            if isinstance(header, str):
                problems.append(f"{path}: skipped: {header}")
                return None
            return Skill(
                name=header.name,
                description=header.description,
                tools=header.tools,
                folder=folder,
                root=root.path,
                file=file,
                stamp=stamp,
                remarks=header.remarks,
            )
        return None


def _folders(root: SkillRoot, problems: list[str]) -> Iterator[Path]:
    """The folders that may be skills, in a stable order."""
    path = root.path
    if _is_skill(path):
        yield path
        return
    try:
        upper = _subfolders(path, problems)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        if root.named or not missing:
            reason = "there is no such folder" if missing else error.strerror or str(error)
            problems.append(f"{path}: no skills were looked for here: {reason}")
        return
    looked_at = 0
    for name in upper:
        inner = [path / name] if _is_skill(path / name) else _below(path / name, problems)
        for folder in inner:
            looked_at += 1
            if looked_at > MAX_FOLDERS:
                problems.append(f"{path}: only the first {MAX_FOLDERS:,} folders were looked into")
                return
            yield folder


def _below(folder: Path, problems: list[str]) -> list[Path]:
    try:
        return [folder / name for name in _subfolders(folder, problems)[:MAX_FOLDERS]]
    except FileNotFoundError:
        return []  # it went just now
    except OSError as error:
        problems.append(f"{folder}: skipped: {error.strerror or error}")
        return []


def _subfolders(folder: Path, problems: list[str]) -> list[str]:
    # Hidden folders hold other programs' files.
    with os.scandir(folder) as found:
        return sorted(entry.name for entry in found if not entry.name.startswith(".") and _is_folder(entry, problems))


def _is_folder(entry: os.DirEntry[str], problems: list[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:  # a link in a circle, or to where nobody may look
        problems.append(f"{entry.path}: skipped: {error.strerror or error}")
        return False


def _is_skill(folder: Path) -> bool:
    return any(os.path.lexists(folder / file) for file in FILES)


def _stamp(path: Path) -> Stamp | None:
    """What changes when the file does; None when there is none."""
    try:
        about = path.lstat()
        if stat.S_ISLNK(about.st_mode):
            about = path.stat()
    except FileNotFoundError:
        return (0, 0, 0, 0) if os.path.lexists(path) else None  # a link to nothing is told of
    except OSError:
        return (0, 0, 0, 0)
    return about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino


def _header(folder: Path, file: str, stamp: Stamp) -> Header | str:
    """The header, or why there is none."""
    if stamp[2] > MAX_BYTES:
        return f"it has {stamp[2]:,} bytes, more than {MAX_BYTES:,}"
    try:
        return header_in(read_bytes(folder, file, MAX_HEADER))
    except SkillUnreadable as error:
        return error.message.rstrip(".")
    except Malformed as error:
        return str(error)


def _version(skills: Iterable[Skill]) -> str:
    state = hashlib.sha256()
    for skill in skills:
        for part in (skill.name, skill.description, *skill.tools, str(skill.folder)):
            raw = part.encode("utf-8", "surrogatepass")
            state.update(b"%d:" % len(raw) + raw)
        state.update(b";")
    return state.hexdigest()


def _loose(name: str) -> str:
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _nearest(name: str, names: Iterable[str]) -> tuple[str, ...]:
    import difflib

    return tuple(difflib.get_close_matches(name[:100], list(names), n=_NEAR, cutoff=0.6))
