"""What a change can have touched, and what it cannot."""

from pathlib import Path

import pytest

from pegboard.doctor.facts import Definition, Fix
from pegboard.doctor.report.scope import Scope, scope_of, wire_name
from tests.unit.doctor.report.stories import DISABLE, ENABLE, server, session, setting


def test_turning_deferral_on_touches_every_tool_and_the_agents_own():
    assert scope_of(ENABLE) == Scope(agent="claude-code", own=True)


def test_disabling_a_server_touches_that_server_alone():
    assert scope_of(DISABLE) == Scope(agent="claude-code", servers=("github",))


def test_putting_servers_behind_the_gateway_touches_all_servers_but_not_the_agents_own_tools():
    fix = Fix(kind="gateway-install", agent="claude-code", servers=(server("github"),))
    assert scope_of(fix) == Scope(agent="claude-code")


def test_a_server_is_known_by_its_name_on_the_wire():
    fix = Fix(kind="defer-alwaysload", agent="claude-code", servers=(server("plugin:my tools:db"),))
    assert scope_of(fix).servers == ("plugin_my_tools_db",)
    assert wire_name("a-b_c9") == "a-b_c9"


@pytest.mark.parametrize("folder", [".claude", "."])
@pytest.mark.parametrize("where", ["project", "local"])
def test_a_projects_setting_holds_in_its_folder_only(where: str, folder: str):
    file = Path("/home/ada/engine") / folder / "settings.json"
    fix = Fix(kind="defer-enable", agent="claude-code", settings=(setting(file=file, scope=where),))
    scope = scope_of(fix)
    assert scope.projects == ("/home/ada/engine",)
    assert scope.has(session(0))
    assert scope.has(session(0, project="/home/ada/engine/core"))
    assert not scope.has(session(0, project="/home/ada/engine2"))
    assert not scope.has(session(0, project="/home/ada"))
    assert not scope.has(session(0, project=""))


def test_one_edit_that_holds_everywhere_makes_the_whole_hold_everywhere():
    fix = Fix(
        kind="server-disable", agent="claude-code", servers=(server("a", project="/home/ada/engine"), server("b"))
    )
    assert scope_of(fix).projects == ()


def test_sessions_of_other_agents_never_count():
    assert not scope_of(ENABLE).has(session(0, agent="codex"))


def test_what_is_deferred_costs_nothing_until_it_is_called():
    scope = scope_of(ENABLE)
    unused = session(0, deferred=("github",))
    used = session(0, deferred=("github",), calls={"mcp__github__do": 1})
    assert scope.paid(unused) == {"": 5_000, "sentry": 2_000}
    assert scope.paid(used) == {"": 5_000, "github": 8_000, "sentry": 2_000}


def test_tools_of_one_server_are_added_up_and_those_of_others_left_out():
    tools = tuple(Definition(name=f"t{number}", server="github", tokens=10) for number in range(3))
    other = Definition(name="x", server="sentry", tokens=7)
    assert scope_of(DISABLE).paid(session(0, definitions=None).__class__(
        agent="claude-code", id="s", definitions=(*tools, other)
    )) == {"github": 30}  # fmt: skip
