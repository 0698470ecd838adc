"""Finding a tool by any name one may write, and saying why it is not there."""

from __future__ import annotations

import pytest

from pegboard.catalog.catalog import build
from pegboard.errors import ToolNotFound
from tests.unit.catalog.given import config, snapshot, spec, tool

SERVERS = [
    (spec("github", exclude=("delete_*",)), ["create_issue", "delete_repo", "search_tools", "list"]),
    (spec("my.files"), ["read", "a.b", "list", "deep__name", tool("far", inputSchema={"$ref": "http://x"})]),
    (spec("off", enabled=False), ["off_tool"]),
    (spec("gated"), ["gated_tool"]),
    (spec("broken", problem="the command is empty"), ["broken_tool"]),
    (spec("silent"), None),
]


@pytest.fixture(scope="module")
def catalog():
    snapshots = {one.name: snapshot(one, *tools) for one, tools in SERVERS if tools is not None}
    return build(config(*(one for one, _ in SERVERS)), snapshots, {"gated": "needs docker on PATH"})


@pytest.mark.parametrize(
    ("name", "server", "tool"),
    [
        ("github__create_issue", "github", "create_issue"),
        ("create_issue", "github", "create_issue"),
        ("my_files__read", "my.files", "read"),
        ("my.files__read", "my.files", "read"),
        ("my.files__a.b", "my.files", "a.b"),
        ("a.b", "my.files", "a.b"),
        ("deep__name", "my.files", "deep__name"),
        ("my.files__deep__name", "my.files", "deep__name"),
        ("github__search_tools", "github", "search_tools"),
    ],
)
def test_public_bare_and_hand_written_names_are_found(catalog, name, server, tool):
    found = catalog.find(name)
    assert (found.server, found.name) == (server, tool)


def test_every_tool_is_found_by_its_public_name(catalog):
    assert all(catalog.find(name) is one for name, one in catalog.tools.items())


def refused(catalog, name):
    with pytest.raises(ToolNotFound) as refusal:
        catalog.find(name)
    return refusal.value


def test_a_bare_name_of_two_servers_is_refused_with_the_candidates(catalog):
    error = refused(catalog, "list")
    assert error.nearest == ("github__list", "my_files__list")
    assert "2 servers have a tool named 'list'" in error.message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("search_tools", "kept for Pegboard itself"),
        ("delete_repo", "'delete_repo' of server 'github' is not used: in the server's `exclude`"),
        ("github__delete_repo", "in the server's `exclude`"),
        ("far", "never fetched"),
        ("my.files__far", "never fetched"),
        ("off__anything", "'off', which is disabled"),
        ("off_tool", "'off', which is disabled"),
        ("gated__gated_tool", "'gated', which cannot work now: it needs docker on PATH"),
        ("gated_tool", "'gated', which cannot work now"),
        ("broken__x", "'broken', which cannot be used: the command is empty"),
        ("silent__x", "`pegboard refresh silent`"),
    ],
)
def test_a_name_that_is_known_but_not_in_use_is_told_why(catalog, name, words):
    assert words in refused(catalog, name).message


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("creat_isue", "github__create_issue"),
        ("github__creat_isue", "github__create_issue"),
        ("my.files__raed", "my_files__read"),
        ("gihub__create_issue", "github__create_issue"),
        ("GITHUB__CREATE_ISSUE", "github__create_issue"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(catalog, name, nearest):
    error = refused(catalog, name)
    assert error.nearest[0] == nearest
    assert f"There is no tool named {name!r}." in error.message
    assert nearest in error.hint


@pytest.mark.parametrize("name", ["", "__", "zzz", "x__", "github__", "日本", "\x00"])
def test_any_text_at_all_gets_an_answer(catalog, name):
    assert refused(catalog, name).nearest == ()


def test_the_nearest_servers_are_named(catalog):
    assert catalog.nearest_servers("gihub") == ("github",)
    assert catalog.nearest_servers("zzz") == ()


def test_an_empty_catalog_has_no_tools_and_says_so():
    assert refused(build(config(), {}), "read").nearest == ()
