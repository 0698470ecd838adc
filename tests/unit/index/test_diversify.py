"""Copies are folded into the best of them, and a distrusted server holds no more than its share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.index.diversify import pick
from tests.often import often
from tests.unit.index.given import office, parts_of, tool

ABOUT = "Open a new issue in a repository, with labels and assignees."


def shown(tools, limit=5, slots=None, *, meaning=True, thin=False):
    """Places that are shown, with the copies folded into each, for tools ranked as they come."""
    parts = parts_of(tools, meaning=meaning, thin=thin)
    numbers = {parts.about.servers.index(server): most for server, most in slots.items()} if slots else None
    picked = pick(parts, np.arange(len(tools), dtype=np.int32), limit, numbers)
    return [(each.place, each.copies) for each in picked]


@pytest.mark.parametrize("meaning", [True, False])
def test_copies_on_other_servers_are_folded_into_the_first(meaning):
    tools = [tool("create_issue", ABOUT, server) for server in ("a", "b", "c")]
    assert shown([*tools, *office("slack")], meaning=meaning) == [(0, [1, 2]), (3, []), (4, [])]


def test_a_copy_under_a_name_spelt_otherwise_is_a_copy():
    assert shown([tool("create_issue", ABOUT, "a"), tool("createIssue", ABOUT, "b")]) == [(0, [1])]


def test_tools_of_the_same_name_that_do_something_else_are_no_copies():
    tools = [tool("search", "Search mail in the inbox.", "gmail"), tool("search", "Find flights to a city.", "travel")]
    assert shown(tools) == [(0, []), (1, [])]


@pytest.mark.parametrize("meaning", [True, False])
def test_other_tools_of_a_server_are_never_folded(meaning):
    tools = [tool(f"create_issue_{kind}", ABOUT, "a") for kind in ("red", "green", "blue")]
    assert shown(tools, meaning=meaning) == [(0, []), (1, []), (2, [])]


def test_a_copy_that_ranks_below_the_last_place_is_still_named():
    tools = [tool("create_issue", ABOUT, "a"), *office("slack"), tool("create_issue", ABOUT, "b")]
    places = shown(tools, limit=3)
    assert [place for place, _ in places] == [0, 1, 2]
    # Whoever stops at the first tool that has no place any more may not have come so far: both are fine.
    assert places[0][1] in ([3], [])


def test_no_more_are_shown_than_asked_for():
    assert [len(shown(office(), limit, thin=True)) for limit in (1, 4, 9, 20)] == [1, 4, 9, 9]


def test_a_server_holds_no_more_than_its_slots_and_others_take_the_rest():
    ranked = [*office("github"), *office("slack"), *office("files")]
    assert [place for place, _ in shown(ranked, 5, {"github": 1})] == [0, 3, 4, 5, 6]
    assert [place for place, _ in shown(ranked, 3, {"github": 0, "slack": 1})] == [3, 5, 6]


def test_a_copy_takes_no_slot():
    ranked = [tool("create_issue", ABOUT, "a"), tool("create_issue", ABOUT, "rogue"), tool("ring", "Rings.", "rogue")]
    assert shown(ranked, 5, {"rogue": 1}) == [(0, [1]), (2, [])]


def test_nothing_ranked_is_nothing_shown():
    assert shown([]) == []


@settings(max_examples=often(60), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["ring", "open", "close", "paint", "sell"])), max_size=15
    ),
    st.integers(1, 8),
    st.integers(1, 3),
    st.booleans(),
)
def test_any_ranking_is_shown_without_losing_or_doubling_a_tool(listed, limit, most, meaning):
    tools = [tool(name, f"{name} the door", server) for server, name in dict.fromkeys(listed)]
    picked = shown(
        tools, limit, {"a": most} if any(each.server == "a" for each in tools) else None, meaning=meaning, thin=True
    )
    places = [place for place, _ in picked]
    folded = [copy for _, copies in picked for copy in copies]
    firsts = [min(place, *copies) if copies else place for place, copies in picked]
    assert firsts == sorted(firsts)
    assert len(places) <= limit
    assert len({*places, *folded}) == len(places) + len(folded)
    assert sum(tools[place].server == "a" for place in places) <= most
    assert all(tools[copy].server != tools[place].server for place, copies in picked for copy in copies)


def test_a_copy_of_limited_trust_never_stands_before_the_tool_it_copies():
    ranked = [tool("create_issue", ABOUT, "rogue"), tool("create_issue", ABOUT, "github")]
    assert shown(ranked, 5, {"rogue": 1}) == [(1, [0])]
