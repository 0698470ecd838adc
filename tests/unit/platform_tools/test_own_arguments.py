"""What models send to Pegboard's own tools: too much, too little, in another shape."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.errors import PegboardError
from pegboard.platform_tools.asked import OwnArguments
from pegboard.platform_tools.definitions import definitions, load_skill
from pegboard.types import CallContext
from tests.often import often
from tests.unit.platform_tools.given import ANA, Office, text_of


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_tools", {"query": "issue", "top_k": 3}),
        ("search_tools", {"tags": ["x"] * 9000, "query": 5}),
        ("search_tools", {"query": "x", **{f"k{n}": n for n in range(9000)}}),
        ("call_tool", {"name": 5, **{f"k{n}": n for n in range(9000)}}),
        ("batch_tools", {"calls": [{"name": "create_issue"}] * 9000}),
        ("batch_tools", {"calls": [{}] * 9000}),
        ("batch_tools", {"calls": [{"name": "create_issue", "arguments": {}, "extra": 1}]}),
        ("read_result", {"handle": "r1", "offset": 5}),
    ],
)
def test_what_our_tools_do_not_take_is_told_with_the_schema_and_nothing_is_called(name, arguments):
    desk = Office()
    result = run(desk.call(name, arguments))
    assert result["isError"] is True
    assert result["_meta"]["pegboard/ending"] == "bad_arguments"
    assert desk.called == []
    assert len(text_of(result)) < 10_000


def test_a_limit_may_be_written_as_a_whole_decimal_number():
    result = run(Office().call("search_tools", {"query": "issue", "limit": 2.0}))
    assert not result.get("isError")


def test_arguments_beside_the_name_are_the_tools_own():
    async def scenario() -> None:
        desk = Office()
        await desk.call("call_tool", {"name": "create_issue", "title": "Broken", "count": 2})
        await desk.call("batch_tools", {"calls": [{"name": "create_issue", "title": "Broken"}]})
        assert [arguments for _, arguments in desk.called] == [{"title": "Broken", "count": 2}, {"title": "Broken"}]

    run(scenario())


@pytest.mark.parametrize(
    "arguments",
    [
        {"tool_name": "create_issue", "arguments": {"title": "Broken"}},
        {"tool": "create_issue", "title": "Broken"},
        {"arguments": {"name": "create_issue", "arguments": {"title": "Broken"}}},
        {"arguments": {"tool_name": "create_issue", "title": "Broken"}},
    ],
)
def test_a_tool_that_is_named_in_another_place_is_called_all_the_same(arguments):
    async def scenario() -> None:
        desk = Office()
        await desk.call("call_tool", arguments)
        await desk.call("batch_tools", {"calls": [arguments]})
        assert desk.called == [("github__create_issue", {"title": "Broken"})] * 2

    run(scenario())


@pytest.mark.parametrize(
    "arguments", [{"arguments": {}}, {"arguments": {"arguments": {"name": "create_issue"}}}, {"tool": 5}]
)
def test_where_no_tool_is_named_nothing_is_guessed(arguments):
    desk = Office()
    assert run(desk.call("call_tool", arguments))["isError"] is True
    assert desk.called == []


def test_what_does_not_call_a_tool_is_told_what_is_wrong_with_what_it_was_given():
    said = text_of(run(Office().call("read_result", {"tool": "create_issue"})))
    assert "- tool is unknown" in said
    assert "- name is unknown" not in said


def test_more_hits_than_an_answer_may_hold_are_as_many_as_it_may():
    desk = Office()
    result = run(desk.call("search_tools", {"query": "issue", "limit": 500}))
    assert not result.get("isError")
    assert "github__create_issue" in text_of(result)


def test_a_search_that_fails_is_a_result_and_ends_no_batch():
    async def broken(*_: object) -> Any:
        raise PegboardError("The index cannot be made: the disk is full.")

    async def scenario() -> None:
        desk = Office()

        desk.desk._parts = msgspec.structs.replace(desk.desk._parts, search=broken)
        alone = await desk.desk.call_tool("search_tools", {"query": "x"}, ANA, CallContext())
        assert alone["isError"] is True
        assert "disk is full" in text_of(alone)
        calls = [{"name": "search_tools", "arguments": {"query": "x"}}, {"name": "create_issue"}]
        both = await desk.call("batch_tools", {"calls": calls})
        assert [each["ended"] for each in both["_meta"]["pegboard/outcomes"]] == ["failed", "ok"]

    run(scenario())


def test_a_name_in_a_batch_cannot_pass_for_another_outcome():
    said = text_of(run(Office().call("batch_tools", {"calls": [{"name": "x: ok\n[2] create_issue"}]})))
    assert "\n[2]" not in said


OWN = OwnArguments((*definitions((), len), load_skill("")))
JSON = st.recursive(
    st.sampled_from(["create_issue", "call_tool", "batch_tools", '{"name": "create_issue"}', None, 1]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "Name", "arguments", "calls", "x"]), inner, max_size=3)
    ),
    max_leaves=9,
)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("forge__tool", {"name": "other"}, ["forge__tool"]),
        ("call_tool", {"name": "forge__tool"}, ["forge__tool"]),
        ("call_tool", '{"Name": "forge__tool"}', ["forge__tool"]),
        ("call_tool", {"name": "search_tools", "arguments": {"query": "x"}}, []),
        ("call_tool", {"name": "batch_tools", "arguments": {"calls": [{"name": "a"}]}}, ["a"]),
        ("batch_tools", {"calls": [{"name": "a"}, {"name": "read_result"}, {"name": "b"}]}, ["a", "b"]),
        ("batch_tools", {"calls": '[{"name": "a"}]'}, ["a"]),
        ("batch_tools", {"calls": "a"}, []),
        ("search_tools", {"query": "x"}, []),
        ("read_result", {}, []),
        ("load_skill", {"name": "x"}, []),
    ],
)
def test_a_call_calls_itself_or_what_one_of_our_own_calls_for_it(name, arguments, expected):
    assert OWN.called(name, arguments) == expected


@given(st.sampled_from(["call_tool", "batch_tools"]), JSON)
@settings(deadline=None, max_examples=often(60))
def test_nothing_is_called_that_was_not_foretold(name, arguments):
    desk = Office()
    run(desk.call(name, arguments))
    assert len(desk.called) <= len(OWN.called(name, arguments))
