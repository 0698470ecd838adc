"""Calls of tools that are not on the list. The framework ends a run over them; here they are carried out.

A model that is wrapped has its answer looked through: the list that the runner resolves calls with gets what is
missing, with approvals, guardrails, hooks and spans as for any other tool. Where the model is not wrapped, the tool is
loaded and the model is told to call it again. Above: `server`. Below: `runs`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator, Iterable
from inspect import isawaitable
from typing import Any
from weakref import WeakKeyDictionary

from agents import FunctionTool, Model, ModelProvider, ModelResponse, RunConfig, Tool
from agents.items import TResponseStreamEvent
from agents.mcp import MCPUtil
from agents.retry import ModelRetryAdvice, ModelRetryAdviceRequest
from agents.run_config import ToolErrorFormatter, ToolErrorFormatterArgs
from agents.tool import default_tool_error_function, get_function_tool_origin
from agents.tool_context import ToolContext
from mcp.types import Tool as MCPTool
from openai.types.responses import ResponseFunctionToolCall

from pegboard.errors import ToolNotFound
from pegboard.integrations.openai_agents.runs import UNKNOWN, Run, Turn, turns
from pegboard.invoke.words import told as words
from pegboard.platform_tools.definitions import SEARCH
from pegboard.types import Tool as Meant


class UnlistedCalls(Model):
    """A model whose calls of tools that it was not shown are carried out all the same."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def get_response(self, *args: Any, **more: Any) -> ModelResponse:
        """The model's answer."""
        response = await self._model.get_response(*args, **more)
        await _add_missing(response.output, _tools(args, more), _handoffs(args, more))
        return response

    async def stream_response(self, *args: Any, **more: Any) -> AsyncIterator[TResponseStreamEvent]:
        """The model's answer as it comes."""
        tools, handoffs = _tools(args, more), _handoffs(args, more)
        async for event in self._model.stream_response(*args, **more):
            # The runner announces a call when its item is done, and resolves all of them when the answer is.
            if event.type == "response.output_item.done":
                await _add_missing([event.item], tools, handoffs)
            elif event.type == "response.completed":
                await _add_missing(event.response.output, tools, handoffs)
            yield event

    async def close(self) -> None:
        """Closes the model."""
        await self._model.close()

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """What the model advises."""
        return self._model.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._model._cleanup_on_run_end(owner)

    def __getattr__(self, name: str) -> Any:
        if name == "_model":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._model, name)


class UnlistedCallsProvider(ModelProvider):
    """A provider whose models are all wrapped."""

    def __init__(self, provider: ModelProvider) -> None:
        self._provider = provider
        self._wrapped: WeakKeyDictionary[Model, Model] = WeakKeyDictionary()

    def get_model(self, model_name: str | None) -> Model:
        """The model of this name."""
        model = self._provider.get_model(model_name)
        return self._wrapped.setdefault(model, UnlistedCalls(model))

    async def aclose(self) -> None:
        """Closes the provider."""
        await self._provider.aclose()


def configured(config: RunConfig) -> RunConfig:
    """The same, for runs that end over no call of a tool that is not on the list."""
    return dataclasses.replace(
        config,
        model=UnlistedCalls(config.model) if isinstance(config.model, Model) else config.model,
        model_provider=UnlistedCallsProvider(config.model_provider),
        tool_not_found_behavior="return_error_to_model",
        tool_error_formatter=_telling(config.tool_error_formatter),
    )


def _telling(theirs: ToolErrorFormatter | None) -> ToolErrorFormatter:
    async def told(args: ToolErrorFormatterArgs[Any]) -> str | None:
        own = theirs(args) if theirs is not None else None
        said = await own if isawaitable(own) else own
        run = next((run for run in turns() if run.usage is args.run_context.usage), None)
        if said is not None or args.kind != "tool_not_found" or run is None:
            return said
        try:
            tool = await run.meant(args.tool_name)
        except ToolNotFound as error:
            return words(error)
        found = await run.chat.call(SEARCH, {"query": f"select:{tool.public_name}"})
        return f"{args.tool_name} was not on your list of tools. {found.text}"

    return told


