"""A folder on a disk that need not turn, where there is one: what is tested here syncs thousands of times."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")


@pytest.fixture
def quick(tmp_path):
    """The folder, which is gone afterwards."""
    if not os.access(_MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=_MEMORY) as folder:
        yield Path(folder)
