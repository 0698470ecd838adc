"""Files in folders that may be missing, closed or anything else; what cannot be looked into is noted.

Above: the readers. Below: the tally.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pegboard.doctor.evidence.tally import Tally


def is_folder(path: Path, tally: Tally) -> bool:
    """Whether it is one, as far as anybody can tell."""
    try:
        return path.is_dir()
    except OSError as error:
        tally.cannot_read(path, error)
        return False


def files_below(folder: Path, is_meant: Callable[[str], bool], tally: Tally) -> list[Path]:
    """Those with such names in it, and in the folders in it, sorted."""

    def closed(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            tally.cannot_read(Path(error.filename), error)

    found = os.walk(folder, onerror=closed)
    return sorted(Path(place) / name for place, _, names in found for name in names if is_meant(name))
