"""An action is meant by its id, the beginning of one, or as the last."""

from __future__ import annotations

import pytest

from pegboard.doctor.plans.actions import Action
from pegboard.doctor.plans.choosing import chosen
from pegboard.errors import PegboardError


def made(identity, status="applied", at=1.0):
    return Action(
        id=identity, kind="defer-enable", finding="x", agent="claude-code", applied_at=at, status=status, changes=()
    )


def test_the_latest_that_stands_is_the_last():
    some = [made("aa", at=3.0), made("ab", at=2.0), made("ac", "undone", at=9.0)]
    assert chosen(some, "last").id == "ab", "the journal knows the order, whatever the clock said"
    assert chosen(some, "aa").id == "aa"


@pytest.mark.parametrize(
    ("some", "name", "said"),
    [
        ([], "last", "There is nothing to undo"),
        ([], "ab", "There is nothing to undo"),
        ([made("aa", "undone")], "last", "There is nothing to undo"),
        ([made("aa", "undone")], "aa", "aa was undone already"),
        ([made("aa1"), made("aa2")], "aa", "aa may be any of aa1, aa2"),
        ([made("aa1")], "b", "No action is called 'b'"),
        ([made("aa1")], "", "No action is called ''"),
    ],
)
def test_each_reason_not_to_undo_has_its_own_words(some, name, said):
    with pytest.raises(PegboardError, match=said) as caught:
        chosen(some, name)
    assert caught.value.hint


def test_an_id_that_begins_another_means_itself():
    assert chosen([made("aa"), made("aab")], "aa").id == "aa"
