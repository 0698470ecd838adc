"""The line that shows how far long work has come."""

from __future__ import annotations

import io
import sys

import pytest

from pegboard.cli import progress
from pegboard.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_work_is_shown_on_a_terminal_and_wiped_out_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with Progress() as shown:
        shown("embedding", 256, 1024)
    assert "embedding" in terminal.getvalue()
    assert "256 of 1,024" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_what_is_over_at_once_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr(progress, "PATIENCE", 1000.0)
    with Progress() as shown:
        shown("embedding", 1, 2)
    assert terminal.getvalue() == ""


def test_nothing_is_shown_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", file := io.StringIO())
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with Progress() as shown:
        shown("embedding", 0, 0)
    assert file.getvalue() == ""
