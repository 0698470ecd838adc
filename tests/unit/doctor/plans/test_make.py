"""A plan changes just what its fix names, says what it risks, and says why where it may not be made."""

from __future__ import annotations

import json
import tomllib

import msgspec
import pytest

from pegboard.doctor.facts import AgentState, Fix, ServerEntry
from pegboard.doctor.plans.actions import Action, FileChange
from pegboard.doctor.plans.dated import dated
from pegboard.doctor.plans.edits import Edit
from tests.unit.doctor.plans.made import (
    Bench,
    disable,
    enable,
    entry,
    evidence,
    setting,
    state,
    unpin,
)

OFF = '{"env": {"ENABLE_TOOL_SEARCH": "false"}}'


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def after(plan):
    [file] = plan.files
    return json.loads(file.after)


# ── what is changed ──────────────────────────────────────────────────────────────────────────────────────────────


def test_only_files_that_may_be_edited_are(bench):
    user = bench.put(".claude/settings.json", OFF)
    managed = bench.put("etc/managed-settings.json", OFF)
    shell = bench.put(".zshrc", "export ENABLE_TOOL_SEARCH=false\n")
    others = [(managed, "managed"), (shell, "shell"), (None, "environment")]
    fix = enable(setting(user), *(setting(file, scope=scope) for file, scope in others))
    plan = bench.plan(fix, by_hand=f"In {shell}, line 1: remove it.")
    assert plan.touched == (user,)
    assert plan.by_hand == (f"In {shell}, line 1: remove it.",)


@pytest.mark.parametrize("scope", ["managed", "plugin"])
def test_servers_of_policies_and_plugins_are_not_edited(scope, bench):
    file = bench.put("x.json", '{"mcpServers": {"gh": {"command": "gh", "alwaysLoad": true}}}')
    for fix in (
        unpin(entry(file, "mcpServers", "gh", scope=scope)),
        disable(entry(file, "mcpServers", "gh", scope=scope)),
    ):
        plan = bench.plan(fix)
        assert plan.touched == ()
        assert plan.refusal.startswith("There is nothing to change")


def test_a_server_of_a_project_is_rejected_by_one_person_and_stays_for_the_others(bench):
    file = bench.put("code/.mcp.json", '{"mcpServers": {"gh": {"command": "gh"}}}')
    own = bench.put("code/.claude/settings.local.json", '{"disabledMcpjsonServers": ["old"], "x": 1}')
    plan = bench.plan(disable(entry(file, "mcpServers", "gh", scope="project", project=str(file.parent))))
    assert plan.touched == (own,)
    assert after(plan) == {"disabledMcpjsonServers": ["old", "gh"], "x": 1}
    assert not [risk for risk in plan.risks if "everybody" in risk]


def test_a_local_server_is_turned_off_where_its_project_is(bench):
    said = {"projects": {"/h/code": {"mcpServers": {"gh": {"command": "gh"}}}}}
    file = bench.put(".claude.json", json.dumps(said))
    plan = bench.plan(disable(entry(file, "projects", "/h/code", "mcpServers", "gh", scope="local")))
    assert after(plan) == {"projects": {"/h/code": {**said["projects"]["/h/code"], "disabledMcpServers": ["gh"]}}}


def test_where_an_agent_has_no_switch_the_entry_goes_and_that_is_said(bench):
    file = bench.put(".cursor/mcp.json", '{"mcpServers": {"gh": {"command": "gh"}}}')
    plan = bench.plan(disable(entry(file, "mcpServers", "gh", agent="cursor")))
    assert after(plan) == {"mcpServers": {}}
    assert [risk for risk in plan.risks if "has no switch for it" in risk]


def test_a_change_of_a_projects_file_says_that_everybody_gets_it(bench):
    file = bench.put("code/.claude/settings.json", OFF)
    plan = bench.plan(enable(setting(file, scope="project")))
    assert f"{file} belongs to the project: everybody who works on it gets the change." in plan.risks


# ── what is no longer there ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("agent", ["codex", "opencode", "kilo", "zed", "cline", "cursor", "gemini", "claude-code"])
def test_a_server_that_is_gone_leaves_no_switch_without_a_server(agent, bench):
    name = "config.toml" if agent == "codex" else "settings.json"
    file = bench.put(name, "" if agent == "codex" else '{"servers": {"other": {"command": "x"}}}')
    plan = bench.plan(disable(entry(file, "servers", "gh", agent=agent)))
    assert plan.files == ()
    assert "no longer there" in plan.refusal


