"""A tool on one line."""

from __future__ import annotations

import pytest

from pegboard.index.signature import signature
from tests.unit.index.given import suite_tools, taking, tool


def signed(schema):
    return signature(tool("t", schema=schema)).removeprefix("github__t")


def parameter(schema):
    return signed({"properties": {"p": schema}, "required": ["p"]})[len("(p: ") : -1]


def test_parameters_come_with_their_types_and_the_needed_ones_first():
    schema = {
        "type": "object",
        "properties": {
            "body": {"type": "string"},
            "title": {"type": "string"},
            "state": {"enum": ["open", "closed"]},
            "amount": {"type": "integer"},
        },
        "required": ["amount", "title"],
    }
    made = signature(tool("create_issue", schema=schema))
    assert made == "github__create_issue(amount: int, title: str, body?: str, state?: open|closed)"


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "string"}, "str"),
        ({"type": "integer"}, "int"),
        ({"type": "number"}, "float"),
        ({"type": "boolean"}, "bool"),
        ({"type": "object"}, "dict"),
        ({"type": ["string", "null"]}, "str|None"),
        ({"type": "array", "items": {"type": "integer"}}, "list[int]"),
        ({"type": "array"}, "list[any]"),
        ({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}, "list[list[str]]"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "str|None"),
        ({"oneOf": [{"type": "string"}, {"type": "string"}, {"type": "number"}]}, "str|float"),
        ({"enum": [1, 2]}, "1|2"),
        ({"enum": list("abcdefgh")}, "a|b|c|d|e|…"),
        ({"type": "custom"}, "custom"),
        ({}, "any"),
        (True, "any"),
        (None, "any"),
        ({"enum": []}, "any"),
        ({"anyOf": []}, "any"),
        ({"anyOf": "x"}, "any"),
        ({"type": 7}, "any"),
        ({"type": "array", "items": [1]}, "list[any]"),
        ({"type": "array", "items": None}, "list[any]"),
    ],
)
def test_a_type_is_as_short_as_it_can_be(schema, written):
    assert parameter(schema) == written


@pytest.mark.parametrize(
    "schema", [{}, {"type": "object"}, {"properties": None}, {"properties": []}, {"properties": {}}]
)
def test_a_tool_without_parameters_takes_nothing(schema):
    assert signed(schema) == "()"


def test_of_very_many_parameters_the_rest_is_counted():
    made = signed(taking(**{f"p{number}": "" for number in range(100)}))
    assert made.startswith("(p0?: str, p1?: str")
    assert made.endswith("… 88 more)")


@pytest.mark.parametrize("required", [None, "p", 7, {"p": 1}, [1, None], ["q"]])
def test_an_odd_list_of_needed_parameters_needs_none(required):
    assert signed({"properties": {"p": {}}, "required": required}) == "(p?: any)"


def test_a_schema_that_is_nested_as_deeply_as_a_catalog_allows_is_written():
    inner: dict = {"type": "string"}
    for _ in range(60):
        inner = {"type": "array", "items": inner}
    assert parameter(inner).endswith("]" * 60)


def test_every_tool_of_the_suite_is_on_one_line_and_shorter_than_its_definition():
    for one in suite_tools():
        made = signature(one)
        assert "\n" not in made
        assert made.startswith(f"{one.public_name}(")
        assert len(made) < len(one.definition)


def test_a_list_of_what_is_required_may_hold_anything():
    schema = {**taking(title="", body=""), "required": [{}, ["title"], None, 5, "title"]}
    assert signature(tool("create", schema=schema)) == "github__create(title: str, body?: str)"


def test_a_signature_stays_short_whatever_a_server_writes_into_it():
    schema = {"type": "object", "properties": {"x" * 5000: {"enum": ["y" * 5000] * 9}}}
    assert len(signature(tool("t", "", "s", schema=schema))) < 400
