"""A link whose far end is a script, and a loop whose clock jumps: races and hours of backoff, tried out at once."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

import msgspec

from pegboard.errors import ServerError
from pegboard.types import Json
from pegboard.upstream.link import Inbox, Outgoing

T = TypeVar("T")
Script = Callable[["ScriptedLink", Json], Iterable[Json]]

HELLO: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "scripted", "version": "7"},
    "instructions": "Be brief.",
}
DISCOVERED: Json = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "7"}},
}


def answer(request: Json, result: Any) -> Json:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def refusal(request: Json, code: int = -32601, message: str = "Method not found") -> Json:
    """An error instead of an answer."""
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}}


class ScriptedLink:
    """Takes what is sent, lets the script answer, and shakes hands by itself unless the script does."""

    def __init__(self, script: Script = lambda _link, _message: (), *, era: str = "handshake") -> None:
        self._script = script
        self._era = era
        self.inbox: Inbox | None = None
        self.sent: list[Json] = []
        self.open_error: ServerError | None = None
        self.takes = asyncio.Event()
        """Cleared: the far end does not read, and send waits."""
        self.takes.set()
        self.closes = 0
        self.agreed_version = ""
        self.last_words = ""
        self.ended_cleanly = False

    async def open(self, inbox: Inbox) -> None:
        self.inbox = inbox
        if self.open_error is not None:
            raise self.open_error

    async def send(self, message: Outgoing) -> None:
        await self.takes.wait()
        body = msgspec.json.decode(message.data)
        self.sent.append(body)
        replies = list(self._script(self, body)) or list(self._greeting(body))
        asyncio.get_running_loop().call_soon(self.say, *replies)

    def _greeting(self, message: Json) -> Iterable[Json]:
        if message.get("method") == "initialize":
            yield answer(message, HELLO)
        elif message.get("method") == "server/discover":
            yield answer(message, DISCOVERED) if self._era == "stateless" else refusal(message)

    def say(self, *messages: Json | bytes) -> None:
        """Messages arrive from the far end."""
        assert self.inbox is not None
        for message in messages:
            self.inbox.message(message if isinstance(message, bytes) else msgspec.json.encode(message))

    def die(self, error: ServerError) -> None:
        """The far end is gone."""
        assert self.inbox is not None
        self.inbox.closed(error)

    def agreed(self, version: str) -> None:
        self.agreed_version = version

    def abandon(self, request_id: int) -> bool:
        return False

    async def close(self) -> None:
        self.closes += 1

    def methods(self) -> list[str]:
        """What was sent, by method; answers of ours are left out."""
        return [message["method"] for message in self.sent if "method" in message]

    def replies(self) -> list[Json]:
        """What was sent in answer to the far end's own requests."""
        return [message for message in self.sent if "method" not in message]


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: when nothing is ready, the time that would have been waited has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everything waits for something that will never happen")
        if not ready and timeout:
            self.now += timeout
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop on which hours pass in no time. Only for scenarios without threads, processes or sockets."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_jumping(scenario: Coroutine[Any, Any, T]) -> T:
    """Runs a scenario on a clock that jumps."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(scenario)
