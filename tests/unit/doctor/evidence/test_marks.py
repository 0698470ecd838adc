"""What was seen already: as a set is, in little memory."""

from __future__ import annotations

import random
import uuid

from hypothesis import given
from hypothesis import strategies as st

from pegboard.doctor.evidence.marks import Marks, Seen, Sight, mark_of

numbers = st.integers(0, 2**64 - 1) | st.integers(0, 40) | st.integers(2**64 - 40, 2**64 - 1)


@given(st.lists(numbers), st.lists(numbers))
def test_marks_are_a_set_of_numbers(first: list[int], second: list[int]) -> None:
    marks, expected = Marks(), set[int]()
    for number in first:
        assert marks.add(number) == (number not in expected)
        expected.add(number)
    assert all((number in marks) == (number in expected) for number in (*first, *second))


@given(st.lists(st.lists(numbers)))
def test_marks_that_were_dumped_come_back(groups: list[list[int]]) -> None:
    blocks = []
    for group in groups:
        marks = Marks()
        marks.update(group)
        blocks.append(marks.dump())
    loaded = Marks(blocks)
    assert all(number in loaded for group in groups for number in group)
    assert len(loaded.dump()) == 8 * len({number for group in groups for number in group})


@given(st.text(max_size=60))
def test_any_id_has_a_mark(identity: str) -> None:
    assert 0 <= mark_of(identity) < 2**64
    assert mark_of(identity) == mark_of(identity)


def test_uuids_have_marks_of_their_own() -> None:
    drawn = random.Random(1)
    made = [str(uuid.UUID(int=drawn.getrandbits(128), version=4)) for _ in range(20_000)]
    assert len({mark_of(each) for each in made}) == len(made)


def test_what_is_new_is_told_from_what_was_here_and_elsewhere() -> None:
    others = Marks()
    others.update([1, 2])
    seen = Seen(others=others)
    assert [seen.look(mark) for mark in (1, 3, 1, 3, 2)] == [
        Sight.ELSEWHERE, Sight.NEW, Sight.HERE, Sight.HERE, Sight.ELSEWHERE,
    ]  # fmt: skip
    assert (list(seen.fresh), seen.copied) == ([3], 2)


def test_what_was_here_is_known_however_much_came_after() -> None:
    drawn = random.Random(2)
    marks = [drawn.getrandbits(64) for _ in range(150_000)]
    seen = Seen()
    assert all(seen.look(mark) is Sight.NEW for mark in marks)
    assert all(seen.look(mark) is Sight.HERE for mark in marks)
    assert len(seen.dump()) == 8 * len(marks)
    again = Seen(Marks((seen.dump(),)))
    assert all(again.look(mark) is Sight.HERE for mark in marks[::1000])
