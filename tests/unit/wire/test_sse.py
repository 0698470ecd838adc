"""Server-sent events, as the standard has them."""

from __future__ import annotations

import pytest

from pegboard.wire.sse import EventTooLarge, SseDecoder, SseEvent

LIMIT = 1000


def decode(*chunks: bytes) -> list[SseEvent]:
    decoder = SseDecoder(LIMIT)
    return [event for chunk in chunks for event in decoder.feed(chunk)]


def test_a_blank_line_ends_an_event() -> None:
    assert decode(b"data: hello\n") == []
    assert decode(b"data: hello\n\n") == [SseEvent(b"hello")]


def test_data_lines_are_joined_with_newlines() -> None:
    assert decode(b"data: one\ndata:two\ndata\ndata:  three\n\n") == [SseEvent(b"one\ntwo\n\n three")]


def test_every_kind_of_line_ending_ends_a_line() -> None:
    assert decode(b"data: a\r\n\r\ndata: b\r\rdata: c\n\n") == [SseEvent(b"a"), SseEvent(b"b"), SseEvent(b"c")]


def test_a_cr_and_a_lf_in_different_chunks_are_one_line_ending() -> None:
    assert decode(b"data: a\r", b"\ndata: b\r", b"", b"\n\r", b"\n") == [SseEvent(b"a\nb")]


def test_an_event_that_ends_in_a_lone_cr_is_not_held_back() -> None:
    assert decode(b"data: a\r\r") == [SseEvent(b"a")]


def test_a_byte_order_mark_at_the_start_is_ignored_even_in_pieces() -> None:
    assert decode(b"\xef", b"\xbb\xbfdata: a\n\n") == [SseEvent(b"a")]


def test_comments_and_unknown_fields_are_nothing() -> None:
    assert decode(b": ping\n\n: ping\ncolour: red\ndata: a\n\n") == [SseEvent(b"a")]


def test_an_event_has_its_type_and_the_next_one_has_not() -> None:
    assert decode(b"event: endpoint\ndata: /post\n\ndata: x\n\n") == [SseEvent(b"/post", "endpoint"), SseEvent(b"x")]


def test_an_id_stays_until_another_one_comes() -> None:
    decoder = SseDecoder(LIMIT)
    events = decoder.feed(b"id: 1\ndata: a\n\ndata: b\n\nid: 2\n\nid: bad\0\ndata: c\n\n")
    assert [(event.data, event.id) for event in events] == [(b"a", "1"), (b"b", "1"), (b"c", "2")]
    assert decoder.last_id == "2"


def test_an_event_that_was_cut_off_does_not_count_as_the_last_one() -> None:
    decoder = SseDecoder(LIMIT)
    decoder.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n")
    assert decoder.last_id == "1"


def test_a_retry_is_told_even_without_data() -> None:
    assert decode(b"retry: 3000\n\nretry: soon\n\n") == [SseEvent(b"", retry_ms=3000)]


def test_an_event_with_an_empty_data_line_is_an_event() -> None:
    assert decode(b"id: 5\ndata:\n\n") == [SseEvent(b"", id="5")]


def test_invalid_utf8_in_the_data_passes_through_for_the_reader_to_mend() -> None:
    assert decode(b"data: caf\xe9\nevent: \xff\n\n") == [SseEvent(b"caf\xe9", "\ufffd")]


@pytest.mark.parametrize(
    "stream",
    [b"data: " + b"x" * LIMIT, b"data: " + b"x" * LIMIT + b"\n", b"data: 12345\n" * 200, b":" + b"x" * LIMIT + b"\n"],
    ids=["endless line", "long line", "many lines", "long comment"],
)
def test_too_much_without_an_end_is_refused(stream: bytes) -> None:
    with pytest.raises(EventTooLarge):
        decode(stream)


def test_what_was_complete_before_the_oversized_event_is_not_lost() -> None:
    with pytest.raises(EventTooLarge) as caught:
        decode(b"data: answer\n\ndata: " + b"x" * LIMIT)
    assert caught.value.events == [SseEvent(b"answer")]


def test_many_events_are_no_reason_to_refuse() -> None:
    assert len(decode(b"data: 1234567890\n\n" * LIMIT)) == LIMIT
