"""The proxy without sockets: a client's transport, the planner, and `FakeLLM` behind it; `app` does it over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpx2

from pegboard.config.model import ProxyConfig
from pegboard.index.embedders.static import StaticEmbedder
from pegboard.protocols import Store
from pegboard.proxy.keeper import Keeper
from pegboard.proxy.planner import DeferringPlanner
from pegboard.proxy.seam import Asked, Passed, ReplyCut, Wire
from pegboard.proxy.searching import Searching
from pegboard.proxy.tally import Tally
from pegboard.testing import FakeLLM

WIRES: dict[str, Wire] = {
    "/messages": "messages",
    "/messages/count_tokens": "count_tokens",
    "/chat/completions": "completions",
    "/responses": "responses",
}


class Proxied(httpx2.AsyncBaseTransport):
    """What a client of either SDK talks through."""

    def __init__(self, fake: FakeLLM, store: Store | None = None, *, slice_by: int = 0, **settings: Any) -> None:
        self.fake = fake
        self.tally = Tally()
        self.passed: list[str] = []
        self.is_cut = False
        """Whether the latest reply broke off."""
        self.sent: list[bytes] = []
        """Every body that reached the API."""
        self.slice_by = slice_by
        self.store = store
        self.settings = settings
        self.restart()

    def restart(self) -> None:
        """Begins anew: what is not in the store is forgotten."""
        config = ProxyConfig(**{"min_tokens": 500, **self.settings})
        keeper = Keeper(self.store, config.conversation_ttl)
        address = {"api": "https://api.anthropic.com"}
        self.planner = DeferringPlanner(config, address, keeper, lambda: Searching(StaticEmbedder(), 5), self.tally)

    def options(self) -> dict[str, Any]:
        """What makes an async client of either SDK talk through this."""
        client = httpx2.AsyncClient(transport=self)
        return {"api_key": "sk-test", "base_url": "http://llm.test", "http_client": client, "max_retries": 0}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """One request of the client's."""
        body = await request.aread()
        path = request.url.path.removeprefix("/v1")
        wire = WIRES[path]
        headers = {key.lower(): value for key, value in request.headers.items()}
        plan = await self.planner.plan(Asked(wire=wire, upstream="api", headers=headers, body=body))
        if isinstance(plan, Passed):
            self.passed.append(plan.reason)
            status, kind, pieces = self._answer(path, headers, body)
            return _response(request, status, kind, self._sliced(pieces))
        status, kind, pieces = self._answer(path, headers, plan.body)
        if status != 200:
            await plan.close()
            return _response(request, status, kind, pieces)
        out: list[bytes] = []
        try:
            while True:
                out += [plan.feed(piece) for piece in self._sliced(pieces)]
                if self.is_cut:
                    raise ReplyCut("the connection broke")
                out.append(plan.finish())
                if not await plan.again():
                    break
                status, kind, pieces = self._answer(path, headers, plan.body)
                if status != 200:
                    if not plan.streamed:
                        return _response(request, status, kind, pieces)
                    out.append(plan.failed(status, b"".join(pieces)))
                    break
        finally:
            await plan.close()
        return _response(request, 200, kind, [piece for piece in out if piece])

    def _answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, list[bytes]]:
        self.sent.append(body)
        made = self.fake.respond(f"/v1{path}", headers, body)
        self.is_cut = made.is_cut
        return made.status, made.kind, made.pieces

    def _sliced(self, pieces: Iterable[bytes]) -> list[bytes]:
        whole = b"".join(pieces)
        step = self.slice_by
        return [whole[at : at + step] for at in range(0, len(whole), step)] if step else [whole]


def _response(request: httpx2.Request, status: int, kind: str, pieces: Iterable[bytes]) -> httpx2.Response:
    return httpx2.Response(status, headers={"content-type": kind}, stream=_Pieces(list(pieces)), request=request)


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
