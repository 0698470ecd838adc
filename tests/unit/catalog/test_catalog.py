"""The catalog joins what servers offer: in one order, under one version, with the reasons for what is left out."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from pegboard.catalog.catalog import Changes, build, diff
from pegboard.types import ServerState
from tests.unit.catalog.given import NOW, config, snapshot, spec, tool

GITHUB, FILES = spec("github"), spec("files")


def catalog_of(servers, deny=(), unavailable=None, previous=None):
    """`servers` maps specs to the tools they list; None means that they were never listed."""
    snapshots = {one.name: snapshot(one, *tools) for one, tools in servers if tools is not None}
    return build(config(*(one for one, _ in servers), deny=deny), snapshots, unavailable, previous)


def test_tools_come_by_server_key_and_then_as_the_server_lists_them():
    catalog = catalog_of([(GITHUB, ["z", "a"]), (FILES, ["read", "list"])])
    assert list(catalog.tools) == ["files__read", "files__list", "github__z", "github__a"]
    assert list(catalog.servers) == ["files", "github"]


def test_a_tool_carries_its_definition_and_what_its_server_was_configured_with():
    server = spec("github", tags=("code",), scopes=("repo",), cost_usd=0.5, lazy=False)
    definition = tool("create", "Makes.", title="Create", annotations={"readOnlyHint": False}, _meta={"x": 1})
    (made,) = catalog_of([(server, [definition])]).tools.values()
    assert (made.server, made.name, made.public_name) == ("github", "create", "github__create")
    assert (made.title, made.description) == ("Create", "Makes.")
    assert (made.tags, made.scopes, made.cost_usd, made.lazy) == (("code",), ("repo",), 0.5, False)
    assert made.parsed() == definition
    assert made.meta == {"x": 1}


@pytest.mark.parametrize(
    ("server", "unavailable", "state"),
    [
        (spec("github"), {}, ServerState.IDLE),
        (spec("github", enabled=False), {}, ServerState.DISABLED),
        (spec("github", problem="no command"), {}, ServerState.ERROR),
        (spec("pegboard"), {}, ServerState.ERROR),
        (spec("github"), {"github": "needs docker on PATH"}, ServerState.UNAVAILABLE),
    ],
)
def test_only_a_server_that_can_be_used_contributes_tools(server, unavailable, state):
    catalog = catalog_of([(server, ["a"]), (FILES, ["b"])], unavailable=unavailable)
    entry = catalog.servers[server.name]
    assert entry.resting_state is state
    expected = ["files__b", "github__a"] if state is ServerState.IDLE else ["files__b"]
    assert list(catalog.tools) == expected
    assert entry.tool_count == len(expected) - 1
    assert entry.unavailable == unavailable.get(server.name, "")


def test_a_server_that_was_never_listed_is_known_and_empty():
    entry = catalog_of([(GITHUB, None)]).servers["github"]
    assert (entry.listed, entry.cached_at, entry.tool_count) == (None, None, 0)


def test_the_entry_tells_what_is_known_of_the_list():
    known = snapshot(
        GITHUB, "a", {"name": 7}, server_name="GitHub MCP", instructions="Hi.", ttl_ms=5, server_version="3"
    )
    entry = build(config(GITHUB), {"github": known}).servers["github"]
    assert (entry.title, entry.instructions, entry.ttl_ms, entry.server_version) == ("GitHub MCP", "Hi.", 5, "3")
    assert (entry.listed, entry.tool_count, entry.cached_at) == (2, 1, NOW)


def reasons(catalog):
    return {(refusal.server, refusal.tool): refusal.reason for refusal in catalog.refused}


def test_of_twins_the_first_stays():
    catalog = catalog_of([(GITHUB, [tool("a", "first"), tool("a", "second"), "b"])])
    assert [one.description for one in catalog.tools.values()] == ["first", ""]
    assert "lists this name twice" in reasons(catalog)["github", "a"]


def test_of_names_that_are_easily_confused_the_first_stays():
    catalog = catalog_of([(GITHUB, ["list", "1ist", "LIST", "list.", "read"]), (FILES, ["list"])])
    assert [one.name for one in catalog.tools.values()] == ["list", "list", "list.", "read"]
    assert "easily confused with 'list'" in reasons(catalog)["github", "1ist"]
    assert ("github", "LIST") in reasons(catalog)


def test_a_name_made_to_look_like_anothers_public_name_is_refused():
    altered = next(iter(catalog_of([(GITHUB, ["a.b"])]).tools)).removeprefix("github__")
    catalog = catalog_of([(GITHUB, ["a.b", altered])])
    assert [one.name for one in catalog.tools.values()] == ["a.b"]
    assert "already that of 'a.b'" in reasons(catalog)["github", altered]
    catalog = catalog_of([(GITHUB, [altered.replace("_", "-"), "a.b"])])
    assert "easily confused" in reasons(catalog)["github", "a.b"]


def test_withheld_tools_are_refused_with_their_reason():
    catalog = catalog_of([(GITHUB, [tool("far", inputSchema={"$ref": "http://x"}), "near"])])
    assert list(catalog.tools) == ["github__near"]
    assert "never fetched" in reasons(catalog)["github", "far"]


def test_a_server_whose_name_is_taken_is_refused_as_a_whole():
    catalog = catalog_of([(spec("a_b"), ["x"]), (spec("a.b"), ["y"])])
    assert list(catalog.tools) == ["a_b__y"]
    assert "same prefix" in reasons(catalog)["a_b", ""]
    assert catalog.servers["a_b"].problem == reasons(catalog)["a_b", ""]


def test_filters_apply_before_names_are_compared():
    catalog = catalog_of([(spec("github", exclude=("1ist",)), ["1ist", "list"])])
    assert list(catalog.tools) == ["github__list"]
    assert catalog.refused == ()


def test_rules_that_match_nothing_warn_for_servers_that_are_listed():
    rules = {"include": ("creat_*",)}
    listed, unlisted = spec("github", **rules), spec("files", **rules)
    off, gated = spec("off", enabled=False, **rules), spec("gated", **rules)
    catalog = catalog_of([(listed, ["create"]), (unlisted, None), (off, ["x"]), (gated, ["x"])], (), {"gated": "no"})
    assert catalog.warnings == ("include rule 'creat_*' of server github matches none of its 1 tool; near: create",)


def test_a_deny_rule_is_measured_against_all_servers_even_gated_ones():
    servers = [(GITHUB, ["create"]), (FILES, ["delete"])]
    catalog = catalog_of(servers, ["dele*", "crate"], {"files": "needs docker on PATH"})
    assert list(catalog.tools) == ["github__create"]
    assert catalog.warnings == ("deny rule 'crate' matches none of the 2 tools known; near: create",)


def test_a_deny_rule_waits_for_servers_that_are_not_listed():
    assert catalog_of([(GITHUB, ["a"]), (FILES, None)], ["b", "files__x"]).warnings == ()
    assert len(catalog_of([(GITHUB, ["a"]), (FILES, None)], ["github__b"]).warnings) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([(GITHUB, ["a"])], [(GITHUB, ["a", "b"])]),
        ([(GITHUB, ["a", "b"])], [(GITHUB, ["b", "a"])]),
        ([(GITHUB, [tool("a")])], [(GITHUB, [tool("a", _meta={"v": 2})])]),
        ([(GITHUB, ["a"])], [(spec("github", lazy=False), ["a"])]),
        ([(GITHUB, ["a"])], [(spec("github", tags=("t",)), ["a"])]),
        ([(GITHUB, ["a"])], [(GITHUB, ["a"]), (FILES, None)]),
        ([(GITHUB, None)], [(spec("github", enabled=False), None)]),
    ],
)
def test_the_version_changes_with_whatever_can_be_noticed(before, after):
    assert catalog_of(before).version != catalog_of(after).version


def test_the_version_is_that_of_the_content_and_not_of_the_moment():
    earlier = build(config(GITHUB), {"github": snapshot(GITHUB, "a")})
    later = msgspec.structs.replace(snapshot(GITHUB, "a"), cached_at=NOW + 100)
    assert build(config(GITHUB), {"github": later}).version == earlier.version


def test_a_rebuild_takes_over_the_slices_that_did_not_change():
    servers = config(GITHUB, FILES)
    snapshots = {"github": snapshot(GITHUB, "a"), "files": snapshot(FILES, "b")}
    old = build(servers, snapshots)
    snapshots["github"] = snapshot(GITHUB, "a", "c")
    new = build(servers, snapshots, previous=old)
    assert new.slices["files"] is old.slices["files"]
    assert list(new.tools) == ["files__b", "github__a", "github__c"]
    assert new == build(servers, snapshots)


@pytest.mark.parametrize(
    ("servers", "deny", "unavailable"),
    [
        (config(spec("github", exclude=("a",)), FILES), (), {}),
        (config(GITHUB, FILES), ("a",), {}),
        (config(GITHUB, FILES), (), {"github": "needs docker on PATH"}),
        (config(GITHUB, FILES, spec("Github")), (), {}),
    ],
    ids=["spec", "deny", "gate", "name taken"],
)
def test_a_rebuild_makes_anew_what_something_else_changed(servers, deny, unavailable):
    snapshots = {"github": snapshot(GITHUB, "a"), "files": snapshot(FILES, "b")}
    old = build(config(GITHUB, FILES), snapshots)
    servers = config(*servers.servers.values(), deny=deny)
    new = build(servers, snapshots, unavailable, previous=old)
    assert list(new.tools) == ["files__b"]
    assert new == build(servers, snapshots, unavailable)


def test_a_difference_names_what_was_added_removed_and_changed_by_server():
    old = catalog_of([(GITHUB, ["a", "b", tool("c", "old")]), (FILES, ["same"]), (spec("gone"), ["x"])])
    new = catalog_of([(GITHUB, ["a", tool("c", "new"), "d"]), (FILES, ["same"]), (spec("new"), ["y"])])
    assert diff(old, new) == {
        "github": Changes(added=("github__d",), removed=("github__b",), changed=("github__c",)),
        "gone": Changes(removed=("gone__x",)),
        "new": Changes(added=("new__y",)),
    }
    assert diff(old, old) == {}


def test_a_catalog_is_built_without_what_is_slow_to_import():
    script = (
        "import sys\n"
        "from pegboard.catalog.cache import cache_key, cache_path, read_snapshot\n"
        "from pegboard.catalog.catalog import build\n"
        "from pegboard.config.model import Config, ServerConfig, ServerSpec\n"
        "build(Config(servers={'a': ServerSpec(name='a', config=ServerConfig(command='x'))}), {})\n"
        "slow = {'asyncio', 'socket', 'ssl', 'subprocess', 'logging', 'difflib', 'dataclasses', 'platformdirs'}\n"
        "assert not slow & set(sys.modules), slow & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


def test_a_tool_carries_the_words_the_configuration_adds_to_find_it_by():
    server = spec("github", aliases={"create_issue": "file a bug,  open a ticket,"})
    catalog = build(config(server), {"github": snapshot(server, "create_issue", "list_repos")})
    assert catalog.tools["github__create_issue"].aliases == ("file a bug", "open a ticket")
    assert catalog.tools["github__list_repos"].aliases == ()
    plain = spec("github")
    assert build(config(plain), {"github": snapshot(plain, "create_issue", "list_repos")}).version != catalog.version
