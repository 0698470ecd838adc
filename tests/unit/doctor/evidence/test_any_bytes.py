"""Whatever the bytes are and wherever reading stopped: nothing is raised, and nothing is counted twice or lost."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.doctor.evidence.gather import Gathered
from pegboard.doctor.evidence.kept import Kept
from pegboard.doctor.facts import Session
from tests.homes import HomeBuilder, server_tools
from tests.often import often
from tests.unit.doctor.evidence.reading import machine_of, read, read_on

NOW = 1_795_000_000.0
Edit = tuple[float, bytes, float]
edits = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.one_of(
            st.binary(max_size=30),
            st.sampled_from(
                [b"\n", b'"', b"}", b"\n\n", b'{"type":"assistant"}\n', b'\n{"a":1}', b"\xff", b"[" * 2000, b"1e999",
                 b'\n{"type":"assistant","message":{"usage":{"input_tokens":1e999}}}\n', b"\\ud800", b"-5"]
            ),
        ),
        st.floats(0, 0.02),
    ),
    max_size=4,
)  # fmt: skip
cuts = st.lists(st.floats(0, 1), min_size=1, max_size=4).map(sorted)


def made(folder: Path) -> HomeBuilder:
    """One session of each agent that writes lines, the first copied into a second one, with a sub-agent."""
    home = HomeBuilder(folder, now=NOW)
    tools = server_tools("github", 2, tokens=60)
    first = home.claude_session(
        tools=tools, calls={"mcp__github__tool_0": 2, "Bash": 3}, searches=1, turns=4, refused=True, compactions=1,
        broken_lines=1, unknown_records=1, sub_agents=1, resumed=True,
    )  # fmt: skip
    home.claude_session(tools=tools, turns=2, copied_from=first)
    home.codex_session(calls={"mcp__github__tool_0": 2}, searches=1, turns=3)
    home.cline_session(calls={"github__tool": 1}, turns=2)
    return home


def files(home: HomeBuilder) -> list[Path]:
    """The transcripts, the original before its copy."""
    first, *others = home.transcripts.values()
    return [first, *first.with_suffix("").rglob("*.jsonl"), *others]


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, bytes]]:
    """Every transcript, relative to the folder that stands for all."""
    home = made(tmp_path_factory.mktemp("made"))
    return [(file.relative_to(home.root), file.read_bytes()) for file in files(home)]


def edited(content: bytes, changes: list[Edit]) -> bytes:
    """Some bytes taken out, others put there."""
    for place, put, lost in changes:
        at = int(place * len(content))
        content = content[:at] + put + content[at + int(lost * len(content)) :]
    return content


def home_with(folder: str, contents: list[tuple[Path, bytes]]) -> HomeBuilder:
    home = HomeBuilder(Path(folder), now=NOW)
    for name, content in contents:
        (home.root / name).parent.mkdir(parents=True, exist_ok=True)
        (home.root / name).write_bytes(content)
    return home


def is_sane(session: Session, lines: int) -> bool:
    numbers = (*session.calls.values(), session.usage.input, session.usage.output, session.usage.cache_write)
    times = session.began_at <= session.ended_at
    return times and all(each >= 0 for each in numbers) and session.usage.messages + session.broken_lines <= lines


@settings(max_examples=often(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_cut_and_no_garbage_is_ever_raised(contents: list[tuple[Path, bytes]], data: st.DataObject) -> None:
    changed = [(name, edited(content, data.draw(edits, label=name.name))) for name, content in contents]
    lines = sum(content.count(b"\n") + 1 for _, content in changed)
    with tempfile.TemporaryDirectory() as folder:
        gathered = read(home_with(folder, changed))
    assert all(is_sane(session, lines) for session in gathered.sessions)
    assert gathered.broken_lines + gathered.unknown_records <= 2 * lines
    assert gathered.read_bytes == sum(len(content) for _, content in changed)


@settings(max_examples=often(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_reading_in_any_pieces_tells_what_reading_at_once_tells(
    contents: list[tuple[Path, bytes]], data: st.DataObject
) -> None:
    changed = [(name, edited(content, data.draw(edits, label=name.name))) for name, content in contents]
    chosen = data.draw(st.integers(0, len(changed) - 1), label="which")
    name, content = changed[chosen]
    places = sorted(int(place * len(content)) for place in data.draw(cuts, label="where"))
    # A copy is made of what is there: while the original is written, there is none.
    others = [each for number, each in enumerate(changed) if number != chosen and not (chosen == 0 and number == 2)]
    with tempfile.TemporaryDirectory() as folder:
        home = home_with(folder, [*others, (name, b"")])
        read_on(home)
        for start, end in zip([0, *places], [*places, len(content)], strict=True):
            with (home.root / name).open("ab") as file:
                file.write(content[start:end])
            later = read_on(home)
        assert told(later) == told(read(home))


@settings(max_examples=often(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damage=edits)
def test_whatever_was_kept_the_same_is_told(contents: list[tuple[Path, bytes]], damage: list[Edit]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = home_with(folder, contents)
        expected = told(read_on(home))
        file = Kept.of(machine_of(home)).file
        assert file is not None
        file.write_bytes(edited(file.read_bytes(), damage))
        assert told(read_on(home)) == expected


def told(gathered: Gathered) -> tuple[object, ...]:
    return gathered.sessions, gathered.broken_lines, gathered.unknown_records