def test_a_pin_of_a_server_that_is_gone_makes_no_entry(bench):
    file = bench.put(".claude.json", '{"mcpServers": {}}')
    assert bench.plan(unpin(entry(file, "mcpServers", "gh"), value="false")).files == ()


def test_a_threshold_that_is_gone_is_not_set_again(bench):
    file = bench.put(".claude/settings.json", '{"env": {}}')
    fix = Fix(kind="defer-threshold", agent="claude-code", settings=(setting(file, value="auto:40"),), value="auto:3")
    assert bench.plan(fix).files == ()


def test_a_switch_is_set_in_its_entry(bench):
    file = bench.put("config.toml", '[mcp_servers.gh]\ncommand = "gh"\n\n[mcp_servers.gh.env]\nA = "1"\n')
    [edit] = bench.plan(disable(entry(file, "mcp_servers", "gh", agent="codex"))).files
    assert tomllib.loads(edit.after) == {"mcp_servers": {"gh": {"command": "gh", "enabled": False, "env": {"A": "1"}}}}


# ── versions ─────────────────────────────────────────────────────────────────────────────────────────────────────


def pinned(bench):
    return bench.put("x.json", '{"mcpServers": {"gh": {"command": "gh", "alwaysLoad": true}}}')


def test_a_version_that_is_too_old_is_told_to_be_updated_first(bench):
    plan = bench.plan(unpin(entry(pinned(bench), "mcpServers", "gh")), evidence(state("2.1.120")))
    assert plan.refusal == "It needs Claude Code 2.1.121, and 2.1.120 is installed."
    assert plan.hint == "Update Claude Code first."
    assert not plan.is_applicable


def test_a_version_that_nobody_knows_is_a_risk(bench):
    plan = bench.plan(unpin(entry(pinned(bench), "mcpServers", "gh")), evidence(state("")))
    assert plan.is_applicable
    assert [risk for risk in plan.risks if "nobody could tell which version is installed" in risk]


# ── what cannot be read ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", ["{", "[1]", '{"env": 3}', '{"env": {"ENABLE_TOOL_SEARCH": "false"} "a": 1}'])
def test_a_file_that_makes_no_sense_is_a_refusal_that_names_it_or_nothing_to_change(text, bench):
    file = bench.put(".claude/settings.json", text)
    plan = bench.plan(enable(setting(file)))
    assert not plan.is_applicable
    assert str(file) in plan.refusal or "nothing to change" in plan.refusal


def test_a_value_that_lies_where_a_table_should_be_is_not_overwritten(bench):
    file = bench.put(".claude/settings.json", '{"env": "mine"}')
    plan = bench.plan(enable(setting(file), value="true"))
    assert plan.refusal == f"{file}: `env` should be a table, and is not."
    assert plan.hint


# ── when entries changed ─────────────────────────────────────────────────────────────────────────────────────────


def applied(file, *path, at=100.0, undone=None):
    change = FileChange(file=str(file), edits=(Edit(path=path, do="remove"),), after="x")
    return Action(
        id="a", kind="defer-alwaysload", finding="f", agent="claude-code", applied_at=at, undone_at=undone,
        status="applied", changes=(change,),
    )  # fmt: skip


def test_an_entry_without_a_date_has_that_of_the_last_action_on_it(tmp_path):
    file = tmp_path / ".claude.json"
    servers = tuple(
        ServerEntry(agent="claude-code", name=name, file=file, scope="user", key=("mcpServers", name), changed_at=at)
        for name, at in (("gh", 0.0), ("other", 0.0), ("old", 7.0))
    )
    states = [AgentState(agent="claude-code", servers=servers)]
    actions = [
        applied(file, "mcpServers", "gh", "alwaysLoad"),
        applied(file, "mcpServers", "gh", "alwaysLoad", at=50.0, undone=200.0),
        applied(file, "mcpServers", "old", "alwaysLoad"),
        applied(tmp_path / "another.json", "mcpServers", "other"),
    ]
    [found] = dated(states, actions)
    assert [each.changed_at for each in found.servers] == [200.0, 0.0, 7.0]
    assert dated(states, []) == tuple(states)
    assert msgspec.structs.replace(found, servers=servers) == states[0]
