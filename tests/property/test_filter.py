"""The filter against an oracle that spells the rules out one by one."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.catalog.catalog import build
from pegboard.catalog.filter import compile_globs, filter_of, named, unmatched
from pegboard.catalog.naming import public_name
from pegboard.config.model import ServerConfig
from tests.often import often
from tests.unit.catalog.given import config, snapshot, spec

keys = st.sampled_from(["a", "a.b", "b", "a__b"])
tools = st.text("ab._", min_size=1, max_size=4)
globs = st.text("ab_.*?", max_size=6) | st.text("ab_[]!-*", max_size=7) | st.builds("{}__{}".format, keys, tools)
rules = st.lists(globs, max_size=3).map(tuple)
several = settings(max_examples=often(300), deadline=None)


def matches(some_rules, key, tool):
    spellings = (tool, public_name(key, tool), f"{key}__{tool}")
    return any(fnmatchcase(spelling, rule) for rule in some_rules for spelling in spellings)


def oracle(key, tool, include, exclude, deny):
    if matches(deny, key, tool):
        return False
    included = matches(include, key, tool)
    if include and not included:
        return False
    return included or not matches(exclude, key, tool)


@several
@given(keys, tools, rules, rules, rules)
def test_precedence_is_as_written(key, tool, include, exclude, deny):
    verdict = filter_of(ServerConfig(include=include, exclude=exclude), deny).verdict(
        named(key, tool, public_name(key, tool))
    )
    assert (verdict is None) == oracle(key, tool, include, exclude, deny)


@several
@given(keys, st.lists(tools, unique=True, max_size=5), rules, rules, rules)
def test_the_catalog_has_exactly_what_the_rules_let_in(key, names, include, exclude, deny):
    server = spec(key, include=include, exclude=exclude)
    catalog = build(config(server, deny=deny), {key: snapshot(server, *names)})
    wanted = {name for name in names if oracle(key, name, include, exclude, deny)}
    offered = {tool.name for tool in catalog.tools.values()}
    confused = {refusal.tool for refusal in catalog.refused}
    assert offered | confused == wanted
    assert {out.tool for out in catalog.slices[key].filtered} == set(names) - wanted


@several
@given(keys, st.lists(tools, unique=True, max_size=5), rules, rules)
def test_a_rule_is_warned_of_exactly_when_it_matches_nothing(key, names, include, exclude):
    listed = [named(key, name, public_name(key, name)) for name in names]
    idle = [rule for rule in (*include, *exclude) if not any(matches((rule,), key, name) for name in names)]
    warnings = unmatched(key, ServerConfig(include=include, exclude=exclude), listed)
    assert len(warnings) == len(idle)
    assert all(f"rule {rule!r} of server {key} " in warning for rule, warning in zip(idle, warnings, strict=True))


@several
@given(st.dictionaries(keys, st.lists(tools, max_size=3), max_size=3), rules)
def test_a_deny_rule_is_warned_of_exactly_when_it_matches_nothing_anywhere(listed, deny):
    specs = {key: spec(key, enabled=not key.startswith("a__")) for key in listed}
    snapshots = {key: snapshot(specs[key], *names) for key, names in listed.items()}
    catalog = build(config(*specs.values(), deny=deny), snapshots)
    for rule in deny:
        hit = any(matches((rule,), key, tool.name) for key, known in snapshots.items() for tool in known.tools)
        assert any(f"deny rule {rule!r} " in warning for warning in catalog.warnings) == (not hit and bool(specs))


@several
@given(st.text(max_size=12), st.text(max_size=12))
def test_a_glob_means_what_fnmatch_means(rule, name):
    assert compile_globs((rule,)).match(named("", name, name)) == any(
        fnmatchcase(spelling, rule) for spelling in (name, f"__{name}")
    )
