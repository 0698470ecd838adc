"""Which tools have which terms, how strongly and where."""

from __future__ import annotations

import numpy as np
import pytest

from pegboard.index.documents import FIELDS, document_of
from pegboard.index.postings import FULL, NAME_BIT, SERVER_BIT, WHOLE_BIT, in_use, invert, rarity, rows_kept, rows_of
from pegboard.index.text import WHOLE, stem
from tests.unit.index.given import taking, tool


def rows(*tools):
    found, terms = rows_of((place, document_of(one)) for place, one in enumerate(tools))
    return found, terms


def postings_of(one):
    """Impact and fields of each term of one tool."""
    found, terms = rows(one)
    return {
        terms[term]: (int(impact), int(where))
        for term, impact, where in zip(found.term, found.impact, found.fields, strict=True)
    }


def impact(one, word):
    return postings_of(one)[stem(word)][0]


def test_each_term_knows_the_fields_it_stands_in():
    made = postings_of(tool("create_issue", "An issue in a repository", "tracker", schema=taking(repository="")))
    assert made[stem("create")][1] == NAME_BIT
    assert made[stem("tracker")][1] == SERVER_BIT
    assert made[stem("issue")][1] == NAME_BIT | 1 << FIELDS.index("description")
    assert made[stem("repository")][1] == 1 << FIELDS.index("description") | 1 << FIELDS.index("parameters")


def test_a_whole_identifier_is_marked():
    made = postings_of(tool("create_issue"))
    assert [bool(where & WHOLE_BIT) == term.startswith(WHOLE) for term, (_, where) in made.items()] == [True] * len(
        made
    )
    assert any(term.startswith(WHOLE) for term in made)


def test_stop_words_count_in_names_titles_and_aliases_alone():
    assert "about" in postings_of(tool("about"))
    assert "about" in postings_of(tool("t", title="About us"))
    assert "about" in postings_of(tool("t", aliases=("about us",)))
    assert "about" not in postings_of(tool("t", "All about it.", tags=("about",)))


def test_a_short_text_is_more_about_its_words_than_a_long_one():
    short, long = tool("t", "Sends a message."), tool("t", "Sends a message. " + "And many other things too. " * 30)
    assert impact(short, "message") > impact(long, "message")


def test_repeating_a_word_without_end_is_of_no_use():
    honest, stuffed = tool("t", "refund money"), tool("t", "refund " * 500 + "money")
    assert impact(stuffed, "refund") <= impact(honest, "refund")


@pytest.mark.parametrize(
    "one", [tool("a"), tool("x" * 500, "y " * 5000), tool("a b c d", "a", title="a b", tags=("b",))]
)
def test_no_impact_is_nothing_or_beyond_full(one):
    assert all(0 < strength <= FULL for strength, _ in postings_of(one).values())


def test_a_tool_without_words_has_no_postings():
    found, terms = rows(tool("😀", server="🚀"))
    assert terms == []
    assert len(found.tool) == 0


def test_what_a_tool_has_does_not_depend_on_the_others():
    one, other = tool("create_issue", "Opens an issue."), tool("list_issues", "Lists all issues that are open.")
    together, terms = rows(other, one)
    mine = {terms[together.term[at]]: int(together.impact[at]) for at in np.flatnonzero(together.tool == 1)}
    assert mine == {term: strength for term, (strength, _) in postings_of(one).items()}


def test_an_inverted_file_gives_for_each_term_its_tools_in_order():
    found, terms = rows(tool("create_issue"), tool("list_issue"), tool("create_list"))
    made = invert([found], len(terms), 3)
    having = {term: made.tool[made.of(number)].tolist() for number, term in enumerate(terms)}
    assert having[stem("create")] == [0, 2]
    assert having[stem("issue")] == [0, 1]
    assert having[stem("list")] == [1, 2]
    assert int(made.start[-1]) == len(made.tool) == len(found.tool)


def test_rows_of_tools_that_stay_are_kept_under_their_new_numbers():
    found, terms = rows(tool("create_issue"), tool("list_issue"), tool("create_list"))
    old = invert([found], len(terms), 3)
    moved = np.array([1, -1, 0], np.int32)
    used = in_use(old, moved)
    assert {term for term, kept in zip(terms, used, strict=True) if not kept} == {WHOLE + "listissue"}
    again = rows_kept(old, moved, np.arange(len(terms), dtype=np.int32))
    fresh, fresh_terms = rows(tool("create_list"), tool("create_issue"))

    def plain(some, names):
        return sorted(zip(some.tool.tolist(), [names[term] for term in some.term], some.impact.tolist(), strict=True))

    assert plain(again, terms) == plain(fresh, fresh_terms)


def test_rare_terms_tell_more_than_common_ones_and_all_tell_something():
    found = rarity(np.array([1, 10, 500, 1000]), 1000)
    assert found.tolist() == sorted(found.tolist(), reverse=True)
    assert (found > 0).all()
