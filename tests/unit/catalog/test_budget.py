"""Definitions that would hurt whoever validates against them are withheld, each with its reason."""

from __future__ import annotations

import msgspec
import pytest

from pegboard.catalog.budget import MAX_BYTES, MAX_DEPTH, MAX_SUBSCHEMAS, over_budget, plainly_within
from tests.unit.catalog.given import tool


def verdict(schema, **more):
    definition = tool("t", inputSchema=schema, **more)
    encoded = msgspec.json.encode(definition)
    reason = over_budget(definition, len(encoded))
    if plainly_within(encoded):
        assert reason is None, "the quick look must never pass what the thorough one withholds"
    return reason


def properties(**named):
    return {"type": "object", "properties": named}


def nested(levels, wrap=lambda inner: {"not": inner}):
    schema: dict = {}
    for _ in range(levels):
        schema = wrap(schema)
    return schema


def bomb(levels):
    """Two references to the next level on each level: 2 ** levels schemas when expanded."""
    doubled = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/l0", "$defs": {**doubled, f"l{levels}": {"type": "string"}}}


def test_an_ordinary_tool_is_within_budget():
    assert verdict(properties(a={"type": "string"}), outputSchema=properties(b={"type": "number"})) is None


@pytest.mark.parametrize("schema", [None, True, [], "x", 3])
def test_a_schema_that_is_no_object_is_not_judged_here(schema):
    assert verdict(schema) is None


def test_the_size_of_the_whole_definition_counts():
    assert over_budget(tool("t"), MAX_BYTES) is None
    assert "262,145 bytes" in str(over_budget(tool("t"), MAX_BYTES + 1))


def test_nesting_counts_wherever_it_is():
    # The definition itself and inputSchema are two levels.
    assert verdict(nested(MAX_DEPTH - 2)) is None
    assert "64 levels" in verdict(nested(MAX_DEPTH - 1))
    assert "64 levels" in verdict({}, _meta=nested(MAX_DEPTH, lambda inner: [inner]))


@pytest.mark.parametrize("place", ["inputSchema", "outputSchema"])
@pytest.mark.parametrize("levels", [14, 30, 1000])
def test_a_reference_bomb_is_found_without_expanding_it(place, levels):
    definition = {"name": "t", place: bomb(levels)}
    assert "10,000 subschemas" in str(over_budget(definition, 1000))


def test_references_that_do_not_multiply_much_are_fine():
    assert verdict(bomb(8)) is None


def test_a_long_chain_of_references_is_followed_without_recursion():
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(3000)}
    assert verdict({"$ref": "#/$defs/d0", "$defs": {**chain, "d3000": {}}}) is not None
    short = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(100)}
    assert verdict({"$ref": "#/$defs/d0", "$defs": {**short, "d100": {}}}) is None


