"""Include, exclude, deny: who wins, what globs match, and what a rule that matches nothing says."""

from __future__ import annotations

import pytest

from pegboard.catalog.filter import compile_globs, filter_of, named, near_misses, unmatched, unmatched_deny
from pegboard.catalog.naming import public_name
from pegboard.config.model import ServerConfig


def one(tool, server="github"):
    return named(server, tool, public_name(server, tool))


def is_out(tool, deny=(), **rules):
    return filter_of(ServerConfig(**rules), tuple(deny)).verdict(one(tool))


def test_without_rules_there_is_nothing_to_do():
    assert not filter_of(ServerConfig(), ())


@pytest.mark.parametrize(
    ("rules", "out"),
    [
        ({}, None),
        ({"include": ("create_*",)}, None),
        ({"include": ("delete_*",)}, "include"),
        ({"exclude": ("create_*",)}, "exclude"),
        ({"exclude": ("delete_*",)}, None),
        ({"include": ("create_*",), "exclude": ("create_issue",)}, None),
        ({"include": ("delete_*",), "exclude": ("create_issue",)}, "include"),
        ({"include": ("create_*",), "deny": ("create_issue",)}, "deny"),
        ({"deny": ("create_*",)}, "deny"),
    ],
)
def test_include_beats_exclude_and_deny_beats_all(rules, out):
    verdict = is_out("create_issue", **rules)
    assert (verdict is None) == (out is None)
    assert out is None or f"`{out}`" in verdict


@pytest.mark.parametrize(
    "rule",
    ["create_issue", "github__create_issue", "create_*", "github__*", "*issue", "cr?ate_issue", "[a-d]reate*", "*"],
)
def test_a_glob_matches_the_bare_or_the_public_name(rule):
    assert compile_globs((rule,)).match(one("create_issue"))


@pytest.mark.parametrize("rule", ["create", "Create_issue", "issue", "gitlab__*", "create_issue?", "[!c]*issue x", ""])
def test_a_glob_matches_the_whole_name_and_minds_case(rule):
    assert not compile_globs((rule,)).match(one("create_issue"))


def test_a_public_name_may_be_written_with_the_servers_key_as_it_is():
    tool = one("issue.create", server="my.server")
    for rule in ("my.server__issue.create", "my.server__*", "my_server__*", "issue.create", tool.public):
        assert compile_globs((rule,)).match(tool)


def test_many_wildcards_do_not_take_for_ever():
    assert not compile_globs(("*a" * 30 + "b",)).match(one("a" * 56))


TOOLS = tuple(one(name) for name in ("create_issue", "create_pr", "list_repos"))


def test_a_rule_that_matches_nothing_is_a_warning_with_near_misses():
    config = ServerConfig(include=("github__creat_*", "list_repos"), exclude=("list_repo",))
    assert unmatched("github", config, TOOLS) == (
        "include rule 'github__creat_*' of server github matches none of its 3 tools; near: create_issue, create_pr",
        "exclude rule 'list_repo' of server github matches none of its 3 tools; near: list_repos",
    )


def test_an_alias_for_a_tool_that_is_not_there_is_a_warning_with_near_misses():
    config = ServerConfig(aliases={"create_isue": "file a bug", "create_pr": "open a pull request"})
    assert unmatched("github", config, TOOLS) == (
        "aliases of server github are for 'create_isue', which is none of its 3 tools; near: create_issue, create_pr",
    )


def test_a_renamed_prefix_is_seen_through():
    (warning,) = unmatched("github", ServerConfig(include=("gh__create_issue",)), TOOLS)
    assert "near: create_issue" in warning


def test_a_rule_for_everything_of_a_renamed_server_shows_what_it_would_be_now():
    (warning,) = unmatched("github", ServerConfig(exclude=("gh__*",)), TOOLS)
    assert warning.endswith("near: github__*")
    known = [*TOOLS, one("read", "files")]
    assert unmatched_deny(["gihub__*"], known, set(), more_to_come=False)[0].endswith("near: github__*")
    assert "near" not in unmatched_deny(["slack__*"], known, set(), more_to_come=False)[0]


def test_a_rule_like_nothing_at_all_has_no_near_misses():
    assert unmatched("github", ServerConfig(exclude=("zzz",)), TOOLS) == (
        "exclude rule 'zzz' of server github matches none of its 3 tools",
    )


@pytest.mark.parametrize(
    ("rule", "near"),
    [
        ("CREATE_ISSUE", "create_issue"),
        ("*_isue", "create_issue"),
        ("creat_isue", "create_issue"),
    ],
)
def test_near_misses_look_where_the_glob_looks(rule, near):
    assert near in near_misses(rule, TOOLS)


def test_a_rule_of_wildcards_only_has_no_near_misses():
    assert near_misses("**", TOOLS) == ()


def test_a_deny_rule_that_matches_nothing_anywhere_is_a_warning():
    assert unmatched_deny(["delet_*"], [*TOOLS, one("delete_file", "files")], set(), more_to_come=False) == (
        "deny rule 'delet_*' matches none of the 4 tools known; near: delete_file",
    )


def test_a_deny_rule_that_may_be_for_a_server_not_listed_yet_is_left_in_peace():
    rules = ["delete_*", "slack__*", "github__delete_*", "gone__*"]
    warnings = unmatched_deny(rules, TOOLS, {"slack"}, more_to_come=True)
    assert [warning.split("'")[1] for warning in warnings] == ["github__delete_*", "gone__*"]
