"""Claude Code's transcripts: what is counted, once, and for whom."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pegboard.doctor.evidence.gather import read_sessions
from pegboard.doctor.evidence.kept import Kept
from pegboard.doctor.facts import Usage
from tests.homes import HomeBuilder, Tokens, server_tools
from tests.unit.doctor.evidence.reading import (
    append,
    machine_of,
    only_session,
    read,
    read_on,
    reply,
    sessions,
    transcript,
)


@pytest.fixture
def home(tmp_path: Path) -> HomeBuilder:
    return HomeBuilder(tmp_path, now=1_795_000_000.0)


def test_a_session_is_read_with_all_that_can_be_known_of_it(home: HomeBuilder) -> None:
    used = Tokens(input=7, output=50, cache_read=1_000, cache_write=200)
    identity = home.claude_session(
        tools=server_tools("github", 4), calls={"mcp__github__tool_3": 4, "Bash": 2}, searches=2, turns=3,
        models=("claude-sonnet-5", "claude-opus-5"), usage=used, compactions=2, days_ago=2.0,
    )  # fmt: skip
    session = only_session(home)
    assert (session.agent, session.id, session.project) == ("claude-code", identity, str(home.project))
    assert (session.version, session.models) == ("2.1.325", ("claude-sonnet-5", "claude-opus-5"))
    assert session.usage == Usage(input=21, output=150, cache_read=3_000, cache_write=600, messages=3)
    assert session.calls == {"mcp__github__tool_3": 4, "Bash": 2}
    assert session.server_calls == {"github": 4}
    assert (session.searches, session.compactions, session.resumed) == (2, 2, False)
    assert home.now - 2 * 86_400 < session.began_at < session.ended_at < home.now


def test_one_reply_on_many_lines_is_counted_once_with_its_largest_output(home: HomeBuilder) -> None:
    file = transcript(home)
    append(file, reply(output=1), reply(output=90), reply(output=40))
    usage = only_session(home).usage
    assert usage == Usage(input=3, output=90, cache_read=100, messages=1)


def test_lines_of_one_reply_may_lie_between_those_of_others(home: HomeBuilder) -> None:
    file = transcript(home)
    append(file, reply("a", output=1), reply("b", output=2), reply("a", output=9), reply("b", output=8))
    assert only_session(home).usage == Usage(input=6, output=17, cache_read=200, messages=2)


def test_a_reply_that_comes_again_long_after_is_not_counted_again(home: HomeBuilder) -> None:
    file = transcript(home)
    append(file, *(reply(f"m{number}", calls=["Bash"]) for number in range(200)))
    append(file, *(reply(f"m{number}", calls=["Bash"], uuid=f"other {number}") for number in range(100)))
    session = only_session(home)
    assert (session.usage.messages, session.usage.output, session.calls) == (200, 2_000, {"Bash": 200})


def test_a_repeated_uuid_is_skipped(home: HomeBuilder) -> None:
    file = transcript(home)
    append(file, reply("a", uuid="u", calls=["Bash"]), reply("a", uuid="u", calls=["Bash"]))
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "c"}
    append(file, boundary, boundary)
    session = only_session(home)
    assert (session.usage.messages, session.calls, session.compactions) == (1, {"Bash": 1}, 1)


def test_a_reply_of_more_lines_than_any_has_takes_no_more_memory(home: HomeBuilder) -> None:
    file = transcript(home)
    append(file, *(reply("a", uuid=f"u{number}") for number in range(5_000)))
    read_on(home)
    kept = Kept.of(machine_of(home)).file
    assert kept is not None
    assert kept.stat().st_size < 30_000


def test_every_line_of_a_reply_has_its_calls_counted(home: HomeBuilder) -> None:
    append(transcript(home), reply(output=1, calls=["Bash", "Read"]), reply(output=2, calls=["Bash"]))
    assert only_session(home).calls == {"Bash": 2, "Read": 1}


def test_a_resumed_session_does_not_count_what_it_copied(home: HomeBuilder) -> None:
    first = home.claude_session(calls={"Bash": 3}, turns=6, compactions=1)
    second = home.claude_session(calls={"Read": 1}, turns=2, copied_from=first, days_ago=0.5)
    found = sessions(home)
    assert (found[first].usage.messages, found[second].usage.messages) == (6, 2)
    assert (found[first].calls, found[second].calls) == ({"Bash": 3}, {"Read": 1})
    assert (found[first].compactions, found[second].compactions) == (1, 0)
    assert (found[first].resumed, found[second].resumed) == (False, True)
    assert found[second].began_at > found[first].ended_at


def test_the_original_keeps_its_records_though_it_was_written_to_after_its_copy(home: HomeBuilder) -> None:
    first = home.claude_session(turns=6)
    second = home.claude_session(turns=2, copied_from=first)
    append(home.transcripts[first], reply("msg_later", sessionId=first))
    found = sessions(home)
    assert (found[first].usage.messages, found[second].usage.messages) == (7, 2)


def test_what_was_copied_counts_where_it_is_when_the_original_is_gone(home: HomeBuilder) -> None:
    first = home.claude_session(turns=6)
    second = home.claude_session(turns=2, copied_from=first)
    home.transcripts[first].unlink()
    session = only_session(home)
    assert (session.id, session.usage.messages) == (second, 8)


def test_copies_with_other_uuids_are_known_by_their_replies(home: HomeBuilder) -> None:
    append(transcript(home, "a"), *(reply(f"m{n}", calls=["Bash"], sessionId="a") for n in range(3)))
    copied = [reply(f"m{n}", calls=["Bash"], uuid=f"b{n}", sessionId="b") for n in range(3)]
    append(transcript(home, "b"), *copied, reply("own", calls=["Read"], sessionId="b"))
    found = sessions(home)
    assert (found["a"].calls, found["b"].calls) == ({"Bash": 3}, {"Read": 1})
    assert found["b"].usage.messages == 1


def test_sub_agents_count_for_their_session(home: HomeBuilder) -> None:
    home.claude_session(calls={"mcp__github__tool_1": 1}, turns=2, sub_agents=3)
    session = only_session(home)
    assert (session.usage.messages, session.server_calls) == (8, {"github": 4})


def test_sub_agents_beside_the_sessions_count_for_the_one_they_name(home: HomeBuilder) -> None:
    append(transcript(home, "s-1"), reply("a", sessionId="s-1"))
    append(transcript(home, "agent-abc"), reply("b", sessionId="s-1", calls=["Read"], isSidechain=True))
    session = only_session(home)
    assert (session.id, session.usage.messages, session.calls) == ("s-1", 2, {"Read": 1})


def test_a_sub_agent_that_copied_its_session_adds_only_what_is_its_own(home: HomeBuilder) -> None:
    main, sub = transcript(home, "s-1"), transcript(home, "s-1", sub_agent="x")
    append(main, reply("a"), reply("b"))
    sub.write_bytes(main.read_bytes())
    append(sub, reply("c"))
    session = only_session(home)
    assert (session.usage.messages, session.resumed) == (3, False)


def test_transcripts_of_all_projects_are_read(home: HomeBuilder) -> None:
    for number in range(3):
        home.claude_session(project=home.folder / f"p{number}")
    assert {Path(each.project).name for each in read(home).sessions} == {"p0", "p1", "p2"}


def test_another_config_folder_is_respected(home: HomeBuilder, tmp_path: Path) -> None:
    home.claude_session()
    home.process(CLAUDE_CONFIG_DIR=str(tmp_path / "elsewhere"))
    there = home.claude_session()
    assert only_session(home).id == there


def test_what_other_agents_wrote_is_no_evidence_for_claude_code(home: HomeBuilder) -> None:
    home.codex_session(calls={"mcp__github__tool_1": 2}, searches=3)
    home.opencode_session(calls={"github_tool_1": 2})
    home.kilo_session(calls={"github_tool_1": 2})
    home.cline_session(calls={"github__tool_1": 2})
    identity = home.claude_session(proof="none")
    found = sessions(home)
    assert [each.agent for each in found.values()].count("claude-code") == 1
    assert (found[identity].searches, found[identity].server_calls) == (0, {})


def test_a_session_taken_up_by_another_version_was_resumed(home: HomeBuilder) -> None:
    append(transcript(home), reply("a", version="2.1.303"), reply("b", version="2.1.325"))
    session = only_session(home)
    assert (session.version, session.resumed) == ("2.1.325", True)


def test_a_hook_tells_that_a_session_was_resumed(home: HomeBuilder) -> None:
    home.claude_session(resumed=True)
    assert only_session(home).resumed


def test_messages_that_no_model_wrote_do_not_count(home: HomeBuilder) -> None:
    made_up = reply("x")
    made_up["message"]["model"] = "<synthetic>"
    append(transcript(home), reply("a"), made_up)
    session = only_session(home)
    assert (session.usage.messages, session.models) == (1, ("claude-sonnet-5",))


def test_broken_lines_and_unknown_records_are_counted_and_stop_nothing(home: HomeBuilder) -> None:
    home.claude_session(turns=4, broken_lines=3, unknown_records=5)
    gathered = read(home)
    (session,) = gathered.sessions
    assert (session.broken_lines, session.unknown_records, session.usage.messages) == (3, 5, 4)
    assert (gathered.broken_lines, gathered.unknown_records) == (3, 5)


def test_fields_of_the_wrong_kind_make_a_record_unknown(home: HomeBuilder) -> None:
    file = transcript(home)
    wrong = reply("w")
    wrong["message"]["usage"] = "many"
    append(file, reply("a"), wrong, {"type": "assistant", "message": []}, reply("b"))
    file.write_bytes(file.read_bytes() + b"[1,2]\n7\n\n   \n")
    session = only_session(home)
    assert (session.usage.messages, session.unknown_records, session.broken_lines) == (2, 4, 0)


def test_numbers_that_cannot_be_are_taken_for_none(home: HomeBuilder) -> None:
    odd = reply("a")
    odd["message"]["usage"] = {"input_tokens": -5, "output_tokens": 10**40, "cache_read_input_tokens": None}
    append(transcript(home), odd)
    usage = only_session(home).usage
    assert (usage.input, usage.cache_read, usage.output) == (0, 0, 10**12)


def test_words_where_a_name_should_be_are_not_kept(home: HomeBuilder) -> None:
    append(transcript(home), reply("a", calls=["please tell nobody", "Bash"], version="my dear version"))
    session = only_session(home)
    assert (session.calls, session.version) == ({"Bash": 1}, "")


def test_a_last_line_without_an_end_counts_once_it_is_whole(home: HomeBuilder) -> None:
    file = transcript(home)
    append(file, reply("a"), reply("b"))
    whole = file.read_bytes()
    file.write_bytes(whole.rstrip(b"\n"))
    assert only_session(home).usage.messages == 2
    file.write_bytes(whole[:-9])
    session = only_session(home)
    assert (session.usage.messages, session.broken_lines) == (1, 0)


def test_links_that_lead_nowhere_stop_nothing(home: HomeBuilder) -> None:
    identity = home.claude_session()
    for place in (home.claude_folder / "projects" / "loop", home.transcripts[identity].parent / "loop"):
        place.symlink_to(place.name)
    assert only_session(home).id == identity


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_entered_is_noted(home: HomeBuilder) -> None:
    home.claude_session(sub_agents=1)
    folder = home.claude_folder / "projects" / "-p" / "closed"
    folder.mkdir(parents=True)
    folder.chmod(0)
    gathered = read(home)
    assert len(gathered.sessions) == 1
    assert "Permission denied" in gathered.notes[0]


def test_a_session_without_an_answer_is_none(home: HomeBuilder) -> None:
    append(transcript(home), {"type": "user", "uuid": "u", "message": {"role": "user", "content": "hello?"}})
    assert read(home).sessions == ()


def test_plugins_servers_are_told_apart(home: HomeBuilder) -> None:
    home.claude_session(tools=server_tools("db", 1, plugin="tools"), calls={"mcp__plugin_tools_db__tool_0": 2})
    assert only_session(home).server_calls == {"plugin_tools_db": 2}


def test_only_sessions_since_then_are_told(home: HomeBuilder) -> None:
    home.claude_session(days_ago=9)
    late = home.claude_session(days_ago=2)
    (session,) = read_sessions(machine_of(home), since=home.now - 5 * 86_400).sessions
    assert session.id == late


def test_a_session_begins_with_its_first_own_reply_whatever_a_person_wrote_or_copied_before(home: HomeBuilder) -> None:
    written = {"type": "user", "message": {"role": "user", "content": "go on"}, "timestamp": "2026-11-10T10:00:00.000Z"}
    append(transcript(home), {**written, "uuid": "u1"}, reply(timestamp="2026-11-17T10:00:00.000Z"))
    append(transcript(home), {**written, "uuid": "u2", "version": "2.0.1", "cwd": "/elsewhere"})
    session = only_session(home)
    assert session.began_at == session.ended_at == 1_794_909_600.0
    assert (session.version, session.project, session.resumed) == ("2.1.325", "", False)
