"""What the doctor's page shows is what the doctor says, and it names every finding."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pegboard.doctor.checks import CAUSES
from tests.homes import HomeBuilder
from tests.homes.causes import off_by_variable

PAGE = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text("utf-8")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> HomeBuilder:
    return off_by_variable(tmp_path_factory.mktemp("home"))


def pegboard(home: HomeBuilder, *words: str) -> str:
    source = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "pegboard", *words],
        cwd=home.project,
        env={**home.environ, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **source},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_the_sessions_on_the_page_happen(home: HomeBuilder) -> None:
    blocks = re.findall(r"```console\n\$ pegboard (doctor[^\n]*)\n(.*?)```", PAGE, re.DOTALL)
    assert blocks
    for command, shown in blocks:
        assert pegboard(home, *command.split()) == shown


def test_the_page_names_every_finding() -> None:
    assert [cause for cause in CAUSES if f"| `{cause}" not in PAGE] == []


def test_scripts_get_the_fields_that_the_page_names(home: HomeBuilder) -> None:
    found = json.loads(pegboard(home, "doctor", "--json"))
    [section] = re.findall(r"## For scripts\n(.*?)(?:\n## |\Z)", PAGE, re.DOTALL)
    [inner] = re.findall(r"each with (.*?)\)", section, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", inner)) <= set(found["findings"][0])
    outer = set(re.findall(r"`(\w+)`", section.replace(inner, "")))
    assert outer <= {*found, "json"}
