"""A LangChain agent on a board of two MCP servers and a Python function; it is shown three tools and uses five.

python examples/langchain_agent.py                                # a scripted model, no key needed
python examples/langchain_agent.py anthropic:claude-opus-5-5      # any model whose LangChain package is installed
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from pegboard import Pegboard
from pegboard.integrations.langchain import PegboardMiddleware

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


def main(model: str | None = None) -> None:
    """Runs the agent, and shows what its tools said. In async code: `async with`, and `await agent.ainvoke(...)`."""
    with tempfile.TemporaryDirectory(prefix="pegboard-example-") as folder, board_in(folder) as board:
        board.wait(board.refresh())
        middleware = PegboardMiddleware(board)
        # The secretary begins with what is loaded here, and may use the notes alone.
        secretary = create_agent(
            model or scripted(SECRETARY), middleware=[middleware.fork("secretary", allow=["notes__*"])]
        )

        @tool
        def delegate(task: str) -> str:
            """Gives a task to the secretary, who keeps the notes."""
            done = secretary.invoke({"messages": [HumanMessage(task)]})
            return str(done["messages"][-1].text)

        agent = create_agent(
            model or scripted(AGENT), [delegate], middleware=[middleware], checkpointer=InMemorySaver()
        )
        run = agent.invoke({"messages": [HumanMessage(PROMPT)]}, {"configurable": {"thread_id": "marathon"}})
        for message in run["messages"]:
            if isinstance(message, ToolMessage):
                print(f"{message.name}: {message.text}\n")
        print(run["messages"][-1].text)


# ── the model that needs no key ──────────────────────────────────────────────────────────────────────────────────────


def turn(name: str, arguments: dict[str, Any]) -> AIMessage:
    """A turn in which the model calls a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}])


AGENT = [
    turn("search_tools", {"query": "convert miles to kilometres", "limit": 1}),
    turn("units__convert", {"value": 26.2188, "from_unit": "mi", "to_unit": "km"}),
    turn("delegate", {"task": "Note that a marathon is 42.2 km."}),
    turn("shipping_cost", {"weight_kg": "0.5"}),  # nobody searched for it, and a number came as text: it runs
    AIMessage("A marathon is 42.2 km, which is noted, and the medal costs 2.0 to send."),
]
SECRETARY = [
    turn("notes__add_note", {"text": "A marathon is 42.2 km."}),
    AIMessage("Noted."),
]


class Scripted(GenericFakeChatModel):
    """Says what it was given to say, and shows which tools it was sent."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Takes any."""
        names = [each["function"]["name"] if isinstance(each, dict) else each.name for each in tools]
        print(f"  (the model sees {', '.join(names)})")
        return self


def scripted(turns: Sequence[AIMessage]) -> Scripted:
    """A model that makes these turns."""
    return Scripted(messages=iter(turns))


if __name__ == "__main__":
    main(*sys.argv[1:2])
