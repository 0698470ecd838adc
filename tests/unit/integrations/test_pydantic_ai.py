"""The parts of the plug-in for Pydantic AI that can be looked at alone: histories, spellings, results, approvals."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from pegboard.board import Result
from pegboard.board.state import names_of
from pegboard.integrations.pydantic_ai.approval import deferred, of_run, run_approval
from pegboard.integrations.pydantic_ai.history import metadata, spellings, state_in, unanswered
from pegboard.integrations.pydantic_ai.returned import returned
from pegboard.surface.activation import Activation
from pegboard.types import Caller, Json, Tool
from tests.loops import in_a_loop


def loaded(*names: str, at: float = 1.0) -> bytes:
    return Activation(cap=24).activated(names, at).activation.to_bytes()


def result(state: bytes | None, toolset: str = "pegboard") -> ToolReturnPart:
    return ToolReturnPart("tool", "text", tool_call_id="1", metadata=metadata(toolset, state, None))


# ── histories ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_last_message_that_tells_counts_and_calls_made_at_once_count_together() -> None:
    messages: list[ModelMessage] = [
        ModelRequest([result(loaded("old"))]),
        ModelRequest([result(loaded("a")), result(loaded("b", at=2.0)), UserPromptPart("text")]),
        ModelResponse([TextPart("said")]),
        ModelRequest([ToolReturnPart("other", "text", tool_call_id="2", metadata={"somebody": "else"})]),
    ]
    assert set(names_of(state_in(messages, "pegboard") or b"")) == {"a", "b"}


def test_a_toolset_reads_what_it_wrote_itself() -> None:
    assert state_in([ModelRequest([result(loaded("a"), toolset="another")])], "pegboard") is None
    assert state_in([], "pegboard") is None


@pytest.mark.parametrize("beside", ["text", {"pegboard": 3}, {"pegboard": {"toolset": "pegboard", "state": 3}}])
def test_metadata_of_any_other_shape_tells_nothing(beside: Any) -> None:
    message = ModelRequest([ToolReturnPart("tool", "text", tool_call_id="1", metadata=beside)])
    assert state_in([message], "pegboard") is None


@given(st.text(max_size=40))
def test_a_state_that_is_none_loads_nothing(text: str) -> None:
    beside = {"pegboard": {"toolset": "pegboard", "state": text}}
    message = ModelRequest([ToolReturnPart("tool", "text", tool_call_id="1", metadata=beside)])
    assert names_of(state_in([message], "pegboard") or b"") == ()


def test_a_result_without_anything_beside_it_has_no_metadata() -> None:
    assert metadata("pegboard", None, None) is None
    assert metadata("pegboard", None, {"a": 1}) == {"structured_content": {"a": 1}}


@given(
    st.lists(st.from_regex(r"[a-z]{1,5}", fullmatch=True), max_size=3), st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
)
def test_whatever_prefixes_are_put_before_a_name_it_is_among_the_spellings(prefixes: list[str], name: str) -> None:
    assert name in spellings("_".join([*prefixes, name]))
    assert spellings(name)[0] == name


def test_only_a_response_at_the_end_has_calls_without_an_answer() -> None:
    response = ModelResponse([ToolCallPart("pb_shop__buy", {})])
    assert "shop__buy" in unanswered([response])
    assert unanswered([response, ModelRequest([result(None)])]) == []
    assert unanswered([]) == []


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────────────

PICTURE = base64.b64encode(b"picture").decode()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({}, ""),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"structuredContent": {"a": 1}}, '{"a":1}'),
        ({"content": [{"type": "resource", "resource": {"uri": "f:x", "text": "inside"}}]}, ["inside"]),
    ],
)
def test_text_is_text_wherever_it_stands(raw: Json, expected: Any) -> None:
    assert returned(Result(raw)) == expected


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": "no base64!", "mimeType": "image/png"},
        {"type": "image", "data": PICTURE},
        {"type": "hologram", "data": PICTURE, "mimeType": "text/hologram"},
    ],
)
def test_what_models_do_not_take_as_a_file_is_told_in_words(block: Json) -> None:
    [part] = list(returned(Result({"content": [block]})))
    assert isinstance(part, str)
    assert block["type"] in part


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": PICTURE, "mimeType": "image/png"},
        {"type": "audio", "data": PICTURE, "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "f:x", "blob": PICTURE, "mimeType": "application/pdf"}},
    ],
)
def test_pictures_sounds_and_documents_are_files(block: Json) -> None:
    [part] = list(returned(Result({"content": [block]})))
    assert isinstance(part, BinaryContent)
    assert part.data == b"picture"


# ── approvals ────────────────────────────────────────────────────────────────────────────────────────────────────────

DELETE = Tool(server="shop", name="delete", public_name="shop__delete", definition=b"{}", fingerprint="")


@in_a_loop
async def test_a_call_from_outside_any_run_is_never_approved() -> None:
    assert not await run_approval(DELETE, {}, Caller())


@in_a_loop
async def test_runs_at_once_are_asked_each_for_itself() -> None:
    async def one(approved: bool) -> tuple[bool, int]:
        with of_run(approved=approved) as asked:
            await asyncio.sleep(0)
            return await run_approval(DELETE, {}, Caller()), len(asked.about)

    assert list(await asyncio.gather(one(True), one(False), one(True))) == [(True, 0), (False, 1), (True, 0)]


@in_a_loop
async def test_only_a_call_by_the_full_name_is_put_off() -> None:
    with of_run(approved=False) as asked:
        await run_approval(DELETE, {"a": 1}, Caller())
    with pytest.raises(ApprovalRequired) as put_off:
        deferred(asked, "shop__delete", is_own=False)
    assert put_off.value.metadata == {"tool": "shop__delete", "arguments": {"a": 1}}
    with pytest.raises(ApprovalRequired):
        deferred(asked, "call_tool", is_own=True)
    with pytest.raises(ToolFailed, match="shop__delete"):
        deferred(asked, "delete", is_own=False)
    deferred(asked, "batch_tools", is_own=True)


def test_without_the_framework_it_says_how_to_install_it() -> None:
    code = "import sys; sys.modules['pydantic_ai'] = None; import pegboard.integrations.pydantic_ai"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert "pip install 'pegboard[pydantic-ai]'" in done.stderr
