"""What `FakeLLM` says to values of other types than are documented: a refusal, and never a crash."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from pegboard.testing import FakeLLM
from tests.agent_tools import completions_tools, messages_tools, responses_tools
from tests.unit.proxy.test_wrong_json import mutated

SCHEMA: Any = {"type": "object", "properties": {}}
BLOCKS: Any = [
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "x"}},
            {
                "type": "tool_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": {"type": "tool_search_tool_search_result", "tool_references": []},
            },
            {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ran"}]},
]
SAID: Any = [
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "Read", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "ran"},
]
ITEMS: Any = [
    {"role": "user", "content": "go"},
    {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "Read", "arguments": "{}", "status": "completed"},
    {"type": "function_call_output", "call_id": "c", "output": "ran"},
]
SEARCH: Any = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
MODEL = "claude-sonnet-5"  # it does not mind whose thinking this is
RIGHT: dict[str, Any] = {
    "/v1/messages": {"model": MODEL, "max_tokens": 9, "messages": BLOCKS, "tools": [SEARCH, *messages_tools()]},
    "/v1/chat/completions": {"model": "gpt-5.6", "messages": SAID, "tools": completions_tools()},
    "/v1/responses": {"model": "gpt-5.6", "input": ITEMS, "tools": responses_tools()},
}


def answered(path: str, body: Any) -> tuple[int, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    status, _, pieces = FakeLLM([]).answer(path, {}, raw)
    return status, json.loads(pieces[0]) if status == 400 else None


@pytest.mark.parametrize("path", RIGHT)
def test_what_is_right_is_taken(path) -> None:
    assert answered(path, RIGHT[path]) == (200, None)


@pytest.mark.parametrize(
    ("path", "changes", "about"),
    [
        ("/v1/messages", {"messages": [{"role": "user", "content": [{"type": {}, "text": "x"}]}]}, "content[0].type"),
        ("/v1/messages", {"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "`type`"),
        ("/v1/messages", {"messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
        ("/v1/messages", {"messages": [7]}, "messages[0]"),
        ("/v1/messages", {"tools": [{"name": {}, "input_schema": SCHEMA}]}, "tools[0].name"),
        ("/v1/messages", {"tools": [{"name": "t", "input_schema": {**SCHEMA, "properties": []}}]}, "properties"),
        ("/v1/messages", {"tools": {"a": 1}}, "tools"),
        ("/v1/messages", {"stream": "yes"}, "stream"),
        ("/v1/chat/completions", {"tools": [{"type": "function", "function": True}]}, "tools[0].function"),
        ("/v1/chat/completions", {"messages": [{"role": "assistant", "tool_calls": [{"id": []}]}]}, "tool_calls[0].id"),
        ("/v1/responses", {"tools": [{"type": {}}]}, "tools[0].type"),
        ("/v1/responses", {"input": [{"type": "function_call", "call_id": {}}]}, "input[0].call_id"),
        ("/v1/responses", {"previous_response_id": ["resp_1"]}, "previous_response_id"),
    ],
)
def test_a_value_of_another_type_is_refused_by_its_place(path, changes, about) -> None:
    status, said = answered(path, {**RIGHT[path], **changes})
    assert status == 400
    assert about in said["error"]["message"]


@pytest.mark.parametrize(
    ("block", "missing"),
    [
        ({"type": "text"}, "text"),
        ({"type": "tool_use", "name": "Read", "input": {}}, "id"),
        ({"type": "server_tool_use", "id": "s", "name": "tool_search_tool_bm25"}, "input"),
        ({"type": "tool_result"}, "tool_use_id"),
    ],
)
def test_a_block_that_lacks_what_its_kind_needs_is_refused(block, missing) -> None:
    body = {**RIGHT["/v1/messages"], "messages": [{"role": "user", "content": [block]}]}
    status, said = answered("/v1/messages", body)
    assert status == 400
    assert f"{missing}: Field required" in said["error"]["message"]


@pytest.mark.parametrize("path", RIGHT)
@pytest.mark.parametrize("depth", [300, 100_000])
def test_depths_without_end_are_refused(path, depth) -> None:
    deep = b'{"model":"m","metadata":' + b"[" * depth + b"]" * depth + b"}"
    status, said = answered(path, deep)
    assert status == 400
    assert "too deep" in said["error"]["message"]


@pytest.mark.parametrize("path", [*RIGHT, "/v1/messages/count_tokens"])
def test_whatever_is_wrong_is_taken_or_refused_and_nothing_is_raised(path) -> None:
    seen = set()
    for number in range(150):
        body = json.loads(json.dumps(RIGHT[path.removesuffix("/count_tokens")]))
        status, said = answered(path, mutated(body, random.Random(number)))
        assert status == 200 or said["error"]["message"]
        seen.add(status)
    assert seen == {200, 400}


def test_a_tool_without_a_name_is_refused_unless_it_is_the_apis() -> None:
    right = RIGHT["/v1/messages"]
    assert answered("/v1/messages", {**right, "tools": [*right["tools"], {"type": "mcp_toolset"}]}) == (200, None)
    status, said = answered("/v1/messages", {**right, "tools": [*right["tools"], {"input_schema": SCHEMA}]})
    assert status == 400
    assert "name ''" in said["error"]["message"]
