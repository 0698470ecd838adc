"""`FakeLLM` searches for itself on the Messages API: what it finds, how that is streamed, counted and gone on with."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest

from pegboard.testing import FakeLLM, Move, Search
from pegboard.testing.llm.tool_search import result_block
from tests.loops import in_a_loop

BM25: Any = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
REGEX: Any = {"type": "tool_search_tool_regex", "name": "tool_search_tool_regex"}
ASK: Any = {"model": "claude-opus-5", "max_tokens": 99}
GO: Any = {"role": "user", "content": "go"}


def tool(name: str, description: str = "", *, deferred: bool = True, **arguments: str) -> Any:
    properties = {key: {"type": "string", "description": said} for key, said in arguments.items()}
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": description, "input_schema": schema, "defer_loading": deferred}


READ = tool("read", "Reads a file", deferred=False)
ISSUE = tool("gh_create_issue", "Opens a ticket", title="What it is about")
TOOLS = [
    READ,
    ISSUE,
    tool("listInvoices", "All bills of a month"),
    tool("convert", "Units", from_unit="A unit, kelvin"),
]


def names(block: Any) -> list[str]:
    return [each.tool_name for each in block.content.tool_references]


def assistant(message: Any) -> Any:
    return {"role": "assistant", "content": message.content}


def answered(message: Any) -> Any:
    calls = [block.id for block in message.content if block.type == "tool_use"]
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": each, "content": "ok"} for each in calls],
    }


async def whole(client: anthropic.AsyncAnthropic, streams: bool, **asked: Any) -> Any:
    if not streams:
        return await client.messages.create(**ASK, **asked)
    async with client.messages.stream(**ASK, **asked) as stream:
        return await stream.get_final_message()


@pytest.mark.parametrize("streams", [False, True])
@in_a_loop
async def test_a_search_finds_refers_and_goes_on_and_the_tool_stays_in_sight(streams: bool) -> None:
    move = Move(
        searches=("create github issue", "weather"), text="Found.", calls=(("gh_create_issue", {"title": "x"}),)
    )
    fake = FakeLLM([move, lambda shown: Move(text=" ".join(shown.names))])
    client = anthropic.AsyncAnthropic(**fake.options())
    tools = [BM25, *TOOLS]
    message = await whole(client, streams, tools=tools, messages=[GO])
    kinds = [block.type for block in message.content]
    pair = ["server_tool_use", "tool_search_tool_result"]
    assert kinds == [*pair, *pair, "text", "tool_use"]
    search, found, _, nothing, *_ = message.content
    assert search.id.startswith("srvtoolu_")
    assert (search.name, search.input) == ("tool_search_tool_bm25", {"query": "create github issue"})
    assert found.tool_use_id == search.id
    assert names(found) == ["gh_create_issue"]
    assert names(nothing) == []
    assert message.stop_reason == "tool_use"
    history = [GO, assistant(message), answered(message)]
    after = await whole(client, streams, tools=tools, messages=history)
    assert after.content[0].text == "tool_search_tool_bm25 read gh_create_issue"
    with pytest.raises(anthropic.BadRequestError, match="'gh_create_issue' not found in available tools"):
        await whole(client, streams, tools=[BM25, READ], messages=history)


@pytest.mark.parametrize(
    ("search", "given", "found"),
    [
        (BM25, {"query": "a ticket about"}, ["gh_create_issue", "listInvoices", "convert"]),
        (BM25, {"query": "kelvin"}, ["convert"]),
        (BM25, {"query": "from unit"}, ["convert"]),
        (BM25, {"query": "invoices of a month", "limit": 1}, ["listInvoices"]),
        (BM25, {"query": "weather in Ulm"}, []),
        (BM25, {"query": "file"}, []),
        (REGEX, {"pattern": "^GH_.*issue"}, ["gh_create_issue"]),
        (REGEX, {"pattern": "kelvin|bills"}, ["listInvoices", "convert"]),
        (REGEX, {"pattern": "."}, ["gh_create_issue", "listInvoices", "convert"]),
        (REGEX, {"pattern": ".", "limit": 2}, ["gh_create_issue", "listInvoices"]),
    ],
)
def test_a_search_looks_at_names_descriptions_and_arguments_of_what_is_deferred(
    search: Any, given: Any, found: list[str]
) -> None:
    content = result_block({"id": "1", "name": search["name"], "input": given}, [search, *TOOLS])["content"]
    assert [each["tool_name"] for each in content["tool_references"]] == found


def test_a_search_finds_five_unless_it_says_how_many() -> None:
    many = [tool(f"send_{number}") for number in range(20)]
    for given, count in (({"query": "send"}, 5), ({"pattern": "send"}, 5), ({"query": "send", "limit": 12}, 12)):
        assert len(result_block({"id": "1", "input": given}, many)["content"]["tool_references"]) == count


@pytest.mark.parametrize("given", [{"query": "x" * 501}, {"query": ""}, {"pattern": "x" * 201}, {"pattern": "("},
                                   {"query": "x", "limit": 0}, {"query": "x", "limit": 10_001}])  # fmt: skip
def test_a_search_that_cannot_be_made_is_an_error_in_its_result(given: Any) -> None:
    assert result_block({"id": "1", "input": given}, TOOLS)["content"]["error_code"] == "invalid_tool_input"


@in_a_loop
async def test_a_search_fails_where_the_script_says_so_and_that_may_be_sent_back() -> None:
    failing = Search("x" * 600, error="unavailable")
    fake = FakeLLM([Move(searches=(failing, Search("issue", limit=3)), text="Sorry."), Move(text="ok")])
    client = anthropic.AsyncAnthropic(**fake.options())
    message: Any = await client.messages.create(tools=[BM25, *TOOLS], messages=[GO], **ASK)
    assert message.content[1].content.type == "tool_search_tool_result_error"
    assert message.content[1].content.error_code == "unavailable"
    assert message.content[2].input == {"query": "issue", "limit": 3}
    await client.messages.create(tools=[BM25, *TOOLS], messages=[GO, assistant(message), GO], **ASK)


@in_a_loop
async def test_by_pattern_where_that_is_the_search_that_the_request_has() -> None:
    fake = FakeLLM([Move(searches=("^list",))])
    client = anthropic.AsyncAnthropic(**fake.options())
    message: Any = await client.messages.create(tools=[*TOOLS, REGEX], messages=[GO], **ASK)
    assert (message.content[0].name, message.content[0].input) == ("tool_search_tool_regex", {"pattern": "^list"})
    assert names(message.content[1]) == ["listInvoices"]


@pytest.mark.parametrize("streams", [False, True])
@in_a_loop
async def test_the_reply_after_an_unfinished_search_begins_with_its_result(streams: bool) -> None:
    begun = Move(text="Both.", unfinished_search="issue", calls=(("read", {}),))
    fake = FakeLLM([begun, lambda shown: Move(text="gh_create_issue" if "gh_create_issue" in shown.names else "")])
    client = anthropic.AsyncAnthropic(**fake.options())
    tools = [BM25, *TOOLS]
    message = await whole(client, streams, tools=tools, messages=[GO])
    assert [block.type for block in message.content] == ["text", "server_tool_use", "tool_use"]
    assert message.stop_reason == "tool_use"
    history = [GO, assistant(message), answered(message)]
    with pytest.raises(anthropic.BadRequestError, match="but no `tool_search_tool_bm25` tool was provided"):
        await whole(client, streams, tools=TOOLS, messages=history)
    late = {"role": "user", "content": [*answered(message)["content"], {"type": "text", "text": "and?"}]}
    with pytest.raises(anthropic.BadRequestError, match="without a corresponding `tool_search_tool_result` block"):
        await whole(client, streams, tools=tools, messages=[*history[:2], late])
    after = await whole(client, streams, tools=tools, messages=history)
    assert [block.type for block in after.content] == ["tool_search_tool_result", "text"]
    assert after.content[0].tool_use_id == message.content[1].id
    assert names(after.content[0]) == ["gh_create_issue"]
    assert after.content[1].text == "gh_create_issue"
    await whole(client, streams, tools=tools, messages=[*history, assistant(after), GO])


@in_a_loop
async def test_a_search_comes_in_the_order_of_events_that_is_documented() -> None:
    fake = FakeLLM([Move(thinking="Hm, hm.", searches=("issue",), calls=(("gh_create_issue", {}),))])
    client = anthropic.AsyncAnthropic(**fake.options())
    stream = await client.messages.create(tools=[BM25, *TOOLS], messages=[GO], stream=True, **ASK)
    events: list[Any] = [event async for event in stream]
    assert [_short(event) for event in events if event.type != "ping"] == [
        "message_start",
        *(
            "0 start thinking",
            "0 thinking_delta",
            "0 thinking_delta",
            "0 thinking_delta",
            "0 signature_delta",
            "0 stop",
        ),
        *("1 start server_tool_use", *["1 input_json_delta"] * 3, "1 stop"),
        *("2 start tool_search_tool_result", "2 stop"),
        *("3 start tool_use", "3 input_json_delta", "3 input_json_delta", "3 stop"),
        *("message_delta", "message_stop"),
    ]
    begun = {event.index: event.content_block for event in events if event.type == "content_block_start"}
    assert begun[1].input == {}
    assert names(begun[2]) == ["gh_create_issue"]
    raw = fake.respond("/v1/messages", {}, _raw(stream=True)).pieces
    assert raw.count(b'event: ping\ndata: {"type":"ping"}\n\n') == 1
    usage, last = events[0].message.usage, events[-2].usage
    assert last.input_tokens > usage.input_tokens  # what was found is read too
    assert last.output_tokens > usage.output_tokens
    assert last.cache_read_input_tokens == last.cache_creation_input_tokens == 0


def _short(event: Any) -> str:
    if event.type == "content_block_start":
        return f"{event.index} start {event.content_block.type}"
    if event.type == "content_block_delta":
        return f"{event.index} {event.delta.type}"
    return f"{event.index} stop" if event.type == "content_block_stop" else str(event.type)


def _raw(**changes: Any) -> bytes:
    return json.dumps({**ASK, "messages": [GO], **changes}).encode()


def test_pings_come_at_the_beginning_and_while_the_api_searches() -> None:
    fake = FakeLLM([Move(searches=("issue", "units"))])
    answer = fake.respond("/v1/messages", {}, _raw(stream=True, tools=[BM25, *TOOLS]))
    assert [piece.split(b"\n")[0] for piece in answer.pieces].count(b"event: ping") == 3


@in_a_loop
async def test_a_script_that_searches_where_nothing_can_fails_and_is_not_tried_again() -> None:
    move = Move(searches=("issue",))
    fake = FakeLLM([move, Move(unfinished_search="issue"), move, move, Move(text="never said")])
    claude = anthropic.AsyncAnthropic(**{**fake.options(), "max_retries": 2})
    with pytest.raises(anthropic.InternalServerError, match="searches for 'issue', but the request has no tool search"):
        await claude.messages.create(tools=[READ], messages=[GO], **ASK)
    with pytest.raises(anthropic.InternalServerError, match="only beside calls"):
        await claude.messages.create(tools=[BM25, *TOOLS], messages=[GO], **ASK)
    gpt = openai.AsyncOpenAI(**{**fake.options(), "max_retries": 2})
    with pytest.raises(openai.InternalServerError, match="no searches on the Responses API"):
        await gpt.responses.create(model="gpt-5.5", input="go")
    with pytest.raises(openai.InternalServerError, match="Chat Completions has no searches"):
        await gpt.chat.completions.create(model="gpt-4.1", messages=[{"role": "user", "content": "go"}])
    assert len(fake.requests) == 4
    assert all(seen.refused for seen in fake.requests)
