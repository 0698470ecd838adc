"""`FakeLLM` refuses what the APIs are documented to refuse, streams what it answers, and caches as they do."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.testing import FakeLLM, Move
from pegboard.testing.llm.asked import Segment
from pegboard.testing.llm.cache import LOOK_BACK, PromptCache
from tests.loops import in_a_loop

OBJECT: Any = {"type": "object", "properties": {}}
TOOL: Any = {"name": "t", "input_schema": OBJECT}
LATER: Any = {"name": "later", "input_schema": OBJECT, "defer_loading": True}
SYSTEM: Any = {"role": "system", "content": "y"}
MARK: Any = {"type": "ephemeral"}
HOUR: Any = {"type": "ephemeral", "ttl": "1h"}
FUNCTION: Any = {"type": "function", "name": "f", "parameters": OBJECT}
SEARCH: Any = {"type": "tool_search", "execution": "client"}


def use(call_id: str = "1", name: str = "t") -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": name, "input": {}}]}


def result(call_id: str = "1", content: Any = "ok") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content) or "go"}


def refused(path: str, body: Any, betas: str = "") -> str:
    status, _, parts = FakeLLM([]).answer(path, {"anthropic-beta": betas}, json.dumps(body).encode())
    assert status in (200, 400)
    return json.loads(parts[0])["error"]["message"] if status == 400 else ""


def on_messages(betas: str = "", **changes: Any) -> str:
    return refused("/v1/messages", {"model": "claude-opus-5", "max_tokens": 9, "messages": [user()], **changes}, betas)


def on_responses(**changes: Any) -> str:
    return refused("/v1/responses", {"model": "gpt-5.5", "input": "go", **changes})


def on_completions(**changes: Any) -> str:
    return refused("/v1/chat/completions", {"model": "gpt-4.1", "messages": [user()], **changes})


CHANGES, INLINE = "mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"
TEXT: Any = {"type": "text", "text": "x"}
BM25: Any = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
LOOKS: Any = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "x"}}
LOOKED_UP: Any = {
    "type": "tool_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": "later"}],
    },
}


def said(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def added(**tool: Any) -> dict[str, Any]:
    kind = "tool_definition" if "definition" in tool else "tool_reference"
    return {"role": "system", "content": [{"type": "tool_addition", "tool": {"type": kind, **tool}}]}


SEARCHED = [user(), use(name="t"), user(result(content=[{"type": "tool_reference", "tool_name": "later"}]))]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"messages": [use()]}, "first message"),
        ({"tools": [TOOL, TOOL]}, "unique"),
        ({"tools": [{**TOOL, "name": "a.b"}]}, "pattern"),
        ({"tools": [{"name": "t", "input_schema": {"type": "array"}}]}, "'object'"),
        ({"tools": [{"name": "t", "input_schema": {"type": "object", "anyOf": []}}]}, "top level"),
        ({"tools": [{"name": "t", "input_schema": {"type": "object", "properties": {"$a": {}}}}]}, "Property keys"),
        ({"tools": [LATER]}, "At least one tool must have defer_loading=false"),
        ({"tools": [TOOL, {**LATER, "cache_control": MARK}]}, "both defer_loading and cache_control"),
        ({"tools": [TOOL, {"type": "tool_search_tool_bm25_20251119", "name": "s", "defer_loading": True}]}, "search"),
        ({"tools": [TOOL, LATER], "model": "claude-3-haiku-x"}, "Extra inputs"),
        ({"tools": [TOOL, LATER], "model": "claude-opus-4-1"}, "Extra inputs"),
        ({"tools": [TOOL], "messages": SEARCHED}, "Tool reference 'later' not found"),
        ({"tools": [{**TOOL, "name": f"t{n}", "cache_control": MARK} for n in range(5)]}, "maximum of 4"),
        ({"tools": [{**TOOL, "cache_control": MARK}], "system": [{"type": "text", "text": "s", "cache_control": HOUR}]},
         "must not come after"),
        ({"messages": [user({"type": "text", "text": ""})]}, "non-empty"),
        ({"messages": [user(), use(), user(result())]}, "must define tools"),
        ({"tools": [TOOL], "messages": [user(), use(), user(result("srvtoolu_1"))]}, "server tool"),
        ({"tools": [TOOL], "messages": [user(), use()]}, "without `tool_result`"),
        ({"tools": [TOOL], "messages": [user(), use(), user({"type": "text", "text": "x"})]}, "immediately after"),
        ({"tools": [TOOL], "messages": [user(result("0"))]}, "unexpected `tool_use_id`"),
        ({"tools": [TOOL], "messages": [user(), use(), user(result(), result())]}, "single result"),
        ({"tools": [TOOL], "messages": [user(), use(), user({"type": "text", "text": "x"}, result())]}, "before other"),
        ({"messages": [user(), {**SYSTEM, "content": [{"type": "tool_removal", "tool": {}}]}]}, "requires the beta"),
        ({"messages": [user(), added(definition=TOOL)], "betas": CHANGES}, f"requires the beta {INLINE}"),
        ({"tools": [TOOL], "messages": [user(), added(definition=TOOL)], "betas": INLINE}, "conflict"),
        *(({"tools": [TOOL, LATER], "messages": [user(), added(name="later")], "betas": CHANGES, "model": model},
           "not supported") for model in ("claude-sonnet-5", "claude-opus-4-7", "claude-haiku-4-5")),
        ({"tools": [TOOL, LATER], "messages": [user(), said(LOOKS, TEXT), user()]}, "without a corresponding"),
        ({"tools": [TOOL], "messages": [user(), said(LOOKS, *use()["content"]), user(result(), TEXT)]}, "without a"),
        ({"messages": [user(), {"role": "assistant", "content": "x"}, SYSTEM]}, "must directly"),
        ({"messages": [user(), SYSTEM, user()]}, "must directly"),
        ({"tools": [TOOL], "model": "claude-fable-5-1", "tool_choice": {"type": "any"}}, "forced"),
    ],
)  # fmt: skip
def test_messages_refuses(changes: Any, said: str) -> None:
    assert said in on_messages(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"tools": [TOOL, LATER]},
        {"tools": [TOOL, LATER], "messages": SEARCHED},
        {"tools": [TOOL], "messages": [user(), use(), user(result(), {"type": "text", "text": "and"}), user()]},
        {"tools": [{**TOOL, "cache_control": HOUR}], "system": [{"type": "text", "text": "s", "cache_control": MARK}]},
        {"tools": [TOOL], "model": "claude-opus-5", "tool_choice": {"type": "any"}},
        {"messages": [user(), {"role": "system", "content": "y"}]},
        {"tools": [TOOL, LATER], "messages": [user(), said(LOOKS, LOOKED_UP, TEXT), user()]},
        {"tools": [TOOL, BM25], "messages": [user(), said(LOOKS, *use()["content"]), user(result())]},
        {"tools": [TOOL, LATER], "messages": [user(), added(name="later")], "betas": CHANGES},
        {"tools": [TOOL], "messages": [user(), added(definition=LATER)], "betas": f"other-beta, {INLINE}"},
    ],
)
def test_messages_takes(changes: Any) -> None:
    assert on_messages(**changes) == ""


def test_messages_takes_ten_thousand_deferred_tools_and_not_one_more() -> None:
    many = [{**LATER, "name": f"t{number}"} for number in range(10_000)]
    assert on_messages(tools=[TOOL, *many]) == ""
    assert "10000" in on_messages(tools=[TOOL, LATER, *many])


SPACE: Any = {"type": "namespace", "name": "crm", "description": "Customers", "tools": [FUNCTION]}
ASKED: Any = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
LOOKED: Any = {"type": "tool_search_call", "call_id": "2", "execution": "client", "arguments": {}}
FOUND: Any = {"type": "tool_search_output", "call_id": "2", "execution": "client", "status": "completed", "tools": []}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"input": ""}, "'input'"),
        ({"tools": [{**FUNCTION, "name": "a.b"}]}, "pattern"),
        ({"tools": [{**FUNCTION, "name": "a" * 65}]}, "64"),
        ({"tools": [{**FUNCTION, "parameters": {"type": "object", "anyOf": [], "properties": {}}}]}, "top level"),
        ({"tools": [{**FUNCTION, "parameters": {"type": "object"}}]}, "missing properties"),
        ({"tools": [{**FUNCTION, "parameters": {"type": "object", "properties": {"a": {"type": "array"}}}}]}, "items"),
        ({"tools": [{**FUNCTION, "strict": True}]}, "additionalProperties"),
        ({"tools": [SEARCH], "model": "gpt-5"}, "not supported with gpt-5"),
        ({"tools": [SEARCH], "model": "o3"}, "not supported"),
        ({"tools": [{**FUNCTION, "defer_loading": True}]}, "requires a tool_search"),
        ({"tools": [{**SPACE, "tools": [{**FUNCTION, "defer_loading": True}]}]}, "requires a tool_search"),
        ({"tools": [{**SPACE, "description": ""}]}, "tools.description"),
        ({"tools": [SEARCH, {**SPACE, "defer_loading": True}]}, "tools.defer_loading"),
        ({"input": [ASKED]}, "No tool output found for function call 1"),
        ({"input": [{"type": "function_call_output", "call_id": "1", "output": ""}]}, "No tool call found"),
        ({"tools": [SEARCH], "input": [LOOKED]}, "No tool output found for tool search call"),
        ({"input": [{"type": "additional_tools", "role": "user", "tools": [FUNCTION]}]}, "role 'developer'"),
        (
            {"input": [{"type": "additional_tools", "role": "developer", "tools": []}], "model": "gpt-5"},
            "not supported",
        ),
        ({"tools": [SEARCH], "input": [FOUND]}, "No tool call found"),
        ({"tools": [SEARCH], "input": [LOOKED, {**FOUND, "status": None}]}, "status 'completed'"),
        ({"tools": [SEARCH], "input": [LOOKED, {**FOUND, "tools": None}]}, "input.tools"),
        ({"tools": [SEARCH], "input": [LOOKED, {**FOUND, "tools": [{**FUNCTION, "parameters": {}}]}]}, "'object'"),
    ],
)
def test_responses_refuses(changes: Any, said: str) -> None:
    assert said in on_responses(**changes)


def test_responses_takes_a_search_that_was_answered() -> None:
    assert on_responses(tools=[SEARCH], input=[LOOKED, {**FOUND, "tools": [{**FUNCTION, "defer_loading": True}]}]) == ""


def test_responses_takes_functions_in_a_namespace() -> None:
    assert on_responses(tools=[SPACE]) == ""
    assert on_responses(tools=[SEARCH, {**SPACE, "tools": [{**FUNCTION, "defer_loading": True}]}]) == ""


def chat_tool(**changes: Any) -> Any:
    return {"type": "function", "function": {"name": "f", "parameters": OBJECT, **changes}}


CALLS: Any = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
ANSWER: Any = {"role": "tool", "tool_call_id": "1", "content": "ok"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"messages": []}, "messages"),
        ({"tools": []}, "1 to 128"),
        ({"tools": [chat_tool(name=f"f{n}") for n in range(129)]}, "1 to 128"),
        ({"tools": [SEARCH]}, "Unknown parameter"),
        ({"tools": [chat_tool(defer_loading=True)]}, "Unknown parameter"),
        ({"tools": [chat_tool(parameters={"type": "string"})]}, "'object'"),
        ({"messages": [user(), CALLS]}, "must be followed"),
        ({"messages": [user(), CALLS, user()]}, "must be followed"),
        ({"messages": [user(), ANSWER]}, "must be a response to"),
        ({"messages": [user(), CALLS, ANSWER, ANSWER]}, "must be a response to"),
    ],
)
def test_completions_refuses(changes: Any, said: str) -> None:
    assert said in on_completions(**changes)


def test_completions_takes_a_call_that_was_answered() -> None:
    assert on_completions(tools=[chat_tool()], messages=[user(), CALLS, ANSWER, user()]) == ""


@in_a_loop
async def test_a_stream_says_what_the_whole_reply_says() -> None:
    move = Move(text="Let me see, ünïcödé and all.", calls=(("t", {"a": [1, "ß"]}), ("u", {})))
    fake = FakeLLM([move] * 6)
    messages = anthropic.AsyncAnthropic(**fake.options()).messages
    ask: Any = {"model": "claude-opus-5", "max_tokens": 9, "messages": [user()]}
    whole = await messages.create(**ask)
    async with messages.stream(**ask) as stream:
        streamed = await stream.get_final_message()
    assert [block.model_dump(exclude={"id", "parsed_output"}) for block in streamed.content] == [
        block.model_dump(exclude={"id"}) for block in whole.content
    ]
    assert (streamed.stop_reason, whole.stop_reason) == ("tool_use", "tool_use")
    client = openai.AsyncOpenAI(**fake.options())
    response = await client.responses.create(model="gpt-5.5", input="go")
    async with client.responses.stream(model="gpt-5.5", input="go") as events:
        final = await events.get_final_response()
    assert final.output_text == response.output_text == move.text
    assert [each.arguments for each in final.output[1:]] == [each.arguments for each in response.output[1:]]  # type: ignore[union-attr]
    completion = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "go"}])
    async with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "go"}]) as chunks:
        last = await chunks.get_final_completion()
    one, other = completion.choices[0].message, last.choices[0].message
    assert one.content == other.content == move.text
    assert [each.function.arguments for each in other.tool_calls or ()] == ['{"a": [1, "\\u00df"]}', "{}"]


@in_a_loop
async def test_it_is_an_asgi_application_too() -> None:
    fake = FakeLLM([Move(text="hi")])
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=fake))  # type: ignore[arg-type]
    client = anthropic.AsyncAnthropic(**{**fake.options(), "http_client": http})
    message: Any = await client.messages.create(
        model="claude-opus-5", max_tokens=9, messages=[{"role": "user", "content": "x"}]
    )
    assert message.content[0].text == "hi"
    with pytest.raises(anthropic.NotFoundError, match="no such path"):
        await client.messages.batches.list()


def test_a_deferred_tool_is_outside_the_prefix_until_it_is_referred_to() -> None:
    fake = FakeLLM([])
    marked: Any = {**TOOL, "cache_control": MARK}
    base: Any = {"model": "claude-opus-5", "max_tokens": 9, "messages": [user()], "tools": [marked]}
    for tools in ([marked], [marked, LATER], [LATER, marked], [{**TOOL, "name": "first"}, marked]):
        fake.answer("/messages", {}, json.dumps({**base, "tools": tools}).encode())
    cached = [seen.reading.cached for seen in fake.requests]
    assert cached[0] == 0
    assert cached[1] == cached[2] == fake.requests[0].reading.written > 0
    assert cached[3] == 0


def test_a_cache_of_breakpoints_reads_only_where_one_stands_and_looks_back_so_far() -> None:
    cache = PromptCache(explicit=True)
    start = [Segment(b"system", is_marked=True)]
    assert cache.read("m", start).cached == 0
    near = [*start, *([Segment(b"x")] * (LOOK_BACK - 2)), Segment(b"y", is_marked=True)]
    assert cache.read("m", near).cached == 6
    far = [Segment(b"system"), *([Segment(b"z")] * LOOK_BACK), Segment(b"y", is_marked=True)]
    assert cache.read("m", far).cached == 0
    assert cache.read("other", start).cached == 0
    assert cache.read("m", [Segment(b"system")]).cached == 0
    assert cache.read("m", [Segment(b"system")]).shared == 6


@given(st.lists(st.lists(st.sampled_from([b"a", b"bb", b"ccc"]), max_size=6), max_size=6))
def test_what_is_shared_is_the_longest_beginning_of_any_earlier_prompt(prompts: list[list[bytes]]) -> None:
    cache = PromptCache(explicit=False)
    for at, prompt in enumerate(prompts):
        reading = cache.read("m", [Segment(piece) for piece in prompt])
        common = [_common(prompt, earlier) for earlier in prompts[:at]]
        assert reading.shared == reading.cached == max(common, default=0)
        assert reading.total == sum(map(len, prompt)) == reading.cached + reading.written


def _common(one: list[bytes], other: list[bytes]) -> int:
    size = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        size += len(mine)
    return size
