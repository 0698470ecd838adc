"""What holds of a tool's line whatever its server wrote."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.surface.notes import LONGEST, note
from pegboard.surface.render import FULL_WITHIN, full_schema, rendered, signed
from pegboard.surface.tokens import WORD_PIECES, tool_tokens
from pegboard.surface.visible import as_json, literal, one_line, parameter_name
from tests.often import often
from tests.unit.index.given import tool

several = settings(max_examples=often(150), deadline=None)
text = st.text(max_size=40)
plain = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | text
)
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=12
)
KEYWORDS = [
    "type",
    "properties",
    "required",
    "items",
    "prefixItems",
    "enum",
    "const",
    "default",
    "anyOf",
    "oneOf",
    "allOf",
    "$ref",
    "$defs",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "description",
    "additionalProperties",
    "patternProperties",
]
REFERENCES = ["#", "#/$defs/a", "#/$defs/b", "#/properties/p", "#/allOf/0", "https://example.com", "#anchor"]
types = st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "null"])


def schemas():
    """Schemas that make sense here and there, with anything at all in between."""

    def bigger(inner):
        said = {
            "type": types | st.lists(types, max_size=3),
            "properties": st.dictionaries(st.sampled_from(["p", "q", "x y"]) | text, inner, max_size=4),
            "required": st.lists(st.sampled_from(["p", "q"]), max_size=2),
            "items": inner,
            "enum": st.lists(values, max_size=5),
            "anyOf": st.lists(inner, max_size=3),
            "oneOf": st.lists(inner, max_size=3),
            "allOf": st.lists(inner, max_size=3),
            "$ref": st.sampled_from(REFERENCES),
            "$defs": st.fixed_dictionaries({"a": inner, "b": inner}),
        }
        known = st.fixed_dictionaries({}, optional=said)
        return known | st.dictionaries(st.sampled_from(KEYWORDS), inner | values, max_size=5)

    return st.recursive(values | st.builds(dict), bigger, max_leaves=20)


@several
@given(schemas().filter(lambda schema: isinstance(schema, dict)), text)
def test_any_schema_gives_a_short_line_on_which_nothing_hides(schema, description):
    one = tool("t", description.encode("utf-8", "replace").decode(), schema=schema)
    made = signed(one)
    assert made.text.startswith("github__t(")
    assert made.text.endswith(")")
    assert made.text.isprintable()
    assert len(made.text) < 2_500
    assert all(why.isprintable() and len(why) < 120 for why in made.missing)
    for detail in ("names", "signature", "schema"):
        assert all(line.isprintable() for line in rendered(one, detail).split("\n  "))
    assert len(rendered(one)) < 2_500 + FULL_WITHIN
    assert signed(one) == made


@several
@given(values)
def test_a_full_schema_says_exactly_what_the_server_said(value):
    schema = {"type": "object", "x-anything": value}
    assert msgspec.json.decode(full_schema(tool("t", schema=schema))) == tool("t", schema=schema).input_schema


@several
@given(values, st.integers(8, 60))
def test_a_literal_is_the_value_or_is_visibly_cut(value, longest):
    made = literal(value, longest)
    assert made.isprintable()
    assert len(made) <= 12 * longest
    if not isinstance(value, str) and "…" not in made:
        assert msgspec.json.decode(made) == msgspec.json.decode(as_json(value))


@several
@given(st.text(max_size=300), st.integers(8, 60))
def test_a_line_is_one_line(words, longest):
    for made in (one_line(words, longest), parameter_name(words, longest)):
        assert made.isprintable()
    assert len(one_line(words, longest)) <= longest


@several
@given(text, st.text(max_size=400) | values, st.booleans())
def test_a_note_is_short_whatever_was_described(name, description, needed):
    made = note(name, description, needed=needed)
    assert len(made) <= LONGEST
    assert made.isprintable()


@several
@given(schemas(), st.text(max_size=60))
def test_any_tool_can_be_counted(schema, description):
    one = tool("t", description.encode("utf-8", "replace").decode(), schema=schema)
    assert tool_tokens(one) > 0
    assert WORD_PIECES.count(description) >= 0
