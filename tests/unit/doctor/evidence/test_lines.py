"""Lines of any length, from any place, in bounded memory."""

from __future__ import annotations

import os
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.doctor.evidence.lines import LINE_CAP, Lines
from pegboard.doctor.facts import Deferral, Session
from tests.homes import HomeBuilder
from tests.often import often
from tests.unit.doctor.evidence.reading import append, read, read_on, reply, transcript


class Taken:
    """Remembers what it was handed."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.over = 0

    def take(self, line: bytes) -> None:
        self.lines.append(line)

    def passed_over(self) -> None:
        self.over += 1


def fed(content: bytes, *, cap: int, offset: int = 0) -> tuple[Taken, Lines]:
    taken = Taken()
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        lines = Lines(file.fileno(), offset, cap=cap)
        lines.feed(taken)
    return taken, lines


@settings(max_examples=often(200), deadline=None)
@given(parts=st.lists(st.binary(max_size=12)), cap=st.integers(1, 14))
def test_every_line_is_handed_over_or_passed_over(parts: list[bytes], cap: int) -> None:
    content = b"\n".join(parts)
    *whole, rest = content.split(b"\n")
    taken, lines = fed(content, cap=cap)
    assert taken.lines == [line + b"\n" for line in whole if len(line) < cap]
    assert taken.over == sum(len(line) >= cap for line in whole)
    assert lines.offset == len(content) - len(rest)
    assert lines.rest == (rest if len(rest) < cap else b"")


@settings(max_examples=often(100), deadline=None)
@given(content=st.binary(max_size=60), cut=st.integers(0, 60), cap=st.integers(1, 20))
def test_reading_goes_on_where_the_last_whole_line_ended(content: bytes, cut: int, cap: int) -> None:
    content = content.replace(b"\x00", b"\n")
    before, lines = fed(content[:cut], cap=cap)
    after, _ = fed(content, cap=cap, offset=lines.offset)
    once, _ = fed(content, cap=cap)
    assert (before.lines + after.lines, before.over + after.over) == (once.lines, once.over)


def test_one_giant_line_is_passed_over_and_counted_in_bounded_memory(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    file = transcript(home)
    append(file, reply("a"))
    with file.open("ab") as opened:
        opened.write(b'{"type":"assistant","message":{"content":"')
        os.posix_fallocate(opened.fileno(), opened.tell(), 3 * LINE_CAP)
        opened.seek(0, os.SEEK_END)
        opened.write(b'"}}\n')
    append(file, reply("b"))
    tracemalloc.start()
    try:
        (session,) = read(home).sessions
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (session.usage.messages, session.broken_lines) == (2, 1)
    assert peak < 3 * LINE_CAP


def test_a_giant_line_that_is_not_finished_is_waited_for(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    file = transcript(home)
    append(file, reply("a"))
    with file.open("ab") as opened:
        opened.truncate(2 * LINE_CAP)
    (session,) = read_on(home).sessions
    assert (session.usage.messages, session.broken_lines) == (1, 0)
    with file.open("ab") as opened:
        opened.write(b"\n")
    append(file, reply("b"))
    (session,) = read_on(home).sessions
    assert (session.usage.messages, session.broken_lines) == (2, 1)


def test_a_huge_result_is_not_looked_into(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    text = 'a reply: {"type":"assistant"} ' * 10_000
    append(transcript(home), reply("a"), {"type": "user", "message": {"role": "user", "content": text}, "uuid": "u"})
    gathered = read(home)
    assert (gathered.sessions[0].usage.messages, gathered.broken_lines) == (1, 0)


def test_a_huge_reply_is_counted_whatever_it_quotes(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    huge = reply("a", calls=["Bash"])
    quoted = '"type":"user","message":{"role":"user"' * 5_000
    huge["message"]["content"].append({"type": "text", "text": quoted})
    append(transcript(home), huge)
    assert read(home).sessions[0].calls == {"Bash": 1}


def traced(tmp_path: Path, *lines: bytes) -> tuple[Session, int]:
    """The session of a reply and these lines, and the most memory that reading it took."""
    home = HomeBuilder(tmp_path)
    append(transcript(home), reply("a"))
    with transcript(home).open("ab") as opened:
        opened.writelines(lines)
    tracemalloc.start()
    try:
        (session,) = read_on(home).sessions
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read_on(home).read_files == 0
    return session, peak


TOOLS = b",".join(b'{"name":"mcp__a__t%d"}' % number for number in range(250_000))


@pytest.mark.parametrize(
    "record",
    [
        b'{"type":"api-request-shape","shapeHash":"s","shape":{"tools":[%s]}}' % TOOLS,
        b'{"type":"attachment","attachment":{"type":"deferred_tools_record","entries":[%s]}}' % TOOLS,
        b'{"type":"attachment","attachment":{"type":"prompt_snapshot","tools":[{"name":"Bash","description":"%s"}]}}'
        % (b"word " * 1_000_000),
        b'{"type":"api-request","params":{"betas":[%s]}}' % b",".join(b'"beta-%d"' % n for n in range(400_000)),
    ],
)
def test_a_record_of_a_size_that_none_has_is_counted_and_not_looked_into(record: bytes, tmp_path: Path) -> None:
    assert len(record) > 4 * 1024 * 1024
    session, peak = traced(tmp_path, record + b"\n")
    assert (session.unknown_records, session.deferral, session.betas) == (1, Deferral.UNKNOWN, ())
    assert peak < 4 * len(record)


def test_a_reply_of_a_size_that_none_has_is_counted_without_its_calls(tmp_path: Path) -> None:
    calls = b",".join([b'{"type":"tool_use","name":"Bash"}'] * 200_000)
    record = b'{"type":"assistant","uuid":"u","message":{"id":"b","model":"m","content":[%s]}}\n' % calls
    session, peak = traced(tmp_path, record)
    assert (session.usage.messages, session.calls, session.unknown_records) == (2, {}, 1)
    assert peak < 4 * len(record)


def test_of_an_endless_list_only_so_many_are_kept(tmp_path: Path) -> None:
    tools = b",".join(b'{"name":"mcp__a__t%d"}' % number for number in range(12_000))
    betas = b",".join(b'"beta-%d"' % number for number in range(300))
    session, _ = traced(
        tmp_path,
        b'{"type":"api-request-shape","shapeHash":"s","shape":{"tools":[%s]}}\n' % tools,
        b'{"type":"api-request","shapeHash":"s","params":{"betas":[%s]}}\n' % betas,
        *(b'{"type":"assistant","message":{"id":"%d","model":"m%d"}}\n' % (n, n) for n in range(300)),
    )
    assert (len(session.definitions), len(session.betas), len(session.models)) == (10_000, 100, 100)
