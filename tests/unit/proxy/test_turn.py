"""One reply as it is kept account of: what was shown, what was hidden where, and what is known of it afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.proxy.memory import Remembered, mark
from pegboard.proxy.turn import Ask, Turn, summed


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(known: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": known, "name": "x", "input": {}}


def thought(known: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": "hm", "signature": known}


def search(known: str) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": known, "name": "search", "input": {}}


def turn(memory: Remembered | None = None) -> Turn:
    return Turn(memory or Remembered(executor="native"), "for:1", {}, row=5)


def played(*blocks: dict[str, Any]) -> Turn:
    """Searches are hidden, all else is shown."""
    one = turn()
    for block in blocks:
        if block["type"] == "server_tool_use":
            one.hide(block)
        else:
            one.show(block, calls=block["type"] == "tool_use")
    one.commit()
    return one


def test_what_is_hidden_stands_between_what_is_shown_before_and_after() -> None:
    [insert] = played(text("a"), search("s"), search("t"), call("c")).memory.inserts
    assert (insert.after, insert.before, insert.prior, insert.row, insert.shown) == (
        mark(text("a")),
        "id:c",
        "for:1",
        5,
        1,
    )
    assert [block["id"] for block in insert.blocks] == ["s", "t"]


def test_at_the_ends_of_a_reply_there_is_nothing_beside_it() -> None:
    first, last = played(search("s"), text("a"), search("t")).memory.inserts
    assert (first.after, first.before) == ("", mark(text("a")))
    assert (last.after, last.before) == (mark(text("a")), "")


def test_beside_thinking_it_is_also_known_what_was_spoken_before_and_after() -> None:
    [insert] = played(text("a"), thought("1"), search("s"), thought("2"), call("c")).memory.inserts
    assert (insert.after, insert.before) == (mark(thought("1")), mark(thought("2")))
    assert insert.spoken == (mark(text("a")), "id:c")
    assert insert.length == 1


def test_the_length_is_of_the_text_that_was_spoken_last() -> None:
    first, second = played(text("abc"), search("s"), text("de "), search("t"), call("c")).memory.inserts
    assert (first.length, second.length) == (3, 3)
    [third] = played(call("c"), search("s")).memory.inserts
    assert third.length == 0


@pytest.mark.parametrize("empty", ["", " ", "\n"])
def test_a_text_that_says_nothing_has_no_mark_and_is_not_sent_back(empty) -> None:
    one = played(text("a"), search("s"), text(empty), call("c"))
    [insert] = one.memory.inserts
    assert (insert.after, insert.before) == (mark(text("a")), "id:c")
    assert [block["type"] for block in one.all_produced()] == ["text", "server_tool_use", "tool_use"]
    assert "" not in one.memory.seen


def test_a_reply_is_known_by_its_first_block_its_first_call_its_last_and_its_texts_together() -> None:
    memory = played(text("a"), text("b"), call("1"), call("2"), text("c")).memory
    assert memory.seen == [mark(text("a")), "id:1", mark(text("c")), mark(text("abc"))]
    assert not memory.is_torn


def test_thinking_is_not_what_a_whole_reply_is_known_by() -> None:
    assert played(thought("1"), text("a")).memory.seen == [mark(text("a"))]


def test_a_reply_that_broke_off_is_known_by_its_thinking_too_until_one_comes_whole() -> None:
    memory = Remembered(executor="native")
    one = turn(memory)
    one.show(thought("1"))
    one.hide(search("s"))
    one.tear()
    assert memory.is_torn
    assert memory.seen == [mark(thought("1"))]
    assert len(memory.inserts) == 1
    another = turn(memory)
    another.show(text("a"))
    another.commit()
    assert not memory.is_torn


def test_a_reply_that_says_nothing_leaves_as_little_as_one_that_broke_off() -> None:
    assert played(text("")).memory.is_torn


def test_what_is_told_twice_is_kept_once() -> None:
    one = played(search("s"), text("a"))
    one.commit()
    assert len(one.memory.inserts) == 1
    assert one.memory.turns == 1


def ask(known: str) -> Ask:
    return Ask(known, {"query": known}, call(known))


def test_a_round_for_us_becomes_one_insert_with_its_calls_and_answers_at_its_end() -> None:
    one = turn()
    one.show(text("a"))
    one.hide(call("s"), ask("s"))
    one.show(text("b"))
    one.hide(call("t"), ask("t"))
    assert one.is_for_us
    said, got = one.answered([text("found")])
    assert (said, got) == ([text("a"), text("b"), call("s"), call("t")], [text("found")])
    one.show(call("c"), calls=True)
    one.commit()
    [insert] = one.memory.inserts
    assert (insert.after, insert.before) == (mark(text("b")), "id:c")
    assert (insert.blocks, insert.results, insert.asked) == ([call("s"), call("t")], [text("found")], [])


def test_a_search_beside_calls_of_the_clients_waits_for_an_answer() -> None:
    one = turn()
    one.hide(call("s"), ask("s"))
    one.show(call("c"), calls=True)
    assert not one.is_for_us
    one.commit()
    [insert] = one.memory.inserts
    assert (insert.results, insert.later) == (None, [])
    assert insert.asked == [{"id": "s", "input": {"query": "s"}, "problem": ""}]


# ── usage of several rounds ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("totals", "more", "together"),
    [
        ({}, {"a": 1}, {"a": 1}),
        ({"a": 1}, {"a": 2, "b": 3}, {"a": 3, "b": 3}),
        ({"a": 1}, {"a": None}, {"a": 1}),
        ({"a": None}, {"a": 2}, {"a": 2}),
        ({}, {"a": None}, {"a": None}),
        ({"tier": "x"}, {"tier": "y"}, {"tier": "y"}),
        ({"inner": {"a": 1}}, {"inner": {"a": 2}}, {"inner": {"a": 3}}),
        ({"inner": {"a": 1}}, {"inner": None}, {"inner": {"a": 1}}),
        ({"inner": None}, {"inner": {"a": 1}}, {"inner": {"a": 1}}),
        ({"a": True}, {"a": False}, {"a": False}),
        ({"a": 1.5}, {"a": 1}, {"a": 2.5}),
    ],
)
def test_usage_is_added_up_and_null_says_nothing(totals, more, together) -> None:
    assert summed(totals, more) == together
