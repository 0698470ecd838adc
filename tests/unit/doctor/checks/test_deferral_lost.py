"""Deferral that is off though no setting keeps it off."""

from __future__ import annotations

from pegboard.doctor.checks.causes import HELD_OFF, REFUSED, UNEXPLAINED
from pegboard.doctor.facts import Deferral, Proof
from tests.unit.doctor.checks.made import DAY, NOW, causes, deferred, findings, session, sessions, setting, state

ELSEWHERE = setting("ANTHROPIC_BASE_URL", "https://llm.example.com")


def test_a_refusal_is_found_whatever_the_settings_say() -> None:
    [finding] = findings(state(ELSEWHERE), *sessions(3, refused=True))
    assert (finding.cause, finding.sessions, finding.confidence) == (REFUSED, 3, "high")
    assert finding.fix is not None
    assert finding.fix.kind == "gateway-install"
    assert "verify-endpoint" in finding.by_hand
    assert "as the requests themselves show" in finding.why


def test_a_refusal_is_over_once_the_endpoint_takes_it() -> None:
    assert causes(state(ELSEWHERE), *sessions(3, refused=True), deferred(5)) == []


def test_one_deferral_before_does_not_hide_a_refusal() -> None:
    refused = [session(number, refused=True) for number in range(1, 3)]
    assert causes(state(ELSEWHERE), deferred(0), *refused) == [REFUSED]


def test_a_refusal_owns_its_session_beside_a_setting_that_came_later() -> None:
    off = setting("ENABLE_TOOL_SEARCH", "false", changed_at=NOW)
    found = findings(state(ELSEWHERE, off), *sessions(2, refused=True))
    assert {each.cause: each.sessions for each in found}[REFUSED] == 2


def test_a_conversation_that_was_resumed_stays_without_behind_another_base_url() -> None:
    fresh = [deferred(number) for number in range(3)]
    [finding] = findings(state(ELSEWHERE), *fresh, session(4, resumed=True))
    assert (finding.cause, finding.sessions, finding.fix) == (HELD_OFF, 1, None)
    assert "/compact" in finding.by_hand


def test_a_conversation_that_was_resumed_before_anthropics_own_endpoint_is_not_held_off() -> None:
    resumed = [session(number, resumed=True) for number in range(2)]
    assert causes(state(), *resumed) == [UNEXPLAINED]


def test_what_no_setting_explains_is_said_to_be_unexplained() -> None:
    [finding] = findings(state(), *sessions(3))
    assert (finding.cause, finding.confidence, finding.fix) == (UNEXPLAINED, "low", None)
    assert "--disallowedTools" in finding.by_hand


def test_one_session_alone_is_no_puzzle() -> None:
    assert causes(state(), session(3)) == []


def test_sessions_from_before_the_settings_were_written_are_no_puzzle() -> None:
    assert causes(state(changed_at=NOW - DAY), *sessions(5)) == []


def test_a_session_of_which_nothing_is_known_is_no_puzzle() -> None:
    silent = sessions(5, deferral=Deferral.UNKNOWN, proof=Proof.NONE, definitions=())
    assert causes(state(), *silent) == []
