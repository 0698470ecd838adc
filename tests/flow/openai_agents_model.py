"""The script of `pegboard.testing` as a model of the OpenAI Agents SDK."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from agents import FunctionTool, Handoff, Model, ModelResponse, RunConfig, Usage
from agents.items import TResponseStreamEvent
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
)

from pegboard.testing import Move, ScriptedModel, Shown

QUIET = RunConfig(tracing_disabled=True)
"""For every run in a test: traces would go out to the network."""

_numbers = itertools.count(1)


def says(text: str) -> Move:
    return Move(text=text)


def calls(name: str, /, **arguments: Any) -> Move:
    return Move(calls=((name, arguments),))


def finds(query: str) -> Move:
    return calls("search_tools", query=query)


class PlayedModel(Model):
    """Plays moves, and remembers each request as it was sent."""

    def __init__(self, *moves: Move | Callable[[Shown], Move]) -> None:
        self.script = ScriptedModel(moves)

    @property
    def shown(self) -> list[Shown]:
        return self.script.shown

    @property
    def outputs(self) -> list[str]:
        """The text of every tool result in the last request."""
        items = [each for each in self.shown[-1].messages if each.get("type") == "function_call_output"]
        return [output_text(each["output"]) for each in items]

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002 - the framework gives it by this name
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Handoff[Any, Any]],
        tracing: Any,
        **_: Any,
    ) -> ModelResponse:
        messages = (input,) if isinstance(input, str) else tuple(input)
        shown = Shown(tools=definitions(tools, handoffs), messages=messages, system=system_instructions or "")
        return ModelResponse(output=list(items_of(self.script.answer(shown))), usage=Usage(), response_id=None)

    async def stream_response(self, *args: Any, **more: Any) -> AsyncIterator[TResponseStreamEvent]:
        output = (await self.get_response(*args, **more)).output
        for at, item in enumerate(output):
            yield ResponseOutputItemDoneEvent(
                type="response.output_item.done", item=item, output_index=at, sequence_number=at
            )
        response = Response(
            id="r", created_at=0, model="played", object="response", output=output,
            tool_choice="auto", tools=[], parallel_tool_calls=True,
        )  # fmt: skip
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=len(output))


def definitions(tools: Iterable[Any], handoffs: Iterable[Handoff[Any, Any]] = ()) -> tuple[dict[str, Any], ...]:
    """The tools as the Responses API is sent them."""
    functions = [
        {"name": each.name, "description": each.description, "parameters": each.params_json_schema}
        for each in tools
        if isinstance(each, FunctionTool)
    ]
    return (*functions, *({"name": each.tool_name, "description": each.tool_description} for each in handoffs))


def items_of(move: Move) -> Iterable[Any]:
    if move.text:
        text = ResponseOutputText(type="output_text", text=move.text, annotations=[])
        yield ResponseOutputMessage(
            id=f"m{next(_numbers)}", type="message", role="assistant", status="completed", content=[text]
        )
    for name, arguments in move.calls:
        number = next(_numbers)
        given = json.dumps(arguments)
        yield ResponseFunctionToolCall(
            type="function_call", id=f"f{number}", call_id=f"c{number}", name=name, arguments=given
        )


def output_text(output: Any) -> str:
    blocks = output if isinstance(output, list) else [{"text": output}]
    return "\n".join(str(block.get("text", block.get("image_url"))) for block in blocks)
