"""Whether tools were deferred, and what says so: the strongest trace counts, and traps prove nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.doctor.facts import Deferral, Proof
from tests.homes import BUILT_IN, HomeBuilder, server_tools, versions
from tests.homes.claude_records import Trace
from tests.unit.doctor.evidence.reading import append, only_session, reply, shape, transcript

RESIDENT = ("Agent", "Bash", "Edit", "Read", "Write")
TOOLS = server_tools("github", 6)


@pytest.fixture
def home(tmp_path: Path) -> HomeBuilder:
    return HomeBuilder(tmp_path, now=1_795_000_000.0)


@pytest.mark.parametrize(
    ("trace", "proof"),
    [
        ("requests", Proof.REQUESTS),
        ("snapshot", Proof.SNAPSHOT),
        ("record", Proof.SNAPSHOT),
        ("betas", Proof.BETAS),
        ("searches", Proof.SEARCHES),
    ],
)
def test_each_trace_proves_deferral(home: HomeBuilder, trace: Trace, proof: Proof) -> None:
    home.claude_session(tools=TOOLS, proof=trace, searches=1)
    session = only_session(home)
    assert (session.deferral, session.proof) == (Deferral.ON, proof)


@pytest.mark.parametrize(
    ("trace", "proof"), [("requests", Proof.REQUESTS), ("snapshot", Proof.SNAPSHOT), ("betas", Proof.BETAS)]
)
def test_these_traces_prove_its_absence(home: HomeBuilder, trace: Trace, proof: Proof) -> None:
    home.claude_session(tools=TOOLS, proof=trace, deferral=False)
    session = only_session(home)
    assert (session.deferral, session.proof) == (Deferral.OFF, proof)


@pytest.mark.parametrize("version", versions())
def test_names_that_were_announced_prove_nothing(home: HomeBuilder, version: str) -> None:
    home.claude_session(version=version, tools=TOOLS, proof="none", announce=True)
    session = only_session(home)
    assert (session.deferral, session.proof, session.definitions) == (Deferral.UNKNOWN, Proof.NONE, ())
    assert (len(session.announced) > 0) == (int(version.rsplit(".", 1)[1]) >= 70)


def test_requests_outweigh_what_was_announced(home: HomeBuilder) -> None:
    home.claude_session(tools=TOOLS, proof="requests", deferral=False, announce=True)
    session = only_session(home)
    assert session.deferral is Deferral.OFF
    assert "mcp__github__tool_0" in session.announced


def test_no_search_does_not_prove_that_there_is_none(home: HomeBuilder) -> None:
    home.claude_session(tools=TOOLS, proof="searches", searches=0)
    assert only_session(home).deferral is Deferral.UNKNOWN


def test_requests_tell_every_definition_and_what_it_costs(home: HomeBuilder) -> None:
    home.claude_session(tools=server_tools("github", 3, tokens=800), deferral=False)
    session = only_session(home)
    by_name = {each.name: each for each in session.definitions}
    assert {"Bash", "mcp__github__tool_0", "mcp__github__tool_2", "WebFetch"} <= by_name.keys()
    assert "ToolSearch" not in by_name
    assert session.counted
    tool = by_name["mcp__github__tool_0"]
    assert (tool.server, tool.deferred) == ("github", False)
    assert 700 < tool.tokens < 900


def test_deferred_requests_have_what_is_resident_and_what_was_found(home: HomeBuilder) -> None:
    home.claude_session(
        tools=(*TOOLS, *server_tools("pinned", 2)), pinned={"pinned"}, searches=1, calls={"mcp__github__tool_1": 1}
    )
    definitions = {each.name: each.deferred for each in only_session(home).definitions}
    assert definitions["mcp__github__tool_1"] is True
    assert definitions["mcp__pinned__tool_0"] is False
    assert {*BUILT_IN, "ToolSearch"} <= definitions.keys()
    assert "mcp__github__tool_0" not in definitions
    assert "DeferredToolPlaceholder" not in definitions


def test_a_snapshot_tells_the_same_definitions(home: HomeBuilder) -> None:
    home.claude_session(tools=TOOLS, deferral=False, proof="snapshot")
    snapshot = only_session(home)
    home.transcripts[snapshot.id].unlink()
    home.claude_session(tools=TOOLS, deferral=False, proof="requests")
    assert only_session(home).definitions == snapshot.definitions


def test_a_refusal_is_seen_by_the_reminder(home: HomeBuilder) -> None:
    home.claude_session(tools=TOOLS, refused=True)
    session = only_session(home)
    assert (session.refused, session.deferral, session.proof) == (True, Deferral.OFF, Proof.REQUESTS)
    assert "mcp__github__tool_0" in {each.name for each in session.definitions}


@pytest.mark.parametrize("trace", ["record", "betas", "searches", "none"])
def test_a_refusal_ends_deferral_whatever_else_is_known(home: HomeBuilder, trace: Trace) -> None:
    home.claude_session(tools=TOOLS, refused=True, proof=trace, searches=1)
    session = only_session(home)
    assert (session.refused, session.deferral) == (True, Deferral.OFF)


def test_another_reminder_is_no_refusal(home: HomeBuilder) -> None:
    reminder = {"type": "critical_system_reminder", "content": "Write no more than is asked for."}
    append(transcript(home), reply(), *shape(*RESIDENT, "ToolSearch"), {"type": "attachment", "attachment": reminder})
    session = only_session(home)
    assert (session.refused, session.deferral) == (False, Deferral.ON)


def test_a_request_on_the_side_decides_nothing(home: HomeBuilder) -> None:
    side = shape("StructuredOutput", key="side")
    append(transcript(home), reply(), *side, *shape(*RESIDENT, "ToolSearch", deferred=("WebFetch",)), *side)
    session = only_session(home)
    assert session.deferral is Deferral.ON
    assert "StructuredOutput" not in {each.name for each in session.definitions}


def test_the_betas_of_a_request_on_the_side_do_not_prove_that_deferral_is_off(home: HomeBuilder) -> None:
    append(transcript(home), reply(), *shape("StructuredOutput", key="side"))
    session = only_session(home)
    assert (session.deferral, session.proof) == (Deferral.UNKNOWN, Proof.NONE)


def test_a_record_of_no_deferred_tools_proves_nothing(home: HomeBuilder) -> None:
    record = {"type": "deferred_tools_record", "entries": []}
    append(transcript(home), reply(), {"type": "attachment", "attachment": record})
    session = only_session(home)
    assert (session.deferral, session.proof) == (Deferral.UNKNOWN, Proof.NONE)


def test_a_request_without_tools_decides_nothing(home: HomeBuilder) -> None:
    append(transcript(home), reply(), *shape(*RESIDENT, "ToolSearch"), *shape(key="none"))
    assert only_session(home).deferral is Deferral.ON


def test_a_request_with_less_than_was_resident_does_not_end_deferral(home: HomeBuilder) -> None:
    first = shape(*RESIDENT, "Skill", "ToolSearch")
    append(transcript(home), reply(), *first, *shape("Bash", "Glob", "Grep", "Read", "LS", "Write", key="explore"))
    assert only_session(home).deferral is Deferral.ON


def test_the_latest_request_of_the_conversation_counts(home: HomeBuilder) -> None:
    file = transcript(home)
    on, off = shape(*RESIDENT, "ToolSearch", key="on"), shape(*RESIDENT, "mcp__a__b", key="off")
    append(file, reply(), *on, *off)
    assert only_session(home).deferral is Deferral.OFF
    append(file, on[1])
    session = only_session(home)
    assert session.deferral is Deferral.ON
    assert "mcp__a__b" not in {each.name for each in session.definitions}


def test_a_sub_agents_tools_do_not_speak_for_its_session(home: HomeBuilder) -> None:
    append(transcript(home), reply(), *shape(*RESIDENT, "ToolSearch"))
    append(transcript(home, sub_agent="x"), reply("b"), *shape(*RESIDENT, "Glob"))
    assert only_session(home).deferral is Deferral.ON


def test_records_of_sub_agents_in_the_sessions_own_transcript_do_not_either(home: HomeBuilder) -> None:
    file = transcript(home)
    append(file, reply(), *shape(*RESIDENT, "ToolSearch"), *shape(*RESIDENT, "Glob", key="sub", agentId="x"))
    assert only_session(home).deferral is Deferral.ON


def test_a_sub_agent_that_deferred_proves_it_where_nothing_else_does(home: HomeBuilder) -> None:
    append(transcript(home), reply())
    append(transcript(home, sub_agent="x"), reply("b"), *shape(*RESIDENT, "ToolSearch"))
    assert only_session(home).proof is Proof.REQUESTS


def test_betas_are_told_each_once(home: HomeBuilder) -> None:
    home.claude_session(proof="betas", vertex=True)
    betas = only_session(home).betas
    assert len(betas) == len(set(betas)) == 3
    assert any(each.startswith("tool-search-tool") for each in betas)


def test_definitions_found_in_later_requests_are_added(home: HomeBuilder) -> None:
    first = shape(*RESIDENT, "ToolSearch", deferred=("DeferredToolPlaceholder",), key="1")
    later = shape(*RESIDENT, "ToolSearch", deferred=("DeferredToolPlaceholder", "mcp__a__b"), key="2")
    append(transcript(home), reply(), *first, *later, *first)
    found = {each.name: each for each in only_session(home).definitions}
    assert found["mcp__a__b"].deferred
    assert found["mcp__a__b"].server == "a"
