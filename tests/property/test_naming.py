"""For any server key and any tool name: legal, short, told apart, reversible, and independent of siblings."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.catalog.catalog import build
from pegboard.catalog.naming import (
    MAX_PREFIX,
    MAX_PUBLIC,
    all_plain_and_distinct,
    confusable,
    public_name,
    server_prefix,
    split,
)
from tests.often import often
from tests.unit.catalog.given import config, snapshot, spec

LEGAL = re.compile(r"[A-Za-z0-9_-]+")
keys = st.text(max_size=80) | st.text("ab_.- Il1", max_size=12) | st.from_regex(r"[a-z_-]{1,70}", fullmatch=True)
tools = st.text(min_size=1, max_size=256) | st.text("ab_.-Il1O0 ", min_size=1, max_size=6)
several = settings(max_examples=often(150), deadline=None)


@several
@given(keys, tools)
def test_every_name_is_legal_and_short_and_begins_with_its_servers_prefix(key, tool):
    name = public_name(key, tool)
    assert LEGAL.fullmatch(name)
    assert len(name) <= MAX_PUBLIC
    assert name.startswith(server_prefix(key) + "__")
    assert split(name)[0] == server_prefix(key)


@several
@given(keys)
def test_every_prefix_ends_before_the_first_separator(key):
    prefix = server_prefix(key)
    assert LEGAL.fullmatch(prefix)
    assert len(prefix) <= MAX_PREFIX
    assert "__" not in prefix
    assert not prefix.endswith("_")


@several
@given(keys, st.from_regex(r"[A-Za-z0-9_-]{1,30}", fullmatch=True))
def test_a_legal_short_name_can_be_split_again(key, tool):
    assert split(public_name(key, tool)) == (server_prefix(key), tool)


@several
@given(st.lists(st.tuples(keys, tools), unique=True, max_size=12))
def test_different_tools_of_servers_with_different_prefixes_have_different_names(pairs):
    # Two altered names would need equal hashes, and a plain one would have to spell out another's hash.
    by_name: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for key, tool in pairs:
        by_name.setdefault((server_prefix(key), public_name(key, tool)), set()).add((key, tool))
    for holders in by_name.values():
        assert len({tool for _, tool in holders}) == 1


servers = st.dictionaries(keys, st.lists(tools, max_size=6), max_size=5)


def catalog_of(listed):
    specs = [spec(key) for key in listed]
    return build(config(*specs), {one.name: snapshot(one, *listed[one.name]) for one in specs})


@several
@given(servers)
def test_a_public_name_leads_back_to_exactly_its_server_and_tool(listed):
    catalog = catalog_of(listed)
    for name, tool in catalog.tools.items():
        assert catalog.find(name) is tool
        assert name == tool.public_name == public_name(tool.server, tool.name)
        assert tool.name in listed[tool.server]


@several
@given(servers)
def test_every_listed_tool_is_in_the_catalog_or_refused_with_a_reason(listed):
    catalog = catalog_of(listed)
    whole = {refusal.server for refusal in catalog.refused if not refusal.tool}
    for key, names in listed.items():
        offered = [tool.name for tool in catalog.tools.values() if tool.server == key]
        refused = [refusal.tool for refusal in catalog.refused if refusal.server == key and refusal.tool]
        assert key in whole or sorted(offered + refused) == sorted(names)
    assert all(refusal.reason for refusal in catalog.refused)


@several
@given(servers)
def test_what_stands_side_by_side_can_be_told_apart(listed):
    catalog = catalog_of(listed)
    entries = [entry for entry in catalog.servers.values() if entry.usable]
    assert len({confusable(entry.prefix) for entry in entries}) == len(entries)
    shown = [(tool.server, confusable(split(name)[1])) for name, tool in catalog.tools.items()]
    assert len(set(shown)) == len(shown)


@several
@given(servers, st.data())
def test_a_name_does_not_change_when_siblings_come_and_go(listed, data):
    kept = {
        key: data.draw(st.lists(st.sampled_from(names), unique=True) if names else st.just([]))
        for key, names in listed.items()
        if data.draw(st.booleans())
    }
    before = {(tool.server, tool.name): name for name, tool in catalog_of(listed).tools.items()}
    after = {(tool.server, tool.name): name for name, tool in catalog_of(kept).tools.items()}
    assert all(before[tool] == after[tool] for tool in before.keys() & after.keys())


@several
@given(st.lists(tools, max_size=8))
def test_the_quick_look_never_passes_what_the_slow_one_refuses(names):
    if all_plain_and_distinct("server", names):
        assert [public_name("server", name) for name in names] == [f"server__{name}" for name in names]
        assert len({confusable(name) for name in names}) == len(names)


@several
@given(st.text(max_size=40))
def test_a_skeleton_is_its_own_skeleton(name):
    assert confusable(confusable(name)) == confusable(name)
