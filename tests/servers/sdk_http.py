"""A server made with the official SDK, over streamable HTTP: `python sdk_http.py [--json] [--stateless] [--resumable]`.

Its tools report progress, ask back, take their time, drop their connection and grow the list. Prints its address first.

    --json        answers in JSON bodies instead of event streams
    --stateless   no sessions in the handshake era
    --resumable   numbers its events and keeps them, so that a cut stream can be resumed
    --log FILE    append one line when a call of `wait` begins and when it is cancelled
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.types import JSONRPCMessage
from pydantic import BaseModel

MODERN = "2026-07-28"
server = MCPServer("sdk", version="1", log_level="ERROR")
log = ""


class Confirmation(BaseModel):
    """What the person is asked."""

    sure: bool


async def question() -> Elicit[Confirmation]:
    """The question."""
    return Elicit("Sure?", Confirmation)


@server.tool()
async def echo(text: str) -> str:
    """The text itself."""
    return text


@server.tool()
async def steps(count: int, ctx: Context) -> str:
    """Reports as many steps."""
    for number in range(1, count + 1):
        await ctx.report_progress(number, count, f"step {number}")
    return "done"


@server.tool()
async def ask(answer: Annotated[ElicitationResult[Confirmation], Resolve(question)]) -> str:
    """Asks back."""
    return f"{answer.action} {answer.data.sure if answer.action == 'accept' else '-'}"


@server.tool()
async def wait() -> str:
    """Waits until it is cancelled."""
    note("waiting")
    try:
        await asyncio.sleep(100)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "woke up"


@server.tool()
async def drop(ctx: Context) -> str:
    """Closes the connection that waits for its answer, then answers."""
    close = ctx.request_context.close_sse_stream
    assert close is not None
    await close()
    return "answered all the same"


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool and tells whoever listens."""
    server.tool(name="grown")(echo)
    if ctx.request_context.protocol_version == MODERN:
        await ctx.notify_tools_changed()
    else:
        await ctx.session.send_tool_list_changed()
    return "grown"


@server.tool()
async def grow_prompts(ctx: Context) -> str:
    """Adds a prompt and tells whoever listens."""
    server.prompt(name="grown")(echo)
    if ctx.request_context.protocol_version == MODERN:
        await ctx.notify_prompts_changed()
    else:
        await ctx.session.send_prompt_list_changed()
    return "grown"


def note(event: str) -> None:
    """One line in the log."""
    if log:
        with Path(log).open("a") as file:
            file.write(event + "\n")


class Memory(EventStore):
    """Every event, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        stream = self.events[int(last_event_id) - 1][0]
        for number, (each, message) in enumerate(self.events, 1):
            if each == stream and number > int(last_event_id) and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


@contextmanager
def sdk_http(*arguments: str) -> Iterator[str]:
    """Runs this file as a process; gives the address of its MCP endpoint."""
    command = [sys.executable, __file__, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    """Reads the command line and serves until killed."""
    global log
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--stateless", action="store_true")
    parser.add_argument("--resumable", action="store_true")
    parser.add_argument("--log", default="")
    options = parser.parse_args()
    log = options.log
    app = server.streamable_http_app(
        json_response=options.json,
        stateless_http=options.stateless,
        event_store=Memory() if options.resumable else None,
        retry_interval=100 if options.resumable else None,
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listener])


if __name__ == "__main__":
    main()
