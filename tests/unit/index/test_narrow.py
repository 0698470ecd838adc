"""Filters: what they let through, and that what they know nothing of is never left out."""

from __future__ import annotations

import pytest

from pegboard.index.narrow import Narrow
from pegboard.types import Priors
from tests.unit.index.given import tool

PLAIN = tool("create_issue", server="github")


def admits(one=PLAIN, priors=None, **narrow):
    return Narrow(**narrow).admits(one, priors)


def test_nothing_asked_nothing_left_out():
    assert admits()
    assert Narrow().everything
    assert not Narrow(servers=("a",)).everything
    assert not Narrow(allow=()).everything
    assert not Narrow(scopes=()).everything


def test_one_of_the_servers_is_enough():
    assert admits(servers=("slack", "github"))
    assert not admits(servers=("slack",))
    assert not admits(servers=("git",))


def test_all_of_the_tags_are_needed():
    tagged = tool("a", tags=("crm", "sales"))
    assert admits(tagged, tags=("crm",))
    assert admits(tagged, tags=("sales", "crm"))
    assert not admits(tagged, tags=("crm", "hr"))
    assert not admits(tags=("crm",))


def test_a_tool_needs_no_more_than_the_caller_has():
    scoped = tool("a", scopes=("read", "write"))
    assert admits(scoped, scopes=("read", "write", "admin"))
    assert not admits(scoped, scopes=("read",))
    assert not admits(scoped, scopes=())
    assert admits(PLAIN, scopes=())
    assert admits(scoped)


@pytest.mark.parametrize("rule", ["github__create_issue", "create_issue", "github__*", "create_*", "*"])
def test_an_allowlist_knows_public_and_bare_names_and_globs(rule):
    assert admits(allow=("nothing", rule))


@pytest.mark.parametrize("allow", [(), ("create",), ("GITHUB__*",), ("github",), ("slack__*", "list_*")])
def test_what_is_not_on_an_allowlist_is_left_out(allow):
    assert not admits(allow=allow)


@pytest.mark.parametrize(
    ("declared", "measured", "fits"),
    [
        (0.5, None, False),
        (0.1, None, True),
        (0.0, None, True),
        (None, 0.5, False),
        (None, 0.1, True),
        (None, None, True),
    ],
)
def test_what_costs_more_is_left_out_unless_its_price_is_not_known(declared, measured, fits):
    one = tool("a", cost_usd=declared)
    assert admits(one, Priors(cost_usd=measured) if measured is not None else None, max_cost_usd=0.1) is fits


def test_what_calls_really_cost_counts_more_than_what_is_declared():
    assert admits(tool("a", cost_usd=9.0), Priors(cost_usd=0.01), max_cost_usd=0.1)
    assert not admits(tool("a", cost_usd=0.01), Priors(cost_usd=9.0), max_cost_usd=0.1)
    assert not admits(tool("a", cost_usd=9.0), Priors(calls=5), max_cost_usd=0.1)


@pytest.mark.parametrize(
    ("priors", "p95", "p99"),
    [
        (Priors(p95_ms=100, p99_ms=900), True, False),
        (Priors(p95_ms=900, p99_ms=900), False, False),
        (Priors(p95_ms=500, p99_ms=500), True, True),
        (Priors(p50_ms=900), True, True),
        (Priors(), True, True),
        (None, True, True),
    ],
)
def test_what_is_slower_is_left_out_by_p95_or_on_request_by_p99(priors, p95, p99):
    assert admits(PLAIN, priors, max_latency_ms=500) is p95
    assert admits(PLAIN, priors, max_latency_ms=500, latency="p95") is p95
    assert admits(PLAIN, priors, max_latency_ms=500, latency="p99") is p99


def test_all_filters_hold_together():
    one = tool("a", tags=("crm",), cost_usd=0.1)
    assert admits(one, tags=("crm",), servers=("github",), max_cost_usd=1)
    assert not admits(one, tags=("crm",), servers=("github",), max_cost_usd=0.01)
    assert not admits(one, tags=("crm",), servers=("slack",), max_cost_usd=1)
