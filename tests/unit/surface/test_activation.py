"""What a conversation has loaded."""

from __future__ import annotations

import msgspec
import pytest

from pegboard.surface.activation import MOST_BYTES, Activation, Use, restored
from tests.unit.surface.given import active


def test_the_most_recently_used_come_first():
    state = active("a", "b").activated(("c",), 2.0).activation
    assert state.names == ("c", "a", "b")
    assert state.used("b", 3.0).activation.names == ("b", "c", "a")


def test_activating_again_moves_to_the_front_and_takes_no_second_place():
    state = active("a", "b", cap=2)
    change = state.activated(("b",), 5.0)
    assert change.activation.uses == (Use("b", 5.0), Use("a", 1.0))
    assert (change.activated, change.evicted, change.left_out) == (("b",), (), ())


def test_over_the_cap_the_least_recently_used_goes():
    change = active("a", "b", "c", cap=3).activated(("d",), 2.0)
    assert change.activation.names == ("d", "a", "b")
    assert change.evicted == ("c",)


def test_when_one_search_matches_more_than_fit_the_best_stay_and_the_answer_says_so():
    change = active("old", cap=2).activated(("best", "good", "fair", "poor"), 2.0)
    assert change.activation.names == change.activated == ("best", "good")
    assert change.left_out == ("fair", "poor")
    assert change.evicted == ("old",)


def test_what_was_loaded_and_did_not_fit_any_more_is_evicted_and_named_once():
    change = active("c", "d", cap=2).activated(("a", "b", "c"), 2.0)
    assert change.evicted == ("c", "d")
    assert change.left_out == ()


def test_after_a_search_the_worst_of_its_finds_is_the_first_to_go():
    state = Activation(cap=3).activated(("best", "good", "fair"), 1.0).activation
    assert state.used("other", 2.0).evicted == ("fair",)


def test_a_call_of_a_tool_that_nobody_searched_for_loads_it():
    change = Activation(cap=2).used("direct", 1.0)
    assert change.activation.names == change.activated == ("direct",)


def test_pinned_tools_take_no_places():
    change = active("a", cap=2).activated(("pinned", "b"), 2.0, pinned={"pinned"})
    assert change.activation.names == ("b", "a")
    assert (change.activated, change.evicted, change.left_out) == (("b",), (), ())


def test_a_tool_that_was_pinned_meanwhile_gives_up_its_place_and_is_not_called_evicted():
    change = active("a", "b", cap=2).activated(("c",), 2.0, pinned={"a"})
    assert change.activation.names == ("c", "b")
    assert change.evicted == ()


def test_a_cap_of_zero_loads_nothing_and_says_so():
    change = Activation(cap=0).activated(("a", "b"), 1.0)
    assert change.activation.names == ()
    assert (change.activated, change.left_out) == ((), ("a", "b"))


def test_a_name_that_is_asked_for_twice_is_loaded_once():
    assert Activation().activated(("a", "a", "b"), 1.0).activated == ("a", "b")


def test_what_is_gone_is_forgotten_and_nothing_else():
    assert active("a", "b", "c").without({"b", "x"}).names == ("a", "c")


def test_what_nobody_used_for_long_enough_expires():
    state = active("old").activated(("new",), 90.0).activation
    assert state.expired(100.0, 50.0).names == ("new",)
    assert state.expired(140.0, 50.0).names == ("new",)
    assert state.expired(141.0, 50.0).names == ()


def test_a_use_that_is_far_in_the_future_expires_too_for_the_clock_was_wrong():
    assert Activation().used("a", 9e9).activation.expired(1.0, 60.0).names == ()


def test_a_smaller_cap_lets_the_least_recently_used_go():
    assert active("a", "b", "c").capped(2).names == ("a", "b")


def test_a_value_never_changes():
    state = active("a", cap=1)
    state.activated(("b",), 2.0)
    state.used("c", 2.0)
    state.without({"a"})
    state.fork(allow=["x"])
    assert state == active("a", cap=1)


def test_it_comes_back_from_the_store_as_it_was():
    state = msgspec.structs.replace(active("a", "b"), listed=("x", "a"), allow=(("a", "b*"),))
    assert restored(state.to_bytes()) == state


def test_it_comes_back_under_the_present_cap():
    state = restored(active("a", "b", "c").to_bytes(), cap=2)
    assert (state.names, state.cap) == (("a", "b"), 2)


@pytest.mark.parametrize(
    "kept",
    [
        None,
        b"",
        b"garbage",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"version": 99, "state": {}}',
        b'{"version": 1}',
        b'{"version": 1, "state": []}',
        b'{"version": 1, "state": {"uses": [["a"]]}}',
        b'{"version": 1, "state": {"uses": [[1, 2]]}}',
        b'{"version": 1, "state": {"cap": "many"}}',
        b"[" * 100_000,
        b'{"version": 1, "state": {}, "x": "' + b"x" * MOST_BYTES + b'"}',
        active("a").to_bytes()[:-3],
    ],
)
def test_what_cannot_be_made_sense_of_is_an_empty_conversation(kept):
    assert restored(kept, cap=7) == Activation(cap=7)


def test_of_what_was_tampered_with_only_what_makes_sense_comes_back():
    kept = msgspec.json.encode(
        {
            "version": 1,
            "state": {"cap": 10**9, "uses": [["a", 3], ["b", 2], ["a", 1], ["", 1], ["x\ny", 1], ["l" * 999, 1]]},
        }
    )
    state = restored(kept, cap=5)
    assert (state.cap, state.uses) == (5, (Use("a", 3.0), Use("b", 2.0)))


def test_a_name_that_no_tool_can_have_is_not_loaded():
    state = Activation().activated(("ok", "", "\ud800", "x\x00", "l" * 999), 1.0).activation
    assert state.names == ("ok",)
    assert restored(state.to_bytes()) == state
