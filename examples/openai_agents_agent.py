"""An agent of the OpenAI Agents SDK on a board of two MCP servers and a Python function; it is shown two tools and uses
four.

python examples/openai_agents_agent.py                # a scripted model, no key needed
python examples/openai_agents_agent.py gpt-5.4        # any model that the SDK knows
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, ToolCallOutputItem, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from pegboard import Pegboard
from pegboard.integrations.openai_agents import PegboardServer

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


async def main(model: str | None) -> None:
    """Runs the agent, and shows what its tools said."""
    with tempfile.TemporaryDirectory(prefix="pegboard-example-") as folder:
        async with board_in(folder) as board:
            await board.refresh()
            server = PegboardServer(board)
            # The secretary begins with what is loaded when it is asked, and may use the notes alone.
            notes = server.fork("secretary", allow=["notes__*"])
            secretary: Agent[Any] = Agent(
                "secretary",
                model=model or notes.model(Scripted(SECRETARY)),
                mcp_servers=[notes],
                instructions=notes.instructions("You keep the notes."),
            )
            agent: Agent[Any] = Agent(
                "agent",
                model=model or server.model(Scripted(AGENT)),
                mcp_servers=[server],
                instructions=server.instructions("You are brief."),
                tools=[secretary.as_tool("secretary", "Gives a task to the secretary, who keeps the notes.")],
            )
            run = await Runner.run(agent, PROMPT, run_config=server.run_config(RunConfig(tracing_disabled=not model)))
            for item in run.new_items:
                if isinstance(item, ToolCallOutputItem):
                    print(item.output["text"] if isinstance(item.output, dict) else item.output, end="\n\n")
            print(run.final_output)


# ── the model that needs no key ──────────────────────────────────────────────────────────────────────────────────────

Moves = list[str | tuple[str, dict[str, Any]]]

AGENT: Moves = [
    ("search_tools", {"query": "convert miles to kilometres", "limit": 1}),
    ("units__convert", {"value": 26.2188, "from_unit": "mi", "to_unit": "km"}),
    ("secretary", {"input": "Note that a marathon is 42.2 km."}),
    ("shipping_cost", {"weight_kg": "0.5"}),  # nobody searched for it, and a number came as text: it runs
    "A marathon is 42.2 km, which is noted, and the medal costs 2.0 to send.",
]
SECRETARY: Moves = [
    ("search_tools", {"query": "write a note", "limit": 1}),
    ("notes__add_note", {"text": "A marathon is 42.2 km."}),
    "It is noted.",
]


class Scripted(Model):
    """Plays these moves, and says what it was shown."""

    def __init__(self, moves: Moves) -> None:
        self._left = list(enumerate(moves))

    async def get_response(self, *_: Any, **request: Any) -> ModelResponse:
        """The next move."""
        print("listed:", ", ".join(tool.name for tool in request["tools"]))
        number, move = self._left.pop(0)
        return ModelResponse(output=[_item(f"{id(self)}-{number}", move)], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Not in this example."""
        raise NotImplementedError


def _item(key: str, move: str | tuple[str, dict[str, Any]]) -> ResponseOutputMessage | ResponseFunctionToolCall:
    if isinstance(move, str):
        text = ResponseOutputText(type="output_text", text=move, annotations=[])
        return ResponseOutputMessage(id=key, type="message", role="assistant", status="completed", content=[text])
    name, arguments = move
    return ResponseFunctionToolCall(type="function_call", call_id=key, name=name, arguments=json.dumps(arguments))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
