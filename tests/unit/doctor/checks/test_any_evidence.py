"""What holds for the findings of any evidence at all."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from hypothesis import given
from hypothesis import settings as few
from hypothesis import strategies as st

from pegboard.doctor.checks import CAUSES
from pegboard.doctor.diagnosis import diagnose
from pegboard.doctor.facts import (
    Agent,
    AgentState,
    Deferral,
    Definition,
    Evidence,
    Proof,
    ServerEntry,
    Session,
    Setting,
    Usage,
)
from tests.homes import versions
from tests.often import often
from tests.unit.doctor.checks.made import DAY, NOW

FOLDERS = ["", "/code/a", "/code/a/inner", "/code/b"]
SERVERS = ["github", "docs", "my docs", "pegboard"]
MODELS = ["claude-sonnet-5", "claude-3-5-sonnet-20241022", "claude-sonnet-4@20250514", "gpt-5.5", "house-70b"]
VALUES = {
    "ENABLE_TOOL_SEARCH": ["true", "false", "auto", "auto:0", "auto:7", "auto:40", "auto:100", "", "force"],
    "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": ["1", "0"],
    "ANTHROPIC_BASE_URL": ["https://llm.example.com", "https://api.anthropic.com", "?"],
    "permissions.deny": ["ToolSearch"],
    "CLAUDE_CODE_USE_VERTEX": ["1", ""],
    "model": ["gpt-5.5", "house-70b"],
}
TOOLS = [f"mcp__{server}__t{number}" for server in ("github", "docs") for number in range(3)]
AGENTS: list[Agent] = ["claude-code", "codex", "opencode", "kilo", "zed", "cursor"]
agents = st.sampled_from(AGENTS)
moments = st.sampled_from([0.0, NOW, *(NOW - days * DAY for days in (0.5, 1, 3, 9, 29))])
names = st.sampled_from(["Bash", "WebFetch", *TOOLS])


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    name = draw(names)
    server = name.split("__")[1] if "__" in name else ""
    return Definition(name=name, server=server, tokens=draw(st.integers(0, 9_000)), deferred=draw(st.booleans()))


@st.composite
def sessions(draw: st.DrawFn, number: int) -> Session:
    deferral = draw(st.sampled_from(Deferral))
    began = draw(moments)
    return Session(
        agent=draw(st.sampled_from(["claude-code", "claude-code", "claude-code", *AGENTS])),
        id=f"s{number}",
        project=draw(st.sampled_from(FOLDERS)),
        version=draw(st.sampled_from(["", "1.0", "2.1.325", "2.1.325", "2.1.290", *versions()])),
        models=(draw(st.sampled_from(["claude-sonnet-5", *MODELS])),),
        began_at=began,
        ended_at=began + draw(st.sampled_from([0.0, DAY])),
        usage=Usage(messages=draw(st.integers(0, 9)), cache_read=draw(st.integers(0, 9))),
        deferral=deferral,
        proof=Proof.NONE if deferral is Deferral.UNKNOWN else draw(st.sampled_from(Proof)),
        definitions=tuple(draw(st.lists(definitions(), max_size=4))),
        calls=draw(st.dictionaries(names, st.integers(0, 3), max_size=3)),
        server_calls=draw(st.dictionaries(st.sampled_from(SERVERS), st.integers(0, 2), max_size=2)),
        searches=draw(st.integers(0, 1)),
        refused=draw(st.integers(0, 20)) == 20,
        resumed=draw(st.booleans()),
        announced=tuple(draw(st.lists(names, max_size=3))),
    )


@st.composite
def settings(draw: st.DrawFn) -> Setting:
    name = draw(st.sampled_from(sorted(VALUES)))
    return Setting(
        name=name,
        value=draw(st.sampled_from(VALUES[name])),
        file=draw(st.sampled_from([None, Path("/home/ada/.claude/settings.json"), Path("/home/ada/.zshrc")])),
        line=draw(st.integers(0, 3)),
        scope=draw(st.sampled_from(["managed", "local", "project", "user", "shell", "environment"])),
        changed_at=draw(moments),
    )


@st.composite
def servers(draw: st.DrawFn, agent: Agent) -> ServerEntry:
    name = draw(st.sampled_from(SERVERS))
    return ServerEntry(
        agent=agent,
        name=name,
        file=draw(st.sampled_from([Path("/home/ada/.claude.json"), Path("/code/a/.mcp.json")])),
        scope=draw(st.sampled_from(["user", "user", "project", "local", "managed", "plugin"])),
        key=("mcpServers", name),
        always_load=draw(st.sampled_from([None, None, True, False])),
        enabled=draw(st.integers(0, 5)) > 0,
        launch=draw(st.sampled_from(["", "one", "two"])),
        changed_at=draw(st.sampled_from([0.0, 0.0, NOW - 29 * DAY, NOW])),
        pending=draw(st.integers(0, 5)) == 0,
    )


@st.composite
def states(draw: st.DrawFn, agent: Agent, project: str) -> AgentState:
    return AgentState(
        agent=agent,
        installed=draw(st.booleans()),
        version=draw(st.sampled_from(["", "garbage", "2.1.325", *versions()])),
        project=project,
        settings=tuple(draw(st.lists(settings(), max_size=2, unique_by=lambda each: each.name))),
        overridden=tuple(draw(st.lists(settings(), max_size=1))),
        servers=tuple(draw(st.lists(servers(agent), max_size=5))),
        changed_at=draw(st.sampled_from([0.0, NOW - 29 * DAY, NOW])),
    )


@st.composite
def evidence_of(draw: st.DrawFn) -> Evidence:
    places = draw(st.sets(st.sampled_from([(agent, folder) for agent in AGENTS for folder in FOLDERS]), max_size=5))
    count = draw(st.integers(0, 16))
    return Evidence(
        sessions=tuple(draw(sessions(number)) for number in range(count)),
        states=tuple(draw(states(agent, folder)) for agent, folder in sorted({*places, ("claude-code", "")})),
    )


evidences = evidence_of()


@few(max_examples=often(40), deadline=None)
@given(evidences)
def test_findings_are_whole_whatever_the_evidence(evidence: Evidence) -> None:
    found = diagnose(evidence, now=NOW)
    for finding in found.findings:
        assert finding.cause in CAUSES
        assert finding.id.split(":")[0] == finding.cause
        assert finding.title
        assert finding.why.endswith(".")
        assert not re.search(r",\s*[.,;]| {2}", finding.why)
        assert finding.fix is not None or finding.by_hand
        assert 0 <= finding.saving_per_session <= sum(finding.tokens_per_session.values())
        assert {server for _, server in finding.claims} <= set(finding.tokens_per_session)
        assert finding.cost_per_session >= 0
    assert 0 <= found.saving <= sum(each.saving_per_session * each.sessions for each in found.findings) + len(CAUSES)


@few(max_examples=often(40), deadline=None)
@given(evidences)
def test_no_session_has_two_causes(evidence: Evidence) -> None:
    found = diagnose(evidence, now=NOW).findings
    owned = sum(each.sessions for each in found if each.cause.startswith("deferral-") or each.cause == "threshold")
    assert owned <= sum(session.agent == "claude-code" for session in evidence.sessions)


@few(max_examples=often(40), deadline=None)
@given(evidences)
def test_a_cause_has_one_finding_or_one_for_each_server(evidence: Evidence) -> None:
    ids = [each.id for each in diagnose(evidence, now=NOW).findings]
    assert sorted(ids) == sorted(set(ids))


@few(max_examples=often(40), deadline=None)
@given(evidences, st.randoms())
def test_the_order_of_the_evidence_does_not_matter(evidence: Evidence, random: Random) -> None:
    mixed = list(evidence.sessions)
    random.shuffle(mixed)
    again = Evidence(sessions=tuple(mixed), states=evidence.states)
    assert diagnose(again, now=NOW) == diagnose(evidence, now=NOW)
