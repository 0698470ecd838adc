"""Misspelt words of a query are put right; names, and words that a tool has, are left alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.index.spelling import MOST, mended
from tests.unit.index.given import ask, finder_of, names, office, tool

COMMON = {
    word: place for place, word in enumerate(["the", "weather", "send", "message", "form", "from", "test", "list"])
}


def put_right(text, known=()):
    return mended(text, lambda word: word in known, COMMON.get)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("wether", "weather"),
        ("weathher", "weather"),
        ("wearher", "weather"),
        ("waether", "weather"),
        ("weathe", "weather"),
        ("messge", "message"),
        ("tset", "test"),
    ],
)
def test_a_word_with_one_slip_is_put_right(written, meant):
    assert put_right(f"what {written} now") == f"what {meant} now"


@pytest.mark.parametrize(
    "text", ["the weather", "kubernetes", "xyz", "wthr", "", "WETHER", "Wether", "wetherr2", "日本"]
)
def test_what_is_right_or_strange_or_a_name_stays(text):
    assert put_right(text) == text


@pytest.mark.parametrize("text", ["see /tmp/wether", "a@wether.com", "#wether", "re-wether", "x.wether", "wether@x.y"])
def test_paths_addresses_and_codes_stay(text):
    assert put_right(text) == text


def test_a_word_that_some_tool_has_stays():
    assert put_right("wether", known=("wether",)) == "wether"


def test_the_commonest_of_those_that_may_be_meant_is_taken():
    assert put_right("ferom") in ("form", "ferom", "from")
    assert put_right("fromm") == "from"


def test_only_so_many_words_of_one_query_are_put_right():
    assert put_right("wether " * 50).split().count("weather") == MOST


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200))
def test_any_text_stays_as_it_is_but_for_its_words(text):
    assert len(put_right(text).split()) == len(text.split())


def test_a_search_by_words_finds_what_was_meant():
    finder = finder_of(*office(), meaning=False)
    for query in ("wether forcast", "delte a flie", "send a mesage"):
        assert ask(finder, query).hits, query
    assert names(ask(finder, "wether forcast"))[0] == "weather__get_forecast"


def test_a_word_that_only_one_tool_has_is_never_put_right_away_from_it():
    finder = finder_of(tool("wether", "Shears the wether."), *office())
    assert names(ask(finder, "shear a wether"))[0] == "github__wether"


def test_a_demanded_word_is_meant_to_the_letter():
    finder = finder_of(tool("list_deckers", "Lists the buses with a second decker."), *office())
    assert ask(finder, "+docker list").hits == ()
