"""The log of a proxy that nobody watches: what went wrong, and never more than a file of bounded size."""

from __future__ import annotations

import io
import os
from pathlib import Path

MOST_BYTES = 1024 * 1024


class BoundedLog(io.TextIOBase):
    """A stream to write to; when the file is too large, the older half of it goes."""

    def __init__(self, path: Path, most: int = MOST_BYTES) -> None:
        super().__init__()
        self._most = most
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def writable(self) -> bool:
        """It is what it is for."""
        return True

    def write(self, text: str) -> int:
        """Adds to the end; a full disk must not end whoever writes."""
        try:
            content = text.encode(errors="backslashreplace")[-self._most :]
            os.write(self._descriptor, content)
            if os.fstat(self._descriptor).st_size > self._most:
                self._shorten()
        except OSError:
            pass
        return len(text)

    def _shorten(self) -> None:
        size = os.fstat(self._descriptor).st_size
        kept = os.pread(self._descriptor, self._most // 2, size - self._most // 2)
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, kept[kept.find(b"\n") + 1 :])

    def close(self) -> None:
        """Gives the file back."""
        if not self.closed:
            os.close(self._descriptor)
        super().close()
