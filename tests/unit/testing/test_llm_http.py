"""`FakeLLM` over HTTP: errors and ends in the middle, packed bodies, queries, models, streams an event at a time."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import zlib
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from pegboard.testing import FakeLLM, Fault, Move
from tests.loops import in_a_loop
from tests.served_llm import served

GO: Any = {"role": "user", "content": "go"}
ASK: Any = {"model": "claude-opus-5", "max_tokens": 9, "messages": [GO]}
CHAT: Any = {"model": "gpt-4.1", "messages": [GO]}


@in_a_loop
async def test_a_reply_may_be_an_error_and_the_next_is_none() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    faults = [Fault(529, body), Fault(429, headers={"retry-after": "7"}), Fault(502, "<html>Bad gateway</html>")]
    fake = FakeLLM([*(Move(fault=each) for each in faults), Move(text="ok")])
    client = anthropic.AsyncAnthropic(**fake.options())
    with pytest.raises(anthropic.InternalServerError, match="Overloaded") as overloaded:
        await client.messages.create(**ASK)
    assert (overloaded.value.status_code, overloaded.value.body) == (529, body)
    with pytest.raises(anthropic.RateLimitError, match="rate_limit_error") as limited:
        await client.messages.create(**ASK)
    assert limited.value.response.headers["retry-after"] == "7"
    with pytest.raises(anthropic.InternalServerError) as bad:
        await client.messages.create(stream=True, **ASK)
    assert bad.value.response.text == "<html>Bad gateway</html>"
    message: Any = await client.messages.create(**ASK)
    assert message.content[0].text == "ok"
    assert [seen.refused for seen in fake.requests] == ["HTTP 529", "HTTP 429", "HTTP 502", ""]
    assert fake.requests[-1].reading.shared == 0  # nobody read what was refused


def test_errors_look_as_they_do_on_openais_wires_too() -> None:
    fake = FakeLLM([Move(fault=Fault(429)), Move(fault=Fault(500)), Move(fault=Fault(400))])
    client = openai.OpenAI(**fake.sync_options())
    for kind in (openai.RateLimitError, openai.InternalServerError, openai.BadRequestError):
        with pytest.raises(kind):
            client.chat.completions.create(**CHAT)


@pytest.mark.parametrize("is_served", [False, True])
def test_a_stream_may_end_in_the_middle(is_served: bool) -> None:
    fake = FakeLLM([Move(text="Never said to its end.", cut_after=4), Move(text="ok", cut_after=0), Move(text="ok")])
    with served(fake) as address:
        options = fake.sync_options()
        options |= {"base_url": address, "http_client": None} if is_served else {}
        with anthropic.Anthropic(**options) as client:
            kinds: list[str] = []
            with pytest.raises(httpx2.RemoteProtocolError):
                kinds.extend(event.type for event in client.messages.create(stream=True, **ASK))
            assert [each for each in kinds if each != "ping"] == [
                *("message_start", "content_block_start", "content_block_delta")
            ]
            with pytest.raises((anthropic.APIConnectionError, httpx2.RemoteProtocolError)):
                client.messages.create(**ASK)
            message: Any = client.messages.create(**ASK)
            assert message.content[0].text == "ok"


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_bodies_may_be_packed_and_paths_may_have_a_query(encoding: str, pack: Any) -> None:
    fake = FakeLLM([Move(text="hi")])
    with served(fake) as address, httpx2.Client(base_url=address) as client:
        headers = {"content-encoding": encoding, "content-type": "application/json", "x-mine": "Yes"}
        answer = client.post("/v1/messages?beta=true", content=pack(json.dumps(ASK).encode()), headers=headers)
        assert answer.json()["content"][0]["text"] == "hi"
        counted = client.post("/v1/messages/count_tokens?beta=true", json={"model": "m", "messages": [GO]})
        assert counted.json()["input_tokens"] > 0
    assert fake.requests[0].body == ASK
    assert (fake.requests[0].query, fake.requests[0].headers["x-mine"]) == ("beta=true", "Yes")
    assert fake.requests[0].reply == answer.json()


@pytest.mark.parametrize(
    ("headers", "raw", "said"),
    [
        ({"content-encoding": "gzip"}, b"{}", "no gzip"),
        ({"content-encoding": "br"}, b"{}", "unsupported"),
        ({}, b"{", "truncated"),
        ({}, b"[]", "Expected `object`"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(headers: Any, raw: bytes, said: str) -> None:
    status, _, [body] = FakeLLM([]).answer("/v1/messages", headers, raw)
    assert status == 400
    assert said in json.loads(body)["error"]["message"]


def test_there_are_models_to_list_and_no_counts_on_other_wires() -> None:
    fake = FakeLLM([])
    assert "claude-haiku-4-5" in [each.id for each in anthropic.Anthropic(**fake.sync_options()).models.list()]
    assert "gpt-5.5" in [each.id for each in openai.OpenAI(**fake.sync_options()).models.list()]
    assert fake.respond("/v1/responses/count_tokens", {}, b"{}").status == 404


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
def test_what_is_served_goes_out_an_event_at_a_time(path: str) -> None:
    """No event is sent before the client has the one before: a body that was sent as one would never begin."""
    may_go = threading.Semaphore(1)

    async def pace(number: int) -> None:
        assert await asyncio.to_thread(may_go.acquire, timeout=20)

    fake = FakeLLM([Move(text="one two three")], pace=pace)
    got = []
    with (
        served(fake) as address,
        httpx2.stream("POST", address + path, json={**ASK, "stream": True}) as answer,
    ):
        for piece in answer.iter_raw():
            got.append(piece)
            may_go.release()
    assert len(got) > 5
    assert all(each.count(b"data: ") == 1 for each in got)


@pytest.mark.parametrize("wanted", [True, False])
@in_a_loop
async def test_completions_count_in_a_stream_only_where_they_are_asked_to(wanted: bool) -> None:
    fake = FakeLLM([Move(text="hi")] * 2)
    client = openai.AsyncOpenAI(**fake.options())
    options: Any = {"stream_options": {"include_usage": True}} if wanted else {}
    chunks = [each async for each in await client.chat.completions.create(stream=True, **CHAT, **options)]
    assert [bool(each.usage) for each in chunks] == [*[False] * (len(chunks) - 1), wanted]
    assert bool(chunks[-1].choices) != wanted
    pieces = fake.respond("/v1/chat/completions", {}, json.dumps({**CHAT, "stream": True, **options}).encode()).pieces
    assert pieces[-1] == b"data: [DONE]\n\n"
    assert all((b'"usage"' in each) == wanted for each in pieces[:-1])


@pytest.mark.parametrize("streams", [False, True])
@in_a_loop
async def test_responses_keeps_a_conversation_unless_it_is_not_to(streams: bool) -> None:
    fake = FakeLLM([Move(calls=(("f", {}),)), Move(text="ok"), Move(text="not kept")])
    client = openai.AsyncOpenAI(**fake.options())

    async def ask(**given: Any) -> Any:
        if not streams:
            return await client.responses.create(model="gpt-5.5", **given)
        async with client.responses.stream(model="gpt-5.5", **given) as stream:
            return await stream.get_final_response()

    first = await ask(input="go")
    with pytest.raises(openai.BadRequestError, match="No tool output found"):
        await ask(input="and?", previous_response_id=first.id)
    output = {"type": "function_call_output", "call_id": first.output[0].call_id, "output": "ok"}
    second = await ask(input=[output], previous_response_id=first.id)
    assert len(fake.requests[-1].body["input"]) == 1
    assert len(fake.model.shown[-1].messages) == 3
    assert fake.requests[-1].reading.cached == fake.requests[0].reading.total
    assert second.usage.input_tokens_details.cached_tokens > 0
    assert second.usage.input_tokens_details.cache_write_tokens > 0
    third = await ask(input="more", previous_response_id=second.id, store=False)
    for unknown in ("resp_nobody", third.id):
        with pytest.raises(openai.BadRequestError, match=f"'{unknown}' not found") as refused:
            await ask(input="more", previous_response_id=unknown)
        assert refused.value.code == "previous_response_not_found"


@in_a_loop
async def test_completions_say_what_was_cached() -> None:
    client = openai.AsyncOpenAI(**FakeLLM([]).options())
    usages = [(await client.chat.completions.create(**CHAT)).usage for _ in range(2)]
    cached = [each.prompt_tokens_details.cached_tokens for each in usages if each and each.prompt_tokens_details]
    assert cached[0] == 0 < (cached[1] or 0)
