"""What holds of every surface, whatever the catalog, the settings and the conversation did before."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.config.model import SurfaceConfig
from pegboard.surface.activation import Activation, restored
from pegboard.surface.compose import Reason, Surface, compose
from pegboard.surface.guidance import News, guidance, news
from pegboard.surface.stock import ALWAYS_LOAD, stock_of
from pegboard.types import Tool
from tests.often import often
from tests.unit.index.given import tool
from tests.unit.surface.given import OWN, OWN_NAMES, encoded, shared

several = settings(max_examples=often(200), deadline=None)
SERVERS = ("a", "b", "c")
OWN_TOOLS = ("one", "two", "three", "four")
NAMES = [f"{server}__{name}" for server in SERVERS for name in OWN_TOOLS]
RULES = ["a__*", "*", "one", "b__two", "c__t*", "*e", "nothing"]

allowlists = st.none() | st.lists(st.sampled_from([*RULES, *NAMES]), max_size=3).map(tuple)
searches = st.lists(st.sampled_from(NAMES), max_size=5)
pinnings = st.lists(st.sampled_from(["a__one", "b__*", "four"]), max_size=2, unique=True).map(tuple)


@st.composite
def catalogs(draw) -> dict[str, Tool]:
    """Some of the tools, each in one of two versions, some of which want to be always shown."""
    made = {}
    for name in NAMES:
        version = draw(st.sampled_from([0, 0, 0, 1, 2, None]))
        if version is not None:
            server, _, own = name.partition("__")
            meta = {"meta": {ALWAYS_LOAD: True}} if version == 2 else {}
            lazy = not (server == "c" and own == "one")
            made[name] = tool(own, f"Version {version}.", server, lazy=lazy, **meta)
    return made


steps = st.lists(
    st.tuples(
        st.none() | catalogs(),
        st.none() | pinnings,
        st.lists(st.sampled_from(NAMES), max_size=6),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("mode", ["on", "auto"])
@several
@given(catalogs(), pinnings, steps, st.integers(1, 4), st.booleans(), st.sampled_from([0, 60, 10_000]))
def test_consecutive_lists_share_the_longest_beginning_that_they_can(mode, tools, pinned, turns, cap, listed, limit):
    activation, before = Activation(cap=cap), None
    for number, (changed, repinned, searched, restarted) in enumerate(turns):
        tools = tools if changed is None else changed
        pinned = pinned if repinned is None else repinned
        config = SurfaceConfig(mode=mode, threshold=limit, pinned=pinned, max_active=cap)
        made = compose(stock_of(tools, pinned), config, OWN, activation, list_active=listed)
        now = encoded(made)
        # Where auto has not decided yet it may decide to defer, which changes everything once.
        if before is not None and before[1] == made.verdict.deferring:
            then, there = before[0], set(now)
            possible = next((place for place, each in enumerate(then) if each not in there), len(then))
            assert shared(then, now) == possible
        before = now, made.verdict.deferring
        activation = made.activated(searched, float(number)).activation
        activation = restored(activation.to_bytes(), cap) if restarted else activation


@pytest.mark.parametrize("mode", ["on", "auto", "off"])
@several
@given(catalogs(), pinnings, st.lists(searches, max_size=8), allowlists, st.booleans(), st.sampled_from([0, 60]))
def test_what_is_carried_on_is_what_would_be_composed_anew(mode, tools, pinned, turns, allow, listed, limit):
    config = SurfaceConfig(mode=mode, threshold=limit, pinned=pinned, max_active=3)
    stock = stock_of(tools, pinned)

    def anew(activation: Activation) -> Surface:
        return compose(
            stock, config, OWN, activation, lists=() if allow is None else (tuple(allow),), list_active=listed
        )

    last = anew(Activation(cap=3))
    for number, searched in enumerate(turns):
        activation = last.activated(searched, float(number)).activation
        wanted, carried = anew(activation), last.carried(activation)
        assert carried is None or (carried == wanted and encoded(carried) == encoded(wanted))
        assert carried is not None or listed
        last = wanted


def check(made: Surface, cap: int) -> None:
    """What holds of any surface at all."""
    catalog_names = [name for name, reason in made.reasons.items() if reason is not Reason.OWN]
    assert made.deferred == len(made.permitted) - len(catalog_names) >= 0
    assert set(catalog_names) <= set(made.permitted)
    assert [each["name"] for each in made.definitions] == list(made.names) == [each.name for each in made.shown]
    assert len(set(made.names)) == len(made.names)
    assert bool(guidance(made)) == bool(made.deferred)
    assert set(made.deferred_tokens) == {
        made.permitted[name].server for name in made.permitted if name not in made.reasons
    }
    assert sum(reason is Reason.ACTIVE for reason in made.reasons.values()) <= cap
    if made.verdict.deferring:
        assert set(OWN_NAMES) <= set(made.names)
        assert set(made.basis.stock.pinned) & set(made.permitted) <= set(made.names)
    else:
        assert made.deferred == 0
        assert made.names == tuple(made.permitted) or made.activation.listed == made.names


@several
@given(
    catalogs(),
    st.sampled_from(["off", "auto", "on"]),
    pinnings,
    allowlists,
    st.lists(st.sampled_from(NAMES), max_size=8),
    st.integers(0, 4),
    st.booleans(),
)
def test_every_tool_is_shown_for_one_reason_or_counted_as_deferred(tools, mode, pinned, allow, found, cap, listed):
    config = SurfaceConfig(mode=mode, threshold=40, pinned=pinned, max_active=cap)
    activation = Activation(cap=cap).activated(found, 1.0).activation
    made = compose(
        stock_of(tools, pinned),
        config,
        OWN,
        activation,
        lists=() if allow is None else (tuple(allow),),
        list_active=listed,
    )
    check(made, cap)
    for name in tools:
        assert (made.reason(name) is None) == (name not in made.permitted)


@several
@given(
    catalogs(),
    st.lists(
        st.tuples(st.booleans(), allowlists, st.lists(st.sampled_from(NAMES), max_size=5)), min_size=1, max_size=4
    ),
    catalogs(),
    pinnings,
)
def test_no_sub_agent_ever_sees_or_loads_more_than_all_above_it_allow(tools, generations, later, pinned):
    config = SurfaceConfig(mode="on", pinned=pinned, max_active=3)
    made = compose(stock_of(tools, pinned), config, OWN, Activation(cap=3), list_active=True)
    for inherit, allow, searched in generations:
        parent, kept = made, encoded(made)
        child = parent.fork(inherit=inherit, allow=allow)
        assert set(child.permitted) <= set(parent.permitted)
        grown = child.activated(searched, 2.0).activation
        assert set(grown.names) <= set(child.permitted) | set(parent.activation.names)
        for catalog in (tools, later):
            anew = compose(stock_of(catalog, pinned), config, OWN, grown, list_active=True)
            above = compose(stock_of(catalog, pinned), config, OWN, parent.activation, list_active=True)
            assert set(anew.permitted) <= set(above.permitted)
            check(anew, 3)
        assert encoded(parent) == kept
        made = compose(stock_of(tools, pinned), config, OWN, grown, list_active=True)


@several
@given(catalogs(), st.lists(catalogs(), min_size=1, max_size=5))
def test_news_of_many_changes_are_the_news_of_the_first_and_the_last_catalog(first, others):
    told, before = News(), first
    for after in others:
        told, before = told.then(news(before, after)), after
    whole = news(first, others[-1])
    assert (set(told.added), set(told.removed)) == (set(whole.added), set(whole.removed))
    assert len(told.notice()) < 2_200
