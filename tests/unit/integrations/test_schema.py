"""Schemas that servers write, as the model APIs take them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pegboard.integrations.dialects.messages import tool as anthropic_tool
from pegboard.integrations.dialects.responses import tool as openai_tool
from pegboard.integrations.dialects.schema import rooted, with_items, with_plain_keys
from pegboard.testing.llm.asked import Asked
from pegboard.testing.llm.messages_rules import schemas_are_objects
from pegboard.testing.llm.schema_rules import function_problem


def test_a_plain_object_is_left_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {}}}, "required": ["a"]}
    assert rooted(schema) is schema
    assert with_items(schema) is schema
    assert with_plain_keys(schema) == (schema, [])


def test_a_choice_at_the_root_becomes_all_that_its_branches_take() -> None:
    by_id = {"properties": {"id": {"type": "integer"}, "why": {"type": "string"}}, "required": ["id", "why"]}
    by_name = {"properties": {"name": {"type": "string"}, "why": {}}, "required": ["why", "name"]}
    assert rooted({"type": "object", "properties": {"x": {}}, "required": ["x"], "oneOf": [by_id, by_name]}) == {
        "type": "object",
        "properties": {"x": {}, "id": {"type": "integer"}, "why": {"type": "string"}, "name": {"type": "string"}},
        "required": ["x", "why"],
    }


def test_all_of_needs_what_each_of_its_parts_needs() -> None:
    one, other = {"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}
    assert rooted({"allOf": [one, other]})["required"] == ["a", "b"]


def test_a_reference_at_the_root_is_followed_and_its_definitions_stay() -> None:
    definitions = {"In": {"type": "object", "properties": {"to": {"$ref": "#/$defs/To"}}}, "To": {"type": "string"}}
    found = rooted({"$ref": "#/$defs/In", "$defs": definitions})
    assert found == {"$defs": definitions, "type": "object", "properties": {"to": {"$ref": "#/$defs/To"}}}


def test_a_schema_that_points_at_itself_ends() -> None:
    assert rooted({"$ref": "#"})["type"] == "object"
    assert rooted({"$defs": {"A": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"})["properties"] == {}


def test_an_array_without_items_is_given_some_however_deep_it_is() -> None:
    deep = {"type": "object", "properties": {"a": {"anyOf": [{"type": ["array", "null"]}, {"type": "string"}]}}}
    assert with_items(deep)["properties"]["a"]["anyOf"][0] == {"type": ["array", "null"], "items": {}}


def test_a_parameter_whose_name_cannot_be_said_is_told_in_the_description() -> None:
    schema = {
        "type": "object",
        "properties": {"$filter": {"type": "string"}, "top": {}},
        "required": ["$filter", "top"],
        "additionalProperties": False,
    }
    made = anthropic_tool({"name": "list", "description": "Lists.", "inputSchema": schema})
    assert made["input_schema"] == {"type": "object", "properties": {"top": {}}, "required": ["top"]}
    assert made["description"].endswith("by exactly these names: $filter")


_schemas: Any = st.recursive(
    st.fixed_dictionaries({}, optional={"type": st.sampled_from(["string", "array", "object", ["array", "null"]])}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array", ["object", "null"]]),
            "properties": st.dictionaries(st.sampled_from(["a", "b", "$c", "d e", "items"]), inner, max_size=3),
            "required": st.lists(st.sampled_from(["a", "b", "$c", "zz"]), max_size=3),
            "items": inner,
            "enum": st.just([{}]),
            "oneOf": st.lists(inner, max_size=3),
            "anyOf": st.lists(inner, max_size=3),
            "allOf": st.lists(inner, max_size=3),
            "$ref": st.sampled_from(["#", "#/$defs/x", "#/nowhere", "http://x"]),
            "$defs": st.dictionaries(st.just("x"), inner, max_size=1),
        },
    ),
    max_leaves=12,
)


@given(_schemas)
def test_both_apis_take_whatever_schema_a_server_writes(schema: Any) -> None:
    definition = {"name": "tool", "inputSchema": schema}
    assert schemas_are_objects(Asked({"tools": [anthropic_tool(definition)]})) is None
    assert function_problem(openai_tool(definition)) is None


@given(st.one_of(st.none(), st.text(), st.integers(), st.lists(st.integers())))
def test_what_is_no_schema_at_all_takes_no_arguments(schema: Any) -> None:
    assert rooted(schema) == {"type": "object", "properties": {}}
