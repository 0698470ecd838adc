"""What was read is not read again: the same sessions, fewer bytes, and no words in what is kept."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest

from pegboard.doctor.evidence.gather import read_sessions
from pegboard.doctor.evidence.kept import FORMAT, Kept
from tests.homes import HomeBuilder, server_tools
from tests.unit.doctor.evidence.reading import append, machine_of, read, read_on, reply, transcript

SECRET = "XylophoneMarmalade"


@pytest.fixture
def home(tmp_path: Path) -> HomeBuilder:
    return HomeBuilder(tmp_path, now=1_795_000_000.0)


def kept_file(home: HomeBuilder) -> Path:
    file = Kept.of(machine_of(home)).file
    assert file is not None
    return file


def fill(home: HomeBuilder, *, text: str = "look at the parser") -> list[str]:
    """Sessions of every agent, with every trace."""
    tools = server_tools("github", 5)
    found = [home.claude_session(tools=tools, searches=1, text=text, calls={"Bash": 2}, sub_agents=1, compactions=1)]
    found.append(home.claude_session(tools=tools, text=text, copied_from=found[0], turns=2, unknown_records=1))
    found += [
        home.claude_session(tools=tools, text=text, proof="snapshot", refused=True, broken_lines=2),
        home.claude_session(tools=tools, text=text, proof="record"),
        home.claude_session(tools=tools, text=text, proof="betas"),
        home.codex_session(text=text, calls={"mcp__github__tool_1": 1}, searches=1),
        home.codex_session(text=text, records=False),
        home.opencode_session(text=text, calls={"github_tool_1": 1}),
        home.kilo_session(text=text),
        home.cline_session(text=text, calls={"github__tool_1": 1}),
    ]
    return found


def test_a_second_reading_reads_nothing_and_tells_the_same(home: HomeBuilder) -> None:
    fill(home)
    first, second = read_on(home), read_on(home)
    assert first.sessions
    assert second.sessions == first.sessions == read(home).sessions
    assert (second.read_bytes, second.read_files) == (0, 0)
    assert (second.broken_lines, second.unknown_records) == (first.broken_lines, first.unknown_records) == (2, 1)


def test_only_what_was_appended_is_read(home: HomeBuilder) -> None:
    identity = fill(home)[0]
    read_on(home)
    file = home.transcripts[identity]
    before = file.stat().st_size
    append(file, reply("msg_new", sessionId=identity))
    later = read_on(home)
    assert later.read_bytes == file.stat().st_size - before
    assert later.sessions == read(home).sessions


def test_a_reply_goes_on_where_the_last_reading_ended(home: HomeBuilder) -> None:
    file = transcript(home)
    append(file, reply("a", output=1))
    read_on(home)
    append(file, reply("a", output=70), reply("a", output=70))
    (session,) = read_on(home).sessions
    assert (session.usage.messages, session.usage.output) == (1, 70)


@pytest.mark.parametrize("change", ["shrunk", "rewritten", "replaced", "rewritten and longer"])
def test_a_file_that_did_not_only_grow_is_read_anew(home: HomeBuilder, change: str) -> None:
    file = transcript(home)
    append(file, *(reply(f"a{n}", calls=["Bash"]) for n in range(4)))
    read_on(home)
    inode, size = file.stat().st_ino, file.stat().st_size
    if change == "replaced":
        other = file.with_suffix(".new")
        append(other, *(reply(f"b{n}", calls=["Read"]) for n in range(2)))
        other.replace(file)
    else:
        with file.open("r+b") as opened:
            opened.truncate(0)
        count = {"shrunk": 2, "rewritten": 4, "rewritten and longer": 9}[change]
        append(file, *(reply(f"b{n}", calls=["Read"]) for n in range(count)))
        assert file.stat().st_ino == inode
        # A clock may be too coarse to see it.
        os.utime(file, ns=(0, file.stat().st_mtime_ns + 1_000_000_000))
    later = read_on(home)
    assert later.read_bytes == file.stat().st_size
    assert (later.read_bytes > size) == (change == "rewritten and longer")
    assert "Bash" not in later.sessions[0].calls
    assert later.sessions == read(home).sessions


def test_what_was_a_copy_is_its_own_once_the_original_is_gone(home: HomeBuilder) -> None:
    first, second = fill(home)[:2]
    read_on(home)
    home.transcripts[first].unlink()
    later = read_on(home)
    assert later.sessions == read(home).sessions
    (session,) = (each for each in later.sessions if each.id == second)
    assert session.usage.messages == 8


def test_a_new_copy_of_what_was_read_before_is_known_as_one(home: HomeBuilder) -> None:
    first = home.claude_session(turns=5)
    read_on(home)
    second = home.claude_session(turns=2, copied_from=first)
    later = read_on(home)
    assert {each.id: each.usage.messages for each in later.sessions} == {first: 5, second: 2}
    assert later.sessions == read(home).sessions


def test_sessions_that_are_gone_are_told_no_more(home: HomeBuilder) -> None:
    fill(home)
    read_on(home)
    for file in home.transcripts.values():
        file.unlink()
    assert {each.agent for each in read_on(home).sessions} == {"opencode", "kilo", "claude-code"}  # a sub-agent's
    assert read_on(home).sessions == read(home).sessions


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "other", "a folder", "not ours to read"])
def test_what_was_kept_and_is_broken_is_made_anew(home: HomeBuilder, damage: str) -> None:
    fill(home)
    expected = read_on(home)
    file = kept_file(home)
    whole = file.read_bytes()
    if damage == "a folder":
        file.unlink()
        file.mkdir()
    elif damage == "not ours to read":
        file.unlink()
        os.mkfifo(file)
    else:
        half = len(whole) // 2
        flipped = whole[:half] + bytes([whole[half] ^ 1]) + whole[half + 1 :]
        file.write_bytes({"empty": b"", "cut": whole[:half], "flipped": flipped, "other": b"{}" * 99}[damage])
    later = read_on(home)
    assert (later.sessions, later.read_files) == (expected.sessions, expected.read_files)
    if damage in ("a folder", "not ours to read"):
        assert "could not be kept" in later.notes[0]
    else:
        assert read_on(home).read_files == 0


def test_what_another_version_kept_is_made_anew(home: HomeBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home)
    expected = read_on(home)
    monkeypatch.setattr("pegboard.doctor.evidence.kept.FORMAT", FORMAT + 1)
    assert read_on(home).read_files == expected.read_files


def test_no_words_of_anybodys_are_kept_or_told(home: HomeBuilder) -> None:
    fill(home, text=f"the {SECRET} is under the mat")
    home.claude_session(proof="requests", text=f"again: {SECRET}", calls={f"say {SECRET}": 1}, version="2.1.325")
    gathered = read_on(home)
    content = kept_file(home).read_bytes()
    planted = sum(SECRET.encode() in file.read_bytes() for file in home.folder.rglob("*") if file.is_file())
    assert planted > 8
    assert len(gathered.sessions) == 11
    for spelled in (SECRET, SECRET.lower(), SECRET[:9]):
        assert spelled.encode() not in content
        assert spelled not in repr(gathered)
        assert spelled.encode() not in msgspec.json.encode(gathered)


def test_what_is_kept_is_for_its_owner_only(home: HomeBuilder) -> None:
    fill(home)
    read_on(home)
    assert stat.S_IMODE(kept_file(home).stat().st_mode) == 0o600
    assert kept_file(home).is_relative_to(home.folder / ".local/state/pegboard/doctor")


def test_a_file_that_may_not_be_opened_is_noted_and_stops_nothing(home: HomeBuilder) -> None:
    home.claude_session()
    os.mkfifo(transcript(home, "pipe"))
    gathered = read(home)
    assert len(gathered.sessions) == 1
    assert "pipe.jsonl cannot be read: Not a regular file" in gathered.notes[0]


def test_files_with_names_that_are_no_text_are_read_and_known_again(home: HomeBuilder) -> None:
    fill(home)
    odd = "\udcff"
    append(transcript(home, odd), reply("odd"))
    append(transcript(home, odd, sub_agent="x"), reply("of it"))
    for file in [each for each in home.transcripts.values() if each.suffix == ".json" or "rollout" in each.name]:
        name = file.name.replace("rollout-", f"rollout-{odd}").replace(".messages", f"{odd}.messages")
        file.rename(file.with_name(name))
    os.mkfifo(transcript(home, f"{odd}-pipe"))
    first, second = read_on(home), read_on(home)
    assert {each.agent for each in first.sessions} >= {"claude-code", "codex", "cline"}
    assert second.sessions == first.sessions
    assert (second.read_bytes, second.read_files) == (0, 0)
    assert "\\udcff-pipe" in msgspec.json.decode(msgspec.json.encode(first))["notes"][0]


FOLDERS = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "CLINE_DATA_DIR", "XDG_DATA_HOME")


@pytest.mark.parametrize("variable", FOLDERS)
def test_a_folder_that_cannot_be_looked_into_is_noted_and_stops_nothing(home: HomeBuilder, variable: str) -> None:
    fill(home)
    agents = {each.agent for each in read(home).sessions}
    home.process(**{variable: "/" + "x" * 300})
    gathered = read(home)
    assert {each.agent for each in gathered.sessions} < agents
    assert gathered.sessions
    assert "File name too long" in gathered.notes[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_folders_that_are_closed_are_noted_one_by_one(home: HomeBuilder) -> None:
    fill(home)
    closed = [".claude/projects", ".codex", ".cline", ".local/share/opencode", ".local/share/kilo"]
    for name in closed:
        (home.folder / name).chmod(0)
    gathered = read(home)
    for name in closed:
        (home.folder / name).chmod(0o700)
    assert gathered.sessions == ()
    assert [sum(f"{home.folder}/{name}" in note for note in gathered.notes) for name in closed] == [1, 2, 1, 1, 1]


def test_progress_is_told_to_the_end(home: HomeBuilder) -> None:
    fill(home)
    told: list[tuple[int, int]] = []
    gathered = read_sessions(machine_of(home), progress=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (gathered.read_bytes, gathered.read_bytes)
    assert len({total for _, total in told}) == 1
