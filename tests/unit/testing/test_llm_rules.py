"""What `FakeLLM` refuses about searches and blocks in a history, each with a request that is taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pegboard.testing import FakeLLM

OBJECT: Any = {"type": "object", "properties": {}}
TOOL: Any = {"name": "t", "input_schema": OBJECT}
LATER: Any = {"name": "later", "input_schema": OBJECT, "defer_loading": True}
BM25: Any = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
REGEX: Any = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
TEXT: Any = {"type": "text", "text": "x"}
CALL: Any = {"type": "tool_use", "id": "toolu_1", "name": "t", "input": {}}
RESULT: Any = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
THOUGHT: Any = {"type": "thinking", "thinking": "hm", "signature": "s"}


def search(name: str = "tool_search_tool_bm25", **given: Any) -> Any:
    return {"type": "server_tool_use", "id": "srvtoolu_1", "name": name, "input": given or {"query": "x"}}


def found(*names: str) -> Any:
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    content = {"type": "tool_search_tool_search_result", "tool_references": references}
    return {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": content}


FAILED: Any = {
    "type": "tool_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {"type": "tool_search_tool_result_error", "error_code": "invalid_tool_input", "error_message": None},
}


def user(*content: Any) -> Any:
    return {"role": "user", "content": list(content) or "go"}


def model(*content: Any) -> Any:
    return {"role": "assistant", "content": list(content)}


def refused(path: str = "/v1/messages", **changes: Any) -> str:
    body = {"model": "claude-opus-5", "max_tokens": 9, "tools": [TOOL, BM25, LATER], "messages": [user()], **changes}
    status, _, parts = FakeLLM([]).answer(path, {}, json.dumps(body).encode())
    assert status in (200, 400)
    return json.loads(parts[0])["error"]["message"] if status == 400 else ""


PASSED = {"messages": [user(), model(search(), found("later"), TEXT), user()]}
WRONG: list[tuple[Any, str]] = [
    ({"tools": [TOOL, {**BM25, "defer_loading": True}]}, "cannot be deferred"),
    ({"tools": [TOOL, {**BM25, "name": "search"}]}, "cannot be named 'search'"),
    ({"tools": [TOOL, {**BM25, "name": REGEX["name"]}]}, "cannot be named"),
    ({"tools": [TOOL, {**BM25, "type": "tool_search_tool_bm25_20990101"}]}, "cannot be named"),
    ({"tools": [TOOL, BM25], "model": "claude-opus-4-1"}, "does not support tool search"),
    ({"tools": [TOOL, BM25], **PASSED}, "Tool reference 'later' not found in available tools"),
    ({"messages": [user(), model(search(), found("nobody"), TEXT), user()]}, "Tool reference 'nobody' not found"),
    ({"messages": [user(), model(search(), found(BM25["name"]), TEXT), user()]}, "'tool_search_tool_bm25' not found"),
    ({"messages": [user(), model(search(), TEXT), user()]}, "without a corresponding `tool_search_tool_result` block"),
    ({"messages": [user(), model(search(), CALL), user(RESULT, TEXT)]}, "without a corresponding"),
    ({"messages": [user(), model(search(), CALL), user(RESULT), model(TEXT), user()]}, "without a corresponding"),
    ({"messages": [user(), model(search(), CALL), user(RESULT)], "tools": [TOOL, REGEX, LATER]},
     "but no `tool_search_tool_bm25` tool was provided"),
    ({"messages": [user(), model(found("later"), TEXT), user()]}, "found in `tool_search_tool_result` blocks"),
    ({"messages": [user(), model(found("later"), search(), TEXT), user()]}, "found in `tool_search_tool_result`"),
    ({"messages": [user(), model(search(), found(), found(), TEXT), user()]}, "single result"),
    ({"messages": [user(), model(TEXT), user(RESULT)]}, "unexpected `tool_use_id` found in `tool_result`"),
    ({"messages": [user(search(), found())]}, "`server_tool_use` blocks can only be in `assistant` messages"),
    ({"messages": [user(THOUGHT)]}, "`thinking` blocks can only be in `assistant` messages"),
    ({"messages": [user(), model(search(query="x" * 501), found(), TEXT), user()]}, "at most 500 characters"),
    ({"messages": [user(), model(search(REGEX["name"], pattern="x" * 201), found(), TEXT), user()]}, "at most 200"),
]  # fmt: skip
RIGHT: list[Any] = [
    {"tools": [TOOL, BM25, REGEX]},
    {"tools": [TOOL, {**BM25, "type": "tool_search_tool_bm25"}, {**REGEX, "type": "tool_search_tool_regex"}]},
    {"tools": [BM25, LATER], "model": "claude-sonnet-4-5"},
    PASSED,
    {"messages": [user(), model(search(), CALL), user(RESULT)]},
    {"messages": [user(), model(search())]},
    {"messages": [user(), model(search(), CALL), user(RESULT), model(found("later"), TEXT), user()]},
    {"messages": [user(), model(search()), model(found("later"), TEXT), user()]},
    {"messages": [user(), model(THOUGHT, CALL), user(RESULT)]},
    {"messages": [user(), model(search(query="x" * 500), found(), TEXT), user()]},
    {"messages": [user(), model(search(REGEX["name"], pattern="x" * 200), found(), TEXT), user()]},
    {"messages": [user(), model(search(query="x" * 501), FAILED, TEXT), user()]},
    {"messages": [user(), model(search(query="x" * 501), CALL), user(RESULT)]},
]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
@pytest.mark.parametrize(("changes", "said"), WRONG)
def test_it_refuses(path: str, changes: Any, said: str) -> None:
    assert said in refused(path, **changes)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
@pytest.mark.parametrize("changes", RIGHT)
def test_it_takes(path: str, changes: Any) -> None:
    assert refused(path, **changes) == ""
