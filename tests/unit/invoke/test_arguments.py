"""What is plainly wrong with arguments, and what is left to the server."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.invoke.arguments import Check, misfits
from pegboard.invoke.schema import compile_schema
from tests.unit.invoke.given import ISSUE

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "count": {"type": "integer"}, "any": {"$ref": "#/$defs/bomb"}},
    "required": ["text"],
}


def test_missing_and_mistyped_arguments_are_named() -> None:
    assert misfits({"count": "x"}, SCHEMA) == ["text is missing", "count must be of type integer, not a string"]


def test_a_boolean_is_no_number() -> None:
    assert misfits({"text": "", "count": True}, SCHEMA) == ["count must be of type integer, not a boolean"]


def test_what_fits_and_what_cannot_be_told_is_left_alone() -> None:
    assert misfits({"text": "a", "count": 3, "any": [], "more": None}, SCHEMA) == []


def test_an_unknown_argument_is_wrong_only_where_none_are_allowed() -> None:
    assert misfits({"text": "", "txt": 1}, {**SCHEMA, "additionalProperties": False}) == ["txt is unknown"]


@pytest.mark.parametrize(
    "schema", [{}, {"properties": [], "required": 3}, {"properties": {"a": 1}}, {"properties": {"a": {"type": ["x"]}}}]
)
def test_a_schema_that_makes_no_sense_finds_nothing(schema: dict[str, Any]) -> None:
    assert misfits({"a": 1}, schema) == []


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"title": ""}, "title must have at least 1 characters"),
        ({"title": "a", "count": 0}, "count must be at least 1"),
        ({"title": "a", "count": 101}, "count must be at most 100"),
        ({"title": "a", "labels": ["x", 2]}, "labels[1] must be of type string, not a number"),
        ({"title": "a", "draft": "x"}, "draft must be of type boolean or null, not a string"),
        ({"title": "a", "state": "gone"}, 'state must be one of "open", "closed"'),
        ({"title": "a", "filter": {}}, "filter.maxAge is missing"),
        ({"title": "a", "filter": {"maxAge": 1, "deep": {"maxAge": "x"}}},
         "filter.deep.maxAge must be of type number, not a string"),
        ({"title": "a", "txt": 1}, "txt is unknown"),
    ],
)  # fmt: skip
def test_each_fault_is_told_with_its_place(arguments: dict[str, Any], wrong: str) -> None:
    assert misfits(arguments, ISSUE) == [wrong]


def test_whole_numbers_written_as_floats_are_integers_and_big_ones_are_no_problem() -> None:
    assert misfits({"title": "a", "count": 3.0}, ISSUE) == []
    assert misfits({"title": "a", "count": 10**30}, ISSUE) == ["count must be at most 100"]


def test_a_pattern_is_never_run() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    assert misfits({"a": "a" * 64 + "!"}, schema) == []


@pytest.mark.parametrize(
    "reference", ["http://example.com/x", "file:///etc/passwd", "#/nowhere", "#anchor", "#/properties/a/%24ref", "#/"]
)
def test_a_reference_that_leads_elsewhere_or_nowhere_demands_nothing(reference: str) -> None:
    assert misfits({"a": 1}, {"properties": {"a": {"$ref": reference}}}) == []


def test_a_reference_to_itself_demands_nothing_more() -> None:
    assert misfits({"a": 1}, {"$ref": "#"}) == []
    assert misfits({"a": {"a": 1}}, {"properties": {"a": {"$ref": "#"}}}) == []
    assert misfits({"a": {"a": 1}}, {"type": "object", "properties": {"a": {"$ref": "#"}}}) == [
        "a.a must be of type object, not a number"
    ]


def test_references_that_double_thirty_times_cost_a_bounded_number_of_steps() -> None:
    bomb = {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(30)}
    assert misfits({"a": 1}, {"properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": bomb}) == []


def test_beside_a_reference_nothing_counts_in_the_old_drafts_and_all_does_in_the_new() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/x", "type": "string"}}, "$defs": {"x": {}}}
    assert misfits({"a": 1}, {**schema, "$schema": "http://json-schema.org/draft-07/schema#"}) == []
    assert misfits({"a": 1}, schema) == ["a must be of type string, not a number"]


def test_names_that_a_server_chose_are_shown_on_one_line_and_cut() -> None:
    schema = {"required": ["a\u202eb\nIgnore all" + "x" * 500]}
    (wrong,) = misfits({}, schema)
    assert "\u202e" not in wrong
    assert "\n" not in wrong
    assert len(wrong) < 150


def test_keys_that_a_pattern_may_allow_are_not_unknown() -> None:
    schema = {"properties": {"a": {}}, "patternProperties": {"^x-": {}}, "additionalProperties": False}
    assert misfits({"x-b": 1, "c": 1}, schema) == []


def test_what_holds_for_the_items_after_the_first_ones_is_not_held_against_these() -> None:
    schema = {"properties": {"a": {"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}}}
    assert misfits({"a": ["x", 1]}, schema) == []


TYPES = st.sampled_from(("string", "integer", "number", "boolean", "array", "object", "null"))
FIELDS = st.one_of(
    st.builds(lambda kind: {"type": kind}, TYPES),
    st.sampled_from(({}, {"enum": ["a", 1]}, {"type": "string", "minLength": 2}, {"items": {"type": "string"}}, True)),
)
SCHEMAS = st.fixed_dictionaries(
    {"properties": st.dictionaries(st.sampled_from("abc"), FIELDS)},
    optional={
        "type": st.sampled_from(("object", "array", ["object", "null"])),
        "required": st.lists(st.sampled_from("abc")),
        "additionalProperties": st.booleans(),
        "anyOf": st.lists(st.builds(lambda name: {"required": [name]}, st.sampled_from("abc")), max_size=2),
        "allOf": st.just([{"required": ["a"]}]),
        "enum": st.just([{"a": "a"}]),
    },
)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just([1]), st.just({}))


@given(SCHEMAS, st.dictionaries(st.sampled_from("abcd"), VALUES))
def test_what_passes_at_a_glance_passes_a_close_look(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    faults = list(Check().faults(compile_schema(schema), arguments, (), 0))
    assert len(misfits(arguments, schema)) == len(faults)
