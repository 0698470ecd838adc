"""What each field of a request is: the APIs refuse a value of another type before they look at anything else.

Only what the other rules and the wires read is said here; what is not said may be anything, as fields to come may.
Above: the rules of each wire, of which these are the first. Below: `asked`. Pure.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pegboard.testing.llm.asked import Asked, Rule, blocks
from pegboard.types import Json


class _Schema(msgspec.Struct):
    """A schema of arguments, at its root."""

    properties: Json | None = None
    required: list[str] | None = None


class _Marker(msgspec.Struct):
    """Where the prompt is cached up to."""

    ttl: str | None = None


# ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Block(msgspec.Struct):
    """A block of content, of whatever kind."""

    type: str
    id: str | None = None
    name: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    tool_use_id: str | None = None
    input: Json | None = None
    content: str | Json | list[Json] | None = None
    cache_control: _Marker | None = None


class _Message(msgspec.Struct):
    """A message of anybody's."""

    role: str
    content: str | list[_Block]


class _MessagesTool(msgspec.Struct):
    """A tool, of the client's or of the API's."""

    name: str | None = None
    type: str | None = None
    description: str | None = None
    input_schema: _Schema | None = None
    defer_loading: bool | None = None
    cache_control: _Marker | None = None


class _Messages(msgspec.Struct):
    """A request of the Messages API."""

    model: str | None = None
    messages: list[_Message] | None = None
    tools: list[_MessagesTool] | None = None
    system: str | list[_Block] | None = None
    max_tokens: int | None = None
    stream: bool | None = None
    tool_choice: Json | None = None
    thinking: Json | None = None
    cache_control: _Marker | None = None


# ── Chat Completions ─────────────────────────────────────────────────────────────────────────────────────────────────


class _Function(msgspec.Struct):
    """A function as a tool has it."""

    name: str
    description: str | None = None
    parameters: _Schema | None = None
    strict: bool | None = None


class _Called(msgspec.Struct):
    """A function as a call has it."""

    name: str
    arguments: str


class _Call(msgspec.Struct):
    """A call that a message makes."""

    id: str
    type: str | None = None
    function: _Called | None = None


class _Said(msgspec.Struct):
    """A message of anybody's."""

    role: str
    content: str | list[Json] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None


class _CompletionsTool(msgspec.Struct):
    """A tool; its kind is for another rule."""

    type: str
    function: _Function | None = None


class _Completions(msgspec.Struct):
    """A request of Chat Completions."""

    model: str | None = None
    messages: list[_Said] | None = None
    tools: list[_CompletionsTool] | None = None
    stream: bool | None = None
    stream_options: Json | None = None


# ── Responses ────────────────────────────────────────────────────────────────────────────────────────────────────────


class _ResponsesTool(msgspec.Struct):
    """A tool, a function among others."""

    type: str
    name: str | None = None
    description: str | None = None
    parameters: _Schema | None = None
    strict: bool | None = None
    defer_loading: bool | None = None
    execution: str | None = None
    tools: list[_ResponsesTool] | None = None


class _Item(msgspec.Struct):
    """An item of the input."""

    type: str | None = None
    role: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | Json | None = None
    content: str | list[Json] | None = None
    status: str | None = None
    execution: str | None = None
    namespace: str | None = None
    tools: list[_ResponsesTool] | None = None


class _Responses(msgspec.Struct):
    """A request of the Responses API."""

    model: str | None = None
    input: str | list[_Item] | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: list[_ResponsesTool] | None = None
    store: bool | None = None
    stream: bool | None = None


_NEEDED = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    "tool_use": ("id", "name", "input"),
    "server_tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id",),
    "tool_search_tool_result": ("tool_use_id", "content"),
}
"""What blocks of these kinds cannot be without."""


def blocks_are_whole(asked: Asked) -> str | None:
    """No block lacks what its kind cannot be without."""
    for at, message in enumerate(asked.messages):
        for place, block in enumerate(blocks(message)):
            kind = str(block.get("type"))
            if missing := [field for field in _NEEDED.get(kind, ()) if block.get(field) is None]:
                return f"messages.{at}.content.{place}.{kind}.{missing[0]}: Field required"
    return None


def _held_against(shape: Any) -> Rule:
    def fields_are_of_their_types(asked: Asked) -> str | None:
        """No field has a value of another type than it is documented with."""
        try:
            msgspec.convert(asked.body, shape)
        except msgspec.ValidationError as error:
            return f"Invalid type: {error}"
        return None

    return fields_are_of_their_types


messages_are_typed = _held_against(_Messages)
completions_are_typed = _held_against(_Completions)
responses_are_typed = _held_against(_Responses)
