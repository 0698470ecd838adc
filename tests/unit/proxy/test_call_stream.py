"""`call_tool`, piece by piece: any split gives the same call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.proxy.call_stream import CallStream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=8), VALUES, max_size=4)


def streamed(whole: str, step: int) -> tuple[str, str, CallStream]:
    call = CallStream()
    pieces = [call.feed(whole[at : at + step]) for at in range(0, len(whole), step)]
    return call.name, "".join(pieces) + call.end(), call


@given(st.text(min_size=1, max_size=12), OBJECTS, st.booleans(), st.booleans(), st.integers(1, 40))
def test_any_split_gives_the_name_and_the_arguments(name, arguments, first, escaped, step) -> None:
    whole: dict[str, Any] = {"name": name, "arguments": arguments}
    ordered = dict(reversed(whole.items())) if first else whole
    said, text, call = streamed(json.dumps(ordered, ensure_ascii=escaped), step)
    assert (said, json.loads(text), call.arguments_first) == (name, arguments, first)


def test_arguments_come_as_the_model_writes_them() -> None:
    call = CallStream()
    assert call.feed('{"name": "x", "arg') == ""
    assert call.feed('uments": {"a": "b') == '{"a": "b'
    assert call.feed('}{"}') == '}{"}'
    assert (call.feed("}"), call.end()) == ("", "")


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ('{"name": "x"}', {}),
        ('{"name": "x", "arguments": null}', {}),
        ('{"name": "x", "arguments": "{\\"a\\": 1}"}', {"a": 1}),
        ('{"name": "x", "title": "t"}', {"title": "t"}),
        ('{"name": "x", "arguments": {"a": 1}, "more": {"arguments": {"b": 2}}}', {"a": 1}),
    ],
)
def test_arguments_that_are_missing_written_as_text_or_beside_the_name_are_understood(written, arguments) -> None:
    for step in (1, 3, 100):
        name, text, _ = streamed(written, step)
        assert (name, json.loads(text)) == ("x", arguments)


def test_a_call_that_was_cut_gives_nothing_more() -> None:
    name, text, _ = streamed('{"name": "x", "arguments": {"a": "b', 4)
    assert (name, text) == ("x", '{"a": "b')


def test_half_a_character_is_no_name_and_no_reason_to_fail() -> None:
    name, text, _ = streamed('{"name": "\\ud800", "arguments": {"a": "\\ud800"}}', 3)
    assert (name, text) == ("", "")
