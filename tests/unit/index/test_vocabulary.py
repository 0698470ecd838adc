"""Terms by number, and the terms that a misspelt word meant."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pegboard.index.vocabulary import EMPTY, MOST_MEANT, Vocabulary, merged, term_hash
from tests.often import often

several = settings(max_examples=often(150), deadline=None)
word_lists = st.lists(st.text("abcde", min_size=1, max_size=8), unique=True, max_size=30)


def vocabulary(*words: str) -> Vocabulary:
    return merged(EMPTY, np.empty(0, np.bool_), words)[0]


def meant(made: Vocabulary, word: str) -> list[int]:
    return made.meant([word]).get(word, [])


def same(one: Vocabulary, other: Vocabulary) -> bool:
    return all(np.array_equal(getattr(one, field), getattr(other, field)) for field in one.__struct_fields__)


def test_every_term_has_a_number_of_its_own_and_others_have_none():
    made = vocabulary("issue", "message", "file")
    numbers = made.numbers(["file", "nothing", "issue", "message", "file"])
    assert numbers[0] == numbers[4]
    assert numbers[1] == -1
    assert sorted({*numbers} - {-1}) == [0, 1, 2]


def test_an_empty_vocabulary_knows_nothing():
    assert EMPTY.numbers(["a", "b"]) == [-1, -1]
    assert meant(EMPTY, "issue") == []
    assert vocabulary("issue").numbers([]) == []


def test_a_term_has_the_same_hash_in_every_process():
    script = "from pegboard.index.vocabulary import term_hash; print(term_hash('issue'), term_hash('日本'))"
    command = [sys.executable, "-c", script]
    found = subprocess.run(command, env={"PYTHONHASHSEED": "7"}, capture_output=True, text=True, check=True).stdout
    assert found.split() == [str(term_hash("issue")), str(term_hash("日本"))]


@pytest.mark.parametrize(
    "slip",
    ["forcast", "forecaast", "forecazt", "forecats", "foreast", "xforecast", "forecas"],
)
def test_a_word_with_one_slip_is_the_one_that_was_meant(slip):
    made = vocabulary("forecast", "delete", "message")
    assert meant(made, slip) == made.numbers(["forecast"])


@pytest.mark.parametrize("word", ["fil", "fle", "日本語検索", "v2v2v2", "x" * 60, "", "delete the file"])
def test_short_and_strange_words_are_never_taken_for_misspelt(word):
    assert meant(vocabulary("file", "files", "日本", "v2v2v3", "x" * 59), word) == []


def test_a_word_far_from_all_others_meant_none_of_them():
    assert meant(vocabulary("forecast", "delete"), "kubernetes") == []


def test_of_many_terms_that_may_be_meant_a_few_are_taken():
    words = [f"catalo{letter}" for letter in "abcdefghij"]
    assert len(meant(vocabulary(*words), "catalox")) == MOST_MEANT


def letters(text: str, at: int, letter: str) -> list[str]:
    """All the single slips at one place."""
    return [text[:at] + text[at + 1 :], text[:at] + letter + text[at + 1 :], text[:at] + letter + text[at:]]


@several
@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=7, max_size=18), st.data())
def test_any_single_slip_finds_a_longer_word(word, data):
    slips = letters(word, data.draw(st.integers(0, len(word) - 1)), data.draw(st.sampled_from("aeioxz")))
    made = vocabulary(word, "unrelatedword")
    assume(word != "unrelatedword")
    for slip in slips:
        assert made.numbers([word])[0] in meant(made, slip)


@several
@given(word_lists, word_lists, st.data())
def test_merging_is_the_same_as_making_it_from_what_is_left(before, added, data):
    old = vocabulary(*before)
    kept = data.draw(st.sets(st.sampled_from(before))) if before else set()
    in_use = np.zeros(len(old.hashes), np.bool_)
    in_use[old.numbers(sorted(kept))] = True
    made, moved, numbers = merged(old, in_use, added)
    assert same(made, vocabulary(*sorted({*kept, *added})))
    assert made.numbers(added) == numbers.tolist()
    for word, place in zip(before, old.numbers(before), strict=True):
        assert moved[place] == (made.numbers([word])[0] if word in kept else -1)
