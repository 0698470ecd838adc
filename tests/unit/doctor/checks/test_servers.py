"""Findings about servers: pinned, never called, set up twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pegboard.doctor.checks.causes import DUPLICATE, NEVER_CALLED, PINNED_SERVER, PINNED_TOOLS
from pegboard.doctor.facts import Agent, Deferral, Definition, Proof, ServerEntry, Session
from tests.unit.doctor.checks.made import DAY, NOW, causes, deferred, definitions, findings, server, state

PIN = server("docs", always_load=True)


def pinned(number: int, **about: Any) -> Session:
    """A session in which docs is in full and the rest is deferred."""
    whole = definitions("github", 2, deferred=True) + definitions("docs", 8)
    return deferred(number, **{"definitions": whole, **about})


def often(count: int, every: int) -> list[Session]:
    """Sessions of which every so many calls docs."""
    calls = [{"github": 1, **({"docs": 1} if number % every == 0 else {})} for number in range(count)]
    return [pinned(number, server_calls=each) for number, each in enumerate(calls)]


def test_a_pinned_server_that_is_rarely_called_is_found() -> None:
    [finding] = findings(state(servers=(server("github"), PIN)), *often(12, 6))
    assert finding.cause == PINNED_SERVER
    assert finding.id == "always-load:docs"
    assert finding.call_rate == pytest.approx(2 / 12)
    assert finding.tokens_per_session == {"docs": 4_000}
    assert finding.fix is not None
    assert (finding.fix.kind, finding.fix.servers, finding.fix.value) == ("defer-alwaysload", (PIN,), "")
    assert finding.fix.needs_version == "2.1.121"
    assert "as the requests themselves show" in finding.why


def test_one_call_in_five_sessions_is_not_rare() -> None:
    assert causes(state(servers=(server("github"), PIN)), *often(10, 5)) == []


def test_a_pinned_server_that_is_never_called_is_one_finding() -> None:
    never = [pinned(number, server_calls={"github": 1}) for number in range(6)]
    assert causes(state(servers=(server("github"), PIN)), *never) == [NEVER_CALLED]


@pytest.mark.parametrize(("version", "found"), [("2.1.120", []), ("2.1.121", [PINNED_SERVER])])
def test_a_version_that_does_not_heed_pins_is_not_blamed_for_them(version: str, found: list[str]) -> None:
    told = [pinned(n, server_calls=each.server_calls, version=version) for n, each in enumerate(often(12, 6))]
    assert causes(state(servers=(server("github"), PIN), version=version), *told) == found


def test_a_few_sessions_are_not_enough_to_call_a_server_idle() -> None:
    assert causes(state(servers=(server("github"), PIN)), *often(4, 9)) == []


def test_a_pin_in_a_policy_is_not_edited() -> None:
    managed = server("docs", always_load=True, scope="managed", file=Path("/etc/claude-code/managed-mcp.json"))
    [finding] = findings(state(servers=(server("github"), managed)), *often(12, 6))
    assert finding.fix is None
    assert "policy" in finding.by_hand


# ── tools that are pinned by their server ────────────────────────────────────────────────────────────────────────


def test_tools_that_a_server_pins_itself_are_found_by_the_requests() -> None:
    docs = server("docs")
    never = [pinned(number, server_calls={"github": 1, "docs": 1}) for number in range(6)]
    [finding] = findings(state(servers=(server("github"), docs)), *never)
    assert (finding.cause, finding.id) == (PINNED_TOOLS, "always-load-tools:docs")
    assert finding.fix is not None
    assert (finding.fix.kind, finding.fix.servers, finding.fix.value) == ("defer-alwaysload", (docs,), "false")


@pytest.mark.parametrize("about", [{"always_load": False}, {"changed_at": NOW}])
def test_tools_that_are_pinned_no_more_are_no_finding(about: dict[str, Any]) -> None:
    told = [pinned(number, server_calls={"github": 1, "docs": 1}) for number in range(6)]
    assert causes(state(servers=(server("github"), server("docs", **about))), *told) == []


def test_what_was_found_by_a_search_is_not_pinned() -> None:
    whole = definitions("docs", 8, deferred=True) + definitions("docs", 2)
    told = [deferred(number, definitions=whole, server_calls={"github": 1, "docs": 1}) for number in range(6)]
    [finding] = findings(state(servers=(server("github"), server("docs"))), *told)
    assert finding.tokens_per_session == {"docs": 1_000}


def test_a_snapshot_does_not_show_which_tools_are_pinned() -> None:
    never = [pinned(number, server_calls={"github": 1, "docs": 1}, proof=Proof.SNAPSHOT) for number in range(6)]
    assert causes(state(servers=(server("github"), server("docs"))), *never) == []


def test_pegboards_own_tools_may_be_pinned() -> None:
    own = tuple(Definition(name=f"mcp__pegboard__t{n}", server="pegboard", tokens=175) for n in range(4))
    told = [deferred(number, definitions=own, server_calls={"github": 1}) for number in range(8)]
    assert causes(state(servers=(server("github"), server("pegboard"))), *told) == []


# ── never called ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_server_that_nobody_calls_costs_its_names_where_tools_are_deferred() -> None:
    idle = tuple(f"mcp__docs__tool_{number}" for number in range(8))
    told = [deferred(number, announced=idle) for number in range(8)]
    [finding] = findings(state(servers=(server("github"), server("docs"))), *told)
    assert (finding.cause, finding.id) == (NEVER_CALLED, "never-called:claude-code:docs")
    assert 0 < finding.saving_per_session < 100
    assert "told by the requests themselves" in finding.why
    assert finding.fix is not None
    assert finding.fix.kind == "server-disable"


def test_a_server_that_nobody_calls_costs_its_definitions_where_they_are_not() -> None:
    plain = {"agent": "opencode", "version": "1.18.33", "definitions": (), "deferral": Deferral.UNKNOWN}
    told = [deferred(number, **plain, proof=Proof.NONE, searches=0) for number in range(6)]
    here = state(agent="opencode", servers=(server("github", agent="opencode"), server("docs", agent="opencode")))
    [finding] = findings(here, *told)
    assert (finding.cause, finding.agent, finding.tokens_per_session) == (NEVER_CALLED, "opencode", {"docs": 2_000})
    assert "an estimate" in finding.why


@pytest.mark.parametrize("agent", ["codex", "opencode", "kilo", "cline"])
def test_every_agent_whose_sessions_can_be_read_is_looked_at(agent: Agent) -> None:
    told = [deferred(n, agent=agent, models=("gpt-5.5",), definitions=(), server_calls={"github": 1}) for n in range(6)]
    here = state(agent=agent, servers=(server("github", agent=agent), server("docs", agent=agent)))
    assert [(each.cause, each.agent) for each in findings(here, *told)] == [(NEVER_CALLED, agent)]


def test_a_new_server_is_given_a_day() -> None:
    told = [deferred(number, days_ago=0.01) for number in range(8)]
    assert causes(state(servers=(server("github"), server("docs", changed_at=NOW - DAY / 2))), *told) == []


def test_sessions_from_before_a_server_came_do_not_speak_against_it() -> None:
    late = server("docs", changed_at=NOW - 2 * DAY)
    assert causes(state(servers=(server("github"), late)), *(deferred(number) for number in range(8))) == []


def had(number: int, *servers: str, **about: Any) -> Session:
    """A session in which these servers' tools were announced."""
    return deferred(number, announced=tuple(f"mcp__{name}__tool_{n}" for name in servers for n in range(8)), **about)


