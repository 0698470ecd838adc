"""The command that is entered for clients."""

from __future__ import annotations

import sys

import pytest

from pegboard.cli.install_places import executable, is_passing, refuse_unstartable
from pegboard.errors import PegboardError


def test_the_running_script_is_entered_by_its_own_path_and_not_by_what_it_links_to(tmp_path, monkeypatch):
    script = tmp_path / "tools" / "pegboard"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    link = tmp_path / "pegboard"
    link.symlink_to(script)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["./pegboard", "install"])
    assert executable() == (str(link),)


def test_without_a_script_python_runs_the_module(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/x/pegboard/__main__.py"])
    assert executable() == (sys.executable, "-m", "pegboard")


def test_a_command_that_does_not_start_from_a_bare_environment_is_refused(tmp_path):
    refuse_unstartable((sys.executable, "-m", "pegboard"), {"HOME": str(tmp_path)})
    with pytest.raises(PegboardError, match="does not start outside your shell"):
        refuse_unstartable((str(tmp_path / "pegboard"),), {})
    with pytest.raises(PegboardError, match="No module named"):
        refuse_unstartable((sys.executable, "-m", "pegboard_that_is_not"), {})


def test_a_program_in_an_installers_cache_is_known():
    assert is_passing(("/home/me/.cache/uv/archive-v0/abc/bin/pegboard",))
    assert not is_passing(("/home/me/.local/bin/pegboard",))
