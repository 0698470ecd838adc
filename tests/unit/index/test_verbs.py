"""Verbs of the same kind of work."""

from __future__ import annotations

import pytest

from pegboard.index.text import words
from pegboard.index.verbs import ALL, KINDS, NONE, kind_of, kinds_in


@pytest.mark.parametrize("kind", KINDS)
def test_all_verbs_of_a_line_are_of_one_kind(kind):
    assert len({kind_of(words(verb)) for verb in kind.split()}) == 1


def test_every_line_is_a_kind_of_its_own():
    assert len({kind_of(words(kind.split()[0])) for kind in KINDS}) == len(KINDS)
    assert len(KINDS) < NONE


def test_the_first_verb_of_a_name_says_what_it_does():
    assert kind_of(words("delete_search_index")) == kind_of(words("remove"))
    assert kind_of(words("issue_create")) == kind_of(words("create"))


def test_endings_do_not_matter():
    assert kind_of(words("deletes")) == kind_of(words("delete"))


def test_a_name_without_a_verb_has_no_kind():
    assert kind_of(words("hubspot_crm")) == NONE
    assert kind_of([]) == NONE


def test_a_query_has_the_kinds_of_all_its_verbs():
    assert kinds_in(words("find the invoice and delete it")) == {kind_of(["find"]), kind_of(words("delete"))}
    assert kinds_in([]) == frozenset()


def test_no_verb_is_listed_twice():
    assert len(set(ALL)) == len(ALL)
