"""In homes as people have them: each server that is turned off is off to the agent, and comes back to the byte."""

from __future__ import annotations

import pytest

from pegboard.doctor.facts import ServerEntry
from pegboard.doctor.plans.changes import is_editable
from pegboard.doctor.settings.read import read_states
from tests.homes.golden_homes import AGENTS, golden
from tests.unit.doctor.plans.made import Bench, disable


def servers_in(home):
    """Every server that runs somewhere, by where it is said."""
    states = read_states(home.machine, [home.project])
    entries = (entry for state in states for entry in state.servers if entry.enabled and is_editable(entry))
    return {(entry.file, entry.key): entry for entry in entries}


def is_off(entry: ServerEntry, home) -> bool:
    return (entry.file, entry.key) not in servers_in(home)


@pytest.mark.parametrize("agent", AGENTS)
def test_turning_a_server_off_is_seen_by_whoever_reads_the_settings(agent, tmp_path):
    home = golden(agent, tmp_path)
    bench = Bench(tmp_path / "bench")
    bench.home = home.root
    before = bench.everything()
    entries = servers_in(home)
    assert entries, "there is something to turn off"
    for entry in entries.values():
        action = bench.apply(disable(entry))
        assert is_off(entry, home), entry.key
        bench.ledger.undo(action)
        assert not is_off(entry, home)
    for name, each in bench.everything().items():
        assert name.startswith("bench") or before[name] == each
