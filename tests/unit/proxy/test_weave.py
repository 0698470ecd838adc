"""What was hidden is put back where it stood, whatever a client made of the rest."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pegboard.proxy.memory import Insert, mark
from pegboard.proxy.weave import Place, Row, parted, places, woven


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(known: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": known, "name": "x", "input": {}}


def hidden(name: str, **where: Any) -> Insert:
    return Insert(blocks=[text(f"hidden {name}")], **where)


def rows(*content: list[dict[str, Any]]) -> list[Row]:
    """The user's and the model's in turn."""
    return [Row(blocks, number % 2 == 1) for number, blocks in enumerate(content)]


def test_between_a_text_and_a_call_it_is_found_by_the_call() -> None:
    insert = hidden("a", after=mark(text("one")), before=mark(call("1")))
    history = rows([text("hi")], [text("one"), call("1")])
    assert places(history, [insert]) == {Place(1, 1): [insert]}


def test_it_is_found_by_the_call_before_it_though_the_text_after_it_is_gone() -> None:
    insert = hidden("a", after=mark(call("1")), before=mark(text("one")))
    assert places(rows([text("hi")], [call("1")]), [insert]) == {Place(1, 1): [insert]}


def test_of_two_replies_that_read_the_same_it_is_put_into_the_one_that_answered_the_same() -> None:
    insert = hidden("a", before=mark(text("Done.")), prior=mark(text("second")))
    history = rows([text("first")], [text("Done.")], [text("second")], [text("Done.")])
    assert places(history, [insert]) == {Place(3, 0): [insert]}


def test_two_that_read_the_same_do_not_take_one_place() -> None:
    first = hidden("a", before=mark(text("Done.")), prior=mark(text("first")))
    second = hidden("b", before=mark(text("Done.")), prior=mark(text("second")))
    history = rows([text("first")], [text("Done.")], [text("second")], [text("Done.")])
    assert places(history, [first, second]) == {Place(1, 0): [first], Place(3, 0): [second]}


def test_what_stood_between_things_that_are_gone_is_left_out() -> None:
    gone = hidden("a", after=mark(call("9")), before=mark(call("8")))
    assert places(rows([text("hi")], [text("one"), call("1")]), [gone]) == {}


def test_answers_cut_a_reply_in_two() -> None:
    insert = Insert(after=mark(text("one")), blocks=[call("s")], results=[text("found")])
    blocks = [text("one"), call("1")]
    done = woven(blocks, 1, places(rows([text("hi")], blocks), [insert]))
    assert done.parts == [(True, [text("one"), call("s")]), (False, [text("found")]), (True, [call("1")])]


def test_answers_that_wait_for_the_client_do_not_cut_a_reply() -> None:
    insert = Insert(before=mark(call("1")), blocks=[call("s")], later=[text("found")])
    done = woven([call("1")], 1, places(rows([text("hi")], [call("1")]), [insert]))
    assert (done.parts, done.later) == ([(True, [call("s"), call("1")])], [text("found")])


def test_answers_do_not_part_a_call_of_the_clients_from_its_result() -> None:
    insert = Insert(after=mark(call("1")), blocks=[call("s")], results=[text("found")])
    assert places(rows([text("hi")], [call("1"), text("one")]), [insert]) == {}


def test_inserts_of_one_place_keep_their_order() -> None:
    inserts = [hidden(str(number), before=mark(call("1"))) for number in range(3)]
    done = woven([call("1")], 1, places(rows([text("hi")], [call("1")]), inserts))
    [(_, blocks)] = done.parts
    assert [each.get("text") for each in blocks[:3]] == ["hidden 0", "hidden 1", "hidden 2"]


def test_between_texts_that_are_all_the_same_it_goes_by_how_many_were_shown_before() -> None:
    same = mark(text("Wait."))
    inserts = [hidden(str(number), after=same, before=same, shown=number) for number in (1, 2, 3)]
    history = rows([text("hi")], [text("Wait.")] * 4)
    assert places(history, inserts) == {Place(1, number): [inserts[number - 1]] for number in (1, 2, 3)}


# ── clients that leave thinking out ──────────────────────────────────────────────────────────────────────────────────


def thought(known: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": "hm", "signature": known}


def test_where_thinking_is_kept_it_stands_beside_the_very_thought() -> None:
    insert = hidden("a", after=mark(thought("1")), before=mark(thought("2")), spoken=("", mark(call("c"))))
    history = rows([text("hi")], [thought("1"), thought("2"), call("c")])
    assert places(history, [insert]) == {Place(1, 1): [insert]}


def test_where_thinking_is_left_out_it_is_found_by_what_was_spoken() -> None:
    insert = hidden("a", after=mark(thought("1")), before=mark(thought("2")), spoken=(mark(call("b")), mark(call("c"))))
    assert places(rows([text("hi")], [call("b"), call("c")]), [insert]) == {Place(1, 1): [insert]}
    assert places(rows([text("hi")], [call("c")]), [insert]) == {Place(1, 0): [insert]}


def test_where_thinking_is_left_out_between_texts_the_reply_must_be_the_one_that_answered_this() -> None:
    spoken = (mark(text("One.")), mark(text("Two.")))
    insert = hidden("a", after=mark(thought("1")), spoken=spoken, prior=mark(text("second")), row=3)
    both = [text("One."), text("Two.")]
    assert places(rows([text("first")], both, [text("second")], both), [insert]) == {Place(3, 1): [insert]}
    assert places(rows([text("first")], both, [text("another")], [text("x")]), [insert]) == {}


def test_a_reply_that_has_other_thoughts_is_another_reply() -> None:
    insert = hidden("a", after=mark(thought("1")), spoken=(mark(text("One.")), ""), prior=mark(text("hi")), row=1)
    assert places(rows([text("hi")], [thought("9"), text("One.")]), [insert]) == {}
    assert places(rows([text("hi")], [text("One.")]), [insert]) == {Place(1, 1): [insert]}


def test_thinking_that_nobody_signed_is_thinking_too() -> None:
    unsigned = {"type": "thinking", "thinking": "hm", "signature": ""}
    insert = hidden("a", after=mark(unsigned), spoken=("", mark(text("One."))), prior=mark(text("hi")), row=1)
    assert places(rows([text("hi")], [unsigned, text("One.")]), [insert]) == {Place(1, 1): [insert]}
    assert places(rows([text("hi")], [text("One.")]), [insert]) == {Place(1, 0): [insert]}


# ── servers that count their calls anew with every reply ─────────────────────────────────────────────────────────────


def test_of_calls_with_one_id_it_stands_beside_the_one_of_its_reply() -> None:
    first = hidden("a", before=mark(call("0")), prior=mark(text("one")), row=1)
    second = hidden("b", before=mark(call("0")), prior=mark(text("two")), row=3)
    history = rows([text("one")], [call("0")], [text("two")], [call("0")])
    assert places(history, [first, second]) == {Place(1, 0): [first], Place(3, 0): [second]}
    assert places(history[2:], [second]) == {Place(1, 0): [second]}, "though the beginning was cut off"


def test_where_nothing_tells_calls_with_one_id_apart_it_is_the_latest() -> None:
    insert = hidden("a", before=mark(call("0")))
    history = rows([text("x")], [call("0")], [text("x")], [call("0")])
    assert places(history, [insert]) == {Place(3, 0): [insert]}


# ── clients that put texts together ──────────────────────────────────────────────────────────────────────────────────


def after(words: str, **more: Any) -> Insert:
    known = mark(text(words))
    return hidden(words, after=known, spoken=(known, ""), length=len(words), row=1, prior=mark(text("hi")), **more)


def joined(history: list[Row], inserts: list[Insert]) -> list[str]:
    parted(history, inserts)
    done = woven(history[1].blocks, 1, places(history, inserts))
    return [block.get("text") or block["id"] for _, blocks in done.parts for block in blocks]


def test_texts_that_were_put_together_are_taken_apart_where_something_stood_between() -> None:
    inserts = [after("One."), after(" Two.\n")]
    history = rows([text("hi")], [text("One. Two.\nThree."), call("c")])
    assert joined(history, inserts) == ["One.", "hidden One.", " Two.\n", "hidden  Two.\n", "Three.", "c"]


def test_texts_that_are_all_the_same_are_taken_apart_as_often() -> None:
    inserts = [after("Wait.", shown=1), after("Wait.", shown=2)]
    history = rows([text("hi")], [text("Wait.Wait.Wait.")])
    assert joined(history, inserts) == ["Wait.", "hidden Wait.", "Wait.", "hidden Wait.", "Wait."]


def test_texts_that_were_put_together_with_blanks_between_or_stripped_are_taken_apart_too() -> None:
    apart = rows([text("hi")], [text("One.\n\nTwo.")])
    assert joined(apart, [after("One.")]) == ["One.", "hidden One.", "\n\nTwo."]
    stripped = rows([text("hi")], [text("One.Two.")])
    assert joined(stripped, [after("\n\nOne.")]) == ["One.", "hidden \n\nOne.", "Two."]


def test_a_marker_stays_with_the_end_of_a_text_that_is_taken_apart() -> None:
    history = rows([text("hi")], [{**text("One.Two."), "cache_control": {"type": "ephemeral"}}])
    parted(history, [after("One.")])
    assert [block.get("cache_control") for block in history[1].blocks] == [None, {"type": "ephemeral"}]


def test_a_text_is_left_whole_where_it_was_whole_or_where_another_stands() -> None:
    whole = [text("One."), text("One.Two.")]
    for blocks, insert in (
        (whole, after("One.")),
        ([text("Other.Two.")], after("One.")),
        ([text("One.")], after("One.")),
        ([call("c")], after("One.")),
    ):
        history = rows([text("hi")], list(blocks))
        parted(history, [insert])
        assert history[1].blocks == blocks


def test_the_same_words_in_another_reply_do_not_keep_a_text_whole() -> None:
    history = rows([text("hi")], [text("One.Two.")], [text("more")], [text("One.")])
    assert joined(history, [after("One.")]) == ["One.", "hidden One.", "Two."]


def test_no_row_and_no_message_of_the_clients_is_taken_apart() -> None:
    insert = after("One.")
    for row in (0, 2, 9):
        history = rows([text("One.Two.")], [text("x")], [text("One.Two.")])
        parted(history, [msgspec.structs.replace(insert, row=row)])
        assert [len(each.blocks) for each in history] == [1, 1, 1]


# ── whatever a client makes of it ────────────────────────────────────────────────────────────────────────────────────

WORDS = st.sampled_from(["", " ", "One.", "Two.", "One.Two.", "\nThree"])
BLOCKS = st.one_of(
    st.builds(text, WORDS),
    st.builds(call, st.sampled_from(["0", "1"])),
    st.builds(thought, st.sampled_from(["a", "b"])),
    st.just({}),
)
ROWS = st.lists(st.lists(BLOCKS, max_size=4), max_size=6)
MARKS = st.builds(mark, BLOCKS)
INSERTS = st.lists(
    st.builds(
        hidden,
        st.sampled_from("ab"),
        after=MARKS,
        before=MARKS,
        prior=MARKS,
        spoken=st.tuples(MARKS, MARKS),
        length=st.integers(0, 9),
        row=st.integers(0, 7),
        shown=st.integers(0, 3),
        turn=st.integers(0, 2),
        head=st.integers(0, 1),
    ),
    max_size=4,
)


@given(ROWS, INSERTS)
def test_an_insert_has_at_most_one_place_in_a_reply_and_no_word_is_lost(content, inserts) -> None:
    history = rows(*content)
    said = ["".join(block.get("text", "") for block in row.blocks) for row in history]
    parted(history, inserts)
    assert ["".join(block.get("text", "") for block in row.blocks) for row in history] == said
    at = places(history, inserts)
    placed = [id(insert) for there in at.values() for insert in there]
    assert len(placed) == len(set(placed))
    for place in at:
        assert history[place.row].is_reply
        assert 0 <= place.block <= len(history[place.row].blocks)
