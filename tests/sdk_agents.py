"""Agents on the real SDKs, as small as their users write them: one class per wire, the same methods."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anthropic
import openai

from pegboard import Pegboard
from pegboard.board import Chat
from pegboard.integrations.anthropic_sdk import AnthropicTools
from pegboard.integrations.openai_sdk import ChatCompletionsTools, ResponsesTools
from pegboard.testing import FakeLLM, FakeSource, Move, tool_definition
from pegboard.types import Json

MOST_STEPS = 20
THINGS = ("invoice", "ticket", "parcel", "sensor", "lesson", "recipe", "vehicle", "contract", "camera", "budget")
DEEDS = ("create", "delete", "archive", "export", "rename", "assign", "approve", "count", "share", "restore")
PLAIN = Path(__file__).parent / "servers" / "plain.py"


def hub(tools: int = 500) -> FakeSource:
    """A source of many tools: hub__create_invoice_0, hub__delete_invoice_0, …"""
    return FakeSource("hub", [definition(number) for number in range(tools)])


def definition(number: int) -> Json:
    deed, thing, shelf = DEEDS[number % 10], THINGS[number // 10 % 10], number // 100
    about = f"{deed.capitalize()}s one {thing} of shelf {shelf}."
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    return tool_definition(f"{deed}_{thing}_{shelf}", about, inputSchema=schema)


def board_of(
    folder: Path, *sources: FakeSource, process: bool = False, skills: Path | None = None, **surface: Any
) -> Pegboard:
    """A board that keeps to this folder; with a `process`, one real server besides."""
    servers = {"plain": {"command": sys.executable, "args": [str(PLAIN), "--tools", "20"]}} if process else {}
    settings = {
        "surface": {"mode": "on", **surface},
        "search": {"embedder": "none"},
        "skills": {"enabled": skills is not None, "roots": [str(skills)] if skills else []},
        "store": {"cache_dir": str(folder / "cache"), "state_dir": str(folder / "state")},
    }
    return Pegboard(servers=servers, sources=sources, settings=settings)


def search(query: str, **more: Any) -> Move:
    return Move(calls=(("search_tools", {"query": query, **more}),))


def call(name: str, /, **arguments: Any) -> Move:
    return Move(calls=((name, arguments),))


def bridged(name: str, /, **arguments: Any) -> Move:
    return Move(calls=(("call_tool", {"name": name, "arguments": arguments}),))


class OnMessages:
    """A loop on Anthropic's Messages API."""

    direct = staticmethod(call)

    def __init__(self, fake: FakeLLM, chat: Chat, model: str = "claude-opus-5", *, stream: bool = False, **more: Any):
        self.client, self.model, self.stream = anthropic.AsyncAnthropic(**fake.options()), model, stream
        self.tools = AnthropicTools(chat, **more)
        self.history: list[Any] = []

    async def step(self, *, reads: bool = False) -> Any:
        """One request and what it comes to; `reads` shows the tools the history first."""
        arguments: Any = {"model": self.model, "max_tokens": 1000, "messages": self.history}
        arguments |= self.tools.tools(self.model, self.history if reads else None)
        if self.stream:
            async with self.client.messages.stream(**arguments) as stream:
                message: Any = await stream.get_final_message()
        else:
            message = await self.client.messages.create(**arguments)
        self.history.append({"role": "assistant", "content": message.content})
        return message

    async def say(self, text: str, *, reads: bool = False) -> str:
        """A user's turn until the model has nothing more to call: what it says then."""
        self.history.append({"role": "user", "content": text})
        for _ in range(MOST_STEPS):
            message = await self.step(reads=reads)
            results = await self.tools.results(message)
            if results is None:
                return "".join(block.text for block in message.content if block.type == "text")
            self.history.append({"role": "user", "content": results})
        raise AssertionError("it does not end")

    def answers(self) -> str:
        """What the last calls gave, as text."""
        blocks: Iterable[Any] = self.history[-2]["content"]
        return "\n".join(str(part.get("text", part)) for block in blocks for part in block["content"])


class OnResponses:
    """A loop on OpenAI's Responses API."""

    direct = staticmethod(call)

    def __init__(self, fake: FakeLLM, chat: Chat, model: str = "gpt-5.5", *, stream: bool = False, **more: Any):
        self.client, self.model, self.stream = openai.AsyncOpenAI(**fake.options()), model, stream
        self.tools = ResponsesTools(chat, **more)
        self.history: list[Any] = []

    async def step(self, *, reads: bool = False) -> Any:
        arguments: Any = {"model": self.model, "input": self.history}
        arguments |= self.tools.tools(self.model, self.history if reads else None)
        if self.stream:
            async with self.client.responses.stream(**arguments) as stream:
                response: Any = await stream.get_final_response()
        else:
            response = await self.client.responses.create(**arguments)
        self.history += response.output
        return response

    async def say(self, text: str, *, reads: bool = False) -> str:
        self.history.append({"role": "user", "content": text})
        for _ in range(MOST_STEPS):
            response = await self.step(reads=reads)
            results = await self.tools.results(response)
            if results is None:
                return str(response.output_text)
            self.history += results
        raise AssertionError("it does not end")

    def answers(self) -> str:
        return "\n".join(str(each.get("output", each)) for each in self.history if isinstance(each, dict))


class OnCompletions:
    """A loop on OpenAI's Chat Completions API."""

    direct = staticmethod(call)

    def __init__(self, fake: FakeLLM, chat: Chat, model: str = "gpt-4.1", *, stream: bool = False, **more: Any):
        self.client, self.model, self.stream = openai.AsyncOpenAI(**fake.options()), model, stream
        self.tools = ChatCompletionsTools(chat, **more)
        self.history: list[Any] = []

    async def step(self, *, reads: bool = False) -> Any:
        arguments: Any = {"model": self.model, "messages": self.history, **self.tools.tools()}
        if self.stream:
            async with self.client.chat.completions.stream(**arguments) as stream:
                completion: Any = await stream.get_final_completion()
        else:
            completion = await self.client.chat.completions.create(**arguments)
        self.history.append(completion.choices[0].message)
        return completion

    async def say(self, text: str, *, reads: bool = False) -> str:
        self.history.append({"role": "user", "content": text})
        for _ in range(MOST_STEPS):
            completion = await self.step(reads=reads)
            results = await self.tools.results(completion)
            if results is None:
                return str(completion.choices[0].message.content)
            self.history += results
        raise AssertionError("it does not end")

    def answers(self) -> str:
        return "\n".join(
            str(each["content"]) for each in self.history if isinstance(each, dict) and each["role"] == "tool"
        )
