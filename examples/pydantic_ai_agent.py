"""A Pydantic AI agent on a board of two MCP servers and a Python function; it is shown two tools and uses four.

python examples/pydantic_ai_agent.py                                  # a scripted model, no key needed
python examples/pydantic_ai_agent.py anthropic:claude-sonnet-4-5      # any model that Pydantic AI knows
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pegboard import Pegboard
from pegboard.integrations.pydantic_ai import PegboardCapability

SERVERS = Path(__file__).resolve().parent / "servers"
PROMPT = "How far is a marathon in kilometres? Have it noted, and tell me what the parcel with the medal costs."


def shipping_cost(weight_kg: float, express: bool = False) -> float:
    """What a parcel costs to send."""
    return weight_kg * (9.5 if express else 4.0)


def board_in(folder: str) -> Pegboard:
    """Two servers and a function. `Pegboard.open()` would take the servers of your pegboard.toml instead."""
    return Pegboard(
        tools=[shipping_cost],
        servers={
            "units": {"command": sys.executable, "args": [str(SERVERS / "units.py")]},
            "notes": {
                "command": sys.executable,
                "args": [str(SERVERS / "notes.py")],
                "env": {"NOTES_FILE": f"{folder}/notes.db"},
            },
        },
        settings={"surface": {"mode": "on"}, "store": {"cache_dir": folder, "state_dir": folder}},
    )


async def main(model: Any) -> None:
    """Runs the agent, and shows what its tools said."""
    with tempfile.TemporaryDirectory(prefix="pegboard-example-") as folder:
        async with board_in(folder) as board:
            await board.refresh()
            tools = PegboardCapability(board)
            agent = Agent(model, capabilities=[tools], deps_type=object)
            secretary = Agent(model if isinstance(model, str) else scripted(SECRETARY), deps_type=object)

            @agent.tool
            async def delegate(ctx: RunContext[object], task: str) -> str:
                """Gives a task to the secretary, who keeps the notes."""
                # The secretary begins with what is loaded here, and may use the notes alone.
                mine = tools.fork(ctx, "secretary", allow=["notes__*"])
                return (await secretary.run(task, capabilities=[mine])).output

            run = await agent.run(PROMPT)
            for message in run.all_messages():
                for part in message.parts:
                    if isinstance(part, ToolReturnPart):
                        print(f"{part.tool_name}: {part.model_response_str()}\n")
            print(run.output)


# ── the model that needs no key ──────────────────────────────────────────────────────────────────────────────────────

AGENT: list[ToolCallPart | TextPart] = [
    ToolCallPart("search_tools", {"query": "convert miles to kilometres", "limit": 1}),
    ToolCallPart("units__convert", {"value": 26.2188, "from_unit": "mi", "to_unit": "km"}),
    ToolCallPart("delegate", {"task": "Note that a marathon is 42.2 km."}),
    ToolCallPart("shipping_cost", {"weight_kg": "0.5"}),  # nobody searched for it, and a number came as text: it runs
    TextPart("A marathon is 42.2 km, which is noted, and the medal costs 2.0 to send."),
]
SECRETARY: list[ToolCallPart | TextPart] = [
    ToolCallPart("search_tools", {"query": "write a note", "limit": 1}),
    ToolCallPart("notes__add_note", {"text": "A marathon is 42.2 km."}),
    TextPart("It is noted."),
]


def scripted(moves: list[ToolCallPart | TextPart]) -> FunctionModel:
    """Plays these moves, and says what it was shown."""
    left = list(moves)

    def answer(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        print("listed:", ", ".join(tool.name for tool in info.function_tools))
        return ModelResponse(parts=[left.pop(0)])

    return FunctionModel(answer)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else scripted(AGENT)))
