"""The command line before any command runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

SHOW = (
    "import os\n"
    "from pegboard.cli.main import main\n"
    "main(['eval', 'intents', '--own', '--json'])\n"
    "print(os.environ.get('OPENBLAS_NUM_THREADS'))\n"
)


@pytest.mark.parametrize("chosen", [None, "2"])
def test_what_numpy_is_told_about_cores_is_not_left_in_the_environment(
    chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if chosen:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", chosen)
    done = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout.splitlines()[-1] == str(chosen)
