"""The command line before any command runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pegboard.cli.main import main

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


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["stats", "--since", "soon"], "expected a length of time, as in 90s, 15min, 12h, 7d or 4w, got 'soon'"),
        (["call", "x", "--timeout", "nan"], "expected seconds, as in 30 or 2.5, got 'nan'"),
        (["call", "x", "--timeout", "1h"], "expected seconds, as in 30 or 2.5, got '1h'"),
        (["login", "x", "--port", "65536"], "expected a port, 0 to 65535, got '65536'"),
        (["login", "x", "--port", "-1"], "expected a port, 0 to 65535, got '-1'"),
    ],
)
def test_a_flag_that_does_not_fit_is_told_what_it_takes(
    command: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(command)
    assert told in capsys.readouterr().err
