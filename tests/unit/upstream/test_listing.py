"""Listing all tools of a server: pages, caps, and what is odd about them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from pegboard.errors import CallTimeout, LimitExceeded, ProtocolViolation, RemoteError
from pegboard.types import Json, Listing
from pegboard.upstream.connection import Connection
from pegboard.upstream.listing import LONGEST_INSTRUCTIONS, MOST_MS, list_all
from pegboard.upstream.server import Limits
from tests.scripted import DISCOVERED, HELLO, Script, ScriptedLink, answer, refusal, run_jumping

LIMITS = Limits(
    start_timeout=30, call_timeout=10, idle_timeout=60, max_result_bytes=1 << 20, max_pages=100, max_tools=1000
)


def tool(name: str, **more: Any) -> Json:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def pages(*results: Any, hello: Json = HELLO) -> Script:
    """Answers tools/list with these, one after another; the last one again and again."""
    left = list(results)

    def script(_link: ScriptedLink, message: Json) -> Iterable[Json]:
        if message.get("method") == "tools/list":
            return [answer(message, left.pop(0) if len(left) > 1 else left[0])]
        return [answer(message, hello)] if message.get("method") == "initialize" else ()

    return script


def listed(script: Script, *, era: str = "handshake", **limits: Any) -> Listing:
    async def scenario() -> Listing:
        connection = Connection("s", ScriptedLink(script, era=era), on_tools_changed=lambda: None)
        await connection.open("")
        return await list_all("s", connection, msgspec.structs.replace(LIMITS, **limits))

    return run_jumping(scenario())


def names(listing: Listing) -> list[Any]:
    return [each.get("name") for each in listing.tools]


def test_every_page_is_read_in_order_with_the_cursor_the_server_gave():
    cursors: list[Any] = []

    def script(_link: ScriptedLink, message: Json) -> Iterable[Json]:
        if message.get("method") != "tools/list":
            return ()
        cursors.append(message.get("params", {}).get("cursor"))
        number = len(cursors)
        more = {"nextCursor": f"after {number}"} if number < 3 else {}
        return [answer(message, {"tools": [tool(f"t{number}")], **more})]

    listing = listed(script)
    assert names(listing) == ["t1", "t2", "t3"]
    assert cursors == [None, "after 1", "after 2"]
    assert listing.warnings == ()


def test_definitions_come_through_as_they_were_sent():
    odd = tool("t", title="T", _meta={"a/b": [1, None]}, annotations={"readOnlyHint": True}, unheardOf={"x": "é"})
    assert listed(pages({"tools": [odd]})).tools == (odd,)


def test_what_the_server_says_of_itself_is_kept_within_bounds():
    hello = {**HELLO, "serverInfo": {"name": "n" * 9999, "version": "v" * 9999}, "instructions": "i" * 99999}
    listing = listed(pages({"tools": []}, hello=hello))
    assert (len(listing.server_name), len(listing.server_version)) == (256, 256)
    assert len(listing.instructions) == LONGEST_INSTRUCTIONS
    assert listing.protocol_version == "2025-11-25"


def test_endless_pages_are_cut_with_a_warning():
    counter = iter(range(10**9))

    def script(_link: ScriptedLink, message: Json) -> Iterable[Json]:
        number = next(counter)
        page = {"tools": [tool(f"t{number}")], "nextCursor": str(number)}
        return [answer(message, page)] if message.get("method") == "tools/list" else ()

    listing = listed(script, max_pages=7)
    assert len(listing.tools) == 7
    assert "only the first 7 pages" in listing.warnings[0]


def test_more_tools_than_allowed_are_cut_with_a_warning():
    listing = listed(pages({"tools": [tool(str(number)) for number in range(5000)]}), max_tools=1000)
    assert len(listing.tools) == 1000
    assert "only the first 1000 tools" in listing.warnings[0]


def test_pages_that_together_are_too_large_are_refused():
    counter = iter(range(10**9))

    def script(_link: ScriptedLink, message: Json) -> Iterable[Json]:
        page = {"tools": [tool("t", description="x" * 900)], "nextCursor": str(next(counter))}
        return [answer(message, page)] if message.get("method") == "tools/list" else ()

    with pytest.raises(LimitExceeded, match="s: its list of tools is larger"):
        listed(script, max_result_bytes=1024)


def test_pages_that_never_come_to_an_end_in_time_are_given_up():
    async def scenario() -> float:
        counter = iter(range(10**9))

        def slow(link: ScriptedLink, message: Json) -> Iterable[Json]:
            if message.get("method") != "tools/list":
                return ()
            page = {"tools": [], "nextCursor": str(next(counter))}
            asyncio.get_running_loop().call_later(9, link.say, answer(message, page))
            return [{}]

        connection = Connection("s", ScriptedLink(slow), on_tools_changed=lambda: None)
        await connection.open("")
        with pytest.raises(CallTimeout):
            await list_all("s", connection, LIMITS)
        return asyncio.get_running_loop().time()

    assert run_jumping(scenario()) == pytest.approx(40)


def test_entries_that_are_no_tools_are_left_out_with_a_warning():
    listing = listed(pages({"tools": [tool("a"), "b", None, 3, [], tool("c")]}))
    assert names(listing) == ["a", "c"]
    assert listing.warnings == ("4 entries of its list are not tools",)


@pytest.mark.parametrize("result", [{}, {"tools": {}}, {"tools": None}, {"tools": "x"}, {"Tools": []}])
def test_an_answer_without_a_list_is_a_violation_and_not_an_empty_list(result: Json):
    with pytest.raises(ProtocolViolation, match="s: its answer to tools/list has no list of tools"):
        listed(pages(result))


def test_a_second_page_without_a_list_ends_the_list_with_a_warning():
    listing = listed(pages({"tools": [tool("a")], "nextCursor": "1"}, {"tools": 3}))
    assert names(listing) == ["a"]
    assert "page 2 has no list" in listing.warnings[0]


def refuses(hello: Json) -> Script:
    def script(_link: ScriptedLink, message: Json) -> Iterable[Json]:
        if message.get("method") == "tools/list":
            return [refusal(message)]
        return [answer(message, hello)] if message.get("method") == "initialize" else ()

    return script


def test_a_server_that_never_spoke_of_tools_has_none():
    listing = listed(refuses({**HELLO, "capabilities": {"prompts": {}}}))
    assert (listing.tools, listing.warnings) == ((), ("it has no tools",))


def test_a_server_that_claims_tools_and_cannot_list_them_is_an_error():
    with pytest.raises(RemoteError, match="Method not found"):
        listed(refuses(HELLO))


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        ({}, (None, "public")),
        ({"ttlMs": 5000, "cacheScope": "private"}, (5000, "private")),
        ({"ttlMs": -3, "cacheScope": "public"}, (0, "public")),
        ({"ttlMs": 1e300, "cacheScope": "nonsense"}, (MOST_MS, "public")),
        ({"ttlMs": 2.9}, (2, "public")),
        ({"ttlMs": "soon", "cacheScope": None}, (None, "public")),
        ({"ttlMs": True}, (None, "public")),
    ],
)
def test_cache_hints_are_read_with_sense(hints: Json, expected: tuple[Any, str]):
    listing = listed(pages({"tools": [], **hints}))
    assert (listing.ttl_ms, listing.cache_scope) == expected


def test_cache_hints_are_those_of_the_first_page():
    listing = listed(pages({"tools": [], "nextCursor": "1", "cacheScope": "private"}, {"tools": [], "ttlMs": 9}))
    assert (listing.ttl_ms, listing.cache_scope) == (None, "private")


def test_a_long_list_is_decoded_in_turns_with_everybody_else():
    async def scenario() -> None:
        connection = Connection(
            "s",
            ScriptedLink(pages({"tools": [tool(str(number)) for number in range(900)]}), era="stateless"),
            on_tools_changed=lambda: None,
        )
        await connection.open("")
        turns = 0
        listing = asyncio.ensure_future(list_all("s", connection, LIMITS))
        while not listing.done():
            turns += 1
            await asyncio.sleep(0)
        assert len(listing.result().tools) == 900
        assert listing.result().server_name == DISCOVERED["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]
        assert turns >= 4

    run_jumping(scenario())
