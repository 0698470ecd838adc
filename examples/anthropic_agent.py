"""A loop on the `anthropic` SDK whose model finds its tools: `python examples/anthropic_agent.py`.

Without ANTHROPIC_API_KEY a script plays the model, over the real SDK, and the API's rules are checked all the same.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from anthropic import AsyncAnthropic
from anthropic.types import ContentBlock, MessageParam

from pegboard import Pegboard
from pegboard.integrations.anthropic_sdk import AnthropicTools
from pegboard.testing import FakeLLM, Move

UNITS = Path(__file__).resolve().parent / "servers" / "units.py"
MODEL = "claude-opus-5"
QUESTION = "How many kilometres is a marathon of 26.2 miles? Make a note of it."
SCRIPT = [
    Move(text="I need a converter.", calls=(("search_tools", {"query": "convert miles to kilometres", "limit": 2}),)),
    Move(calls=(("units__convert", {"value": 26.2, "from_unit": "mi", "to_unit": "km"}),)),
    Move(text="And a place for notes.", calls=(("search_tools", {"query": "write down a note", "limit": 1}),)),
    Move(calls=(("add_note", {"text": "A marathon is 42.2 km."}),)),
    Move(text="A marathon is 42.2 km; I made a note of it."),
]


def add_note(text: str) -> str:
    """Writes a note down."""
    return f"Noted: {text}"


def connect() -> AsyncAnthropic:
    """The real model where there is a key, else the script."""
    return AsyncAnthropic() if os.environ.get("ANTHROPIC_API_KEY") else AsyncAnthropic(**FakeLLM(SCRIPT).options())


def shown(block: ContentBlock) -> str:
    """What the model said or called, in short."""
    return (
        f"called {block.name}" if block.type == "tool_use" else f"said {block.text!r}" if block.type == "text" else ""
    )


async def converse(board: Pegboard, client: AsyncAnthropic) -> str:
    """One question, as many steps as it takes."""
    tools = AnthropicTools(board.conversation("marathon"), cache="5m")
    history: list[MessageParam] = [{"role": "user", "content": QUESTION}]
    for _ in range(20):
        arguments = tools.tools(MODEL)
        message = await client.messages.create(model=MODEL, max_tokens=1024, messages=history, **arguments)
        history.append({"role": "assistant", "content": message.content})
        print(f"{len(arguments['tools'])} tools sent;", ", ".join(shown(block) for block in message.content))
        results = await tools.results(message)
        if results is None:
            return "".join(block.text for block in message.content if block.type == "text")
        history.append({"role": "user", "content": results})
    return "It did not come to an end."


async def main() -> None:
    """A server and a function, of which the model sees nothing before it searches."""
    with tempfile.TemporaryDirectory(prefix="pegboard-") as folder:
        servers = {"units": {"command": sys.executable, "args": [str(UNITS)]}}
        store = {"cache_dir": f"{folder}/cache", "state_dir": f"{folder}/state"}
        settings = {"surface": {"mode": "on"}, "store": store}
        async with Pegboard(tools=[add_note], servers=servers, settings=settings) as board:
            await board.refresh()
            print(await converse(board, connect()))


if __name__ == "__main__":
    asyncio.run(main())
