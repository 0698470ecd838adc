"""Thresholds that definitions never reach."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.doctor.checks.causes import AUTO, THRESHOLD
from pegboard.doctor.checks.claude_rules import mode, threshold
from tests.unit.doctor.checks.made import (
    NOW,
    causes,
    deferred,
    definitions,
    findings,
    session,
    sessions,
    setting,
    state,
)


def test_auto_below_its_threshold_is_found_and_can_go() -> None:
    [finding] = findings(state(setting("ENABLE_TOOL_SEARCH", "auto")), *sessions(3))
    assert (finding.cause, finding.sessions) == (AUTO, 3)
    assert "100,000 tokens" in finding.why
    assert finding.fix is not None
    assert (finding.fix.kind, finding.fix.value) == ("defer-enable", "")


@pytest.mark.parametrize("value", ["AUTO", " auto ", "auto:", "auto:abc", "auto:-5", "auto:5.5", "auto:" + "9" * 5_000])
def test_auto_without_a_number_that_makes_sense_waits_for_a_tenth(value: str) -> None:
    assert (mode(value), threshold(value)) == ("threshold", 10)
    [finding] = findings(state(setting("ENABLE_TOOL_SEARCH", value)), *sessions(3))
    assert (finding.cause, finding.fix and finding.fix.value) == (AUTO, "")


def test_a_number_that_somebody_chose_is_made_tighter() -> None:
    whole = definitions("github", 24, tokens=500)
    [finding] = findings(
        state(setting("ENABLE_TOOL_SEARCH", "auto:40")), *sessions(3, definitions=whole, models=("claude-haiku-4-5",))
    )
    assert finding.cause == THRESHOLD
    assert finding.fix is not None
    assert (finding.fix.kind, finding.fix.value) == ("defer-threshold", "auto:6")


def test_a_number_that_would_be_nothing_is_taken_away() -> None:
    [finding] = findings(state(setting("ENABLE_TOOL_SEARCH", "auto:40")), *sessions(3))
    assert finding.fix is not None
    assert finding.fix.value == ""


def test_definitions_that_are_not_worth_it_are_left_alone() -> None:
    few = definitions("github", 9, tokens=500)
    assert causes(state(setting("ENABLE_TOOL_SEARCH", "auto:40")), *sessions(3, definitions=few)) == []


def test_a_threshold_that_is_reached_is_no_finding() -> None:
    reached = [deferred(number) for number in range(6)]
    assert causes(state(setting("ENABLE_TOOL_SEARCH", "auto:5")), session(0), *reached) == []


def test_a_threshold_that_some_sessions_reach_is_a_finding_for_the_others() -> None:
    some = [deferred(0), session(1), deferred(2), session(3)]
    [finding] = findings(state(setting("ENABLE_TOOL_SEARCH", "auto:20")), *some)
    assert (finding.cause, finding.sessions) == (THRESHOLD, 2)


def test_sessions_from_before_a_threshold_was_set_do_not_speak_for_it() -> None:
    assert causes(state(setting("ENABLE_TOOL_SEARCH", "auto", changed_at=NOW)), *sessions(3)) == []


def test_in_a_shell_the_new_value_is_shown_and_not_written() -> None:
    shell = setting("ENABLE_TOOL_SEARCH", "auto:40", scope="shell", file=Path("/home/ada/.zshrc"), line=7)
    whole = definitions("github", 24, tokens=500)
    [finding] = findings(state(shell), *sessions(3, definitions=whole, models=("claude-haiku-4-5",)))
    assert finding.fix is None
    assert "/home/ada/.zshrc, line 7" in finding.by_hand
    assert "auto:6" in finding.by_hand


@pytest.mark.parametrize("version", ["2.1.7", "2.1.9", "2.1.69"])
def test_the_first_versions_wait_for_more_tools_unasked(version: str) -> None:
    [finding] = findings(state(version=version), *sessions(3, version=version))
    assert (finding.cause, finding.fix) == (AUTO, None)
    assert "claude update" in finding.by_hand


@given(st.integers(0, 1_000))
def test_every_number_is_on_or_off_or_a_threshold(number: int) -> None:
    value = f"auto:{number}"
    expected = "on" if number == 0 else "off" if number >= 100 else "threshold"
    assert mode(value) == expected
    assert threshold(value) == min(number, 100)


@given(st.integers(5_000, 90_000), st.integers(1, 99))
def test_the_tighter_number_is_reached_by_what_stayed_below(tokens: int, percent: int) -> None:
    whole = definitions("github", 1, tokens=tokens)
    found = findings(
        state(setting("ENABLE_TOOL_SEARCH", f"auto:{percent}")),
        *sessions(2, definitions=whole, models=("claude-haiku-4-5",)),
    )
    [finding] = found
    assert finding.fix is not None
    tighter = threshold(finding.fix.value)
    assert tighter < percent
    assert tokens >= 200_000 * tighter // 100
