"""A scripted model as Pydantic AI's models are: asked at once or in a stream."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from pegboard.testing import Move, ScriptedModel, Shown


def model_of(script: ScriptedModel, **options: Any) -> FunctionModel:
    """The framework's model that plays this script."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        move = _move(script, messages, info)
        calls = [ToolCallPart(name, arguments) for name, arguments in move.calls]
        return ModelResponse(parts=[*([TextPart(move.text)] if move.text or not calls else []), *calls])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        move = _move(script, messages, info)
        if move.text:
            yield move.text
        for number, (name, arguments) in enumerate(move.calls):
            yield {number: DeltaToolCall(name=name, json_args=json.dumps(arguments))}

    return FunctionModel(answer, stream_function=stream, **options)


def _move(script: ScriptedModel, messages: list[ModelMessage], info: AgentInfo) -> Move:
    tools = tuple(
        {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters_json_schema}
        for tool in info.function_tools
    )
    return script.answer(Shown(tools=tools, messages=tuple(messages), system=info.instructions or ""))


def results(messages: list[ModelMessage]) -> list[tuple[str, Any, str]]:
    """What tools answered: name, content, how it ended."""
    return [
        (part.tool_name, part.content, part.outcome)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
