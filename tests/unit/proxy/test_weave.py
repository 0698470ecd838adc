"""What was hidden is put back where it stood, whatever a client made of the rest."""

from __future__ import annotations

from typing import Any

from pegboard.proxy.memory import Insert, mark
from pegboard.proxy.weave import Place, Row, places, woven


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
