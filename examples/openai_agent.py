"""Loops on the `openai` SDK whose model finds its tools: `python examples/openai_agent.py [responses | chat]`.

Without OPENAI_API_KEY a script plays the model, over the real SDK, and the API's rules are checked all the same.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam

from pegboard import Pegboard
from pegboard.integrations.openai_sdk import ChatCompletionsTools, ResponsesTools
from pegboard.testing import FakeLLM, Move

UNITS = Path(__file__).resolve().parent / "servers" / "units.py"
MODEL, CHAT_MODEL = "gpt-5.5", "gpt-4.1"
QUESTION = "How many kilometres is a marathon of 26.2 miles?"
SEARCH = Move(calls=(("search_tools", {"query": "convert miles to kilometres", "limit": 2}),))
ARGUMENTS = {"value": 26.2, "from_unit": "mi", "to_unit": "km"}
ANSWER = Move(text="A marathon is 42.2 km.")
ON_RESPONSES = [SEARCH, Move(calls=(("units__convert", ARGUMENTS),)), ANSWER]
ON_CHAT = [SEARCH, Move(calls=(("call_tool", {"name": "units__convert", "arguments": ARGUMENTS}),)), ANSWER]


def connect(script: list[Move]) -> AsyncOpenAI:
    """The real model where there is a key, else the script."""
    return AsyncOpenAI() if os.environ.get("OPENAI_API_KEY") else AsyncOpenAI(**FakeLLM(script).options())


async def on_responses(board: Pegboard) -> str:
    """Native: the model has the API's own search, and our index answers it."""
    client, tools = connect(ON_RESPONSES), ResponsesTools(board.conversation("marathon"))
    items: list[ResponseInputItemParam] = [{"role": "user", "content": QUESTION}]
    for _ in range(20):
        response = await client.responses.create(model=MODEL, input=items, **tools.tools(MODEL))
        print("came:", ", ".join(item.type for item in response.output))
        results = await tools.results(response)
        if results is None:
            return response.output_text
        items += [*response.output, *results]  # type: ignore[list-item]
    return "It did not come to an end."


async def on_chat(board: Pegboard) -> str:
    """The bridge: the list of tools is four long and never changes."""
    client, tools = connect(ON_CHAT), ChatCompletionsTools(board.conversation("chat", reveal="called"))
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": QUESTION}]
    for _ in range(20):
        completion = await client.chat.completions.create(model=CHAT_MODEL, messages=messages, **tools.tools())
        message = completion.choices[0].message
        print("came:", ", ".join(call.type for call in message.tool_calls or ()) or "text")
        results = await tools.results(completion)
        if results is None:
            return message.content or ""
        messages += [message, *results]  # type: ignore[list-item]
    return "It did not come to an end."


async def main() -> None:
    """A server of which the model sees nothing before it searches."""
    with tempfile.TemporaryDirectory(prefix="pegboard-") as folder:
        servers = {"units": {"command": sys.executable, "args": [str(UNITS)]}}
        store = {"cache_dir": f"{folder}/cache", "state_dir": f"{folder}/state"}
        async with Pegboard(servers=servers, settings={"surface": {"mode": "on"}, "store": store}) as board:
            await board.refresh()
            print(await (on_chat if sys.argv[1:] == ["chat"] else on_responses)(board))


if __name__ == "__main__":
    asyncio.run(main())
