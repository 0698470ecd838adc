"""What must hold of streams whatever arrives on them: however they are cut, whatever is too long."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pegboard.wire import framing, sse
from pegboard.wire.framing import EDGE, LineDecoder, Oversized, answered_id
from pegboard.wire.sse import EventTooLarge, SseDecoder, SseEvent

patiently = settings(deadline=None)
"""The machine may be busy; how long an example takes proves nothing."""

# ── byte streams and how they are cut ────────────────────────────────────────────────────────────────────────────


@st.composite
def cut(draw: st.DrawFn, streams: st.SearchStrategy[bytes]) -> tuple[bytes, list[bytes]]:
    """A stream, and the same stream in chunks, some of them empty."""
    stream = draw(streams)
    places = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    edges = [0, *places, len(stream)]
    return stream, [stream[start:end] for start, end in pairwise(edges)]


short_lines = st.binary(max_size=40).map(lambda line: line.replace(b"\n", b" "))
long_lines = st.builds(
    lambda body, times: body * times + b"!", st.sampled_from([b"x", b"ab", b"0123456789"]), st.integers(0, 1500)
)
LIMITS = [0, 1, 10, 40, EDGE - 1, EDGE, EDGE + 1, 900]
limits = st.sampled_from(LIMITS)
lines_at_the_limit = st.builds(lambda limit, more: b"x" * (limit + more), limits, st.integers(0, 1))
line_streams = st.lists(short_lines | long_lines | lines_at_the_limit, max_size=8).map(b"\n".join)


def lines_of(stream: bytes, limit: int) -> list[bytes | Oversized]:
    whole = [line for line in stream.split(b"\n")[:-1] if line.strip() or len(line) > limit]
    return [line if len(line) <= limit else Oversized(len(line), line[:EDGE], line[-EDGE:]) for line in whole]


@patiently
@given(cut(line_streams), limits)
def test_lines_do_not_depend_on_how_the_stream_is_cut(streams: tuple[bytes, list[bytes]], limit: int) -> None:
    stream, chunks = streams
    decoder = LineDecoder(limit)
    assert [line for chunk in chunks for line in decoder.feed(chunk)] == lines_of(stream, limit)


@patiently
@given(st.lists(st.tuples(short_lines.filter(bytes.strip), st.integers(0, 3000))), st.integers(1, 700))
def test_a_line_within_the_limit_is_intact_whatever_surrounds_it(pairs: list[tuple[bytes, int]], step: int) -> None:
    stream = b"".join(b"x" * (1000 + extra) + b"\n" + line + b"\n" for line, extra in pairs)
    decoder = LineDecoder(999)
    lines = [line for at in range(0, len(stream), step) for line in decoder.feed(stream[at : at + step])]
    assert [line for line in lines if isinstance(line, bytes)] == [line for line, _ in pairs]
    assert sum(isinstance(line, Oversized) for line in lines) == len(pairs)


def bytes_held(value: object) -> int:
    """All bytes that an object keeps, however it keeps them."""
    if isinstance(value, bytes | bytearray):
        return len(value)
    if isinstance(value, list | tuple):
        return sum(bytes_held(each) for each in value)
    return sum(bytes_held(each) for each in vars(value).values()) if hasattr(value, "__dict__") else 0


@patiently
@given(st.lists(st.binary(max_size=300) | long_lines, max_size=30), limits)
def test_a_line_decoder_never_keeps_more_than_its_limit_and_two_edges(chunks: list[bytes], limit: int) -> None:
    decoder = LineDecoder(limit)
    for chunk in chunks:
        decoder.feed(chunk)
        assert bytes_held(decoder) <= max(limit, EDGE) + EDGE


@patiently
@given(st.binary(max_size=600), st.binary(max_size=600), st.integers())
def test_an_oversized_line_with_any_edges_names_a_request_or_none(head: bytes, tail: bytes, size: int) -> None:
    assert answered_id(Oversized(size, head, tail)) is None or b'"id"' in head + tail


sse_parts = [
    b"data",
    b"event",
    b"id",
    b"retry",
    b":",
    b" ",
    b"x",
    b"12",
    b"\r",
    b"\n",
    b"\r\n",
    b"\n\n",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
]
sse_streams = st.lists(st.sampled_from(sse_parts), max_size=60).map(b"".join)
sse_events = st.lists(
    st.sampled_from([b"data: x", b"data", b"event: e", b"id: 7", b"retry: 5", b": c", b"data:" + b"y" * 30, b""])
)
sse_texts = st.builds(
    lambda lines, end: end.join([*lines, b"", b""]), sse_events, st.sampled_from([b"\r", b"\n", b"\r\n"])
)


def events_of(stream: bytes) -> list[SseEvent]:
    """The standard's algorithm, written again and the slow way."""
    found: list[SseEvent] = []
    data: list[bytes] = []
    kind, last_id, retry = "", None, None
    for line in re.split(rb"\r\n|\r|\n", stream.removeprefix(b"\xef\xbb\xbf"))[:-1]:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if data or retry is not None:
                found.append(SseEvent(b"\n".join(data), kind or "message", last_id, retry))
            data, kind, retry = [], "", None
        elif name == b"data":
            data.append(value)
        elif name == b"event":
            kind = value.decode(errors="replace")
        elif name == b"id" and b"\0" not in value:
            last_id = value.decode(errors="replace")
        elif name == b"retry" and re.fullmatch(rb"[0-9]+", value):
            retry = int(value[:9])
    return found


