"""`FakeLLM`: a strict stand-in for the model APIs, for the real SDKs to talk to. No network, no key, no model.

It plays a script, refuses what the APIs are documented to refuse, and simulates their prompt cache. Above: tests.
Below: one module per wire, with its rules beside it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from pegboard.testing.llm.asked import Asked, Rule, Segment, first_refusal
from pegboard.testing.llm.cache import PromptCache, Reading
from pegboard.testing.llm.completions import Completions
from pegboard.testing.llm.messages import Messages
from pegboard.testing.llm.responses import Responses
from pegboard.testing.llm.responses_rules import items
from pegboard.testing.script import Move, ScriptedModel, Shown
from pegboard.types import Json

if TYPE_CHECKING:
    from pegboard.testing.llm.transport import InProcess

BASE_URL = "http://llm.test/v1"
"""Where clients say they go; nothing leaves the process."""


class Wire(Protocol):
    """One API."""

    path: str
    rules: tuple[Rule, ...]
    caches_explicitly: bool

    def shown(self, asked: Asked) -> Shown:
        """What the model sees."""

    def prompt(self, asked: Asked) -> list[Segment]:
        """The prompt, in the order in which it is cached."""

    def reply(self, move: Move, asked: Asked, number: int, reading: Reading) -> Json:
        """The reply that a move comes to."""

    def events(self, reply: Json) -> Iterator[tuple[str, Json]]:
        """The reply as a stream."""

    def issued(self, reply: Json) -> dict[str, Json]:
        """What later requests may be held against."""

    def error(self, message: str, status: int) -> Json:
        """The body of a refusal."""


class Seen(msgspec.Struct, frozen=True):
    """One request that was answered or refused."""

    path: str
    body: Json
    refused: str = ""
    reading: Reading = Reading(0, 0, 0, 0)

    @property
    def cached(self) -> float:
        """The share of the prompt that came from the cache."""
        return self.reading.cached / self.reading.total if self.reading.total else 0.0

    @property
    def shared(self) -> float:
        """The share of the prompt that an earlier one began with too."""
        return self.reading.shared / self.reading.total if self.reading.total else 0.0


class FakeLLM:
    """Answers the Messages, Responses and Chat Completions APIs from a script.

    Give a client its `options()`; or serve it, it is an ASGI application. `requests` has all that was asked.
    """

    def __init__(self, moves: ScriptedModel | Iterable[Move | Callable[[Shown], Move]]) -> None:
        self.model = moves if isinstance(moves, ScriptedModel) else ScriptedModel(list(moves))
        self.requests: list[Seen] = []
        self._wires: tuple[Wire, ...] = (Messages(), Responses(), Completions())
        self._caches = {wire.path: PromptCache(explicit=wire.caches_explicitly) for wire in self._wires}
        self._issued: dict[str, Json] = {}
        self._stored: dict[str, list[Json]] = {}
        """Conversations that the Responses API keeps, by the id of their last response."""

    def options(self) -> dict[str, Any]:
        """What makes an async client of either SDK talk to this: `AsyncAnthropic(**fake.options())`."""
        import httpx2

        client = httpx2.AsyncClient(transport=self.transport())
        return {"api_key": "none", "base_url": BASE_URL, "max_retries": 0, "http_client": client}

    def sync_options(self) -> dict[str, Any]:
        """The same for a client that is not async."""
        import httpx2

        return {**self.options(), "http_client": httpx2.Client(transport=self.transport())}

    def transport(self) -> InProcess:
        """A transport for `httpx2`, async or not."""
        from pegboard.testing.llm.transport import InProcess

        return InProcess(self.answer)

    def answer(self, path: str, headers: Mapping[str, str], raw: bytes) -> tuple[int, str, list[bytes]]:
        """Status, content type and body of the answer, in the pieces in which it is sent."""
        wire = next((each for each in self._wires if path.removesuffix("/count_tokens").endswith(each.path)), None)
        if wire is None:
            return 404, "application/json", [_encoded(Messages().error(f"no such path: {path}", 404))]
        is_count = path.endswith("/count_tokens")
        asked = self._asked(headers, raw, {"max_tokens": 1} if is_count else {})
        if refused := first_refusal(wire.rules, asked):
            self.requests.append(Seen(wire.path, asked.body, refused))
            return 400, "application/json", [_encoded(wire.error(refused, 400))]
        if is_count:
            size = sum(len(each.data) for each in wire.prompt(asked))
            return 200, "application/json", [_encoded({"input_tokens": size // 4})]
        reply = self._reply(wire, asked)
        if not asked.body.get("stream"):
            return 200, "application/json", [_encoded(reply)]
        done = [b"data: [DONE]\n\n"] if isinstance(wire, Completions) else []
        return 200, "text/event-stream", [*(_sse(*event) for event in wire.events(reply)), *done]

    def _asked(self, headers: Mapping[str, str], raw: bytes, given: Json) -> Asked:
        """The request, with what is kept here of its conversation; `given` is what it need not say."""
        body: Json = {**given, **json.loads(raw)}
        if before := self._stored.get(str(body.get("previous_response_id"))):
            body = {**body, "input": [*before, *items(Asked(body))]}
        betas = frozenset(each.strip() for each in headers.get("anthropic-beta", "").split(",") if each.strip())
        return Asked(body, betas, self._issued)

    def _reply(self, wire: Wire, asked: Asked) -> Json:
        reading = self._caches[wire.path].read(asked.model, wire.prompt(asked))
        self.requests.append(Seen(wire.path, asked.body, "", reading))
        move = self.model.answer(wire.shown(asked))
        reply = wire.reply(move, asked, len(self.requests), reading)
        self._issued |= wire.issued(reply)
        if isinstance(wire, Responses):
            self._stored[reply["id"]] = [*wire.shown(asked).messages, *reply["output"]]
        return reply

    async def __call__(
        self, scope: Json, receive: Callable[[], Awaitable[Json]], send: Callable[[Json], Awaitable[None]]
    ) -> None:
        """The same as an ASGI application, for a socket."""
        if scope["type"] != "http":
            return
        raw, more = b"", True
        while more:
            event = await receive()
            raw, more = raw + event.get("body", b""), event.get("more_body", False)
        headers = {key.decode().lower(): value.decode() for key, value in scope["headers"]}
        status, kind, body = self.answer(scope["path"], headers, raw)
        # No connection is kept: a test that leaves its client open leaves nothing else open.
        told = [(b"content-type", kind.encode()), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": status, "headers": told})
        for piece in body:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def _encoded(body: Json) -> bytes:
    return msgspec.json.encode(body)


def _sse(name: str, data: Json) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {_encoded(data).decode()}\n\n".encode()
