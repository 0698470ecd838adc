"""The toolset with the one thing a toolset cannot do: run a call of a tool that was not on the list.

The framework refuses names it was not given before any toolset hears of them. This looks at each answer of the model
first, and lists what it calls. Above: whoever writes an agent. Below: `toolset`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from pegboard.board import Pegboard
from pegboard.integrations.pydantic_ai.toolset import Context, Options, PegboardToolset, toolsets_of


@dataclass(init=False)
class PegboardCapability(AbstractCapability[Any]):
    """A board for an agent: `Agent(model, capabilities=[PegboardCapability(board)])`."""

    toolset: AbstractToolset[Any]

    def __init__(
        self,
        tools: Pegboard | AbstractToolset[Any],
        *,
        id: str = "pegboard",  # noqa: A002  what the framework calls it
        **options: Unpack[Options],
    ) -> None:
        """A board, with the options of `PegboardToolset`; or such a toolset, which may be prefixed or wrapped."""
        if isinstance(tools, AbstractToolset):
            if options:
                raise TypeError(f"A toolset has its own options: give {', '.join(options)} to PegboardToolset.")
            self.toolset = tools
        else:
            self.toolset = PegboardToolset(tools, id=id, **options)
        self.id = id

    def get_toolset(self) -> AbstractToolset[Any]:
        """What the agent lists and calls."""
        return self.toolset

    def fork(
        self, ctx: Context, name: str, *, inherit: bool = True, allow: Sequence[str] | None = None
    ) -> PegboardCapability:
        """For a sub-agent that this run delegates to; as `PegboardToolset.fork`."""
        found: list[AbstractToolset[Any]] = []
        self.toolset.apply(found.append)
        mine = next(each for each in found if isinstance(each, PegboardToolset))
        return PegboardCapability(mine.fork(ctx, name, inherit=inherit, allow=allow), id=self.id or "pegboard")

    async def after_model_request(
        self, ctx: Context, *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Puts what the model calls, and was not given, among the tools of this step."""
        manager = ctx.tool_manager
        if manager is None or manager.tools is None:
            return response
        for call in response.tool_calls:
            if call.tool_name in manager.tools:
                continue
            tool = await _offered(call.tool_name, ctx)
            if tool is not None:
                manager.tools[call.tool_name] = tool
        return response


async def _offered(name: str, ctx: Context) -> ToolsetTool[Any] | None:
    """The tool that is meant, of the first board that has it; else of one that can say what is near."""
    for toolset in sorted(toolsets_of(ctx), key=lambda each: not each.knows(name, ctx)):
        if tool := await toolset.offered(name, ctx):
            return tool
    return None
