"""`wire/` speaks with the official SDK: both roles, both eras, over memory, stdio and HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from itertools import count
from typing import Any, TypeVar

import pytest
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_loop

from pegboard.types import Json, Progress
from pegboard.wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION
from tests.contract.wire_client import OurLink, both_eras, memory_road, ours_to_sdk
from tests.contract.wire_links import PATIENCE, Link, Refused, SdkLink, Transport, sdk_to_ours

T = TypeVar("T")
VERSIONS = {"handshake": "2025-11-25", "stateless": "2026-07-28"}
TOOLS = ["echo", "fail", "refuse", "count", "wait", "cancelled", "ask", "grow", "whoami", "route"]
ROADS = [
    (role, transport, era)
    for role in ("ours-to-sdk", "sdk-to-ours")
    for transport in ("memory", "stdio", "http")
    for era in VERSIONS
]
fresh = count()


async def within(work: Coroutine[Any, Any, T]) -> T:
    async with asyncio.timeout(PATIENCE):
        return await work


class Conversation:
    """A link that stays open from test to test, on an event loop that only runs while one of them does."""

    def __init__(self, runner: asyncio.Runner, opened: AbstractAsyncContextManager[Link]) -> None:
        self._runner = runner
        self._over = asyncio.Event()
        self._ready: asyncio.Future[Link] = runner.get_loop().create_future()
        self._holder = runner.get_loop().create_task(self._hold(opened))
        self.link = self.run(self._opened())

    async def _hold(self, opened: AbstractAsyncContextManager[Link]) -> None:
        async with opened as link:
            self._ready.set_result(link)
            await self._over.wait()

    async def _opened(self) -> Link:
        await asyncio.wait((self._holder, self._ready), return_when=asyncio.FIRST_COMPLETED)
        if self._holder.done():
            self._holder.result()  # raises why there is no link
        return self._ready.result()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(within(work))

    def call(self, name: str, arguments: Json | None = None, **more: Any) -> Json:
        return self.run(self.link.call(name, arguments or {}, **more))

    async def _closed(self) -> None:
        self._over.set()
        await self._holder

    def close(self) -> None:
        self.run(self._closed())


@pytest.fixture(scope="module", params=ROADS, ids="-".join)
def talk(request: pytest.FixtureRequest) -> Iterator[Conversation]:
    role, transport, era = request.param
    if role == "ours-to-sdk":
        opened: AbstractAsyncContextManager[Link] = ours_to_sdk(transport, VERSIONS[era] if era == "handshake" else "")
    else:
        opened = sdk_to_ours(transport, "legacy" if era == "handshake" else "auto")
    with asyncio.Runner() as runner:
        conversation = Conversation(runner, opened)
        assert conversation.link.version == VERSIONS[era]
        yield conversation
        conversation.close()


def test_the_server_says_who_it_is(talk: Conversation) -> None:
    assert talk.link.about == ("wire", "1.0", "Read the tools.")


def test_a_list_in_pages_is_read_to_its_end(talk: Conversation) -> None:
    pages = talk.run(talk.link.pages())
    assert len(pages) > 1
    names = [name for page in pages for name in page]
    assert names[: len(TOOLS)] == TOOLS
    assert len(names) == len(set(names))


@pytest.mark.parametrize("text", ["hello", "", "line\nbreak \r\n\t\0", "\N{GRINNING FACE} é \u2028", "x" * 200_000])
def test_a_call_is_answered_with_what_was_sent(talk: Conversation, text: str) -> None:
    assert talk.call("echo", {"text": text}) == {"text": text, "isError": False}


def test_many_calls_at_once_are_each_answered(talk: Conversation) -> None:
    async def all_at_once() -> list[Json]:
        return await asyncio.gather(*(talk.link.call("echo", {"text": str(each)}) for each in range(30)))

    assert [result["text"] for result in talk.run(all_at_once())] == [str(each) for each in range(30)]


def test_a_tool_that_fails_says_so_in_its_result(talk: Conversation) -> None:
    assert talk.call("fail") == {"text": "it broke", "isError": True}


def test_a_refusal_arrives_with_code_message_and_data(talk: Conversation) -> None:
    with pytest.raises(Refused) as caught:
        talk.call("refuse")
    assert (caught.value.code, caught.value.message, caught.value.data) == (-31000, "not today", {"why": "closed"})


def test_an_unknown_tool_is_refused(talk: Conversation) -> None:
    with pytest.raises(Refused, match="Unknown tool: nothing") as caught:
        talk.call("nothing")
    assert caught.value.code == INVALID_PARAMS


def test_the_server_knows_who_asks_in_which_version_and_what_it_can_do(talk: Conversation) -> None:
    name = "ours" if isinstance(talk.link, OurLink) else "theirs"
    assert talk.call("whoami")["text"] == f"{name} {talk.link.version} elicitation"


def test_progress_is_heard_in_order_before_the_result(talk: Conversation) -> None:
    heard: list[Progress] = []
    assert talk.call("count", hear=heard.append)["text"] == "counted"
    assert heard == [Progress(done, 3, f"step {done}") for done in (1, 2, 3)]


def test_a_call_that_is_cancelled_is_stopped_on_the_other_side(talk: Conversation) -> None:
    async def scenario() -> str:
        started = asyncio.Event()
        waiting = asyncio.ensure_future(talk.link.call("wait", {}, hear=lambda _: started.set()))
        await started.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return str((await talk.link.call("cancelled", {}))["text"])

    assert talk.run(scenario()) == "yes"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [({"action": "accept", "content": {"name": "Ada"}}, "hello Ada"), ({"action": "decline"}, "never mind")],
)
def test_a_question_during_a_call_is_put_and_answered(talk: Conversation, reply: Json, answer: str) -> None:
    asked: list[Json] = []

    def answered(params: Json) -> Json:
        asked.append(params)
        return reply

    assert talk.call("ask", reply=answered)["text"] == answer
    [question] = asked
    assert question["message"] == "Who are you?"
    assert question["requestedSchema"]["required"] == ["name"]


def test_a_change_of_the_list_is_heard_and_seen(talk: Conversation) -> None:
    name = f"new_{next(fresh)}"

    async def scenario() -> list[list[str]]:
        async with talk.link.listening() as changed:
            await talk.link.call("grow", {"name": name})
            await changed()
            return await talk.link.pages()

    assert name in [each for page in talk.run(scenario()) for each in page]


@pytest.mark.parametrize("region", ["eu-west", "Zürich", " padded ", "=?base64?x?=", ""])
def test_arguments_that_are_mirrored_into_headers_pass_the_check(talk: Conversation, region: str) -> None:
    talk.run(talk.link.pages())  # on HTTP a client must have seen the schema to know what to mirror
    assert talk.call("route", {"region": region})["text"] == f"routed to {region}"


# ── which version is agreed on ───────────────────────────────────────────────────────────────────────────────────

LEGACY, MODERN = VERSIONS["handshake"], VERSIONS["stateless"]


async def only_handshake(server: Server[Any], read: Any, write: Any) -> None:
    await serve_loop(server, read, write, lifespan_state={})


@pytest.mark.parametrize(
    ("serve", "known", "agreed"),
    [
        (both_eras, "", MODERN),
        (both_eras, MODERN, MODERN),
        (both_eras, LEGACY, LEGACY),
        (both_eras, "2024-11-05", LEGACY),
        (only_handshake, "", LEGACY),
        (only_handshake, MODERN, LEGACY),
        (only_handshake, LEGACY, LEGACY),
    ],
)
def test_our_client_finds_a_version_with_every_server(serve: Any, known: str, agreed: str) -> None:
    async def scenario() -> tuple[str, str]:
        async with memory_road(serve) as link:
            await link.agree(known)
            return link.version, (await link.call("echo", {"text": "hi"}))["text"]

    assert asyncio.run(within(scenario())) == (agreed, "hi")


def test_our_client_follows_a_server_that_no_longer_shakes_hands() -> None:
    """The SDK's server speaks one era per connection; once that is the stateless one, it refuses `initialize`."""

    async def scenario() -> str:
        async with memory_road() as link:
            await link.request("tools/list", {}, version=MODERN)
            await link.agree(LEGACY)
            return link.version

    assert asyncio.run(within(scenario())) == MODERN


