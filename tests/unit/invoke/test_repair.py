"""What is mended, what is not, and that it is told."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.invoke.repair import mend
from pegboard.invoke.schema import compile_schema
from tests.unit.invoke.given import ISSUE

RULE = compile_schema(ISSUE)


@pytest.mark.parametrize(
    ("arguments", "mended", "note"),
    [
        ('{"title": "a"}', {"title": "a"}, "arguments: text read as an object"),
        ({"title": "a", "count": "7"}, {"title": "a", "count": 7}, "count: text read as a number"),
        ({"title": "a", "draft": "True"}, {"title": "a", "draft": True}, "draft: text read as a boolean"),
        ({"title": "a", "labels": "x"}, {"title": "a", "labels": ["x"]}, "labels: one value put into an array"),
        ({"title": "a", "labels": '["x"]'}, {"title": "a", "labels": ["x"]}, "labels: text read as an array"),
        ({"title": "a", "count": None}, {"title": "a"}, "count: null left out"),
        ({"Title": "a"}, {"title": "a"}, "Title: taken as title"),
        ({"title": "a", "filter": '{"maxAge": 1}'}, {"title": "a", "filter": {"maxAge": 1}},
         "filter: text read as an object"),
        ({"title": "a", "filter": {"max_age": 1}}, {"title": "a", "filter": {"maxAge": 1}},
         "filter.max_age: taken as maxAge"),
        ({"title": "a", "filter": {"max-age": "1.5"}}, {"title": "a", "filter": {"maxAge": 1.5}},
         "filter.maxAge: text read as a number"),
    ],
)  # fmt: skip
def test_what_can_only_mean_one_thing_is_mended_and_told(arguments: Any, mended: Any, note: str) -> None:
    found = mend(arguments, RULE)
    assert (found.arguments, found.wrong) == (mended, ())
    assert note in found.repairs


@pytest.mark.parametrize(
    "arguments",
    [
        {"title": 5},  # what text a number was is not ours to say
        {"title": "a", "count": "seven"},
        {"title": "a", "count": "007"},
        {"title": "a", "count": "7.5"},
        {"title": "a", "draft": 1},
        {"title": "a", "labels": 5},
        {"title": "a", "labels": "[1]"},
        {"title": None},
        {"titel": "a"},
        {"Title": "a", "TITLE": "b"},
        {"title": "a", "State": "open", "stat-e": "closed"},
        "[1]",
        "not json",
        "null",
        [{"title": "a"}],
        7,
        True,
    ],
)
def test_what_leaves_doubt_is_wrong(arguments: Any) -> None:
    assert mend(arguments, RULE).wrong


def test_nothing_is_mended_where_that_is_turned_off() -> None:
    assert mend({"title": "a", "count": "7"}, RULE, repair=False).wrong == (
        "count must be of type integer, not a string",
    )
    assert mend('{"title": "a"}', RULE, repair=False).wrong == ("arguments must be an object, not a string",)


def test_what_came_is_handed_on_as_the_same_object_when_it_fits() -> None:
    arguments = {"title": "a"}
    assert mend(arguments, RULE).arguments is arguments


def test_the_arguments_that_came_are_not_changed_in_place() -> None:
    arguments = {"title": "a", "filter": {"max_age": "1"}, "labels": "x"}
    mend(arguments, RULE)
    assert arguments == {"title": "a", "filter": {"max_age": "1"}, "labels": "x"}


def test_a_key_in_another_case_is_left_where_other_keys_are_allowed_and_none_is_missing() -> None:
    rule = compile_schema({"properties": {"limit": {"type": "integer"}}})
    assert mend({"Limit": "x"}, rule).arguments == {"Limit": "x"}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_of_two_forms_that_text_could_be_neither_is_chosen(keyword: str) -> None:
    forms = [{"type": "array", "items": {"type": "string"}, "maxItems": 3}, {"type": "integer"}]
    rule = compile_schema({"properties": {"a": {keyword: forms}}})
    assert mend({"a": "7"}, rule).wrong
    assert mend({"a": "x"}, rule).arguments == {"a": ["x"]}


def test_text_that_is_allowed_to_be_text_stays_text() -> None:
    rule = compile_schema({"properties": {"a": {"type": ["string", "integer"]}, "b": {}}, "required": ["c"]})
    assert mend({"a": "7", "b": "7", "C": "7"}, rule).arguments == {"a": "7", "b": "7", "C": "7"}
    rule = compile_schema({"properties": {"a": {"type": ["string", "integer"]}, "c": {}}, "required": ["c"]})
    assert mend({"a": "7", "C": "7"}, rule).arguments == {"a": "7", "c": "7"}


def test_deep_and_huge_text_is_not_read() -> None:
    assert mend("[" * 100_000, RULE).wrong
    assert mend('{"title": "' + "a" * (1 << 20) + '"}', RULE).wrong


def test_schemas_and_arguments_made_to_keep_us_busy_are_given_up_on() -> None:
    defs = {
        str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}, {"type": "array", "items": {"$ref": f"#/$defs/{n + 1}"}}]}
        for n in range(40)
    }
    bomb = compile_schema({"properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": {**defs, "40": {"type": "integer"}}})
    for value in ("7", "x", [["x"] * 50] * 50):
        assert mend({"a": value}, bomb).arguments == {"a": value}
    wide = compile_schema(
        {"properties": {f"p{n}": {"type": "integer"} for n in range(4000)}, "additionalProperties": False}
    )
    assert mend({f"q{n}": "3" for n in range(100_000)}, wide).wrong == ()
    assert len(mend({f"q{n}": "3" for n in range(3000)}, wide).wrong) == 50
    listed = compile_schema({"properties": {"a": {"items": {"enum": [f"w{n}" for n in range(4000)]}}}})
    assert len(mend({"a": ["v"] * 4000}, listed).wrong) == 50


def test_a_key_that_could_be_two_properties_is_left() -> None:
    properties = {"maxAge": {"type": "integer"}, "max_age": {"type": "integer"}}
    rule = compile_schema({"properties": properties, "required": ["maxAge"], "additionalProperties": False})
    assert mend({"MAX-AGE": 1}, rule).arguments == {"MAX-AGE": 1}
