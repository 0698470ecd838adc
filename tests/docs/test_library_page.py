"""The examples on the page about the library run, against real servers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, run_block

PAGE = ROOT / "docs" / "library.md"
SERVERS = ROOT / "examples" / "servers"


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project with two of the example servers, listed before."""
    for variable in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pegboard.toml").write_text(
        "".join(
            f'[servers.{name}]\ncommand = "{sys.executable}"\nargs = ["{SERVERS / name}.py"]\n'
            f'env = {{ NOTES_FILE = "{tmp_path}/notes.db" }}\n'
            for name in ("units", "notes")
        )
    )


@pytest.mark.parametrize(
    ("line", "source"), blocks(PAGE), ids=lambda value: f"line {value}" if isinstance(value, int) else ""
)
def test_each_example_runs_as_it_stands(line: int, source: str, configured: None) -> None:
    from pegboard.cli.main import main

    assert main(["refresh"]) == 0
    run_block(PAGE, line, source, {"python": sys.executable, "units_server": str(SERVERS / "units.py")})
