"""Mistyped names find what was meant, however many names there are."""

from __future__ import annotations

import pytest

from pegboard.catalog.nearest import nearest

NAMES = ["create_issue", "create_pull_request", "list_issues", "delete_file"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("creat_issue", "create_issue"), ("CREATE_ISSUE", "create_issue"), ("lst_issues", "list_issues")],
)
def test_the_closest_name_comes_first(typed, meant):
    assert nearest(typed, NAMES)[0] == meant


@pytest.mark.parametrize("typed", ["", "zzzzzz", "日本", "x" * 100_000])
def test_nothing_close_is_nothing(typed):
    assert nearest(typed, NAMES) == ()


def test_the_needle_is_found_among_many_thousands():
    crowd = [f"server{n}__tool_{n * 7919 % 100_003}" for n in range(20_000)]
    assert nearest("github__creat_isue", [*crowd, "github__create_issue"])[0] == "github__create_issue"


def test_equal_names_are_shown_once_and_never_more_than_asked_for():
    assert nearest("aaaa", ["aaab"] * 5 + ["aaac", "aaad", "aaae"], limit=2) == ("aaab", "aaac")