@pytest.mark.parametrize("transport", ["memory", "stdio", "http"])
@pytest.mark.parametrize(
    ("mode", "era", "agreed"),
    [
        ("auto", "both", MODERN),
        ("auto", "handshake", LEGACY),
        ("auto", "stateless", MODERN),
        ("legacy", "both", LEGACY),
        ("legacy", "handshake", LEGACY),
        (MODERN, "both", MODERN),
        (MODERN, "stateless", MODERN),
    ],
)
def test_the_official_client_finds_a_version_with_our_server(
    transport: Transport, mode: str, era: str, agreed: str
) -> None:
    async def scenario() -> tuple[str, str]:
        async with sdk_to_ours(transport, mode, era) as link:
            return link.version, (await link.call("echo", {"text": "hi"}))["text"]

    assert asyncio.run(within(scenario())) == (agreed, "hi")


@pytest.mark.parametrize("transport", ["memory", "stdio", "http"])
def test_a_client_of_the_other_era_is_told_what_our_server_speaks(transport: Transport) -> None:
    async def scenario() -> None:
        async with sdk_to_ours(transport, "legacy", "stateless"):
            raise AssertionError("they cannot have agreed")

    with pytest.raises((MCPError, BaseExceptionGroup)) as caught:  # the SDK wraps it in groups, by transport
        asyncio.run(within(scenario()))
    assert UNSUPPORTED_VERSION in codes_in(caught.value)


def codes_in(error: BaseException) -> list[int]:
    if isinstance(error, BaseExceptionGroup):
        return [code for each in error.exceptions for code in codes_in(each)]
    return [getattr(error, "code", 0)]


@pytest.mark.parametrize("transport", ["memory", "stdio", "http"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_method_that_our_server_does_not_have_is_refused_by_its_code(transport: Transport, mode: str) -> None:
    async def scenario() -> int:
        async with sdk_to_ours(transport, mode) as link:
            return await refused_prompts(link)

    assert asyncio.run(within(scenario())) == METHOD_NOT_FOUND


async def refused_prompts(link: SdkLink) -> int:
    try:
        await link.client.list_prompts()
    except MCPError as error:
        return error.code
    raise AssertionError("there are no prompts")
