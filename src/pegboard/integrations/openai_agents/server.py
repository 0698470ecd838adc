"""The server that an agent is given: what it lists is what this run has loaded, and every other tool stays callable.

Above: the framework, which asks for the list anew before each model request. Below: `runs`, `unlisted`, the board.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from inspect import isawaitable
from typing import Any

from agents import Agent, AgentBase, FunctionTool, Model, RunConfig, RunContextWrapper
from agents.mcp import MCPServer
from mcp.types import CallToolResult, GetPromptResult, ListPromptsResult
from mcp.types import Tool as MCPTool

from pegboard.board import Pegboard
from pegboard.errors import PegboardError
from pegboard.integrations.openai_agents.approvals import LOOKING, Approvals, calling
from pegboard.integrations.openai_agents.runs import TOKEN, UNKNOWN, Allow, ForkedRuns, Named, Run, Runs, Turn, enter
from pegboard.integrations.openai_agents.unlisted import UnlistedCalls, configured
from pegboard.types import Json, Reveal, Tool

Instructions = str | Callable[[RunContextWrapper[Any], Agent[Any]], str | Awaitable[str]] | None


class PegboardServer(MCPServer):
    """A board of tools as one MCP server of an agent. It does not own the board: whoever opened it closes it.

    `conversation` says whose loaded tools a run sees: nothing (each run begins anew), a key, a session, or a function
    of the run's context that gives one of these. Further keywords are those of `agents.mcp.MCPServer`.
    """

    def __init__(
        self,
        board: Pegboard,
        *,
        conversation: Named = None,
        allow: Allow = None,
        reveal: Reveal | None = "listed",
        search: bool = True,
        name: str = "pegboard",
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self._board, self._name, self._more = board, name, more
        self._approvals = Approvals(board.config.calls.approve)
        self._runs = Runs(board, conversation, allow=allow, reveal=reveal, search=search)

    @property
    def name(self) -> str:
        """What the framework calls it, in traces and in front of names where that is asked for."""
        return self._name

    async def connect(self) -> None:
        """Nothing to do: the board is open or it is not."""

    async def cleanup(self) -> None:
        """Nothing to do: the board is its owner's."""

    def conversation(self, conversation: Any) -> AbstractContextManager[None]:
        """`with server.conversation(session):` has the runs that start in there share what they load."""
        return self._runs.bound(conversation)

    def fork(self, name: str, *, inherit: bool = True, allow: Sequence[str] | None = None) -> PegboardServer:
        """The server of a sub-agent: it begins with a snapshot of what this one has loaded in the same run."""
        child = PegboardServer(self._board, name=f"{self._name}-{name}", **self._more)
        child._runs = ForkedRuns(self._runs, name, inherit=inherit, allow=allow, board=self._board)
        return child

    def instructions(self, instructions: Instructions = None) -> Callable[..., Awaitable[str]]:
        """The agent's instructions, with a paragraph that says there is more than is listed, while that is so."""

        async def told(context: RunContextWrapper[Any], agent: Agent[Any]) -> str:
            said = instructions(context, agent) if callable(instructions) else instructions
            own = await said if isawaitable(said) else said
            return "\n\n".join(filter(None, (own, self._runs.of(context).chat.guidance())))

        return told

    def model(self, model: Model) -> Model:
        """The same model, with its calls of tools that are not on the list carried out."""
        return UnlistedCalls(model)

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """The same, with calls of tools that are not on the list carried out, or told how to get at them."""
        return configured(config or RunConfig())

    async def list_tools(
        self, run_context: RunContextWrapper[Any] | None = None, agent: AgentBase[Any] | None = None
    ) -> list[MCPTool]:
        """What is shown in this turn: Pegboard's own, what is pinned, and what the run has loaded, in that order."""
        run = self._runs.of(run_context)
        shown = run.chat.surface().definitions
        if run_context is None or agent is None:
            return [_listed(each, run) for each in shown]
        enter(run, Turn(self, run_context, agent))
        taken = {tool.name for tool in agent.tools if isinstance(tool, FunctionTool)}
        if stolen := [name for each in shown if run.chat.is_own(name := str(each["name"])) and name in taken]:
            raise PegboardError(
                f"The agent {agent.name!r} has a tool named {stolen[0]!r}, and so has Pegboard.",
                hint="Give the agent's another name, or `search=False` to the server: then nothing is deferred.",
            )
        # What the agent was given itself stays, and stays alone: two of one name would hide each other.
        return [_listed(each, run) for each in shown if each["name"] not in taken]

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        """What the tool says; a tool that fails says so in its result."""
        run = self._runs.called(meta)
        with calling(await self._approved(tool_name, arguments, run, meta)):
            result = await run.chat.call(tool_name, arguments or {})
        return CallToolResult.model_validate(result.raw)

    async def list_prompts(self) -> ListPromptsResult:
        """None: prompts are for people, and go through the gateway."""
        return ListPromptsResult(prompts=[])

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> GetPromptResult:
        """There are none."""
        raise PegboardError(f"There is no prompt named {name!r}.", hint="Only `pegboard serve` has prompts.")

    def _get_needs_approval_for_tool(self, tool: MCPTool, agent: AgentBase[Any] | None) -> Any:
        """What the framework asks of each tool it is about to list: False, or a function of the call."""
        if tool.name in LOOKING or not (self._approvals or self._needs_approval_policy):
            return False
        run = self._runs.called(tool.meta)

        async def needed(context: RunContextWrapper[Any], arguments: dict[str, Any], _: str) -> bool:
            names = self._board.desk.called(tool.name, arguments)
            return any([await self._asks(name, run, context, agent) for name in names])

        return needed

    async def _approved(self, name: str, arguments: Any, run: Run, meta: dict[str, Any] | None) -> list[str]:
        """The tools about which `_asks` said yes before this call, whenever and wherever that was."""
        if not self._approvals or meta is None or TOKEN not in meta or UNKNOWN in meta:
            return []
        meant = [await run.known(each) for each in self._board.desk.called(name, arguments)]
        return [tool.public_name for tool in meant if tool is not None]

    async def _asks(self, name: str, run: Run, context: RunContextWrapper[Any], agent: AgentBase[Any] | None) -> bool:
        """Whether a person is asked about a call of the tool of this name, however it is spelt."""
        tool = await run.known(name)
        if tool is not None and self._approvals.wants(tool):
            return True
        if tool is None and isinstance(policy := self._needs_approval_policy, dict):
            # It may be of a server that was never asked for its tools: what is said of one of them may be said of it.
            return any(policy.values())
        theirs = super()._get_needs_approval_for_tool(_listed(_definition(name, tool), run), agent)
        return bool(await theirs(context, {}, "") if callable(theirs) else theirs)


def _listed(definition: Json, run: Run) -> MCPTool:
    """A definition as the framework wants it, marked with its run; what else is in its `_meta` is for clients."""
    return MCPTool.model_validate({**definition, "_meta": run.mark})


def _definition(name: str, tool: Tool | None) -> Json:
    """The tool's definition; of one that nobody knows, as much as its name says."""
    return {**tool.parsed(), "name": tool.public_name} if tool else {"name": name, "inputSchema": {"type": "object"}}
