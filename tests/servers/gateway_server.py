"""The gateway over a desk for tests, as a process of its own: stdio, or HTTP with `--http PORT` (0: a free one).

    --token-env NAME   as in `pegboard serve`
    --conversation X   as in `pegboard serve`
    --limit BYTES      the longest message

Every tool does one thing: `echo`, `fail`, `refuse`, `boom`, `count`, `wait`, `cancelled`, `ask`, `ask_twice`, `sample`,
`grow`, `load`, `whoami`, `meta`, `noise`, `big`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import Any

from pegboard.errors import CallRefused, PegboardError, RemoteError
from pegboard.gateway.identity import Origin
from pegboard.gateway.lobby import Lobby
from pegboard.gateway.stdio import serve_stdio, take_stdout
from pegboard.testing import FakeDesk, Handler, text_result, tool_definition
from pegboard.types import CallContext, Caller, Json, Progress
from pegboard.wire.admission import Admission

TOOLS = (
    "echo", "fail", "refuse", "boom", "count", "wait", "cancelled", "ask", "ask_twice", "sample", "grow", "load",
    "whoami", "meta", "noise", "big",
)  # fmt: skip
QUESTION: Json = {
    "mode": "form",
    "message": "Who are you?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}


class TestDesk(FakeDesk):
    """A desk whose tools show each thing a gateway has to carry."""

    __test__ = False

    def __init__(self) -> None:
        handlers: dict[str, Handler | Json | PegboardError] = {
            "echo": lambda arguments, _: text_result(str(arguments.get("text"))),
            "fail": text_result("it broke", is_error=True),
            "refuse": CallRefused("Not today.", hint="Come back tomorrow."),
            "remote": RemoteError("far", -31000, "closed", {"why": "sunday"}),
            "boom": self._boom,
            "count": self._count,
            "wait": self._wait,
            "cancelled": self._cancelled,
            "ask": self._ask,
            "ask_twice": self._ask_twice,
            "sample": self._sample,
            "grow": self._grow,
            "meta": lambda _, context: text_result(str(sorted(context.meta or {}))),
            "noise": self._noise,
            "big": lambda arguments, _: text_result("x" * int(arguments.get("size", 1_000_000))),
        }
        region = {"type": "string", "x-mcp-header": "Region"}
        routed = tool_definition("route", inputSchema={"type": "object", "properties": {"region": region}})
        super().__init__([*TOOLS, routed], results=handlers, instructions="Search first.")
        self._cancellations = asyncio.Semaphore(0)
        self.lobby: Lobby | None = None

    async def call_tool(self, name: str, arguments: Any, caller: Caller, context: CallContext) -> Json:
        if name == "whoami":
            return text_result(f"{caller.identity}|{caller.conversation}|{','.join(caller.allow or ())}")
        if name == "load":
            self.loaded.setdefault(caller.conversation, []).append(tool_definition(arguments["name"]))
            return text_result("loaded")
        return await super().call_tool(name, arguments, caller, context)

    def _boom(self, arguments: Json, context: CallContext) -> Json:
        raise ZeroDivisionError("the secret is 42")

    def _count(self, arguments: Json, context: CallContext) -> Json:
        for done in range(1, 4):
            if context.on_progress is not None:
                context.on_progress(Progress(done, 3, f"step {done}"))
        return text_result("counted")

    async def _wait(self, arguments: Json, context: CallContext) -> Json:
        if context.on_progress is not None:
            context.on_progress(Progress(1, 2, "waiting"))
        try:
            await asyncio.Event().wait()
        finally:
            self._cancellations.release()
        return text_result("never")

    async def _cancelled(self, arguments: Json, context: CallContext) -> Json:
        await self._cancellations.acquire()
        return text_result("yes")

    async def _ask(self, arguments: Json, context: CallContext) -> Json:
        if context.on_ask is None:
            return text_result("nobody to ask", is_error=True)
        reply = await context.on_ask("elicitation/create", QUESTION)
        return text_result(f"hello {reply['content']['name']}" if reply.get("action") == "accept" else "never mind")

    async def _ask_twice(self, arguments: Json, context: CallContext) -> Json:
        assert context.on_ask is not None
        first = await context.on_ask("elicitation/create", QUESTION)
        second = await context.on_ask("elicitation/create", QUESTION)
        return text_result(f"{first['content']['name']} {second['content']['name']}")

    async def _sample(self, arguments: Json, context: CallContext) -> Json:
        if context.on_ask is None:
            return text_result("nobody to ask", is_error=True)
        message = {"role": "user", "content": {"type": "text", "text": "Say hi."}}
        try:
            reply = await context.on_ask("sampling/createMessage", {"messages": [message], "maxTokens": 10})
        except PegboardError as error:
            return text_result(f"{error}", is_error=True)
        return text_result(reply["content"]["text"])

    def _grow(self, arguments: Json, context: CallContext) -> Json:
        self.shown.append(tool_definition(arguments["name"]))
        if self.lobby is not None:
            self.lobby.look_again()
        return text_result("grown")

    def _noise(self, arguments: Json, context: CallContext) -> Json:
        print("what a library prints without being asked")
        os.write(1, b"and this one goes to the descriptor itself\n")
        return text_result("quiet")


def lobby_of(desk: TestDesk) -> Lobby:
    """The desk, open for business."""
    desk.lobby = Lobby(desk)
    return desk.lobby


async def _serve(args: argparse.Namespace, stdout: int) -> None:
    lobby = lobby_of(TestDesk())
    if args.http is None:
        origin = Origin(conversation=args.conversation, place="/somewhere")
        await serve_stdio(lobby, origin, stdin=os.dup(0), stdout=stdout, limit=args.limit)
        return
    from pegboard.gateway.http import HttpGateway
    from pegboard.gateway.listen import bind, serve_http

    tokens = {name: os.environ[name] for name in args.token_env}
    listener = bind("127.0.0.1", args.http, has_token=bool(tokens))
    app = HttpGateway(lobby, Admission(tokens=tokens), conversation=args.conversation, max_body=args.limit)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"

    def announce() -> None:
        os.write(stdout, f"{url}\n".encode())
        os.close(stdout)

    await serve_http(app, lobby, listener, ready=announce)


def main() -> None:
    """Serves until the client goes away."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int)
    parser.add_argument("--token-env", action="append", default=[])
    parser.add_argument("--conversation", default="")
    parser.add_argument("--limit", type=int, default=1_000_000)
    args = parser.parse_args()
    asyncio.run(_serve(args, take_stdout()))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
