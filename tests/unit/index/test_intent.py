"""A query taken apart: what is asked, what is demanded, what is only an argument, and the steps of a task."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.index.intent import LONGEST, MOST_CLAUSES, understand
from pegboard.index.text import WHOLE, stem, terms
from pegboard.index.thesaurus import same_as
from tests.often import often

several = settings(max_examples=often(200), deadline=None)


def weights(query):
    return {word.term: word.weight for word in understand(query).words}


def asked(query):
    """The terms of all that is asked for, other words for it and literals left out."""
    return {word.term for word in understand(query).words if word.asked}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("select:create_issue", ("create_issue",)),
        ("select: a , b,a,,c", ("a", "b", "c")),
        ("SELECT:X", ("X",)),
        ("  select:github__list_issues  ", ("github__list_issues",)),
        ("select:a b", ("a b",)),
    ],
)
def test_select_names_tools_and_asks_for_nothing_else(query, names):
    intent = understand(query)
    assert intent.selected == names
    assert intent.words == ()
    assert intent.embedded == ()


@pytest.mark.parametrize("query", ["select a file", "SELECT * FROM users", "please select:x", "selected: x"])
def test_select_is_a_word_like_any_other_elsewhere(query):
    assert understand(query).selected == ()
    assert understand(query).words


def test_select_without_names_asks_for_nothing():
    assert understand("select:").selected == ()
    assert understand("select: , ,").words == ()


@pytest.mark.parametrize(
    ("query", "demanded"),
    [
        ("+github open an issue", ["github"]),
        ("open +issues", ["issue"]),
        ("+slack +message", ["slack", "message"]),
        ("+slack +slack", ["slack"]),
        ("+create_issue", ["create", "issue"]),
        ("＋github issue", ["github"]),  # noqa: RUF001
        ("+日本", ["日本"]),
        ("c++ +java", ["java"]),
        ("+café", ["cafe"]),
    ],
)
def test_a_word_with_a_plus_is_demanded(query, demanded):
    ways = [way for demand in understand(query).demanded for way in demand.ways]
    assert [term for way in ways for term in way] == [stem(word) for word in demanded]


@pytest.mark.parametrize(
    "query", ["C++ compiler", "call +49 170 123", "1+1", "a + b", "notepad++", "x+y", "+", "++", "+ "]
)
def test_a_plus_elsewhere_demands_nothing(query):
    assert understand(query).demanded == ()


def test_a_demanded_word_is_also_asked_for_and_the_plus_is_not_embedded():
    intent = understand("+github issue")
    assert asked("+github issue") == asked("github issue")
    assert intent.embedded == understand("github issue").embedded


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("show /var/log/syslog", "file"),
        ("summarise notes/report.pdf", "file"),
        ("open C:\\Users\\me\\x.txt", "file"),
        ("fetch https://example.com/a?b=c", "url"),
        ("fetch www.example.com", "url"),
        ("write to ann@example.com", "email"),
        ("post in #general", "channel"),
        ("ring +49 170 123", "phone"),
    ],
)
def test_a_literal_speaks_of_its_kind(query, kind):
    assert stem(kind) in asked(query)
    assert weights(query)[stem(kind)] < 1


@pytest.mark.parametrize(
    ("query", "inside", "outside"),
    [
        ('send "quarterly zebra results" now', "zebra", "send"),
        ("send `zebra` now", "zebra", "send"),
        ("send “zebra” now", "zebra", "send"),
        ("send 'zebra' now", "zebra", "send"),
        ("read /home/zebra/x.txt", "zebra", "read"),
        ("open https://zebra.example/x", "zebra", "open"),
        ("mail zebra@example.com", "zebra", "mail"),
        ("post in #zebra", "zebra", "post"),
    ],
)
def test_what_a_tool_is_given_weighs_less_than_what_it_is_asked_for(query, inside, outside):
    found = weights(query)
    assert found[stem(inside)] < found[stem(outside)]
    assert stem(inside) not in asked(query)


def test_an_apostrophe_opens_no_quotation():
    assert stem("weather") in asked("what's the weather in Bob's town")


def test_a_word_that_is_asked_and_quoted_weighs_as_asked():
    assert weights('delete the file "file"')[stem("file")] == weights("delete the file")[stem("file")]


def test_the_embedder_is_given_the_whole_and_the_whole_without_its_literals():
    whole, core = understand('send "quarterly zebra results" to ann').embedded
    assert "zebra" in whole
    assert "zebra" not in core
    assert "send" in core


def test_a_query_of_nothing_but_literals_is_embedded_whole():
    intent = understand('"zebra crossing"')
    assert all(text.strip() for text in intent.embedded)
    assert stem("zebra") in {word.term for word in intent.words}


def test_a_word_said_twice_weighs_more_but_not_twice_as_much():
    once, twice = weights("weather report")[stem("weather")], weights("weather weather report")[stem("weather")]
    assert once < twice < 2 * once


def test_other_words_for_what_is_asked_count_for_less_and_are_not_missed():
    intent = understand("close the ticket")
    others = {word.term: word for word in intent.words if word.term in same_as(stem("ticket"))}
    assert others
    assert all(not word.asked and word.weight < 1 for word in others.values())


def test_what_is_asked_in_another_language_is_asked_in_english_too():
    assert stem("weather") in asked("Wie wird das Wetter morgen?")
    assert stem("weather") in asked("明日の天気は?")
    assert "weather" in understand("Wie wird das Wetter morgen?").embedded[1]


@pytest.mark.parametrize(
    "query",
    [
        "read the sales report and then post a summary to slack",
        "Read the sales report. Post a summary to slack.",
        "read the sales report; post a summary to slack",
        "read the sales report\npost a summary to slack",
        "read the sales report and send a summary to slack",
        "first read the sales report, then post a summary to slack",
    ],
)
def test_the_steps_of_a_task_are_told_apart(query):
    first, second = understand(query).clauses
    assert "report" in first
    assert "slack" in second
    assert understand(query).embedded[2:] == (first, second)


def test_each_word_knows_the_steps_it_stands_in():
    found = {word.term: word.clauses for word in understand("read the report and then send the report to ann").words}
    assert found[stem("read")] == 0b01
    assert found["ann"] == 0b10
    assert found[stem("report")] == 0b11


@pytest.mark.parametrize(
    "query", ["open an issue", "salt and pepper", "issue.", "then", "a. b. c.", "send a message, ok"]
)
def test_one_step_is_no_list_of_steps(query):
    assert understand(query).clauses == ()


def test_there_are_never_more_steps_than_can_be_told_apart():
    task = ". ".join(f"send mail {letter}{other}" for letter in "abcdefghij" for other in "klmnopq")
    assert len(understand(task).clauses) == MOST_CLAUSES


def test_a_query_of_stop_words_alone_goes_by_them():
    assert {word.term for word in understand("what is it to you").words} >= {"what", "to", "you"}


@pytest.mark.parametrize(
    "query", ["", " ", "\n\t", "😀🚀", "\x00\x01\x1b\x7f", "!?.,;", "\ud83d", "\u200b\u202e", "+", '""']
)
def test_a_query_without_words_asks_for_nothing(query):
    intent = understand(query)
    assert intent.words == ()
    assert intent.demanded == ()
    assert intent.selected == intent.clauses == ()


ABSURD = {
    "one word": "a" * 10_240,
    "words": "create issue " * 800,
    "dashes": "a-" * 5_120,
    "plus signs": "+" * 10_240,
    "demands": "+a" * 5_120,
    "quotes": '"' * 10_240,
    "open quotes": "“" * 10_240,
    "slashes": "/" * 10_240,
    "dots": "." * 10_240,
    "paths": "./" * 5_120,
    "digits": "1" * 10_240,
    "codes": "a1" * 5_120,
    "steps": "and then " * 1_200,
    "commas": ", " * 5_120,
    "regex bomb": "(a+)+$" * 1_700 + "!",
    "nested stars": "(" * 5_000 + "a*" * 2_000,
    "sql": "SELECT * FROM users WHERE id = 1 OR 1=1; DROP TABLE users; -- " * 160,
    "markup": "<a href='x'>" * 900,
    "json": '{"a": [' * 1_500,
    "emoji": "👩‍👩‍👧‍👦" * 1_500,
    "control": "\x00\x1b[31m" * 1_700,
    "accents": "e" + "\u0301" * 10_240,
    "ideographs": "漢ア" * 5_120,
    "hiragana": "あ" * 10_240,
    "mail": "a.b+c" * 2_000 + "@",
    "surrogates": "\ud83d" * 10_240,
    "spaces": "a" + " " * 7_900 + "b",
    "quoted spaces": "' " * 5_120,
    "handles": "a@" * 5_120,
}


@pytest.mark.parametrize("query", ABSURD.values(), ids=ABSURD)
def test_of_ten_kilobytes_of_anything_a_bounded_part_is_read(query):
    intent = understand(query)
    assert len(intent.text) <= LONGEST
    assert len(intent.clauses) <= MOST_CLAUSES
    assert len(intent.embedded) <= 2 + MOST_CLAUSES
    assert len(intent.words) <= LONGEST


def test_sql_is_asked_like_anything_else():
    assert {stem("drop"), stem("table"), stem("users")} <= asked("SELECT * FROM users; DROP TABLE users; --")


@several
@given(st.text(max_size=300))
def test_any_text_is_understood_the_same_way_twice(query):
    intent = understand(query)
    assert intent == understand(query)
    assert intent.selected or len(intent.embedded) == 2 + len(intent.clauses) or not query.strip() or not intent.words
    assert all(word.weight > 0 for word in intent.words)
    assert not any(term.startswith(WHOLE) for demand in intent.demanded for way in demand.ways[:1] for term in way)
    assert len({word.term for word in intent.words}) == len(intent.words)


@several
@given(
    st.lists(
        st.sampled_from(
            ["+", '"', "'", "`", "/", ".", "@", "#", "and then", "; ", "select:", "a", "issue", "1", " ", "\n"]
        ),
        max_size=60,
    ).map("".join)
)
def test_any_mixture_of_marks_that_mean_something_is_understood(query):
    intent = understand(query)
    assert not intent.selected or not intent.words
    demanded = {term for demand in intent.demanded for way in demand.ways for term in way}
    assert demanded <= set(terms(intent.text, keep_stop_words=True))


@pytest.mark.parametrize("blank", [" ", "\t", "\u3000", " \n"])
def test_a_run_of_blanks_is_one_however_long(blank):
    long, short = understand(f"find a{blank * 3000}file"), understand(f"find a{blank}file")
    assert (long.text, long.words, long.embedded) == (short.text, short.words, short.embedded)
    assert len(long.text) == len("find a file")
