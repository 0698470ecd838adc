"""The session on the proxy's page is one that happens, and it can be taken back."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from pegboard.config.installers.agents import AGENTS
from tests.agents.packages import PACKAGES

PAGE = (Path(__file__).parents[2] / "docs" / "proxy.md").read_text("utf-8")
SETTINGS = """\
{
  "provider": {
    "corp": {
      "npm": "@ai-sdk/openai-compatible",
      "options": {"baseURL": "https://llm.corp.example/v1"}
    }
  }
}
"""


def pegboard(home: Path, *words: str) -> str:
    source = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "pegboard", *words],
        cwd=home,
        env={"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **source},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout.replace(str(home), "/home/me")


def test_the_edit_on_the_page_is_the_edit_that_is_made_and_taken_back(tmp_path: Path) -> None:
    settings = tmp_path / ".config" / "opencode" / "opencode.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(SETTINGS)
    [block] = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    command, shown = block.split("\n", 1)
    assert pegboard(tmp_path, *command.split()[2:]).startswith(shown)
    pegboard(tmp_path, "proxy", "uninstall", "opencode")
    assert settings.read_text() == SETTINGS


def test_the_page_names_every_agent() -> None:
    assert [agent.id for agent in AGENTS if f"`{agent.id}`" not in PAGE] == []


def test_the_page_has_the_versions_that_are_tried() -> None:
    tried = PAGE.partition("## Tried with")[2].partition("\n## ")[0]
    assert [each for each in PACKAGES.values() if f"| {each.version} |" not in tried] == []
