"""The gateway to the official client: the same behaviour on stdio and HTTP, in both eras. Each is a real process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters

from pegboard.types import Json, Progress
from pegboard.wire.messages import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from tests.contract.test_wire_interop import Conversation
from tests.contract.wire_links import PATIENCE, Refused, SdkLink, sdk_link
from tests.servers import gateway_command, gateway_http
from tests.servers.gateway_server import TOOLS

VERSIONS = {"handshake": "2025-11-25", "stateless": "2026-07-28"}
ROADS = [(transport, era) for transport in ("stdio", "http") for era in VERSIONS]
fresh = count()


@asynccontextmanager
async def linked(transport: str, era: str, *arguments: str) -> AsyncIterator[SdkLink]:
    """The official client at the gateway."""
    mode = "legacy" if era == "handshake" else "auto"
    if transport == "stdio":
        command, *rest = gateway_command(*arguments)
        async with sdk_link(StdioServerParameters(command=command, args=rest, env=dict(os.environ)), mode) as link:
            yield link
    else:
        with gateway_http(*arguments) as url:
            async with sdk_link(url, mode) as link:
                yield link


@pytest.fixture(scope="module", params=ROADS, ids="-".join)
def talk(request: pytest.FixtureRequest) -> Iterator[Conversation]:
    with asyncio.Runner() as runner:
        conversation = Conversation(runner, linked(*request.param))
        assert conversation.link.version == VERSIONS[request.param[1]]
        yield conversation
        conversation.close()


def sdk(talk: Conversation) -> Client:
    assert isinstance(talk.link, SdkLink)
    return talk.link.client


def test_it_says_who_it_is(talk: Conversation) -> None:
    name, _, instructions = talk.link.about
    assert (name, instructions) == ("pegboard", "Search first.")


def test_it_advertises_that_it_tells_of_changes(talk: Conversation) -> None:
    capabilities = sdk(talk).server_capabilities
    assert capabilities is not None
    assert capabilities.tools is not None
    assert capabilities.tools.list_changed is True


def test_the_list_comes_in_the_desks_order_and_in_one_page(talk: Conversation) -> None:
    [page] = talk.run(talk.link.pages())
    assert page[: len(TOOLS)] == list(TOOLS)


@pytest.mark.parametrize("text", ["hello", "", "line\nbreak \r\n\t\0", "\N{GRINNING FACE} é \u2028", "x" * 200_000])
def test_a_call_is_answered_with_what_was_sent(talk: Conversation, text: str) -> None:
    assert talk.call("echo", {"text": text}) == {"text": text, "isError": False}


def test_many_calls_at_once_are_each_answered(talk: Conversation) -> None:
    async def all_at_once() -> list[Json]:
        return await asyncio.gather(*(talk.link.call("echo", {"text": str(each)}) for each in range(50)))

    assert [result["text"] for result in talk.run(all_at_once())] == [str(each) for each in range(50)]


def test_a_tool_that_fails_says_so_in_its_result(talk: Conversation) -> None:
    assert talk.call("fail") == {"text": "it broke", "isError": True}


def test_a_refusal_says_what_happened_and_what_to_do(talk: Conversation) -> None:
    with pytest.raises(Refused) as caught:
        talk.call("refuse")
    assert (caught.value.code, caught.value.message) == (INVALID_PARAMS, "Not today. Come back tomorrow.")


def test_a_fault_of_our_own_is_an_answer_that_tells_no_secrets(talk: Conversation) -> None:
    with pytest.raises(Refused) as caught:
        talk.call("boom")
    assert caught.value.code == INTERNAL_ERROR
    assert "42" not in caught.value.message
    assert talk.call("echo", {"text": "still there"})["text"] == "still there"


def test_progress_arrives_in_order(talk: Conversation) -> None:
    heard: list[Progress] = []
    assert talk.call("count", hear=heard.append)["text"] == "counted"
    assert heard == [Progress(done, 3, f"step {done}") for done in (1, 2, 3)]


def test_cancelling_a_call_cancels_the_work_behind_it(talk: Conversation) -> None:
    async def cancel() -> str:
        began = asyncio.Event()
        call = asyncio.ensure_future(talk.link.call("wait", {}, hear=lambda _: began.set()))
        await began.wait()
        call.cancel()
        await asyncio.wait({call})
        return str((await talk.link.call("cancelled", {}))["text"])

    assert talk.run(cancel()) == "yes"


def accept(name: str) -> Callable[[Json], Json]:
    return lambda _: {"action": "accept", "content": {"name": name}}


def test_a_question_reaches_the_client_and_its_answer_the_tool(talk: Conversation) -> None:
    assert talk.call("ask", reply=accept("Ada"))["text"] == "hello Ada"


def test_a_declined_question_is_an_answer_too(talk: Conversation) -> None:
    assert talk.call("ask", reply=lambda _: {"action": "decline"})["text"] == "never mind"


def test_one_call_may_ask_more_than_once(talk: Conversation) -> None:
    names = iter(["Ada", "Grace"])
    reply = lambda _: {"action": "accept", "content": {"name": next(names)}}  # noqa: E731
    assert talk.call("ask_twice", reply=reply)["text"] == "Ada Grace"


def test_a_question_that_the_client_never_said_it_could_answer_is_not_put(talk: Conversation) -> None:
    result = talk.call("sample")
    assert result["isError"]
    assert "cannot be asked" in result["text"]


def test_a_list_that_grows_is_announced_and_then_shown(talk: Conversation) -> None:
    name = f"grown_{next(fresh)}"

    async def grow() -> list[list[str]]:
        async with talk.link.listening() as changed:
            await talk.link.pages()
            await talk.link.call("grow", {"name": name})
            await changed()
            return await talk.link.pages()

    assert name in talk.run(grow())[0]


def test_what_a_conversation_loads_is_listed_only_where_the_era_allows_it(talk: Conversation) -> None:
    name = f"loaded_{next(fresh)}"

    async def load() -> list[list[str]]:
        await talk.link.pages()
        await talk.link.call("load", {"name": name})
        return await talk.link.pages()

    [page] = talk.run(load())
    assert (name in page) is (talk.link.version != "2026-07-28")


def test_the_conversation_is_named_by_the_client_and_not_by_the_connection(talk: Conversation) -> None:
    identity, conversation, allow = talk.call("whoami")["text"].split("|")
    assert (identity, allow) == ("", "")
    assert conversation in ("theirs", "theirs@/somewhere")


def test_an_unknown_tool_is_refused_with_words(talk: Conversation) -> None:
    with pytest.raises(Refused) as caught:
        talk.call("no_such_tool")
    assert caught.value.code == INVALID_PARAMS
    assert "no_such_tool" in caught.value.message


def test_an_unknown_method_is_refused(talk: Conversation) -> None:
    async def ask() -> None:
        await sdk(talk).session.send_request(
            types.ListPromptsRequest(params=types.PaginatedRequestParams()), types.ListPromptsResult
        )

    with pytest.raises(MCPError) as caught:
        talk.run(ask())
    assert caught.value.code == METHOD_NOT_FOUND


def test_the_rest_of_a_requests_meta_reaches_the_desk(talk: Conversation) -> None:
    async def call() -> Any:
        meta: Any = {"example.com/trace": "1"}
        return await sdk(talk).call_tool("meta", {}, meta=meta)

    text = talk.run(call()).content[0].text
    assert text == "['example.com/trace']"


@pytest.mark.parametrize(("transport", "era"), ROADS)
def test_a_flag_names_the_conversation(transport: str, era: str) -> None:
    async def ask() -> str:
        async with asyncio.timeout(PATIENCE), linked(transport, era, "--conversation", "mine") as link:
            return str((await link.call("whoami", {}))["text"])

    assert asyncio.run(ask()) == "|mine|"
