"""An MCP server on `pegboard.wire.server`, and nothing else of Pegboard's: the counterpart of the official client.

`Desk` is one connection, without I/O; `main` puts it on stdio with a blocking loop; `wire_http_server` puts it on HTTP.

    --era ERA    handshake, stateless or both
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import msgspec

from pegboard.types import Json
from pegboard.wire.asked import Asked, missing_capability
from pegboard.wire.framing import LineDecoder
from pegboard.wire.messages import INVALID_PARAMS, RequestId, Response, RpcError, read_object
from pegboard.wire.server import Answer, Cancelled, ServerSide, Subscribed
from pegboard.wire.versions import HANDSHAKE_VERSIONS, SPOKEN_VERSIONS, STATELESS_VERSIONS, Era

VERSIONS = {"handshake": HANDSHAKE_VERSIONS, "stateless": STATELESS_VERSIONS, "both": SPOKEN_VERSIONS}
PAGE = 3
QUESTION = {
    "mode": "form",
    "message": "Who are you?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}


class Out(msgspec.Struct, frozen=True):
    """A line to send: `about` is the request it belongs to, None for the connection; `error` and `era` as answered."""

    data: bytes
    about: RequestId | None = None
    final: bool = False
    error: RpcError | None = None
    era: Era | None = None


class Board:
    """What all connections share: the tools, who is connected, and who waits to hear of a cancellation."""

    def __init__(self, era: str = "both") -> None:
        self.versions = VERSIONS[era]
        self.desks: list[Desk] = []
        self.cancellations = 0
        self.waiting: list[tuple[Desk, Asked]] = []
        self.tools: list[Json] = [
            {"name": name, "inputSchema": {"type": "object"}}
            for name in ("echo", "fail", "refuse", "count", "wait", "cancelled", "ask", "grow", "whoami")
        ]
        region = {"type": "string", "x-mcp-header": "Region"}
        self.tools.append({"name": "route", "inputSchema": {"type": "object", "properties": {"region": region}}})

    def schema_of(self, name: object) -> object:
        """The input schema of a tool, or None."""
        return next((tool["inputSchema"] for tool in self.tools if tool["name"] == name), None)

    def cancelled(self) -> None:
        """Somebody's request was cancelled."""
        self.cancellations += 1
        self.settle()

    def settle(self) -> None:
        """Tells of each cancellation to one of those who wait to hear of it."""
        while self.waiting and self.cancellations:
            desk, asked = self.waiting.pop()
            self.cancellations -= 1
            desk.answer(asked, "yes")


