"""What is pinned, and what tools cost."""

from __future__ import annotations

import pytest

from pegboard.surface.stock import ALWAYS_LOAD, MOST_SELF_PINNED, stock_of
from pegboard.surface.tokens import tool_tokens
from pegboard.types import Tool
from tests.unit.index.given import by_name, tool
from tests.unit.surface.given import catalog


def test_tools_are_pinned_by_the_configuration_their_server_or_their_own_word():
    tools = {
        **catalog("a__one", "a__two", "b__three"),
        **catalog("c__four", lazy=False),
        **catalog("d__five", meta={ALWAYS_LOAD: True}),
    }
    pinned = stock_of(tools, ("a__*", "three")).pinned
    assert list(pinned) == ["a__one", "a__two", "b__three", "c__four", "d__five"]
    assert [word for word in ("pinned", "lazy", ALWAYS_LOAD) if any(word in why for why in pinned.values())] == [
        "pinned",
        "lazy",
        ALWAYS_LOAD,
    ]


@pytest.mark.parametrize(
    "meta", [{ALWAYS_LOAD: "true"}, {ALWAYS_LOAD: 1}, {ALWAYS_LOAD: False}, [ALWAYS_LOAD], ALWAYS_LOAD]
)
def test_only_a_plain_yes_in_its_own_meta_pins_a_tool(meta):
    assert not stock_of(catalog("a__x", meta=meta)).pinned


def test_talking_of_it_does_not_pin_a_tool():
    talks = tool("x", f"Sets {ALWAYS_LOAD}.", "a", schema={"type": "object", "_meta": {ALWAYS_LOAD: True}})
    assert not stock_of({talks.public_name: talks}).pinned


def test_a_server_cannot_crowd_the_surface_by_its_own_word():
    many = catalog(*(f"loud__t{number}" for number in range(MOST_SELF_PINNED + 9)), meta={ALWAYS_LOAD: True})
    quiet = catalog("quiet__x", meta={ALWAYS_LOAD: True})
    stock = stock_of({**many, **quiet})
    assert list(stock.pinned) == [*list(many)[:MOST_SELF_PINNED], "quiet__x"]
    assert [warning for warning in stock.warnings if "server loud asks" in warning]


def test_what_the_user_pins_is_pinned_however_much_it_is():
    many = catalog(*(f"a__t{number}" for number in range(100)))
    assert len(stock_of(many, ("a__*",)).pinned) == 100


def test_a_rule_that_matches_nothing_is_told_with_what_was_probably_meant():
    (warning,) = stock_of(catalog("a__create_issue"), ("creat_issue", "a__*")).warnings
    assert "'creat_issue'" in warning
    assert "near: create_issue" in warning


def test_a_rule_is_not_complained_about_while_tools_are_missing():
    assert not stock_of(catalog("a__x"), ("nothing",), complete=False).warnings


def test_weights_are_counted_no_further_than_needed():
    counted = []

    class Watched:
        name = "watched"

        def count(self, text: str) -> int:
            counted.append(text)
            return 10

    stock = stock_of(catalog(*(f"a__t{number}" for number in range(50))), counter=Watched())
    assert stock.weigh_more_than(35)
    assert len(counted) == 4
    assert not stock.weigh_more_than(500)
    assert len(counted) == 50


def test_a_new_catalog_counts_only_what_changed():
    counted = []

    class Watched:
        name = "watched"

        def count(self, text: str) -> int:
            counted.append(text)
            return 1

    watched = Watched()
    old = stock_of(catalog("a__x", "a__y", "a__z"), counter=watched)
    old.weigh_more_than(99)
    changed = {**catalog("a__x"), "a__y": tool("y", "Now does something else.", "a")}
    new = stock_of(changed, counter=watched, previous=old)
    counted.clear()
    new.weigh_more_than(99)
    assert len(counted) == 1
    assert "something else" in counted[0]


def test_a_tool_costs_the_same_in_a_stock_as_alone():
    tools = catalog("a__x")
    assert stock_of(tools).tokens("a__x") == tool_tokens(tools["a__x"])


def test_a_catalog_may_change_while_another_thread_counts():
    class Counting(dict[str, Tool]):
        """Tools that are counted, by the stock before, just while the new one looks."""

        def __contains__(self, name: object) -> bool:
            before.tokens("github__c")
            return super().__contains__(name)

    tools = by_name([tool("a"), tool("b"), tool("c")])
    before = stock_of(tools)
    before.tokens("github__a")
    before.tokens("github__b")
    assert stock_of(Counting(tools), previous=before).tokens("github__a") == before.tokens("github__a")
