"""What earlier reports saw after each change, kept in one file: agents sweep their transcripts away after a month.

It holds sums and names, no words of anybody's. A broken file is begun anew; one that cannot be written stops nobody.
Above: the command. Below: files that are replaced whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from pegboard.doctor.report.samples import Sample
from pegboard.store.files import DiskFiles

FORMAT = 1


class _Content(msgspec.Struct):
    format: int
    changes: dict[str, tuple[Sample, ...]]


class Seen:
    """The sessions that were seen, by the id of the change they came after."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @classmethod
    def of(cls, state_dir: Path) -> Seen:
        """In this state folder."""
        return cls(state_dir / "doctor" / "seen.json")

    def read(self) -> dict[str, tuple[Sample, ...]]:
        """All that was seen; nothing when there is no file, or none that can be understood."""
        try:
            content = msgspec.json.decode(DiskFiles().read(self._file), type=_Content)
        except (OSError, ValueError, msgspec.MsgspecError):
            return {}
        return content.changes if content.format == FORMAT else {}

    def write(self, changes: Mapping[str, tuple[Sample, ...]]) -> str:
        """Keeps this instead; says in words why not, should the disk refuse."""
        if not changes and not self._file.exists():
            return ""
        content = msgspec.json.encode(_Content(FORMAT, dict(changes)))
        try:
            if self._file.exists() and self._file.read_bytes() == content:
                return ""
            DiskFiles().write(self._file, content)
        except OSError as error:
            return f"What was seen could not be kept in {self._file}: {error.strerror or error}"
        return ""