def test_sessions_without_its_tools_do_not_speak_against_a_server_that_may_have_come_later() -> None:
    before = [had(number, "github") for number in range(8)]
    both = state(servers=(server("github"), server("docs")))
    assert causes(both, *before) == []
    assert causes(both, *before, *(had(number, "github", "docs") for number in range(8, 12))) == []
    [finding] = findings(both, *before, *(had(number, "github", "docs") for number in range(8, 13)))
    assert (finding.cause, finding.sessions) == (NEVER_CALLED, 5)


def test_definitions_tell_which_servers_were_there_only_where_nothing_is_deferred() -> None:
    both = state(servers=(server("github"), server("docs")))
    assert causes(both, *(deferred(number) for number in range(6))) == [NEVER_CALLED]
    assert NEVER_CALLED not in causes(both, *(deferred(number, deferral=Deferral.OFF) for number in range(6)))


def test_a_pin_of_late_is_not_rare_for_the_sessions_before_it() -> None:
    before = [had(number, "github") for number in range(12)]
    since = [pinned(number, server_calls={"github": 1, "docs": 1}) for number in range(12, 14)]
    assert causes(state(servers=(server("github"), PIN)), *before, *since) == []


def test_a_pinned_server_is_not_announced_and_there_all_the_same() -> None:
    told = [had(n, "github", definitions=(), server_calls={"docs": 1} if n == 0 else {"github": 1}) for n in range(9)]
    assert causes(state(servers=(server("github"), PIN)), *told) == [PINNED_SERVER]


