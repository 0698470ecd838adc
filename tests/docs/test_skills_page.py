"""docs/skills.md: its skill is one, its configuration loads, its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from pegboard.skills.parse import header_in
from tests.flow.shell import Shell

PAGE = (Path(__file__).parents[2] / "docs" / "skills.md").read_text("utf-8")
EXAMPLES = dict(re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL))


def test_the_example_works_from_end_to_end(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.plain("plain")
    path = tmp_path / "pegboard.toml"
    path.write_text(path.read_text() + EXAMPLES["toml"])
    header = header_in(EXAMPLES["markdown"].encode())
    folder = tmp_path / "skills" / header.name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(EXAMPLES["markdown"])
    (folder / "style.md").write_text("Features first.")
    shell.run("refresh")
    commands = [shlex.split(line.removeprefix("$ pegboard ")) for line in EXAMPLES["console"].splitlines()]
    listed, shown, file, found = (shell.run(*command).stdout for command in commands)
    assert header.description in listed
    assert "sort it as `style.md` says" in shown
    assert file == "Features first.\n"
    assert EXAMPLES["text"].startswith(found.splitlines()[-2])


def test_the_page_says_every_key_of_a_header_that_is_read() -> None:
    for key in ("`name`", "`description`", "`tools`, `metadata.tools`"):
        assert f"| {key} |" in PAGE
