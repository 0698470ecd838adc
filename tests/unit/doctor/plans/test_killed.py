"""`kill -9` at every call that changes the disk: files are old or new in whole, and the next run settles the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

PROGRAM = "tests.unit.doctor.plans.killed"
ROOT = Path(__file__).parents[4]
HOW = [pytest.param("before", marks=pytest.mark.slow), "half", "after"]
"""A call is not made, a write is half made, a call is the last that is made."""


def kills(folder, what, how):
    """What was told of every kill; the last line is of the run that was left alone."""
    done = subprocess.run(
        [sys.executable, "-m", PROGRAM, str(folder), what, how],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *killed, last = map(json.loads, done.stdout.splitlines())
    assert all(each["killed"] for each in killed)
    assert not last["killed"]
    return killed, last


@pytest.mark.parametrize("how", HOW)
def test_a_kill_at_any_call_of_apply_leaves_old_or_new_and_the_next_run_settles_it(how, quick):
    killed, last = kills(quick, "apply", how)
    assert {each["left"] for each in killed} == {"old old", "new old", "new new"}
    assert len(killed) > 40, "every call was tried"
    ends = Counter((each["settled"], *each["statuses"]) for each in killed)
    assert ends.keys() == {("old",), ("new", "applied")}, "taken back whole, or finished"
    assert [each for each in killed if each["left"] == "new old" and each["settled"] != "old"] == []
    assert {each["in the end"] for each in (*killed, last)} == {"old"}, "and all goes on from there"
    words = {said.partition(") ")[2] for each in killed for said in each["said"]}
    assert words == {"had been cut short; it was taken back whole.", "had been cut short; it is whole."}


@pytest.mark.parametrize("how", HOW)
def test_a_kill_at_any_call_of_undo_leaves_old_or_new_and_the_next_run_finishes_it(how, quick):
    killed, last = kills(quick, "undo", how)
    assert {each["left"] for each in killed} == {"new new", "old new", "old old"}
    assert len(killed) > 20
    ends = Counter((each["settled"], *each["statuses"]) for each in killed)
    assert ends.keys() == {("old", "undone"), ("new", "applied")}
    assert [each for each in killed if "old" in each["left"] and each["settled"] != "old"] == []
    assert {each["in the end"] for each in (*killed, last)} == {"old"}


@pytest.mark.parametrize("how", HOW)
def test_a_kill_at_any_call_of_settling_is_settled_by_the_run_after_that(how, quick):
    killed, last = kills(quick, "recover", how)
    assert {each["left"] for each in killed} == {"new old", "old old"}
    assert {each["settled"] for each in (*killed, last)} == {"old"}
    assert {each["in the end"] for each in (*killed, last)} == {"old"}
