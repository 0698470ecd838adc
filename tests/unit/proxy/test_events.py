"""Events come out as the very bytes they went in, however these were split."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.proxy.events import Splitter, encoded
from pegboard.proxy.seam import ReplyCut

STREAM = b'event: a\ndata: {"x": "\xc3\xbc"}\n\n: ping\n\ndata: one\ndata: two\r\n\r\nevent:b\r\ndata:{}\r\n\r\nrest'


@given(st.lists(st.integers(1, len(STREAM)), max_size=20))
def test_any_split_gives_the_same_events(cuts) -> None:
    places = sorted({0, len(STREAM), *cuts})
    splitter = Splitter()
    pieces = [STREAM[start:end] for start, end in pairwise(places)]
    events = [event for piece in pieces for event in splitter.feed(piece)]
    assert b"".join(event.raw for event in events) + splitter.rest() == STREAM
    assert [(event.name, event.data) for event in events] == [
        ("a", b'{"x": "\xc3\xbc"}'),
        ("", b""),
        ("", b"one\ntwo"),
        ("b", b"{}"),
    ]
    assert events[0].parsed() == {"x": "ü"}
    assert events[2].parsed() == {}


def test_an_event_without_end_is_not_waited_for_for_ever() -> None:
    with pytest.raises(ReplyCut):
        list(Splitter(limit=10).feed(b"data: 123456789"))


def test_an_event_is_written_as_it_is_read() -> None:
    [event] = Splitter().feed(encoded({"a": 1}, "x"))
    assert (event.name, event.parsed(), event.saying({"b": 2})) == ("x", {"a": 1}, b'event: x\ndata: {"b":2}\n\n')