class Desk:
    """One connection to the board. Whatever it has to send goes to `send`."""

    def __init__(self, board: Board, send: Callable[[Out], None]) -> None:
        self._board = board
        self._send = send
        self._questions: dict[RequestId, Asked] = {}
        self.side = ServerSide(
            "wire",
            "1.0",
            capabilities={"tools": {"listChanged": True}},
            instructions="Read the tools.",
            versions=board.versions,
        )
        board.desks.append(self)

    def close(self) -> None:
        """The connection is gone."""
        self._board.desks.remove(self)

    def handle(self, data: bytes) -> None:
        """Takes one frame."""
        for event in self.side.receive(data):
            if isinstance(event, Asked):
                self._serve(event)
            elif isinstance(event, Answer):
                self._send(Out(event.data, read_object(event.data).get("id"), True, event.error, event.era))
            elif isinstance(event, Subscribed):
                self._send(Out(event.data, event.id))
            elif isinstance(event, Cancelled):
                self._board.cancelled()
            elif isinstance(event, Response) and event.id in self._questions:
                self._greet(self._questions.pop(event.id), read_object(event.result) if event.result else {})

    def hung_up(self, identity: RequestId) -> None:
        """The client closed the stream of this request."""
        if self.side.drop(identity):
            self._board.cancelled()

    def answer(self, asked: Asked, text: str, **more: object) -> None:
        """Sends a tool's result."""
        self._result(asked, {"content": [{"type": "text", "text": text}], **more})

    def _result(self, asked: Asked, result: Json) -> None:
        data = self.side.result(asked, result)
        if data is not None:
            self._send(Out(data, asked.id, True, era=asked.era))

    def _refuse(self, asked: Asked, error: RpcError) -> None:
        data = self.side.refuse(asked, error)
        if data is not None:
            self._send(Out(data, asked.id, True, error, asked.era))

    def _serve(self, asked: Asked) -> None:
        if asked.method == "tools/list":
            self._list(asked)
        elif asked.method == "tools/call":
            self._call(asked)
        else:
            data = self.side.refuse_method(asked)
            if data is not None:
                self._send(Out(data, asked.id, True, RpcError(-32601, ""), asked.era))

    def _list(self, asked: Asked) -> None:
        cursor = asked.params.get("cursor") or "0"
        if not str(cursor).isdigit():
            self._refuse(asked, RpcError(INVALID_PARAMS, f"no such cursor: {cursor}"))
            return
        start = int(cursor)
        result: Json = {"tools": self._board.tools[start : start + PAGE], "ttlMs": 0, "cacheScope": "public"}
        if start + PAGE < len(self._board.tools):
            result["nextCursor"] = str(start + PAGE)
        self._result(asked, result)

    def _call(self, asked: Asked) -> None:
        arguments = asked.params.get("arguments") or {}
        tool = getattr(self, f"_tool_{asked.params.get('name')}", None)
        if tool is not None:
            tool(asked, arguments)
        elif self._board.schema_of(asked.params.get("name")) is not None:
            self.answer(asked, "nothing much")
        else:
            self._refuse(asked, RpcError(INVALID_PARAMS, f"Unknown tool: {asked.params.get('name')}"))

    def _tool_echo(self, asked: Asked, arguments: Json) -> None:
        self.answer(asked, arguments["text"])

    def _tool_fail(self, asked: Asked, arguments: Json) -> None:
        self.answer(asked, "it broke", isError=True)

    def _tool_refuse(self, asked: Asked, arguments: Json) -> None:
        self._refuse(asked, RpcError(-31000, "not today", {"why": "closed"}))

    def _tool_route(self, asked: Asked, arguments: Json) -> None:
        self.answer(asked, f"routed to {arguments.get('region')}")

    def _tool_whoami(self, asked: Asked, arguments: Json) -> None:
        self.answer(asked, f"{asked.client.get('name')} {asked.version} {' '.join(sorted(asked.capabilities))}")

    def _progress(self, asked: Asked, done: int, total: int, message: str) -> None:
        data = self.side.progress(asked, done, total=total, message=message)
        if data is not None:
            self._send(Out(data, asked.id))

    def _tool_count(self, asked: Asked, arguments: Json) -> None:
        for done in range(1, 4):
            self._progress(asked, done, 3, f"step {done}")
        self.answer(asked, "counted")

    def _tool_wait(self, asked: Asked, arguments: Json) -> None:
        self._progress(asked, 1, 2, "waiting")

    def _tool_cancelled(self, asked: Asked, arguments: Json) -> None:
        self._board.waiting.append((self, asked))
        self._board.settle()

    def _tool_grow(self, asked: Asked, arguments: Json) -> None:
        self._board.tools.append({"name": arguments["name"], "inputSchema": {"type": "object"}})
        for desk in list(self._board.desks):
            for notice in desk.side.changed("tools"):
                desk._send(Out(notice.data, notice.subscription))
        self.answer(asked, "grown")

    def _tool_ask(self, asked: Asked, arguments: Json) -> None:
        missing = missing_capability(asked, {"elicitation": {}})
        if missing is not None:
            self._refuse(asked, missing)
        elif asked.era is Era.HANDSHAKE:
            identity, data = self.side.ask("elicitation/create", QUESTION)
            self._questions[identity] = asked
            self._send(Out(data, asked.id))
        elif asked.params.get("requestState") != "asked":
            question = {"method": "elicitation/create", "params": QUESTION}
            self._result(
                asked, {"resultType": "input_required", "inputRequests": {"who": question}, "requestState": "asked"}
            )
        else:
            self._greet(asked, asked.params["inputResponses"]["who"])

    def _greet(self, asked: Asked, reply: Json) -> None:
        name = (reply.get("content") or {}).get("name")
        self.answer(asked, f"hello {name}" if reply.get("action") == "accept" else "never mind")


def main() -> None:
    """Serves standard input and output until the input ends."""
    era = sys.argv[sys.argv.index("--era") + 1] if "--era" in sys.argv else "both"

    def write(out: Out) -> None:
        sys.stdout.buffer.write(out.data + b"\n")
        sys.stdout.buffer.flush()

    desk = Desk(Board(era), write)
    decoder = LineDecoder(1_000_000)
    while data := os.read(0, 65536):
        for line in decoder.feed(data):
            if isinstance(line, bytes):
                desk.handle(line)


if __name__ == "__main__":
    main()
