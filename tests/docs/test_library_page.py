"""The examples on the page about the library run, against real servers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, SERVERS, a_project, blocks, run_block

PAGE = ROOT / "docs" / "library.md"


@pytest.fixture(scope="module", autouse=True)
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A project with two of the example servers."""
    with a_project(tmp_path_factory.mktemp("project"), "units", "notes"):
        yield


@pytest.mark.parametrize(
    ("line", "source"), blocks(PAGE), ids=lambda value: f"line {value}" if isinstance(value, int) else ""
)
def test_each_example_runs_as_it_stands(
    line: int, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # what one example loads is no other's
    run_block(PAGE, line, source, {"python": sys.executable, "units_server": str(SERVERS / "units.py")})