@patiently
@given(cut(sse_streams | sse_texts))
@example((b"data: a\r\n\r\n", [b"data: a\r", b"", b"\n\r", b"\n"]))
def test_events_are_those_of_the_standard_however_the_stream_is_cut(streams: tuple[bytes, list[bytes]]) -> None:
    stream, chunks = streams
    decoder = SseDecoder(10_000)
    assert [event for chunk in chunks for event in decoder.feed(chunk)] == events_of(stream)


def fed(chunks: list[bytes], limit: int) -> tuple[list[SseEvent], bool]:
    decoder = SseDecoder(limit)
    events: list[SseEvent] = []
    try:
        for chunk in chunks:
            events += decoder.feed(chunk)
            assert bytes_held(decoder) <= 2 * limit
    except EventTooLarge as error:
        return events + error.events, True
    return events, False


@patiently
@given(cut(sse_streams | sse_texts), st.integers(3, 40))
def test_what_comes_before_an_oversized_event_does_not_depend_on_the_cut(
    streams: tuple[bytes, list[bytes]], limit: int
) -> None:
    stream, chunks = streams
    assert fed(chunks, limit) == fed([stream], limit)


class Counted(bytearray):
    """A buffer that counts the bytes copied into and out of it."""

    copied = 0

    def __iadd__(self, other: Any) -> Counted:
        Counted.copied += len(other)
        super().__iadd__(other)
        return self

    def __add__(self, other: Any) -> Counted:
        Counted.copied += len(self) + len(other)
        return Counted(memoryview(self).tobytes() + other)

    def __getitem__(self, key: Any) -> Any:
        taken = super().__getitem__(key)
        Counted.copied += len(taken)
        return Counted(taken)

    def __bytes__(self) -> bytes:
        Counted.copied += len(self)
        return memoryview(self).tobytes()


@pytest.mark.parametrize("total", [2**14, 2**18])
@pytest.mark.parametrize("limit", [2**12, 2**20], ids=["oversized", "whole"])
@pytest.mark.parametrize("size", [100, EDGE, 5000])
def test_the_work_of_cutting_lines_grows_with_the_bytes_and_not_with_their_square(
    total: int, limit: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(framing, "bytearray", Counted, raising=False)
    monkeypatch.setattr(Counted, "copied", 0)
    decoder = LineDecoder(limit)
    chunk = b"x" * size
    feeds = total // size
    for _ in range(feeds):
        decoder.feed(chunk)
    decoder.feed(b"\n")
    assert feeds * size <= Counted.copied <= 3 * feeds * (size + EDGE)


@pytest.mark.parametrize("total", [2**14, 2**18])
@pytest.mark.parametrize("size", [3, 100, 5000])
def test_the_work_of_reading_events_grows_with_the_bytes_and_not_with_their_square(
    total: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "bytearray", Counted, raising=False)
    monkeypatch.setattr(Counted, "copied", 0)
    decoder = SseDecoder(2**20)
    stream = b"data: " + b"x" * total + b"\n" + b"data: y\n" * (total // 8) + b"\n"
    events = [event for at in range(0, len(stream), size) for event in decoder.feed(stream[at : at + size])]
    assert len(events) == 1
    assert len(stream) / 2 <= Counted.copied <= 6 * len(stream)
