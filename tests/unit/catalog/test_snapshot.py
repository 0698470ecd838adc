"""A listing becomes light records; what is unfit is withheld, and nothing a server sends is an error."""

from __future__ import annotations

import pytest

from pegboard.catalog.snapshot import canonical, fingerprint, snapshot_of
from tests.unit.catalog.given import NOW, listing, tool


def snapshot(*tools, **more):
    return snapshot_of(listing(*tools, **more), now=NOW)


@pytest.mark.parametrize(
    ("more", "title"),
    [
        ({}, ""),
        ({"title": "Own"}, "Own"),
        ({"annotations": {"title": "Hint"}}, "Hint"),
        ({"title": "Own", "annotations": {"title": "Hint"}}, "Own"),
        ({"title": 7}, ""),
        ({"annotations": ["title"]}, ""),
        ({"annotations": {"title": {}}}, ""),
    ],
)
def test_the_title_is_the_tools_own_or_its_annotations(more, title):
    assert snapshot(tool("a", **more)).tools[0].title == title


@pytest.mark.parametrize("description", [None, 7, {"a": 1}, []])
def test_a_description_that_is_no_text_is_no_description(description):
    (cached,) = snapshot({"name": "a", "description": description}).tools
    assert cached.description == ""


def test_the_definition_keeps_every_key_and_its_hash_is_the_fingerprint():
    odd = {"name": "a", "z": [1, {"y": 2.5, "x": None}], "é": "ü"}
    (cached,) = snapshot(odd).tools
    assert cached.definition == '{"name":"a","z":[1,{"x":null,"y":2.5}],"é":"ü"}'.encode()
    assert cached.fingerprint == fingerprint(canonical(odd))


def test_unfit_tools_are_withheld_and_the_others_stay():
    deep: dict = {}
    for _ in range(100_000):
        deep = {"a": deep}
    found = snapshot(
        {"description": "nameless"},
        {"name": 7},
        {"name": ""},
        {"name": "x" * 300},
        tool("far", inputSchema={"$ref": "http://elsewhere"}),
        tool("deep", inputSchema=deep),
        tool("half", description="\ud800"),
        tool("\ud800"),
        tool("good"),
    )
    assert [cached.name for cached in found.tools] == ["good"]
    assert {name: reason.split(":")[0] for name, reason in found.withheld.items()} == {
        "#1": "its name is not a string",
        "#2": "its name is not a string",
        "#3": "it has no name",
        "x" * 79 + "…": "its name has 300 characters, more than 256",
        "far": "its inputSchema refers to 'http",
        "deep": "its definition is nested too deeply",
        "half": "its definition cannot be written as JSON",
        "\\ud800": "its definition cannot be written as JSON",
    }


def test_what_a_server_says_of_itself_can_always_be_written():
    found = snapshot(server_name="\ud800", instructions="a\udfffb")
    assert (found.server_name, found.instructions) == ("\\ud800", "a\\udfffb")


def test_a_negative_lifetime_counts_as_none_at_all():
    assert snapshot(ttl_ms=-1).ttl_ms == 0
    assert snapshot(ttl_ms=None).ttl_ms is None
