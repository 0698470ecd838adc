"""What the doctor's page shows of plans and undoing is what happens, and it names every kind of plan."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from pegboard.doctor.facts import FixKind
from tests.docs.test_doctor_page import PAGE, pegboard
from tests.homes.causes import off_by_variable


def _section() -> str:
    [section] = re.findall(r"## Mending it\n(.*?)(?:\n## |\Z)", PAGE, re.DOTALL)
    return str(section)


def test_the_plan_and_the_undoing_on_the_page_happen(tmp_path: Path) -> None:
    home = off_by_variable(tmp_path)
    before = (home.folder / ".claude" / "settings.json").read_bytes()

    def shown(*words: str) -> str:
        said = pegboard(home, *words).replace(str(home.folder), "/home/ada")
        return re.sub(r"\b[0-9a-f]{12}\b", "2b6d3d9b616c", said)

    plan, undo = re.findall(r"```text\n\$ pegboard (doctor [^\n]*)\n(.*?)```", _section(), re.DOTALL)
    assert shown(*plan[0].split()) == plan[1]
    assert (home.folder / ".claude" / "settings.json").read_bytes() == before
    pegboard(home, "doctor", "apply", "deferral-off-env", "--yes")
    assert (home.folder / ".claude" / "settings.json").read_bytes() != before
    assert shown(*undo[0].split()) == undo[1]
    assert (home.folder / ".claude" / "settings.json").read_bytes() == before


def test_the_page_names_every_kind_of_plan() -> None:
    assert [kind for kind in get_args(FixKind) if f"| `{kind}` |" not in _section()] == []
