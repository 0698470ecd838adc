"""How far the reading is, and what could not be read. Above: `gather`. Below: `names`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pegboard.doctor.evidence.names import text_of

Progress = Callable[[int, int], None]
"""Told the bytes that were read, and how many there are to read."""


class Tally:
    """Counts files and bytes over all agents."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.read_bytes = 0
        self.read_files = 0
        self.notes: list[str] = []
        self.total = 0
        self._progress = progress

    def begin_file(self) -> None:
        """Another file is opened."""
        self.read_files += 1

    def reached(self, within: int) -> None:
        """So much of this file was read."""
        self._tell(self.read_bytes + within)

    def end_file(self, length: int) -> None:
        """It was read to its end."""
        self.read_bytes += length
        self._tell(self.read_bytes)

    def note(self, text: str) -> None:
        """Something that a person may want to know, once."""
        text = text_of(text)
        if text not in self.notes:
            self.notes.append(text)

    def cannot_read(self, path: Path, error: OSError) -> None:
        """A file that nothing is known of therefore."""
        self.note(f"{path} cannot be read: {error.strerror or error}")

    def _tell(self, done: int) -> None:
        if self._progress is not None:
            # A file that grows while it is read is longer than it was counted with.
            self._progress(min(done, self.total), self.total)
