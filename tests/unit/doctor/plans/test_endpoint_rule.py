"""Deferral is never turned on behind an endpoint of which nobody knows that it takes it, whoever's word would do so."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.doctor.checks.causes import OLD_VERSION
from pegboard.doctor.facts import Fix, Setting
from pegboard.doctor.plans.endpoint_rule import ruling, told_to_defer
from pegboard.doctor.plans.verdicts import Verdict, plain_url
from tests.unit.doctor.plans.made import enable, evidence, finding, setting, state

URL = "https://llm.example.com"
USER, LOCAL = Path("/h/.claude/settings.json"), Path("/h/code/.claude/settings.local.json")
DENY = Setting(name="permissions.deny", value="ToolSearch", file=USER, key=("permissions", "deny"))


def said(value, file=USER):
    return setting(file, value=value)


def verdict(takes):
    return {URL: Verdict(url=URL, at=1.0, takes=takes, status=200 if takes else 400)}


REFUSED, STAYS_OFF, RISKY, FREE = "refused", "stays off", "risky", "free"


def rule(fix, *states, verdicts=None):
    found = ruling(fix, evidence(*states), verdicts or {})
    if found.refusal:
        return REFUSED
    if not found.risks:
        return FREE
    [risk] = found.risks
    return STAYS_OFF if "will not turn it on there" in risk else RISKY


@pytest.mark.parametrize(("version", "removing", "setting_true"), [
    ("2.1.60", REFUSED, REFUSED),
    ("2.1.70", STAYS_OFF, STAYS_OFF),
    ("2.1.72", STAYS_OFF, REFUSED),
    ("2.1.303", STAYS_OFF, REFUSED),
    ("2.1.304", REFUSED, REFUSED),
    ("2.1.305", REFUSED, REFUSED),
    ("2.1.306", RISKY, RISKY),
    ("2.1.325", RISKY, RISKY),
    ("", REFUSED, REFUSED),
])  # fmt: skip
def test_the_version_decides_what_an_unverified_endpoint_means(version, removing, setting_true):
    off = state(version, URL, settings=(said("false"),))
    assert rule(enable(said("false")), off) == removing
    assert rule(enable(said("false"), value="true"), off) == setting_true
    assert rule(enable(said("false")), off, verdicts=verdict(True)) == FREE
    assert rule(enable(said("false")), off, verdicts=verdict(False)) == REFUSED


def test_anthropics_own_endpoint_is_no_question():
    assert rule(enable(said("false")), state("2.1.100", settings=(said("false"),))) == FREE
    assert rule(enable(said("false")), state("2.1.100", "https://api.anthropic.com")) == FREE


@pytest.mark.parametrize("value", ["true", "auto", "auto:5"])
def test_what_a_weaker_file_says_counts_once_the_stronger_is_silent(value):
    both = state("2.1.290", URL, settings=(said("false", LOCAL),), overridden=(said(value),))
    assert rule(enable(said("false", LOCAL)), both) == REFUSED
    still_off = state("2.1.290", URL, settings=(said("false", LOCAL),), overridden=(said("0"),))
    assert rule(enable(said("false", LOCAL)), still_off) == FREE, "it stays off, so nothing is forced on"


@pytest.mark.parametrize(("value", "expected"), [("true", REFUSED), ("", STAYS_OFF), ("false", FREE)])
def test_taking_a_rule_away_turns_on_what_is_told_to_be_on(value, expected):
    there = state("2.1.290", URL, settings=(DENY, *((said(value),) if value else ())))
    assert rule(enable(DENY), there) == expected


def test_only_places_where_the_fix_holds_count():
    elsewhere = state("2.1.290", URL, project="/h/other", settings=(said("false"),))
    fix = enable(Setting(name="ENABLE_TOOL_SEARCH", value="false", file=LOCAL, scope="local", key=said("").key))
    assert rule(fix, elsewhere) == FREE
    assert rule(enable(said("false")), state("2.1.290"), elsewhere) == STAYS_OFF


@pytest.mark.parametrize("kind", ["server-disable", "defer-alwaysload", "gateway-install"])
def test_fixes_that_do_not_turn_deferral_on_are_free(kind):
    assert rule(Fix(kind=kind, agent="claude-code"), state("2.1.290", URL)) == FREE


def test_an_old_version_is_told_to_defer_where_its_address_is_set():
    address = Setting(
        name="ANTHROPIC_BASE_URL", value=URL, file=LOCAL, scope="local", key=("env", "ANTHROPIC_BASE_URL")
    )
    in_file = state("2.1.290", settings=(address,))
    in_shell = state("2.1.290", URL)
    fix = told_to_defer(finding(None, cause=OLD_VERSION), evidence(in_file, in_shell), USER)
    assert fix is not None
    assert [(each.file, each.key, fix.value) for each in fix.settings] == [
        (LOCAL, ("env", "ENABLE_TOOL_SEARCH"), "true"),
        (USER, ("env", "ENABLE_TOOL_SEARCH"), "true"),
    ]
    assert fix.needs_version == "2.1.72"
    assert rule(fix, in_file, in_shell) == REFUSED
    assert rule(fix, in_file, in_shell, verdicts=verdict(True)) == FREE
    assert told_to_defer(finding(None, cause="else"), evidence(in_file), USER) is None
    assert told_to_defer(finding(None, cause=OLD_VERSION), evidence(state("2.1.60", URL)), USER) is None


@pytest.mark.parametrize(("one", "other"), [
    ("https://LLM.example.com/", URL), ("https://llm.example.com:443/v1/", f"{URL}/v1"),
    ("HTTP://[::1]:81", "http://[::1]:81"), (" nonsense ", "nonsense"), ("https://[bad", "https://[bad"),
])  # fmt: skip
def test_an_address_is_remembered_the_same_however_it_is_written(one, other):
    assert plain_url(one) == plain_url(other) == other