def test_a_server_that_is_never_there_may_not_even_start() -> None:
    both = state(servers=(server("github"), server("docs", changed_at=NOW - 40 * DAY)))
    [finding] = findings(both, *(had(number, "github") for number in range(6)))
    assert (finding.cause, finding.saving_per_session) == (NEVER_CALLED, 0)
    assert "may not even start" in finding.why
    [other] = findings(both, *(deferred(number) for number in range(6)))
    assert "may not even start" not in other.why


@pytest.mark.parametrize("about", [{"enabled": False}, {"pending": True}])
def test_a_server_that_is_not_started_is_not_blamed(about: dict[str, bool]) -> None:
    off = server("docs", **about)
    assert causes(state(servers=(server("github"), off)), *(deferred(number) for number in range(8))) == []


@pytest.mark.parametrize("about", [{"enabled": False}, {"pending": True}])
def test_a_projects_server_that_is_not_started_hides_none_of_the_users(about: dict[str, bool]) -> None:
    theirs = server("docs", scope="project", file=Path("/home/ada/engine/.mcp.json"), **about)
    told = [had(number, "github", "docs") for number in range(8)]
    [finding] = findings(state(servers=(server("github"), server("docs"), theirs)), *told)
    assert (finding.id, finding.fix and finding.fix.servers) == ("never-called:claude-code:docs", (server("docs"),))


def test_a_projects_server_is_judged_by_the_projects_sessions() -> None:
    there = server("docs", scope="project", file=Path("/home/ada/other/.mcp.json"), project="/home/ada/other")
    told = [deferred(number) for number in range(8)]
    other = state(project="/home/ada/other", servers=(server("github"), there))
    assert causes(state(), other, *told) == []
    inside = [deferred(number, project="/home/ada/other") for number in range(8, 14)]
    assert causes(state(), other, *told, *inside) == [NEVER_CALLED]


def test_servers_of_one_name_in_two_projects_are_two_findings() -> None:
    def there(folder: str) -> ServerEntry:
        return server("docs", scope="project", file=Path(folder) / ".mcp.json", project=folder)

    told = [deferred(n, project=folder) for folder in ("/x/one", "/x/two") for n in range(6)]
    states = [state(project=folder, servers=(server("github"), there(folder))) for folder in ("/x/one", "/x/two")]
    found = findings(state(), *states, *told)
    assert [each.cause for each in found] == [NEVER_CALLED, NEVER_CALLED]
    assert len({each.id for each in found}) == 2


def test_a_name_with_odd_letters_is_matched_as_it_is_on_the_wire() -> None:
    told = [deferred(number, server_calls={"my_docs_v2": 1, "github": 1}) for number in range(8)]
    assert causes(state(servers=(server("github"), server("my docs.v2"))), *told) == []


# ── duplicates ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_server_under_two_names_is_paid_for_twice() -> None:
    twin = server("gh", launch="github", scope="project", file=Path("/home/ada/engine/.mcp.json"))
    both = definitions("gh") + definitions("github")
    told = [deferred(number, deferral=Deferral.OFF, definitions=both) for number in range(6)]
    found = findings(state(servers=(server("github"), twin)), *told)
    [finding] = [each for each in found if each.cause == DUPLICATE]
    assert finding.id.startswith("duplicate-server:claude-code:gh@engine-")
    assert finding.saving_per_session == 5_000
    assert "told by the requests themselves" in finding.why
    assert finding.fix is not None
    assert (finding.fix.kind, finding.fix.servers) == ("server-disable", (twin,))
    assert NEVER_CALLED not in [each.cause for each in found]


def test_the_one_that_is_called_most_is_kept() -> None:
    twin = server("gh", launch="github")
    told = [deferred(number, server_calls={"gh": 3, "github": 1}) for number in range(6)]
    [finding] = findings(state(servers=(server("github"), twin)), *told)
    assert finding.fix is not None
    assert [each.name for each in finding.fix.servers] == ["github"]


def test_one_name_in_two_scopes_is_a_trap_that_costs_nothing() -> None:
    hidden = server("github", file=Path("/home/ada/.claude.json"))
    counts = server("github", scope="project", file=Path("/home/ada/engine/.mcp.json"))
    told = [deferred(number) for number in range(6)]
    [finding] = findings(state(servers=(hidden, counts)), *told)
    assert (finding.cause, finding.saving_per_session, finding.fix) == (DUPLICATE, 0, None)
    assert "claude mcp remove github --scope user" in finding.by_hand


def test_one_name_for_two_servers_is_what_somebody_wants() -> None:
    hidden = server("github", launch="old")
    counts = server("github", launch="new", scope="project", file=Path("/home/ada/engine/.mcp.json"))
    assert causes(state(servers=(hidden, counts)), *(deferred(number) for number in range(6))) == []
