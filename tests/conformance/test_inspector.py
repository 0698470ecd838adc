"""The official inspector at `pegboard serve`: it lists, searches and calls, as a person would with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.suite import CannotInstall, installed
from tests.flow.shell import Shell
from tests.servers import example_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PACKAGE, VERSION = "@modelcontextprotocol/inspector", "2.12.0"
MILES = json.dumps({"value": 26.2, "from_unit": "mi", "to_unit": "km"})


@pytest.fixture(scope="module")
def inspector() -> list[str]:
    try:
        node, folder = installed(PACKAGE, VERSION)
    except CannotInstall as error:
        pytest.skip(f"the inspector cannot be installed here: {error}")
    return [str(node), str(folder / "clients" / "launcher" / "build" / "index.js"), "--cli"]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    shell = Shell(tmp_path_factory.mktemp("inspected"))
    shell.server("units", example_command("units"))
    with (shell.folder / "pegboard.toml").open("a") as config:
        config.write('[surface]\nmode = "on"\n')
    shell.run("refresh")
    return shell


def inspect(inspector: list[str], shell: Shell, *arguments: str) -> Any:
    """What the inspector prints. It starts servers with a bare environment, as desktop clients do."""
    path = ["-e", f"PYTHONPATH={os.environ['PYTHONPATH']}"] if "PYTHONPATH" in os.environ else []
    served = [sys.executable, "-m", "pegboard", "serve"]
    done = subprocess.run(
        [*inspector, *path, *served, *arguments],
        cwd=shell.folder, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PATH": f"{Path(inspector[0]).parent}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_it_lists_our_four_tools(inspector: list[str], shell: Shell) -> None:
    listed = inspect(inspector, shell, "--method", "tools/list")
    assert [tool["name"] for tool in listed["tools"]] == ["search_tools", "call_tool", "batch_tools", "read_result"]


def test_it_searches(inspector: list[str], shell: Shell) -> None:
    asked = ["--tool-name", "search_tools", "--tool-arg", "query=how many km are 26 miles"]
    found = inspect(inspector, shell, "--method", "tools/call", *asked)
    assert "units__convert(" in found["content"][0]["text"]


def test_it_calls(inspector: list[str], shell: Shell) -> None:
    asked = ["--tool-name", "call_tool", "--tool-arg", "name=units__convert", "--tool-arg", f"arguments={MILES}"]
    called = inspect(inspector, shell, "--method", "tools/call", *asked)
    assert "42.1648" in called["content"][0]["text"]
