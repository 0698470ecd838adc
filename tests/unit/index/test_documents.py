"""What of a tool can be searched, whatever its definition looks like."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pegboard.index.documents import FIELDS, content_of, document_of
from pegboard.types import Tool
from tests.unit.index.given import taking, tool


def fields(one):
    return dict(zip(FIELDS, document_of(one).texts, strict=True))


def with_definition(**more):
    return Tool(
        server="s",
        name="t",
        public_name="s__t",
        definition=msgspec.json.encode({"name": "t", **more}),
        fingerprint="",
    )


def test_each_text_goes_into_its_own_field():
    made = tool(
        "create_issue",
        "Opens one.",
        "github",
        title="Create issue",
        schema=taking(owner="Who owns the repository", state={"enum": ["open", "closed"]}),
        meta={"anthropic/searchHint": "bug ticket", "fastmcp": {"tags": ["tracker"]}},
        tags=("code", "work"),
        scopes=("repo:write",),
        aliases=("report a bug", "file a ticket"),
    )
    assert fields(made) == {
        "name": "create_issue",
        "server": "github",
        "title": "Create issue",
        "description": "Opens one.",
        "parameters": "owner state",
        "parameter_text": "Who owns the repository open closed",
        "tags": "code work",
        "scopes": "repo:write",
        "aliases": "report a bug file a ticket",
        "hints": "bug ticket tracker",
    }


def test_parameters_inside_objects_and_lists_are_read_to_a_depth():
    def nested(levels):
        inner: dict[str, Any] = {"type": "string", "description": f"level{levels}"}
        for level in reversed(range(levels)):
            inner = {"type": "object", "description": f"level{level}", "properties": {f"p{level}": inner}}
        return inner

    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": taking(price="In cents")}}}
    assert fields(tool("t", schema=schema))["parameters"] == "rows price"
    deep = fields(tool("t", schema=nested(60)))["parameters"].split()
    assert deep[:3] == ["p0", "p1", "p2"]
    assert len(deep) < 10


def test_of_many_parameters_and_choices_only_the_first_are_read():
    many = fields(tool("t", schema=taking(**{f"p{number}": "" for number in range(5000)})))["parameters"].split()
    assert many[0] == "p0"
    assert len(many) <= 500
    choices = {"enum": [f"c{number}" for number in range(100_000)]}
    said = fields(tool("t", schema=taking(kind=choices)))["parameter_text"].split()
    assert said[0] == "c0"
    assert len(said) <= 100


@pytest.mark.parametrize(
    "schema",
    [
        None,
        7,
        "object",
        [],
        {"properties": None},
        {"properties": ["a"]},
        {"properties": "abc"},
        {"properties": {"a": None, "b": 3, "c": ["x"], "d": "text"}},
        {"properties": {"a": {"description": {"not": "text"}, "enum": "abc"}}},
        {"properties": {"a": {"enum": [1, None, {"x": []}, ["y"]]}}},
        {"properties": {"": {"properties": {"": {}}}}},
        {"items": [{"type": "object"}]},
        {"items": {"items": {"items": {"items": {"items": {"items": {}}}}}}},
        {"$ref": "#/properties/a", "properties": {"a": {"$ref": "#"}}},
        True,
    ],
)
def test_a_schema_of_any_shape_is_read_as_far_as_it_makes_sense(schema):
    made = with_definition(inputSchema=schema)
    assert len(document_of(made).texts) == len(FIELDS)
    assert document_of(made).embedded


@pytest.mark.parametrize(
    "meta",
    [
        None,
        [],
        "x",
        {"anthropic/searchHint": 7},
        {"fastmcp": []},
        {"fastmcp": {"tags": "abc"}},
        {"_fastmcp": {"tags": [1, None]}},
    ],
)
def test_hints_that_are_no_texts_are_passed_over(meta):
    assert fields(with_definition(_meta=meta))["hints"] == ""


def test_our_own_key_for_hints_and_the_tags_of_fastmcp_are_read():
    meta = {"pegboard/searchHint": "ours", "_fastmcp": {"tags": ["old", 7, "style"]}}
    assert fields(tool("t", meta=meta))["hints"].split() == ["ours", "old", "style"]


def test_texts_of_any_length_are_cut():
    long = "word " * 20_000
    made = tool("t", long, title=long, schema=taking(p=long), tags=(long,), aliases=(long,))
    assert max(map(len, document_of(made).texts)) <= 5000
    assert len(document_of(made).embedded) <= 30_000


def test_lone_surrogates_are_carried_along():
    made = Tool(server="s", name="t", public_name="s__t", definition=b"{}", fingerprint="", description="half \ud83d")
    assert document_of(made).texts[FIELDS.index("description")] == "half \ud83d"
    assert content_of(made) >= 0


def test_the_embedded_text_says_what_the_tool_is_called_in_words():
    said = document_of(tool("createJiraIssue", "Opens one.", "atlassian_cloud")).embedded
    assert "create Jira Issue" in said
    assert "atlassian cloud" in said
    assert "Opens one." in said


def test_equal_content_is_that_of_equal_tools_only():
    base: dict[str, Any] = {"name": "a", "description": "x", "server": "s"}
    different = [
        {**base, "name": "b"},
        {**base, "description": "y"},
        {**base, "server": "r"},
        {**base, "title": "A"},
        {**base, "schema": taking(p="")},
        {**base, "meta": {"anthropic/searchHint": "h"}},
        {**base, "tags": ("t",)},
        {**base, "scopes": ("t",)},
        {**base, "aliases": ("t",)},
        {**base, "tags": ("t", "u")},
        {**base, "tags": ("t u",)},
    ]
    assert len({content_of(tool(**each)) for each in [base, *different]}) == len(different) + 1
    assert content_of(tool(**base)) == content_of(tool(**base))


def test_the_name_a_model_sees_and_the_price_are_no_part_of_the_content():
    one, other = tool("a", "x"), tool("a", "x", public_name="github__a_2", cost_usd=3.0, lazy=False)
    assert content_of(one) == content_of(other)
    assert document_of(one) == document_of(other)


def test_without_a_fingerprint_the_definition_itself_tells_tools_apart():
    assert content_of(with_definition(description="x")) != content_of(with_definition(description="y"))
