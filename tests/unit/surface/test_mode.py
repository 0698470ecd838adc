"""Whether tools are deferred at all."""

from __future__ import annotations

import pytest

from pegboard.config.model import SurfaceConfig
from pegboard.surface.mode import decide, threshold_tokens


def weighing(tokens):
    return lambda limit: tokens > limit


@pytest.mark.parametrize(
    ("threshold", "window", "tokens"),
    [("10%", 200_000, 20_000), ("2.5%", 100_000, 2_500), ("0%", 200_000, 0), (5_000, 200_000, 5_000), (0, 9, 0)],
)
def test_a_threshold_is_a_share_of_the_window_or_tokens(threshold, window, tokens):
    assert threshold_tokens(SurfaceConfig(threshold=threshold, context_window=window)) == tokens


@pytest.mark.parametrize(("tokens", "deferring"), [(0, False), (20_000, False), (20_001, True)])
def test_auto_defers_what_exceeds_the_threshold(tokens, deferring):
    assert decide(SurfaceConfig(), weighing(tokens)).deferring is deferring


def test_off_and_on_do_not_ask_what_the_tools_weigh():
    def never(limit):
        raise AssertionError(limit)

    assert decide(SurfaceConfig(mode="on"), never).deferring
    assert not decide(SurfaceConfig(mode="off"), never).deferring


@pytest.mark.parametrize(("first", "later"), [(10, 999_999), (999_999, 10)])
def test_what_was_decided_for_a_conversation_stays(first, later):
    decided = decide(SurfaceConfig(), weighing(first))
    assert decide(SurfaceConfig(), weighing(later), before=decided) == decided


def test_few_tools_decide_nothing_while_others_are_not_known_yet():
    early = decide(SurfaceConfig(), weighing(10), complete=False)
    assert not early.deferring
    assert decide(SurfaceConfig(), weighing(999_999), before=early).deferring


def test_enough_tools_decide_it_even_if_others_are_not_known_yet():
    early = decide(SurfaceConfig(), weighing(999_999), complete=False)
    assert decide(SurfaceConfig(), weighing(10), before=early).deferring


@pytest.mark.parametrize("changed", [{"threshold": 5}, {"context_window": 50}, {"mode": "on"}])
def test_other_settings_are_another_question(changed):
    before = decide(SurfaceConfig(), weighing(100))
    assert decide(SurfaceConfig(**changed), weighing(100), before=before).deferring


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_a_cap_of_zero_turns_deferral_off_and_says_so(mode):
    verdict = decide(SurfaceConfig(mode=mode, max_active=0), weighing(999_999))
    assert not verdict.deferring
    assert "max_active = 0" in verdict.warning


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_without_a_tool_that_searches_nothing_is_deferred(mode):
    verdict = decide(SurfaceConfig(mode=mode), weighing(999_999), searchable=False)
    assert not verdict.deferring
    assert "could not be found" in verdict.warning


def test_off_needs_no_warning():
    assert not decide(SurfaceConfig(mode="off", max_active=0), weighing(1), searchable=False).warning
