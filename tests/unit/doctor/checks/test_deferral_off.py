"""Deferral that a setting, a version or a model keeps off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pegboard.doctor.checks.causes import BETAS, DENIED, ENV, OLD_MODEL, OLD_VERSION, REFUSED, VERTEX
from pegboard.doctor.facts import Deferral, Definition, Proof
from tests.homes import versions
from tests.unit.doctor.checks.made import (
    DAY,
    NOW,
    USER_FILE,
    causes,
    deferred,
    definitions,
    findings,
    server,
    session,
    sessions,
    setting,
    state,
)

OFF = setting("ENABLE_TOOL_SEARCH", "false")
ELSEWHERE = setting("ANTHROPIC_BASE_URL", "https://llm.example.com")


def patch(version: str) -> int:
    return int(version.rsplit(".", 1)[1])


def test_a_variable_that_turns_it_off_is_found_with_its_file_and_line() -> None:
    [finding] = findings(state(OFF), *sessions(4))
    assert finding.cause == ENV
    assert f"{USER_FILE}, line 3" in finding.why
    assert finding.confidence == "high"
    assert finding.proof is Proof.REQUESTS
    assert finding.sessions == 4
    assert finding.tokens_per_session == {"github": 5_000}
    assert finding.call_rate == 1.0
    assert 4_500 < finding.saving_per_session < 5_000
    assert finding.cost_per_session > 0
    assert finding.fix is not None
    assert finding.fix.kind == "defer-enable"
    assert finding.fix.settings == (OFF,)
    assert finding.by_hand == ""


@pytest.mark.parametrize("value", ["false", "0", "no", "off", "FALSE", " false ", "auto:100", "auto:250"])
def test_every_way_to_say_no_is_understood(value: str) -> None:
    assert causes(state(setting("ENABLE_TOOL_SEARCH", value)), *sessions(2)) == [ENV]


@pytest.mark.parametrize("value", ["true", "1", "auto:0", "anything"])
def test_values_that_turn_it_on_are_blamed_for_nothing(value: str) -> None:
    on = (deferred(number) for number in range(3))
    assert causes(state(setting("ENABLE_TOOL_SEARCH", value)), *on) == []


@pytest.mark.parametrize(
    ("about", "word"),
    [
        ({"scope": "shell", "file": Path("/home/ada/.zshrc"), "line": 12}, "/home/ada/.zshrc, line 12"),
        ({"scope": "environment", "file": None, "line": 0}, "environment"),
        ({"scope": "managed", "file": Path("/etc/claude-code/managed-settings.json")}, "policy"),
    ],
)
def test_what_may_not_be_edited_is_shown_with_what_to_do_by_hand(about: dict[str, Any], word: str) -> None:
    [finding] = findings(state(setting("ENABLE_TOOL_SEARCH", "false", **about)), *sessions(2))
    assert finding.cause == ENV
    assert finding.fix is None
    assert word in finding.by_hand


def test_a_weaker_value_that_would_take_over_is_mended_along() -> None:
    project = setting("ENABLE_TOOL_SEARCH", "0", scope="project", file=Path("/home/ada/engine/.claude/settings.json"))
    shell = setting("ENABLE_TOOL_SEARCH", "false", scope="shell", file=Path("/home/ada/.zshrc"), line=9)
    [finding] = findings(state(project, overridden=(OFF, shell)), *sessions(2))
    assert finding.fix is not None
    assert finding.fix.settings == (project, OFF)
    assert "/home/ada/.zshrc, line 9" in finding.by_hand


def test_below_a_policy_no_edit_would_help() -> None:
    file = Path("/etc/claude-code/managed-settings.json")
    policy = setting("ENABLE_TOOL_SEARCH", "false", scope="managed", file=file)
    [finding] = findings(state(policy, overridden=(OFF,)), *sessions(2))
    assert finding.fix is None
    assert "policy" in finding.by_hand


def test_a_setting_that_is_outdone_by_a_stronger_one_is_no_cause() -> None:
    on = setting("ENABLE_TOOL_SEARCH", "true", scope="local")
    assert causes(state(on, overridden=(OFF,)), *(deferred(number) for number in range(3))) == []


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sessions_from_before_the_setting_do_not_speak_for_it() -> None:
    written = setting("ENABLE_TOOL_SEARCH", "false", changed_at=NOW - DAY)
    before = [deferred(number) for number in range(5)]
    [finding] = findings(state(written), *before)
    assert finding.confidence == "low"
    assert finding.sessions == 0


def test_sessions_that_had_it_off_before_the_file_was_last_written_make_it_likely() -> None:
    written = setting("ENABLE_TOOL_SEARCH", "false", changed_at=NOW - DAY)
    [finding] = findings(state(written), *sessions(5))
    assert finding.confidence == "medium"
    assert finding.sessions == 5


def test_one_deferral_long_ago_does_not_hide_an_outage_since() -> None:
    [finding] = findings(state(OFF), deferred(0), *(session(number) for number in range(1, 5)))
    assert finding.cause == ENV
    assert finding.sessions == 4


def test_one_deferral_long_ago_does_not_hide_sessions_without_a_trace_since() -> None:
    silent = [session(n, deferral=Deferral.UNKNOWN, proof=Proof.NONE, definitions=()) for n in range(1, 7)]
    [finding] = findings(state(OFF), deferred(0), *silent)
    assert (finding.cause, finding.sessions, finding.confidence) == (ENV, 6, "low")
    assert causes(state(OFF), deferred(0), *silent[:4]) == []


def test_a_setting_that_is_not_at_work_is_no_cause() -> None:
    shell = setting("ENABLE_TOOL_SEARCH", "false", scope="shell", file=Path("/home/ada/.cshrc"))
    assert causes(state(shell), *(deferred(number) for number in range(4))) == []


def test_an_outage_that_is_over_is_no_finding() -> None:
    assert causes(state(), *sessions(3), deferred(5)) == []


def test_names_that_were_announced_do_not_prove_deferral() -> None:
    told = sessions(3, announced=("mcp__github__tool_1",))
    assert causes(state(OFF), *told) == [ENV]


def test_sessions_without_a_search_are_not_taken_for_sessions_without_deferral() -> None:
    quiet = [deferred(number, searches=0) for number in range(4)]
    unknown = [session(number, deferral=Deferral.UNKNOWN, proof=Proof.NONE, definitions=()) for number in range(5, 9)]
    assert causes(state(), *quiet, *unknown) == []


def test_without_any_trace_the_setting_itself_is_enough_to_say_so() -> None:
    silent = [
        session(number, deferral=Deferral.UNKNOWN, proof=Proof.NONE, definitions=(), server_calls={"github": 1})
        for number in range(3)
    ]
    [finding] = findings(state(OFF), *silent)
    assert (finding.cause, finding.confidence, finding.proof) == (ENV, "medium", Proof.NONE)
    assert finding.tokens_per_session == {"github": 2_000}


def test_an_agent_that_is_not_there_is_harmed_by_no_setting() -> None:
    assert causes(state(OFF, installed=False)) == []


# ── who owns a session ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_of_several_causes_owns_the_sessions_and_names_the_others() -> None:
    denied = setting("permissions.deny", '["ToolSearch"]', key=("permissions", "deny"))
    [finding] = findings(state(OFF, denied), *sessions(3))
    assert finding.cause == DENIED
    assert "ENABLE_TOOL_SEARCH" in finding.why


def test_settings_of_one_project_are_no_cause_in_another() -> None:
    here = state(OFF, project="/home/ada/engine")
    there = [deferred(number, project="/home/ada/other") for number in range(3)]
    [finding] = findings(state(), here, *there, *sessions(2))
    assert (finding.cause, finding.sessions) == (ENV, 2)


def test_a_folder_below_a_project_is_the_projects() -> None:
    here = state(OFF, project="/home/ada/engine")
    [finding] = findings(state(), here, *sessions(2, project="/home/ada/engine/src/deep"))
    assert (finding.cause, finding.sessions) == (ENV, 2)


def test_the_nearest_folder_with_settings_counts() -> None:
    around = state(project="/home/ada/engine")
    inside = state(OFF, project="/home/ada/engine/part")
    told = [deferred(number, project="/home/ada/engine/other") for number in range(3)]
    [finding] = findings(state(), around, inside, *told, *sessions(2, project="/home/ada/engine/part/src"))
    assert (finding.cause, finding.sessions) == (ENV, 2)


def test_sessions_that_an_endpoint_refused_are_not_counted_for_a_setting() -> None:
    refused = [session(number, refused=True) for number in range(3, 5)]
    found = findings(state(OFF), *sessions(3), *refused)
    assert {each.cause: each.sessions for each in found} == {ENV: 3, REFUSED: 2}


def test_two_files_with_the_same_cause_are_one_finding() -> None:
    one = setting("ENABLE_TOOL_SEARCH", "false", file=Path("/a/.claude/settings.json"), scope="project")
    two = setting("ENABLE_TOOL_SEARCH", "false", file=Path("/b/.claude/settings.json"), scope="project")
    [finding] = findings(
        state(),
        state(one, project="/a"),
        state(two, project="/b"),
        *sessions(2, project="/a"),
        *(session(number, project="/b") for number in range(2, 5)),
    )
    assert finding.sessions == 5
    assert finding.fix is not None
    assert finding.fix.settings == (one, two)


def test_other_agents_sessions_are_no_evidence() -> None:
    others = [deferred(number, agent="codex", models=("gpt-5.5",)) for number in range(20, 25)]
    [finding] = [each for each in findings(state(OFF), *sessions(3), *others) if each.agent == "claude-code"]
    assert (finding.cause, finding.sessions) == (ENV, 3)


def test_pinned_servers_are_not_counted_as_what_deferral_would_save() -> None:
    both = definitions("github") + definitions("docs")
    pinned = state(OFF, servers=(server("github"), server("docs", always_load=True)))
    [finding] = findings(pinned, *sessions(4, definitions=both, server_calls={"github": 1, "docs": 1}))
    assert finding.tokens_per_session == {"github": 5_000}


def test_tools_of_its_own_count_where_the_version_defers_them() -> None:
    own = (
        Definition(name="WebFetch", tokens=700),
        Definition(name="Bash", tokens=900),
        Definition(name="Task", tokens=9),
    )
    [new] = findings(state(OFF), *sessions(2, definitions=definitions("github") + own))
    [old] = findings(
        state(OFF, version="2.1.200"), *sessions(2, definitions=definitions("github") + own, version="2.1.200")
    )
    assert new.tokens_per_session == {"": 700, "github": 5_000}
    assert old.tokens_per_session == {"github": 5_000}


def test_what_is_called_in_every_session_is_not_counted_as_saved() -> None:
    called = {f"mcp__github__tool_{number}": 2 for number in range(10)}
    [finding] = findings(state(OFF), *sessions(3, calls=called))
    assert finding.saving_per_session == 0


# ── other settings ───────────────────────────────────────────────────────────────────────────────────────────────


def test_disabled_betas_are_a_cause_of_their_own() -> None:
    betas = setting("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1")
    [finding] = findings(state(betas), *sessions(3))
    assert finding.cause == BETAS
    assert finding.fix is not None
    assert finding.fix.settings == (betas,)


@pytest.mark.parametrize(("scope", "version", "found"), [
    ("managed", "2.1.227", []), ("managed", "2.1.226", [BETAS]), ("user", "2.1.325", [BETAS]),
])  # fmt: skip
def test_only_a_policy_forces_deferral_on_beside_disabled_betas(scope: Any, version: str, found: list[str]) -> None:
    betas = setting("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1")
    force = setting("ENABLE_TOOL_SEARCH", "force", scope=scope)
    unknown = sessions(3, deferral=Deferral.UNKNOWN, proof=Proof.NONE, version=version)
    assert causes(state(betas, force, version=version), *unknown) == found


@pytest.mark.parametrize("value", ['["ToolSearch"]', "ToolSearch", '["Bash(rm:*)", "ToolSearch"]'])
def test_a_denied_tool_search_is_found_in_a_list(value: str) -> None:
    denied = setting("permissions.deny", value, key=("permissions", "deny"))
    assert causes(state(denied), *sessions(2)) == [DENIED]


def test_a_rule_for_another_tool_denies_nothing() -> None:
    denied = setting("permissions.deny", '["WebSearch", "mcp__x__ToolSearcher"]', key=("permissions", "deny"))
    assert causes(state(denied), *(deferred(number) for number in range(3))) == []


# ── versions ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", versions())
def test_the_gate_before_other_base_urls_stands_between_two_versions(version: str) -> None:
    quiet = sessions(3, version=version, deferral=Deferral.UNKNOWN, proof=Proof.NONE, definitions=())
    found = causes(state(ELSEWHERE, version=version), *quiet)
    assert found == ([OLD_VERSION] if 70 <= patch(version) <= 303 else [])


@pytest.mark.parametrize("version", versions())
def test_a_variable_opens_the_gate_from_one_version_on(version: str) -> None:
    forced = setting("ENABLE_TOOL_SEARCH", "true")
    quiet = sessions(3, version=version, deferral=Deferral.UNKNOWN, proof=Proof.NONE, definitions=())
    found = causes(state(ELSEWHERE, forced, version=version), *quiet)
    assert found == ([OLD_VERSION] if 70 <= patch(version) < 72 else [])


@pytest.mark.parametrize("version", versions())
def test_vertex_is_off_between_two_versions(version: str) -> None:
    vertex = setting("CLAUDE_CODE_USE_VERTEX", "1")
    quiet = sessions(3, version=version, deferral=Deferral.UNKNOWN, proof=Proof.NONE, definitions=())
    assert causes(state(vertex, version=version), *quiet) == ([VERTEX] if 119 <= patch(version) <= 220 else [])


@pytest.mark.parametrize(
    ("model", "is_old"),
    [("claude-sonnet-4@20250514", True), ("claude-opus-4-1@20250805", True), ("claude-sonnet-4-5@20250929", False)],
)
def test_vertex_stays_off_for_models_before_4_5(model: str, is_old: bool) -> None:
    vertex = setting("CLAUDE_CODE_USE_VERTEX", "1")
    quiet = sessions(3, models=(model,), deferral=Deferral.UNKNOWN, proof=Proof.NONE)
    found = findings(state(vertex), *quiet)
    assert [each.cause for each in found] == ([VERTEX] if is_old else [])
    assert [each.fix.kind for each in found if each.fix] == (["gateway-install"] if is_old else [])


@pytest.mark.parametrize("url", ["https://api.anthropic.com", "https://api.anthropic.com/", "", "  "])
def test_anthropics_own_endpoint_is_no_other_base_url(url: str) -> None:
    own = state(setting("ANTHROPIC_BASE_URL", url), version="2.1.200")
    assert causes(own, *(deferred(number, version="2.1.200") for number in range(2))) == []


def test_an_address_that_is_none_counts_as_another() -> None:
    odd = setting("ANTHROPIC_BASE_URL", "http://[oops")
    assert causes(state(odd, version="2.1.200"), *sessions(2, version="2.1.200")) == [OLD_VERSION]


def test_an_update_since_mends_what_an_old_version_did() -> None:
    assert causes(state(ELSEWHERE, version="2.1.325"), *sessions(3, version="2.1.240")) == []


def test_an_older_install_that_nobody_runs_is_not_blamed() -> None:
    new = [deferred(number, version="2.1.325") for number in range(3)]
    assert causes(state(ELSEWHERE, version="2.1.200"), *new) == []


def test_a_setting_behind_another_base_url_comes_with_a_word_of_caution() -> None:
    [finding] = findings(state(OFF, ELSEWHERE), *sessions(3))
    assert finding.fix is not None
    assert "verify-endpoint" in finding.by_hand


def test_servers_that_are_gone_are_counted_no_more() -> None:
    old = [session(number, definitions=definitions("github") + definitions("docs")) for number in range(5)]
    [finding] = findings(state(OFF), *old, *(session(number) for number in range(5, 16)))
    assert finding.tokens_per_session == {"github": 5_000}
    assert finding.sessions == 16


def test_a_version_before_deferral_is_told_to_update() -> None:
    [finding] = findings(state(version="2.1.5"), *sessions(2, version="2.1.5"))
    assert finding.cause == OLD_VERSION
    assert finding.fix is None
    assert "claude update" in finding.by_hand


def test_behind_an_endpoint_that_was_not_verified_nothing_is_forced_on() -> None:
    [finding] = findings(state(ELSEWHERE, version="2.1.250"), *sessions(2, version="2.1.250"))
    assert finding.fix is None
    assert "verify-endpoint" in finding.by_hand


# ── models ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_old_model_owns_its_sessions_and_no_others() -> None:
    old = [session(number, models=("claude-3-5-sonnet-20241022",)) for number in range(3)]
    [finding] = findings(state(), *old, *(deferred(number) for number in range(4, 6)))
    assert (finding.cause, finding.sessions) == (OLD_MODEL, 3)
    assert finding.fix is not None
    assert finding.fix.kind == "gateway-install"
    assert [each.name for each in finding.fix.servers] == ["github"]


def test_an_old_model_that_is_used_no_more_is_no_finding() -> None:
    old = [session(number, models=("claude-3-5-sonnet-20241022",)) for number in range(3)]
    assert causes(state(), *old, *(deferred(number) for number in range(4, 10))) == []


def test_a_session_with_a_newer_model_too_is_not_an_old_models() -> None:
    mixed = [deferred(number, models=("claude-3-5-haiku-20241022", "claude-sonnet-5")) for number in range(3)]
    assert causes(state(), *mixed) == []


def test_an_old_model_does_not_hide_what_keeps_the_others_off() -> None:
    old = session(9, models=("claude-3-7-sonnet-20250219",))
    assert set(causes(state(OFF), *sessions(4), old)) == {ENV, OLD_MODEL}
