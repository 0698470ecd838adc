"""What holds of every call: a valid one is never changed, a result is never too large, and no text is lost."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pegboard.invoke.arguments import misfits
from pegboard.invoke.blocks import MEDIA_BYTES
from pegboard.invoke.cut import head_end, size_of, tail_start
from pegboard.invoke.pages import Pages
from pegboard.invoke.repair import mend
from pegboard.invoke.schema import compile_schema
from pegboard.invoke.shape import Caps, encoded, shape
from pegboard.invoke.visible import is_clean, visible
from pegboard.types import Caller
from tests.often import often

many = settings(max_examples=often(200), deadline=None)
ME = Caller(identity="me")

# ── schemas and arguments that have a chance of meeting ──────────────────────────────────────────────────────────

names = st.sampled_from(["a", "A", "maxAge", "max_age", "b", "é"])
scalars = (
    st.none() | st.booleans() | st.integers(-3, 9) | st.sampled_from([0.5, 3.0, "7", "true", "x", "", "[1]", "{}"])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=8
)
kinds = st.sampled_from(["string", "boolean", "integer", "number", "array", "object", "null"])
bounds = st.integers(0, 4) | st.sampled_from([0.5, 2.0])


def schemas_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": kinds | st.lists(kinds, min_size=1, max_size=2, unique=True),
        "properties": st.dictionaries(names, inner, max_size=4),
        "required": st.lists(names, max_size=2, unique=True),
        "additionalProperties": st.booleans() | inner,
        "patternProperties": st.just({"^m": {}}),
        "items": inner,
        "prefixItems": several,
        "anyOf": several,
        "oneOf": several,
        "allOf": several,
        "not": inner,
        "if": inner,
        "then": inner,
        "enum": st.lists(values, min_size=1, max_size=3),
        "const": values,
        "minimum": bounds,
        "exclusiveMaximum": bounds,
        "minLength": st.integers(0, 3),
        "maxItems": st.integers(0, 3),
        "nullable": st.booleans(),
    }
    chosen = st.lists(st.sampled_from(sorted(keywords)), max_size=3, unique=True)
    return chosen.flatmap(lambda words: st.fixed_dictionaries({word: keywords[word] for word in words}))


def schemas_with(*references: str) -> st.SearchStrategy[Any]:
    refers = {"$ref": st.sampled_from(references)} if references else {}
    leaves = st.fixed_dictionaries({}, optional={"type": kinds, **refers}) | st.booleans()
    return st.recursive(leaves, schemas_of, max_leaves=4)


def documents_with(*more_references: str) -> st.SearchStrategy[Any]:
    references = ("#/$defs/a", "#/$defs/b", *more_references)
    return st.builds(
        lambda schema, defs, dialect: {**schema, "$defs": defs, **dialect},
        schemas_of(schemas_with(*references)),
        st.fixed_dictionaries({"a": schemas_with(*more_references), "b": schemas_with("#/$defs/a", *more_references)}),
        st.sampled_from([{}, {}, {"$schema": "http://json-schema.org/draft-07/schema#"}]),
    )


# The reference implementation aborts on references that go round in circles, so it gets none of these.
documents = documents_with()
circular = documents_with("#", "#/properties/a", "#/$defs/b", "#/nowhere")
arguments = st.dictionaries(names, values, max_size=4)


def is_valid(document: Any, instance: Any) -> bool:
    """What the reference implementation says."""
    validator = jsonschema.validators.validator_for(document, jsonschema.Draft202012Validator)
    return bool(validator(document).is_valid(instance))


@many
@given(documents, arguments)
def test_a_valid_call_is_never_changed_and_never_wrong(document: Any, instance: Any) -> None:
    assume(is_valid(document, instance))
    before = json.dumps(instance)
    mended = mend(instance, compile_schema(document))
    assert mended.arguments is instance
    assert (mended.repairs, mended.wrong) == ((), ())
    assert json.dumps(instance) == before


@many
@given(circular, arguments)
def test_what_is_mended_says_so_and_what_came_is_left_as_it_was(document: Any, instance: Any) -> None:
    before = json.dumps(instance)
    mended = mend(instance, compile_schema(document))
    assert json.dumps(instance) == before
    assert bool(mended.repairs) or mended.arguments == instance
    if not mended.wrong:
        assert misfits(mended.arguments, document) == []


plain_types = {"integer": st.integers(-99, 99), "number": st.sampled_from([1.5, -2.25, 7]), "boolean": st.booleans()}


@many
@given(st.data(), st.dictionaries(names.filter(str.islower), st.sampled_from(sorted(plain_types)), min_size=1))
def test_scalars_written_as_text_are_read_back_as_what_they_were(data: Any, properties: dict[str, str]) -> None:
    meant = {name: data.draw(plain_types[kind]) for name, kind in properties.items()}
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}}
    mended = mend({name: json.dumps(value) for name, value in meant.items()}, compile_schema(schema))
    assert (mended.arguments, mended.wrong, len(mended.repairs)) == (meant, (), len(meant))


@many
@given(values | st.binary().map(repr), values)
def test_a_schema_that_is_none_finds_nothing_or_something_but_never_fails(schema: Any, instance: Any) -> None:
    mend(instance, compile_schema(schema))
    mend({"a": instance}, compile_schema({"properties": schema, "required": schema, "type": schema, "items": schema}))


# ── texts with all that can go wrong in them ─────────────────────────────────────────────────────────────────────

pieces = st.sampled_from(
    [
        "a",
        "line\n",
        "\r\n",
        "\r",
        "é",
        "日本",
        "👨‍👩‍👧",
        "❤️",
        "\u200d",
        "\u202e",
        "\x00",
        "e\u0301",
        "\U000e0041",
        "می‌خ",
        "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    ]
)
texts = st.lists(pieces | st.text(max_size=3), max_size=60).map("".join) | st.builds(
    lambda piece, times: piece * times, pieces, st.integers(0, 3000)
)


@many
@given(texts)
def test_made_visible_twice_is_made_visible_once_and_clean_text_is_not_touched(text: str) -> None:
    seen = visible(text)
    assert is_clean(text) == (seen == text)
    assert "\u202e" not in seen
    assert "\x00" not in seen


@many
@given(texts, st.data())
def test_stretches_made_visible_one_by_one_are_the_whole(text: str, data: Any) -> None:
    at = data.draw(st.integers(0, len(text)))
    assert visible(text, 0, at) + visible(text, at) == visible(text)


@many
@given(texts, st.integers(64, 300))
def test_a_head_and_a_tail_fit_and_no_character_is_torn(text: str, limit: int) -> None:
    end = head_end(text, 0, len(text), limit)
    begin = tail_start(text, 0, len(text), limit)
    assert size_of(visible(text, 0, end)) <= limit
    assert size_of(visible(text, begin)) <= limit
    assert end > 0 or not text
    if is_clean(text) and size_of(text) > limit:
        assert size_of(text[:end]) > limit - 72
        assert size_of(text[begin:]) > limit - 72


contents = st.lists(st.builds(lambda text: {"type": "text", "text": text}, texts), max_size=4)


@many
@given(texts, st.integers(1024, 2048), st.integers(64, 500))
def test_head_pages_and_tail_are_the_whole_text(text: str, limit: int, page: int) -> None:
    pages = Pages(page, 60, lambda: 0.0)
    result = {"content": [{"type": "text", "text": text}]}
    shaped = shape(result, encoded(result), Caps(limit, 100), lambda *rest: pages.keep(ME, *rest))
    shown = shaped["content"][0]["text"]
    assert size_of(shown) <= limit
    found = re.search(r'\n\[… [^\n]*handle="(r[0-9a-f]{24})", page=1\) reads on, about \d+ pages? …\]\n', shown)
    if found is None:
        assert shown == visible(text)
        return
    middle, number = "", 1
    while number:
        answer = pages.read(found[1], number, ME)
        assert size_of(answer["content"][0]["text"]) <= page
        middle += answer["content"][0]["text"]
        number = answer["_meta"]["pegboard/page"]["next"]
    assert shown[: found.start()] + middle + shown[found.end() :] == visible(text)


blocks = st.builds(lambda text: {"type": "text", "text": text}, texts) | st.sampled_from(
    [
        {"type": "image", "data": "A" * 3000, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "a:b", "text": "é" * 2000}},
        {"type": "resource_link", "uri": "a:b", "name": "n" * 900},
        {"type": "odd", "x": [[[[[[[["deep"]]]]]]]]},
        7,
    ]
)
results = st.fixed_dictionaries(
    {"content": st.lists(blocks, max_size=12) | st.none() | st.text(max_size=5)},
    optional={"structuredContent": values | st.just({"rows": ["r" * 100] * 30}), "isError": st.booleans(),
              "_meta": st.dictionaries(names, values), "other": st.text(max_size=3000)},
)  # fmt: skip


@many
@given(results)
def test_a_shaped_result_is_within_its_caps_and_is_json(result: Any) -> None:
    caps = Caps(text_bytes=1024, blocks=5, depth=6)
    pages = Pages(1024, 60, lambda: 0.0)
    before = msgspec.json.encode(result)
    shaped = shape(result, encoded(result), caps, lambda *rest: pages.keep(ME, *rest))
    assert msgspec.json.encode(result) == before
    content = shaped.get("content") or []
    said = [block["text"] for block in content if isinstance(block, dict) and block.get("type") == "text"]
    assert size_of("\n".join(said)) <= caps.text_bytes
    assert all(is_clean(text) for text in said)
    assert len(content) <= caps.blocks or isinstance(content, str)
    assert len(msgspec.json.encode(shaped.get("structuredContent"))) <= caps.text_bytes
    # Text (each byte at most six in JSON), other blocks, structured content and fields have the same limit each.
    assert len(msgspec.json.encode(shaped)) <= 9 * caps.text_bytes + MEDIA_BYTES
    assert shaped.get("isError") == result.get("isError")
