"""The headers a client sends, and the arguments that a schema mirrors into them."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.types import Json
from pegboard.wire.http import decode_value, encode_value, mirrored_arguments, request_headers, value_at

MODERN = "2026-07-28"


def test_the_handshake_era_has_only_the_version_header() -> None:
    headers = request_headers("2025-11-25", "tools/call", {"name": "t"}, ((("a",), "A"),))
    assert headers == {"MCP-Protocol-Version": "2025-11-25"}


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "t"}, "t"),
        ("prompts/get", {"name": "p"}, "p"),
        ("resources/read", {"uri": "file:///x"}, "file:///x"),
    ],
)
def test_a_stateless_request_names_its_method_and_target(method: str, params: Json, name: str) -> None:
    expected = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Mcp-Name": name}
    assert request_headers(MODERN, method, params) == expected


@pytest.mark.parametrize(("method", "params"), [("tools/list", {"name": "t"}), ("tools/call", {"name": 5})])
def test_what_has_no_target_has_no_name_header(method: str, params: Json) -> None:
    assert "Mcp-Name" not in request_headers(MODERN, method, params)


def test_mirrored_arguments_are_sent_and_absent_ones_are_not() -> None:
    mirrored = ((("region",), "Region"), (("deep", "flag"), "Flag"), (("count",), "Count"), (("gone",), "Gone"))
    arguments = {"region": "us-west1", "deep": {"flag": True}, "count": 42.0, "gone": None}
    headers = request_headers(MODERN, "tools/call", {"name": "t", "arguments": arguments}, mirrored)
    sent = {name: value for name, value in headers.items() if name.startswith("Mcp-Param-")}
    assert sent == {"Mcp-Param-Region": "us-west1", "Mcp-Param-Flag": "true", "Mcp-Param-Count": "42"}


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("us-west1", "us-west1"),
        ("a b\tc", "a b\tc"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ("", "=?base64??="),
        (-7, "-7"),
        (True, "true"),
        (False, "false"),
    ],
)
def test_values_are_encoded_as_the_standard_shows(value: str | int | bool, encoded: str) -> None:
    assert encode_value(value) == encoded


@pytest.mark.parametrize("text", ["=?base64?!!!?=", "=?base64?/w==?=", "=?base64?abc?="])
def test_a_malformed_encoding_says_nothing(text: str) -> None:
    assert decode_value(text) is None


@pytest.mark.parametrize("text", ["plain", "=?BASE64?YQ==?=", "=?base64?YQ==", "=?base64?="])
def test_what_is_not_encoded_stands_for_itself(text: str) -> None:
    assert decode_value(text) == text


@pytest.mark.parametrize("arguments", [None, [], {"a": 5}, {"a": {"b": [1]}}, {"a": {"b": 1.5}}, {"a": {"b": {}}}])
def test_what_a_header_cannot_carry_is_not_mirrored(arguments: Any) -> None:
    assert value_at(arguments, ("a", "b")) is None


def prop(name: str, kind: Any = "string") -> Json:
    return {"type": kind, "x-mcp-header": name}


def test_annotations_are_found_through_nested_properties() -> None:
    schema = {
        "type": "object",
        "properties": {
            "region": prop("Region"),
            "plain": {"type": "string"},
            "x-mcp-header": {"type": "string"},
            "deep": {"type": "object", "properties": {"n": prop("N", "integer"), "b": prop("B", "boolean")}},
        },
    }
    assert mirrored_arguments(schema) == ((("region",), "Region"), (("deep", "n"), "N"), (("deep", "b"), "B"))


@pytest.mark.parametrize("schema", [None, True, [], {}, {"properties": []}, {"properties": {"a": True}}])
def test_a_schema_without_annotations_mirrors_nothing(schema: Any) -> None:
    assert mirrored_arguments(schema) == ()


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "string", "default": {"x-mcp-header": 5}, "enum": [{"x-mcp-header": ""}]}}},
        {"$defs": {"x-mcp-header": {"type": "string"}}},
        {"patternProperties": {"x-mcp-header": {"type": "string"}}},
    ],
)
def test_what_only_looks_like_an_annotation_is_none(schema: Json) -> None:
    assert mirrored_arguments(schema) == ()


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"properties": {"a": prop("")}}, "not a header name"),
        ({"properties": {"a": prop("a b")}}, "not a header name"),
        ({"properties": {"a": prop("a\r\nX: y")}}, "not a header name"),
        ({"properties": {"a": {"type": "string", "x-mcp-header": 5}}}, "not a header name"),
        ({"properties": {"a": prop("A", "number")}}, "not a string, integer or boolean"),
        ({"properties": {"a": prop("A", ["string", "null"])}}, "not a string, integer or boolean"),
        ({"properties": {"a": {"x-mcp-header": "A"}}}, "not a string, integer or boolean"),
        ({"properties": {"a": prop("A"), "b": prop("a")}}, "same header"),
        ({**prop("A")}, "cannot be read from"),
        ({"properties": {"a": {"items": prop("A")}}}, "cannot be read from"),
        ({"anyOf": [{"properties": {"a": prop("A")}}]}, "cannot be read from"),
        ({"$defs": {"t": prop("A")}}, "cannot be read from"),
        ({"if": {"properties": {"a": prop("A")}}}, "cannot be read from"),
    ],
)
def test_an_annotation_that_breaks_the_rules_is_refused_with_the_reason(schema: Json, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mirrored_arguments(schema)


def test_a_schema_without_bottom_is_refused_and_not_followed() -> None:
    schema: Json = {}
    for _ in range(5000):
        schema = {"properties": {"a": schema}}
    with pytest.raises(ValueError, match="nested too deeply"):
        mirrored_arguments(schema)
