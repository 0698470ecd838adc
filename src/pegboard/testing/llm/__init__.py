"""`FakeLLM`: a strict stand-in for the model APIs, for the real SDKs to talk to. No network, no key, no model.

It plays a script, refuses what the APIs are documented to refuse, and simulates their prompt cache. Above: tests.
Below: one module per wire, with its rules beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from pegboard.testing.llm import application
from pegboard.testing.llm.asked import Asked, first_refusal
from pegboard.testing.llm.cache import PromptCache
from pegboard.testing.llm.completions import Completions
from pegboard.testing.llm.exchange import STREAM, Answer, Seen, Wire, event, read_body, said
from pegboard.testing.llm.messages import Messages
from pegboard.testing.llm.models import models
from pegboard.testing.llm.responses import Responses
from pegboard.testing.script import Fault, Move, ScriptedModel, Shown
from pegboard.types import Json

if TYPE_CHECKING:
    from pegboard.testing.llm.transport import InProcess

__all__ = ["BASE_URL", "FakeLLM", "Seen", "Wire"]

BASE_URL = "http://llm.test/v1"
"""Where clients say they go; nothing leaves the process."""
_COUNT = "/count_tokens"
_NO_RETRY = {"x-should-retry": "false"}
"""A retry would play the next move, and hide that this one could not be played."""


class FakeLLM:
    """Answers the Messages, Responses and Chat Completions APIs from a script.

    Give a client its `options()`; or serve it, it is an ASGI application. `requests` has all that was asked.
    """

    def __init__(
        self,
        moves: ScriptedModel | Iterable[Move | Callable[[Shown], Move]],
        *,
        pace: application.Pace | None = None,
    ) -> None:
        """With `pace`, what is served waits for it before each piece of a body, with the number of the piece."""
        self.model = moves if isinstance(moves, ScriptedModel) else ScriptedModel(list(moves))
        self.requests: list[Seen] = []
        self._pace = pace
        self._wires: tuple[Wire, ...] = (Messages(), Responses(), Completions())
        self._caches = {wire.path: PromptCache(explicit=wire.caches_explicitly) for wire in self._wires}
        self._issued: dict[str, Json] = {}

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

        return InProcess(self.respond)

    def answer(self, path: str, headers: Mapping[str, str], raw: bytes) -> tuple[int, str, list[bytes]]:
        """Status, content type and body of the answer, in the pieces in which it is sent."""
        made = self.respond(path, headers, raw)
        return made.status, made.kind, made.pieces

    def respond(self, path: str, headers: Mapping[str, str], raw: bytes) -> Answer:
        """The whole answer. The path may have a query; the names of headers are in small letters."""
        path, _, query = path.partition("?")
        if path.endswith("/models"):
            return said(models(headers))
        counts = path.endswith(Messages.path + _COUNT)
        wire = next((each for each in self._wires if path.removesuffix(_COUNT * counts).endswith(each.path)), None)
        if wire is None:
            return said(Messages().error(f"no such path: {path}", 404), 404)
        try:
            body = read_body(headers, raw)
        except ValueError as error:
            return said(wire.error(str(error), 400), 400)
        seen = Seen(wire.path + _COUNT * counts, body, headers=dict(headers), query=query)
        # To count, no limit of output is needed; every other rule holds.
        asked = self._asked(headers, {"max_tokens": 1, **body} if counts else body)
        if refused := first_refusal(wire.rules, asked):
            return self._refused(seen, refused, said(wire.error(refused, 400), 400))
        if counts:
            self.requests.append(seen)
            return said({"input_tokens": sum(len(each.data) for each in wire.prompt(asked)) // 4})
        return self._played(wire, asked, seen)

    def _asked(self, headers: Mapping[str, str], body: Json) -> Asked:
        betas = frozenset(each.strip() for each in headers.get("anthropic-beta", "").split(",") if each.strip())
        return Asked(body, betas, self._issued)

    def _refused(self, seen: Seen, why: str, answer: Answer) -> Answer:
        self.requests.append(msgspec.structs.replace(seen, refused=why))
        return answer

    def _played(self, wire: Wire, asked: Asked, seen: Seen) -> Answer:
        """The script's next move."""
        move = self.model.answer(wire.shown(asked))
        if move.fault:
            return self._refused(seen, f"HTTP {move.fault.status}", _failed(wire, move.fault))
        if wrong := wire.unplayable(move, asked):
            return self._refused(seen, wrong, said(wire.error(wrong, 500), 500, _NO_RETRY))
        reading = self._caches[wire.path].read(asked.model, wire.prompt(asked))
        reply = wire.reply(move, asked, len(self.requests) + 1, reading)
        self.requests.append(msgspec.structs.replace(seen, reading=reading, reply=reply))
        self._issued |= wire.issued(reply, asked)
        answer = _streamed(wire, reply, asked) if asked.body.get("stream") else said(reply)
        if move.cut_after is None:
            return answer
        return msgspec.structs.replace(answer, pieces=answer.pieces[: move.cut_after], is_cut=True)

    async def __call__(self, scope: Json, receive: application.Receive, send: application.Send) -> None:
        """The same as an ASGI application, for a socket."""
        if scope["type"] != "http":
            return
        headers = {key.decode().lower(): value.decode() for key, value in scope["headers"]}
        path = f"{scope['path']}?{scope.get('query_string', b'').decode()}"
        answer = self.respond(path, headers, await application.read(receive))
        await application.write(answer, send, self._pace)


def _failed(wire: Wire, fault: Fault) -> Answer:
    """The error that the script wants."""
    if isinstance(fault.body, str) and fault.body:
        return Answer(fault.status, "text/plain", [fault.body.encode()], fault.headers)
    body = fault.body if isinstance(fault.body, dict) else wire.error("the script says so", fault.status)
    return said(body, fault.status, fault.headers)


def _streamed(wire: Wire, reply: Json, asked: Asked) -> Answer:
    """The reply, an event a piece."""
    done = [b"data: [DONE]\n\n"] if isinstance(wire, Completions) else []
    return Answer(200, STREAM, [*(event(*each) for each in wire.events(reply, asked)), *done])
