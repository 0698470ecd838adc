"""What is plainly wrong with arguments, and what is left to the server."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.cli.arguments import misfits

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
