"""The fakes themselves: what they remember, and that they do as they are told."""

from __future__ import annotations

import asyncio

import pytest

from pegboard.errors import ConnectionLost, StartFailed
from pegboard.testing import FakeSource, text_result, tool_definition
from pegboard.types import CallContext, Json


def call(source: FakeSource, tool: str, **arguments: object) -> Json:
    return asyncio.run(source.call_tool(tool, arguments, CallContext()))


def test_it_lists_what_it_was_given_and_what_is_added_later():
    fuller = tool_definition("b", "Does b.", annotations={"readOnlyHint": True})
    source = FakeSource("s", ["a", fuller], ttl_ms=5, cache_scope="private", instructions="Hm.", server_version="3")
    listing = asyncio.run(source.list_tools())
    assert list(listing.tools) == [tool_definition("a"), fuller]
    assert (listing.ttl_ms, listing.cache_scope, listing.instructions) == (5, "private", "Hm.")
    assert (listing.server_name, listing.server_version) == ("s", "3")
    source.tools.append(tool_definition("c"))
    assert len(asyncio.run(source.list_tools()).tools) == 3
    assert len(listing.tools) == 2
    assert source.listings == 2


def test_it_remembers_every_call():
    source = FakeSource("s", ["a"])
    assert call(source, "a", x=1) == text_result("a")
    assert call(source, "a", x=2) == text_result("a")
    assert source.calls == [("a", {"x": 1}), ("a", {"x": 2})]


def test_a_result_may_be_a_value_an_error_or_a_function_that_waits_or_not():
    async def later(arguments: Json, _context: CallContext) -> Json:
        await asyncio.sleep(0)
        return text_result(str(arguments))

    lost = ConnectionLost("s", "gone")
    source = FakeSource(
        "s",
        ["value", "error", "now", "later"],
        results={"value": {"content": [], "x": 1}, "error": lost, "now": lambda a, _: a, "later": later},
    )
    assert call(source, "value") == {"content": [], "x": 1}
    assert call(source, "now", a=1) == {"a": 1}
    assert call(source, "later", a=1) == text_result("{'a': 1}")
    with pytest.raises(ConnectionLost, match="s: gone"):
        call(source, "error")


def test_listing_fails_when_told_to():
    source = FakeSource("s", ["a"])
    source.listing_error = StartFailed("s", "no such command")
    with pytest.raises(StartFailed):
        asyncio.run(source.list_tools())
    source.listing_error = None
    assert len(asyncio.run(source.list_tools()).tools) == 1