def test_many_plain_subschemas_count_as_well():
    wide: dict = {"anyOf": [{} for _ in range(MAX_SUBSCHEMAS)]}
    assert "subschemas" in verdict(wide)
    assert verdict({"anyOf": [{} for _ in range(MAX_SUBSCHEMAS - 1)]}) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        properties(child={"$ref": "#"}, other={"$ref": "#/properties/child"}),
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$dynamicAnchor": "node", "properties": {"next": {"$dynamicRef": "#node"}}},
        {"$recursiveRef": "#"},
    ],
)
def test_schemas_that_contain_themselves_are_fine(schema):
    assert verdict(schema) is None


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/a~1b", "#/$defs/a%2Fb", "#/%24defs/a~1b", "#named", "#old", "#/allOf/0", "#/x-parts/deep"],
)
def test_every_spelling_of_a_local_reference_is_followed(reference):
    big: dict = {"anyOf": [{} for _ in range(MAX_SUBSCHEMAS // 2)]}
    schema: dict = {"$defs": {}, "allOf": [{}], "properties": {"p": {"$ref": reference}}}
    if reference in ("#named", "#old"):
        schema["$defs"]["z"] = {**big, "$anchor": "named", "$id": "#old"}
    elif reference == "#/allOf/0":
        schema["allOf"] = [big]
    elif reference == "#/x-parts/deep":
        schema["x-parts"] = {"deep": big}
    else:
        schema["$defs"]["a/b"] = big
        if "%2F" in reference:
            schema["$defs"] = {"a": {"b": big}}
    assert "subschemas" in verdict(schema)


@pytest.mark.parametrize("reference", ["#/nowhere", "#nobody", "#/allOf/7", "#/allOf/x", "#/type/0", "#/" + "9" * 5000])
def test_a_local_reference_to_nothing_is_the_validators_affair(reference):
    assert verdict({"type": "object", "allOf": [{}], "properties": {"p": {"$ref": reference}}}) is None


@pytest.mark.parametrize("place", ["inputSchema", "outputSchema"])
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize(
    "target", ["http://169.254.169.254/x", "https://e.example/s.json#/a", "file:///etc/passwd", "other.json", ""]
)
def test_a_reference_out_of_the_document_is_withheld(place, keyword, target):
    schema = {"anyOf": [{"items": [{"properties": {"p": {keyword: target}}}]}]}
    reason = str(over_budget({"name": "t", place: schema}, 100))
    assert place in reason
    assert repr(target) in reason


@pytest.mark.parametrize(
    "schema",
    [
        properties(p={"default": {"$ref": "http://x"}}),
        properties(p={"enum": [{"$ref": "http://x"}]}),
        properties(p={"const": {"$ref": "http://x", "x-mcp-header": ""}}),
        properties(**{"$ref": {"type": "string"}, "x-mcp-header": {"type": "string"}}),
        {"$schema": "http://json-schema.org/draft-07/schema#", "$id": "http://x"},
    ],
)
def test_data_and_property_names_that_look_like_keywords_are_none(schema):
    assert verdict(schema) is None


def header(name, kind="string"):
    return {"type": kind, "x-mcp-header": name}


@pytest.mark.parametrize(
    "schema",
    [
        properties(a=header("Region"), b=header("Tenant-Id", "integer"), c=header("dry!", "boolean")),
        properties(a=properties(b=properties(c=header("Deep")))),
        properties(default=header("Region")),
    ],
)
def test_header_annotations_that_follow_the_rules_are_accepted(schema):
    assert verdict(schema) is None


@pytest.mark.parametrize("name", ["", "Re gion", "Region\r\nX: 1", "Région", "a:b", "a\x00", 7, None, ["A"], "(x)"])
def test_a_header_that_is_no_token_withholds_the_tool(name):
    assert "not a header name" in verdict(properties(a=header(name)))


@pytest.mark.parametrize("kind", ["number", "object", "array", "null", None, ["string", "null"], ["string"]])
def test_a_header_on_anything_but_a_plain_type_withholds_the_tool(kind):
    assert "on a type other than" in verdict(properties(a=header("Region", kind)))


def test_two_headers_that_differ_in_case_only_withhold_the_tool():
    reason = verdict(properties(a=header("Region"), b=properties(c=header("REGION"))))
    assert "b.c" in reason
    assert "'a'" in reason


@pytest.mark.parametrize(
    "schema",
    [
        header("Region"),
        {"items": header("Region")},
        {"prefixItems": [header("Region")]},
        properties(a={"anyOf": [header("Region")]}),
        properties(a={"items": properties(b=header("Region"))}),
        properties(a={"allOf": [properties(b=header("Region"))]}),
        {"if": {}, "then": properties(a=header("Region"))},
        {"$defs": {"a": header("Region")}, "properties": {"a": {"$ref": "#/$defs/a"}}},
        {"patternProperties": {"a": header("Region")}},
        {"additionalProperties": header("Region")},
    ],
)
def test_a_header_that_no_chain_of_properties_leads_to_withholds_the_tool(schema):
    assert "chain of properties" in verdict(schema)
