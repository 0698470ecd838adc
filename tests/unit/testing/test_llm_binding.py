"""`FakeLLM` holds a request against the replies in it: thinking in its place, pauses gone on from, usage, the cache."""

from __future__ import annotations

import copy
from typing import Any

import anthropic
import pytest

from pegboard.testing import FakeLLM, Move
from tests.loops import in_a_loop

MARK: Any = {"type": "ephemeral"}
HOUR: Any = {"type": "ephemeral", "ttl": "1h"}
BM25: Any = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
SCHEMA: Any = {"type": "object", "properties": {}}
READ: Any = {"name": "read", "description": "Reads a file", "input_schema": SCHEMA}
ISSUE: Any = {"name": "open_issue", "description": "Opens an issue", "input_schema": SCHEMA, "defer_loading": True}
OTHER: Any = {**ISSUE, "name": "other"}
GO: Any = {"role": "user", "content": "go"}
BINDING = ("claude-fable-5-1", "claude-mythos-5-2", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")
INVALID = r"messages\.1\.content\.{}: Invalid signature in thinking block"
MOVE = Move(thinking="Let me look.", searches=("issue",), afterthought="That one.", calls=(("open_issue", {"a": 1}),))


def asked(model: str = "claude-opus-5-5", **changes: Any) -> Any:
    return {"model": model, "max_tokens": 9, "system": "Be brief.", "tools": [BM25, READ, ISSUE], **changes}


def result(message: Any) -> Any:
    call = message.content[-1].id
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": "ok"}]}


async def begun(client: anthropic.AsyncAnthropic, model: str, streams: bool = False) -> list[Any]:
    """A history with thinking, a search, more thinking, a call and its result."""
    if streams:
        async with client.messages.stream(messages=[GO], **asked(model)) as stream:
            message: Any = await stream.get_final_message()
    else:
        message = await client.messages.create(messages=[GO], **asked(model))
    kinds = [block.type for block in message.content]
    assert kinds == ["thinking", "server_tool_use", "tool_search_tool_result", "thinking", "tool_use"]
    sent = [block.model_dump(exclude_none=True, exclude={"parsed_output"}) for block in message.content]
    return [GO, {"role": "assistant", "content": sent}, result(message)]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("model", BINDING)
@in_a_loop
async def test_thinking_may_be_sent_back_where_it_was_thought(model: str, streams: bool) -> None:
    client = anthropic.AsyncAnthropic(**FakeLLM([MOVE]).options())
    history = await begun(client, model, streams)
    marked = copy.deepcopy(history)
    marked[2]["content"][0]["cache_control"] = MARK
    marked[0] = {"role": "user", "content": [{"type": "text", "text": "go", "cache_control": HOUR}]}
    parted = [GO, *({"role": "assistant", "content": [each]} for each in history[1]["content"]), history[2]]
    bare = copy.deepcopy(history)
    bare[1]["content"] = [each for each in bare[1]["content"] if each["type"] != "thinking"]
    for messages, changes in (
        (history, {}),
        (marked, {}),
        (parted, {}),
        (bare, {"system": "Be long."}),
        (history, {"tools": [OTHER, {**BM25, "cache_control": HOUR}, READ, ISSUE]}),
        (history, {"system": [{"type": "text", "text": "Be brief.", "cache_control": MARK}]}),
    ):
        await client.messages.create(messages=messages, **asked(model, **changes))


@in_a_loop
async def test_thinking_is_refused_anywhere_else_by_the_models_that_mind() -> None:
    client = anthropic.AsyncAnthropic(**FakeLLM([MOVE] * 2).options())
    for model in ("claude-opus-5-5", "claude-opus-5"):
        history = await begun(client, model)
        kept = history[1]["content"]
        unsearched = [GO, {"role": "assistant", "content": [kept[0], *kept[3:]]}, history[2]]
        edited = [GO, {"role": "assistant", "content": [{**kept[0], "thinking": "No."}, *kept[1:]]}, history[2]]
        for block, messages, changes in (
            (0, history, {"system": "Be long."}),
            (0, history, {"tools": [BM25, READ, {**OTHER, "defer_loading": False}, ISSUE]}),
            (0, history, {"tools": [BM25, READ, {**ISSUE, "defer_loading": False}]}),
            (0, history, {"tools": [READ, BM25, ISSUE]}),
            (0, [{**GO, "content": "Go!"}, *history[1:]], {}),
            (0, edited, {}),
            (1, unsearched, {}),
        ):
            given: Any = {"messages": messages, **asked(model, **changes)}
            if model == "claude-opus-5":
                await client.messages.create(**given)
                continue
            with pytest.raises(anthropic.BadRequestError, match=INVALID.format(block)):
                await client.messages.create(**given)


@in_a_loop
async def test_thinking_out_of_place_is_dropped_where_a_request_may_say_so() -> None:
    client = anthropic.AsyncAnthropic(**FakeLLM([MOVE]).options())
    given: Any = {"messages": await begun(client, "claude-opus-5-5"), **asked(system="Be long.")}
    given["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    with pytest.raises(anthropic.BadRequestError, match=INVALID.format(0)):
        await client.beta.messages.create(**given)
    message = await client.beta.messages.create(betas=["thinking-binding-controls-2026-08-01"], **given)
    dropped = [each.path for each in message.input_transformations or ()]
    assert dropped == ["messages.1.content.0", "messages.1.content.3"]


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-opus-5-5"])
@in_a_loop
async def test_a_turn_that_paused_is_sent_back_as_it_is(model: str) -> None:
    fake = FakeLLM([Move(thinking="Hm.", text="Wait.", unfinished_search="issue", pause=True), Move(thinking="So.")])
    client = anthropic.AsyncAnthropic(**fake.options())
    paused: Any = await client.messages.create(messages=[GO], **asked(model))
    assert paused.stop_reason == "pause_turn"
    said: Any = {"role": "assistant", "content": paused.content}
    for messages in ([GO, GO], [GO, {**said, "content": paused.content[:2]}, GO], [GO, said, GO]):
        with pytest.raises(anthropic.BadRequestError, match=r"must be sent back as it is|without a corresp"):
            await client.messages.create(messages=messages, **asked(model))
    with pytest.raises(anthropic.BadRequestError, match="with the same tools"):
        await client.messages.create(messages=[GO, said], **asked(model, tools=[BM25, ISSUE]))
    after: Any = await client.messages.create(messages=[GO, said], **asked(model))
    assert [block.type for block in after.content] == ["tool_search_tool_result", "thinking"]
    whole: Any = {"role": "assistant", "content": [*paused.content, *after.content]}
    await client.messages.create(messages=[GO, whole, GO], **asked(model))
    rest: Any = {"role": "assistant", "content": after.content}
    await client.messages.create(messages=[GO, said, rest, GO], **asked(model))


@in_a_loop
async def test_a_request_that_is_made_again_after_a_pause_goes_on_from_its_own_reply() -> None:
    fake = FakeLLM([Move(text="Wait.", stop="pause_turn"), Move(text="Another.")])
    client = anthropic.AsyncAnthropic(**fake.options())
    await client.messages.create(messages=[GO], **asked())
    other: Any = await client.messages.create(messages=[GO], **asked())
    await client.messages.create(messages=[GO, {"role": "assistant", "content": other.content}, GO], **asked())


@in_a_loop
async def test_a_found_definition_is_read_and_counted_where_its_reference_stands_and_not_before() -> None:
    fake = FakeLLM([MOVE])
    client = anthropic.AsyncAnthropic(**fake.options())
    ask = asked(tools=[BM25, {**READ, "cache_control": MARK}, ISSUE])
    counts = []
    for tools in (ask["tools"], [*ask["tools"], OTHER], ask["tools"][:-1]):
        counted = await client.messages.count_tokens(
            model=ask["model"], system=ask["system"], tools=tools, messages=[GO]
        )
        counts.append(counted.input_tokens)
    assert counts[0] == counts[1] == counts[2]
    first: Any = await client.messages.create(messages=[GO], **ask)
    history: Any = [GO, {"role": "assistant", "content": first.content}, result(first)]
    second = await client.messages.create(messages=history, **{**ask, "tools": [*ask["tools"], OTHER]})
    longer: Any = [BM25, {**READ, "cache_control": MARK}, {**ISSUE, "description": "Opens an issue" * 50}]
    bigger = await client.messages.count_tokens(
        model=ask["model"], messages=history[:1], tools=longer, system="Be brief."
    )
    assert bigger.input_tokens == counts[0]
    expanded = await client.messages.count_tokens(
        model="claude-opus-5", messages=history, tools=longer, system="Be brief."
    )
    assert expanded.input_tokens > _read(second.usage) + 50
    assert _read(second.usage) > counts[0]
    paths = [seen.path for seen in fake.requests]
    assert paths == [*["/messages/count_tokens"] * 3, *["/messages"] * 2, *["/messages/count_tokens"] * 2]


def _read(usage: Any) -> int:
    return int(usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens)


@in_a_loop
async def test_what_is_counted_is_what_is_used() -> None:
    client = anthropic.AsyncAnthropic(**FakeLLM([Move(text="a"), Move(text="b")]).options())
    ask = asked(tools=[BM25, {**READ, "cache_control": HOUR}, ISSUE])
    counted = await client.messages.count_tokens(**{key: ask[key] for key in ask if key != "max_tokens"}, messages=[GO])
    for at in range(2):
        usage: Any = (await client.messages.create(messages=[GO], **ask)).usage
        assert _read(usage) == counted.input_tokens
        assert bool(usage.cache_read_input_tokens) == bool(at)
        assert bool(usage.cache_creation_input_tokens) != bool(at)


@in_a_loop
async def test_what_is_written_to_the_cache_is_told_apart_by_how_long_it_lasts() -> None:
    fake = FakeLLM([MOVE])
    client = anthropic.AsyncAnthropic(**fake.options())
    tools = [BM25, {**READ, "cache_control": HOUR}, ISSUE]
    first: Any = await client.messages.create(messages=[GO], **asked(tools=tools))
    made = first.usage.cache_creation
    assert made.ephemeral_1h_input_tokens == first.usage.cache_creation_input_tokens > 0
    assert made.ephemeral_5m_input_tokens == 0
    history: Any = [GO, {"role": "assistant", "content": first.content}, result(first)]
    async with client.messages.stream(messages=history, **asked(tools=tools)) as stream:
        usage: Any = (await stream.get_final_message()).usage
    assert usage.cache_read_input_tokens == made.ephemeral_1h_input_tokens
    assert usage.cache_creation.ephemeral_5m_input_tokens == usage.cache_creation_input_tokens > 0  # on the search
    assert usage.cache_creation.ephemeral_1h_input_tokens == 0
    unmarked: Any = await client.messages.create(messages=history, **asked(system="Be brief."))
    assert unmarked.usage.cache_creation_input_tokens == unmarked.usage.cache_read_input_tokens == 0