async def _add_missing(output: Iterable[Any], tools: list[Tool], handoffs: Iterable[Any]) -> None:
    """Adds to the runner's own list what the answer calls and the list does not have."""
    calls = [each for each in output if isinstance(each, ResponseFunctionToolCall)]
    known = {tool.name for tool in tools} | {handoff.tool_name for handoff in handoffs}
    missing = dict.fromkeys(call.name for call in calls if call.name not in known)
    if not missing:
        return
    present = {_server_of(tool) for tool in tools}
    here = [(run, run.turn) for run in turns() if run.turn is not None and run.turn.server.name in present]
    for name in missing if here else ():
        meant = [(run, turn, await run.known(name)) for run, turn in here]
        tools.append(await _reached(name, *next((each for each in meant if each[2]), meant[0])))


async def _reached(name: str, run: Run, turn: Turn, tool: Meant | None) -> FunctionTool:
    """The tool that is called so; for a name that nobody knows, one that says what comes near it."""
    if tool is not None:
        await run.chat.call(SEARCH, {"query": f"select:{tool.public_name}"})
        listed = await MCPUtil.get_function_tools(
            turn.server,
            False,
            turn.context,
            turn.agent,
            failure_error_function=_failure(turn),
            server_index=next((at for at, each in enumerate(turn.agent.mcp_servers) if each is turn.server), 0),
        )
        # The very tool that is on the next list: a run that is paused for an approval finds it there again.
        same = [each for each in listed if each.name == name and isinstance(each, FunctionTool)]
        if same and not turn.agent.mcp_config.get("include_server_in_tool_names"):
            return same[0]
    mark = run.mark if tool is not None else {**run.mark, UNKNOWN: True}
    definition = {"name": tool.public_name if tool else name, "inputSchema": {"type": "object"}, "_meta": mark}
    return _by_another_name(
        MCPUtil.to_function_tool(
            MCPTool.model_validate(definition),
            turn.server,
            False,
            turn.agent,
            failure_error_function=_failure(turn),
            tool_name_override=name,
        )
    )


def _by_another_name(tool: FunctionTool) -> FunctionTool:
    """The same under a name that no list has. A run cannot be paused over it: it would not find the tool again."""

    async def invoke(context: ToolContext[Any], given: str) -> Any:
        needed = tool.needs_approval
        if callable(needed):
            needed = await needed(context, _arguments(given), context.tool_call_id)
        if needed:
            return f"{tool.name} needs the approval of a person. Call it as your list of tools has it, to ask for that."
        return await tool.on_invoke_tool(context, given)

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.params_json_schema,
        on_invoke_tool=invoke,
        strict_json_schema=False,
        tool_input_guardrails=tool.tool_input_guardrails,
        tool_output_guardrails=tool.tool_output_guardrails,
    )


def _arguments(given: str) -> dict[str, Any]:
    try:
        read = json.loads(given or "{}")
    except ValueError:
        return {}  # the call itself says what is wrong with them
    return read if isinstance(read, dict) else {}


def _failure(turn: Turn) -> Any:
    return turn.agent.mcp_config.get("failure_error_function", default_tool_error_function)


def _server_of(tool: Tool) -> str | None:
    origin = get_function_tool_origin(tool) if isinstance(tool, FunctionTool) else None
    return origin.mcp_server_name if origin is not None else None


def _tools(args: tuple[Any, ...], more: dict[str, Any]) -> list[Tool]:
    tools: list[Tool] = more["tools"] if "tools" in more else args[3]
    return tools


def _handoffs(args: tuple[Any, ...], more: dict[str, Any]) -> list[Any]:
    handoffs: list[Any] = more["handoffs"] if "handoffs" in more else args[5]
    return handoffs
