"""From a finding to its fix and back, through the command line: every kind of plan, in a home that has its cause."""

from __future__ import annotations

import pytest

from pegboard.doctor.checks import causes
from tests.flow.doctor_clinic import Clinic
from tests.homes import causes as homes

KINDS = {
    "defer-enable": causes.ENV,
    "defer-alwaysload": causes.PINNED_SERVER,
    "defer-threshold": causes.THRESHOLD,
    "server-disable": causes.NEVER_CALLED,
    "gateway-install": causes.CODEX_MODEL,
    "proxy-install": causes.NO_DEFERRAL,
}


@pytest.fixture
def clinic(tmp_path, monkeypatch, capsys):
    def opened(cause, **about):
        return Clinic(homes.HOMES[cause](tmp_path, **about), monkeypatch, capsys)

    return opened


@pytest.mark.parametrize(("kind", "cause"), KINDS.items())
def test_a_finding_is_planned_applied_gone_and_undone_to_the_byte(kind, cause, clinic):
    there = clinic(cause)
    before = there.files()
    [finding] = there.json()["findings"]
    assert finding["fix"]["kind"] == kind
    [plan] = there.json("plan", finding["id"])
    assert plan["applicable"], plan
    assert plan["files"]
    assert plan["effect"].startswith("From the next session on")
    assert there.files() == before, "looking changes nothing"
    [row] = there.json("apply", finding["id"], "--yes")
    assert row["applied"], row
    assert row["diff"] == plan["diff"]
    changed = {name for name, each in there.files().items() if before.get(name) != each}
    assert {str(there.home.root / name) for name in changed} == set(plan["files"])
    assert there.json()["findings"] == []
    undone = there.json("undo")
    assert undone["status"] == "undone"
    assert there.files() == before
