"""Homes of one agent each, with settings as people have them; what is to be read of them is written beside them.

Below `golden/<agent>`: `home`, `project` and `root` are copied, `dot-` at the beginning of a name is a dot, and
`states.json` says what `read_states` gives. `@PROJECT@` and `@HOME@` stand for the folders.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.homes.builder import HomeBuilder

FOLDER = Path(__file__).with_name("golden")
AGENTS = tuple(sorted(each.name for each in FOLDER.iterdir()))


def golden(agent: str, folder: Path) -> HomeBuilder:
    """A home with all that this agent has."""
    home = HomeBuilder(folder)
    for part, place in (("home", home.folder), ("project", home.project), ("root", home.root)):
        source = FOLDER / agent / part
        for file in sorted(each for each in source.rglob("*") if each.is_file()):
            home.file(place / _dotted(file.relative_to(source)), _filled(file.read_text("utf-8"), home))
    return home


def expected(agent: str) -> list[dict[str, Any]]:
    """The states of this agent, with no project and in the project."""
    states: list[dict[str, Any]] = json.loads((FOLDER / agent / "states.json").read_text("utf-8"))
    return states


def _dotted(path: Path) -> Path:
    return Path(*(f".{part.removeprefix('dot-')}" if part.startswith("dot-") else part for part in path.parts))


def _filled(text: str, home: HomeBuilder) -> str:
    return text.replace("@PROJECT@", str(home.project)).replace("@HOME@", str(home.folder))
