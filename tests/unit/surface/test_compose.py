"""What a conversation is shown, in which order, and why."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pegboard.surface.activation import Activation, restored
from pegboard.surface.compose import Entry, Reason
from pegboard.surface.stock import ALWAYS_LOAD
from pegboard.surface.tokens import definition_tokens, tool_tokens
from tests.unit.index.given import tool
from tests.unit.surface.given import OWN, OWN_NAMES, active, catalog, encoded, shared, surface

TOOLS = catalog("a__one", "a__two", "b__three", "b__four", "c__five")


def test_the_first_reason_that_holds_is_the_reason():
    made = surface(TOOLS, active("a__one", "b__three"), pinned=("a__one",))
    assert made.reasons == {
        "search_tools": Reason.OWN,
        "call_tool": Reason.OWN,
        "a__one": Reason.PINNED,
        "b__three": Reason.ACTIVE,
    }
    assert made.reason("c__five") is Reason.DEFERRED
    assert made.reason("nobody") is None
    assert made.deferred == 3


def test_what_is_deferred_is_counted_by_server():
    made = surface(TOOLS, active("a__one"))
    assert made.deferred_tokens == {
        "a": tool_tokens(TOOLS["a__two"]),
        "b": tool_tokens(TOOLS["b__three"]) + tool_tokens(TOOLS["b__four"]),
        "c": tool_tokens(TOOLS["c__five"]),
    }


def test_what_is_shown_is_counted_one_by_one():
    made = surface(TOOLS, active("a__one"))
    assert made.shown == (
        Entry("search_tools", Reason.OWN, definition_tokens(OWN[0])),
        Entry("call_tool", Reason.OWN, definition_tokens(OWN[1])),
        Entry("a__one", Reason.ACTIVE, tool_tokens(TOOLS["a__one"])),
    )
    assert made.tokens() == sum(entry.tokens for entry in made.shown)
    assert made.tokens(Reason.ACTIVE) == tool_tokens(TOOLS["a__one"])
    assert made.counted == "word pieces (estimate)"


@pytest.mark.parametrize("config", [{"mode": "off"}, {"mode": "auto"}, {"mode": "on", "max_active": 0}])
def test_where_nothing_is_deferred_every_definition_passes_as_it_is(config):
    made = surface(TOOLS, active("c__five"), **config)
    assert made.definitions == tuple({**each.parsed(), "name": name} for name, each in TOOLS.items())
    assert made.deferred == 0
    assert set(made.reasons.values()) == {Reason.PASSED}


def test_a_definition_keeps_what_pegboard_does_not_know():
    odd = tool("x", "Does it.", "a", schema={"type": "object", "x-odd": [1]}, meta={"their/key": {"deep": True}})
    (shown,) = surface({"a__x": odd}, mode="off").definitions
    assert shown == {**odd.parsed(), "name": "a__x"}


def test_a_cap_of_zero_hides_nothing_and_warns():
    made = surface(TOOLS, max_active=0)
    assert made.names == tuple(TOOLS)
    assert any("max_active = 0" in warning for warning in made.warnings)


def test_when_the_search_tool_is_not_offered_nothing_is_hidden():
    assert surface(TOOLS, own=()).names == tuple(TOOLS)


def test_pegboards_own_tools_cost_nothing_where_nothing_is_deferred():
    assert surface(TOOLS, mode="off").tokens(Reason.OWN) == 0


def test_pinning_some_never_drops_pegboards_own():
    assert surface(TOOLS, pinned=("c__*",)).names == (*OWN_NAMES, "c__five")


def test_above_the_threshold_tools_are_deferred_and_that_stays_so():
    weight = sum(tool_tokens(each) for each in TOOLS.values())
    assert surface(TOOLS, mode="auto", threshold=weight).deferred == 0
    made = surface(TOOLS, mode="auto", threshold=weight - 1)
    assert made.deferred == 5
    assert surface(catalog("a__one"), made.activation, mode="auto", threshold=weight - 1).deferred == 1


def test_a_conversation_that_began_with_few_tools_is_not_taken_any_away():
    begun = surface(catalog("a__one"), mode="auto", threshold=30)
    assert surface(TOOLS, begun.activation, mode="auto", threshold=30).deferred == 0


def test_a_conversation_that_began_before_the_tools_were_known_has_decided_nothing():
    for early in (
        surface({}, mode="auto", threshold=30),
        surface(catalog("a__one"), mode="auto", threshold=30, complete=False),
    ):
        assert surface(TOOLS, early.activation, mode="auto", threshold=30).deferred == 5


def test_a_wire_whose_list_may_not_vary_by_conversation_shows_no_loaded_tools():
    one = surface(TOOLS, active("a__one"), list_active=False, pinned=("c__*",))
    other = surface(TOOLS, active("b__three"), list_active=False, pinned=("c__*",))
    assert one.names == other.names == (*OWN_NAMES, "c__five")
    assert one.deferred == 4


def test_pinned_tools_take_no_places_and_loaded_ones_are_told_the_truth():
    made = surface(TOOLS, Activation(cap=1), pinned=("a__one",), max_active=1)
    change = made.activated(("a__one", "b__three", "b__four"), 1.0)
    assert (change.activated, change.left_out) == (("b__three",), ("b__four",))


def test_a_search_can_load_neither_itself_nor_what_does_not_exist():
    change = surface(TOOLS).activated(("search_tools", "no__such", "a__one"), 1.0)
    assert change.activated == change.activation.names == ("a__one",)


def test_a_good_call_of_a_deferred_tool_loads_it():
    change = surface(TOOLS).used("c__five", 1.0)
    assert "c__five" in surface(TOOLS, change.activation).names


def test_an_evicted_tool_leaves_the_list_and_stays_usable():
    made = surface(TOOLS, active("a__one", cap=1), max_active=1)
    after = surface(TOOLS, made.used("b__three", 2.0).activation, max_active=1)
    assert after.names == (*OWN_NAMES, "b__three")
    assert after.reason("a__one") is Reason.DEFERRED
    assert "a__one" in after.permitted


# ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_fresh_list_has_own_then_pinned_in_catalog_order_then_loaded_ones():
    made = surface(TOOLS, active("b__four", "a__two"), pinned=("c__five", "a__one"))
    assert made.names == (*OWN_NAMES, "a__one", "c__five", "b__four", "a__two")


def test_new_tools_come_last_however_they_are_used():
    made = surface(TOOLS, active("a__one"))
    made = surface(TOOLS, made.used("b__three", 2.0).activation)
    made = surface(TOOLS, made.used("a__one", 3.0).activation)
    assert made.names == (*OWN_NAMES, "a__one", "b__three")


def test_a_pinned_tool_that_arrives_late_comes_last():
    begun = surface(catalog("b__three"), active("b__three"), pinned=("a__one",))
    assert surface(TOOLS, begun.activation, pinned=("a__one",)).names == (*OWN_NAMES, "b__three", "a__one")


def test_a_loaded_tool_that_becomes_pinned_stays_where_it_is():
    begun = surface(TOOLS, active("c__five", "a__one"))
    assert begun.names == (*OWN_NAMES, "c__five", "a__one")
    after = surface(TOOLS, begun.activation, pinned=("a__*",))
    assert after.names == (*OWN_NAMES, "c__five", "a__one", "a__two")
    assert after.reason("a__one") is Reason.PINNED


def test_a_tool_that_was_evicted_and_comes_back_comes_last():
    made = surface(TOOLS, active("a__one", "a__two", cap=2), max_active=2)
    made = surface(TOOLS, made.used("b__three", 2.0).activation, max_active=2)
    assert made.names == (*OWN_NAMES, "a__one", "b__three")
    made = surface(TOOLS, made.used("a__two", 3.0).activation, max_active=2)
    assert made.names == (*OWN_NAMES, "b__three", "a__two")


def test_a_server_that_goes_and_comes_back_gets_its_loaded_tools_back_at_the_end():
    made = surface(TOOLS, active("a__one", "b__three"))
    without = {name: each for name, each in TOOLS.items() if each.server != "a"}
    made = surface(without, made.activation)
    assert made.names == (*OWN_NAMES, "b__three")
    assert surface(TOOLS, made.activation).names == (*OWN_NAMES, "b__three", "a__one")


def test_a_definition_that_changes_costs_only_what_stands_after_it():
    made = surface(TOOLS, active("a__one", "a__two", "b__three"))
    changed = {**TOOLS, "a__two": tool("two", "Is new.", "a")}
    after = surface(changed, made.activation)
    assert after.names == made.names
    assert shared(encoded(made), encoded(after)) == 3


def test_below_the_threshold_new_tools_come_last_too():
    begun = surface(catalog("b__three", "c__five"), mode="auto")
    assert surface(TOOLS, begun.activation, mode="auto").names[:2] == ("b__three", "c__five")


def test_off_is_the_catalogs_order_and_keeps_no_list():
    begun = surface(catalog("b__three"), mode="off")
    assert begun.activation.listed == ()
    assert surface(TOOLS, begun.activation, mode="off").names == tuple(TOOLS)


def test_when_nothing_changes_neither_does_what_is_to_be_kept():
    made = surface(TOOLS, active("a__one"))
    assert surface(TOOLS, made.activation).activation is made.activation


def test_the_order_outlives_a_restart():
    made = surface(TOOLS, active("a__one"))
    made = surface(TOOLS, made.used("b__three", 2.0).activation)
    again = surface(TOOLS, restored(made.activation.to_bytes()))
    assert encoded(again) == encoded(made)


def test_a_smaller_cap_in_the_configuration_applies_at_once():
    assert surface(TOOLS, active("a__one", "a__two"), max_active=1).names == (*OWN_NAMES, "a__one")


def test_a_list_without_end_is_remembered_up_to_a_point_and_can_still_be_kept():
    many = catalog(*(f"server{number // 100}__tool_{number}" for number in range(6000)))
    made = surface(many, active("server0__tool_7"), mode="auto", context_window=10_000_000)
    assert made.deferred == 0
    kept = restored(made.activation.to_bytes())
    assert kept == made.activation
    assert surface(many, kept, mode="auto", context_window=10_000_000).names == made.names


CODE = """
import sys
from tests.unit.surface.given import active, catalog, surface
names = [f"s{n % 7}__t{n}" for n in range(60)]
made = surface(catalog(*names), active(*names[3:20:4]), pinned=("s1__*", "s4__t4"))
print(made.definitions)
"""


def test_the_list_is_the_same_in_every_process():
    said = {
        subprocess.run(
            [sys.executable, "-c", CODE],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1


# ── permissions ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_allowlist_filters_before_anything_else():
    pinned = {**TOOLS, **catalog("d__loud", meta={ALWAYS_LOAD: True})}
    made = surface(pinned, active("b__three"), allow=("a__*",), pinned=("c__five",))
    assert made.names == OWN_NAMES
    assert made.deferred == 2
    assert made.reason("c__five") is None


def test_what_an_allowlist_names_is_visible_and_takes_no_place():
    made = surface(TOOLS, Activation(cap=1), allow=("a__one", "three", "c__*"), max_active=1)
    assert made.names == (*OWN_NAMES, "a__one", "b__three")
    assert made.reason("b__three") is Reason.NAMED
    assert made.activated(("a__one", "c__five"), 1.0).activated == ("c__five",)


def test_an_empty_allowlist_allows_nothing():
    made = surface(TOOLS, allow=())
    assert made.permitted == {}
    assert made.deferred == 0


def test_tools_that_need_permissions_the_caller_has_not_are_left_out():
    scoped = {**TOOLS, **catalog("d__admin", scopes=("admin",))}
    assert "d__admin" not in surface(scoped, active("d__admin"), scopes=("read",)).permitted
    assert "d__admin" in surface(scoped, active("d__admin"), scopes=("read", "admin")).names
    assert "d__admin" in surface(scoped, active("d__admin")).names


def test_a_search_never_loads_what_the_caller_may_not_use():
    change = surface(TOOLS, allow=("a__*",)).activated(("b__three", "a__two"), 1.0)
    assert change.activation.names == ("a__two",)


def test_a_few_allowed_tools_need_no_deferral():
    weight = sum(tool_tokens(each) for each in TOOLS.values())
    assert surface(TOOLS, mode="auto", threshold=weight - 1, allow=("a__*",)).names == ("a__one", "a__two")


# ── sub-agents ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_sub_agent_begins_with_the_same_bytes_as_its_parent():
    parent = surface(TOOLS, active("b__three", "a__one"))
    assert encoded(parent.fork()) == encoded(parent)


def test_a_sub_agent_that_inherits_nothing_begins_with_what_is_always_shown():
    parent = surface(TOOLS, active("b__three"), pinned=("c__five",))
    assert parent.fork(inherit=False).names == (*OWN_NAMES, "c__five")


def test_parent_and_sub_agent_go_their_own_ways():
    parent = surface(TOOLS, active("a__one"))
    child = parent.fork()
    later = surface(TOOLS, child.activated(("b__three",), 2.0).activation)
    assert "b__three" in later.names
    assert "b__three" not in surface(TOOLS, parent.activation).names
    assert "c__five" not in surface(TOOLS, child.activation).names
    assert "c__five" in surface(TOOLS, parent.used("c__five", 2.0).activation).names


def test_a_sub_agent_sees_what_its_allowlist_names_and_can_search_the_rest_of_it():
    child = surface(TOOLS).fork(allow=["a__one", "b__*"])
    assert child.names == (*OWN_NAMES, "a__one")
    assert child.deferred == 2


def test_a_sub_agent_does_not_inherit_what_it_may_not_use():
    child = surface(TOOLS, active("c__five", "b__three", cap=2), max_active=2).fork(allow=["b__*"])
    assert child.activation.names == ("b__three",)
    assert child.names == (*OWN_NAMES, "b__three")


def test_a_sub_agent_never_gets_more_by_searching_calling_or_forking():
    child = surface(TOOLS).fork(allow=["a__*"])
    for widened in (
        child.activated(tuple(TOOLS), 1.0).activation,
        child.used("b__three", 1.0).activation,
        child.fork(allow=["*"]).activation,
        child.fork(inherit=False).activation,
        restored(child.activation.to_bytes()),
    ):
        assert set(surface(TOOLS, widened).permitted) == {"a__one", "a__two"}
        assert set(widened.names) <= {"a__one", "a__two"}


def test_a_sub_agent_of_a_sub_agent_may_use_what_both_allow():
    child = surface(TOOLS).fork(allow=["a__*", "b__three"]).fork(allow=["*three", "*one", "*five"])
    assert set(child.permitted) == {"a__one", "b__three"}


def test_a_sub_agent_with_few_tools_sees_them_all_in_auto():
    weight = sum(tool_tokens(each) for each in TOOLS.values())
    parent = surface(TOOLS, mode="auto", threshold=weight - 1)
    assert parent.deferred == 5
    assert parent.fork().deferred == 5
    assert parent.fork(allow=["b__*"]).names == ("b__three", "b__four")
