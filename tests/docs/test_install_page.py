"""The session on the page about installing is one that happened."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "install.md"
SETTINGS = """\
{
  "mcpServers": {
    "github": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github"],
      "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_0123456789"},
      "autoApprove": ["get_issue"]
    }
  }
}
"""
SCRIPT = f"#!{sys.executable}\nfrom pegboard.cli.main import run\n\nrun()\n"


def session(home: Path, commands: list[str]) -> str:
    settings = home / ".cursor" / "mcp.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(SETTINGS)
    program = home / ".local" / "bin" / "pegboard"
    program.parent.mkdir(parents=True)
    program.write_text(SCRIPT)
    program.chmod(0o755)
    source = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    shown = ""
    for command in commands:
        _, *words = command.split()
        done = subprocess.run(
            [program, *words],
            cwd=home,
            env={"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **source},
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        shown += f"$ {command}\n{done.stdout}"
    assert settings.read_text() == SETTINGS
    return shown.replace(str(home), "/home/me")


def test_the_session_on_the_page_is_what_happens(tmp_path: Path) -> None:
    [block] = re.findall(r"```console\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    shown = session(tmp_path / "home", commands)
    # Columns and their rules are as wide as the folder's name is long, and a hash names the backup.
    plain = re.compile(r"─+")
    assert plain.sub("─", shown) == plain.sub("─", block)
