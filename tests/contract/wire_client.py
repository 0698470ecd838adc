"""`ClientSide` on three roads to a server of the official SDK: the thinnest client that can hold a conversation."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio
import httpx2
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from pegboard.types import Json, Progress
from pegboard.wire.client import Agreement, ClientSide, NoAnswer, Step
from pegboard.wire.client import Reply as Answered
from pegboard.wire.framing import LineDecoder
from pegboard.wire.http import ACCEPT, mirrored_arguments, request_headers
from pegboard.wire.messages import (
    Notification,
    Request,
    Response,
    RpcError,
    encode_result,
    read_object,
)
from pegboard.wire.meta import META_SUBSCRIPTION
from pegboard.wire.paging import Pages
from pegboard.wire.sse import SseDecoder
from pegboard.wire.versions import Era
from tests.contract.wire_links import PATIENCE, ROOT, Hear, Refused, Reply, Transport, served
from tests.servers.wire_sdk_server import build

Deliver = Callable[[bytes], None]
CAPABILITIES: Json = {"elicitation": {"form": {}}}
LIMIT = 1_000_000


class Road(Protocol):
    """Carries messages; what arrives goes to `deliver`."""

    deliver: Deliver

    async def send(self, data: bytes, headers: dict[str, str], identity: int | None) -> None: ...

    def hang_up(self, identity: int) -> bool:
        """Closes the stream of one request; False where there is no such thing."""
        ...


class OurLink:
    """A conversation by `ClientSide`."""

    def __init__(self, road: Road) -> None:
        road.deliver = self._deliver
        self._road = road
        self._side = ClientSide("ours", "1")
        self._open: dict[int, asyncio.Future[Response]] = {}
        self._hear: dict[int, Hear] = {}
        self._reply: Reply | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._notifications: asyncio.Queue[tuple[str, Json]] = asyncio.Queue()
        self._schemas: dict[str, Any] = {}
        self.agreement: Agreement | None = None

    async def agree(self, known_version: str = "") -> None:
        """Settles on a version."""
        steps = self._side.negotiate(CAPABILITIES, known_version)
        try:
            step = next(steps)
            while True:
                step = steps.send(await self._take(step))
        except StopIteration as done:
            self.agreement = self._side.agreement = done.value

    async def _take(self, step: Step) -> Answered:
        if step.is_notification:
            headers = request_headers(step.version, step.method, step.params)
            await self._road.send(self._side.notification(step.method, step.params), headers, None)
            return {}
        try:
            async with asyncio.timeout(PATIENCE):
                return await self.request(step.method, step.params, version=step.version)
        except Refused as error:
            return RpcError(error.code, error.message, error.data)
        except TimeoutError:
            return NoAnswer()

    async def request(self, method: str, params: Json, *, version: str | None = None, hear: Hear | None = None) -> Json:
        """Asks and waits; a caller who is cancelled tells the server so."""
        identity = self._side.next_id
        if hear is not None:
            self._hear[identity] = hear
            params = {**params, "_meta": {"progressToken": identity}}
        identity, params, data = self._side.request(method, params, version=version, capabilities=CAPABILITIES)
        answer = self._open[identity] = asyncio.get_running_loop().create_future()
        try:
            await self._road.send(data, self._headers(method, params, version), identity)
            response = await answer
        except asyncio.CancelledError:
            await self._cancel(identity)
            raise
        finally:
            del self._open[identity]
        if response.error is not None:
            raise Refused(response.error.code, response.error.message, response.error.data)
        assert response.result is not None
        return read_object(response.result)

    def _headers(self, method: str, params: Json, version: str | None = None) -> dict[str, str]:
        mirrored = mirrored_arguments(self._schemas.get(params.get("name", "")))
        return request_headers(version or self.version, method, params, mirrored)

    async def _cancel(self, identity: int) -> None:
        self._side.forget(identity)
        if not self._road.hang_up(identity):
            data = self._side.notification("notifications/cancelled", {"requestId": identity, "reason": "no more"})
            await self._road.send(data, self._headers("notifications/cancelled", {}), None)

    # ── what arrives ─────────────────────────────────────────────────────────────────────────────────────────────

    def _deliver(self, data: bytes) -> None:
        for message in self._side.receive(data):
            if isinstance(message, Response):
                assert isinstance(message.id, int)
                self._open[message.id].set_result(message)
            elif isinstance(message, Notification):
                self._notified(message.method, read_object(message.params))
            else:
                self._spawn(self._answer(message))

    def _notified(self, method: str, params: Json) -> None:
        if method == "notifications/progress":
            progress = Progress(params["progress"], params.get("total"), params.get("message", ""))
            self._hear[params["progressToken"]](progress)
        else:
            self._notifications.put_nowait((method, params))

    async def _answer(self, request: Request) -> None:
        assert self._reply is not None
        assert request.method == "elicitation/create"
        data = encode_result(request.id, self._reply(read_object(request.params)))
        await self._road.send(data, self._headers("", {}), None)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ── the link ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def version(self) -> str:
        assert self.agreement is not None
        return self.agreement.version

    @property
    def about(self) -> tuple[str, str, str]:
        assert self.agreement is not None
        return self.agreement.server_name, self.agreement.server_version, self.agreement.instructions

    async def pages(self) -> list[list[str]]:
        pages = Pages("tools", max_pages=20, max_entries=100)
        names: list[list[str]] = []
        cursor: str | None = None
        while True:
            page = await self.request("tools/list", {} if cursor is None else {"cursor": cursor})
            self._schemas |= {tool["name"]: tool["inputSchema"] for tool in page["tools"]}
            names.append([tool["name"] for tool in page["tools"]])
            cursor = pages.add(page)
            if cursor is None:
                assert pages.warnings == []
                return names

    async def call(self, name: str, arguments: Json, *, hear: Hear | None = None, reply: Reply | None = None) -> Json:
        self._reply = reply
        params = {"name": name, "arguments": arguments}
        result = await self.request("tools/call", params, hear=hear)
        while result.get("resultType") == "input_required":
            assert reply is not None
            given = {key: reply(asked["params"]) for key, asked in result["inputRequests"].items()}
            retry = {**params, "inputResponses": given, "requestState": result["requestState"]}
            result = await self.request("tools/call", retry)
        return {"text": result["content"][0]["text"], "isError": result.get("isError", False)}

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        assert self.agreement is not None
        if self.agreement.era is Era.HANDSHAKE:
            yield self._changed(None)
            return
        identity = self._side.next_id
        asked = self.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        subscription = asyncio.ensure_future(asked)
        method, params = await self._notifications.get()
        assert method == "notifications/subscriptions/acknowledged"
        assert params["notifications"] == {"toolsListChanged": True}
        assert params["_meta"][META_SUBSCRIPTION] == identity
        try:
            yield self._changed(identity)
        finally:
            subscription.cancel()
            await asyncio.gather(subscription, return_exceptions=True)

    def _changed(self, subscription: int | None) -> Callable[[], Awaitable[None]]:
        async def changed() -> None:
            method, params = await self._notifications.get()
            assert method == "notifications/tools/list_changed"
            assert params.get("_meta", {}).get(META_SUBSCRIPTION) == subscription

        return changed


# ── roads ────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Lines:
    """Memory and stdio: one channel for everything."""

    deliver: Deliver

    def __init__(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._write = write

    async def send(self, data: bytes, headers: dict[str, str], identity: int | None) -> None:
        await self._write(data)

    def hang_up(self, identity: int) -> bool:
        return False


Serve = Callable[[Server[Any], Any, Any], Coroutine[Any, Any, None]]


async def both_eras(server: Server[Any], read: Any, write: Any) -> None:
    """The SDK's usual way to serve a stream."""
    await server.run(read, write, server.create_initialization_options())


@asynccontextmanager
async def memory_road(serve: Serve = both_eras) -> AsyncIterator[OurLink]:
    """To a server of the SDK in this process."""
    async with create_client_server_memory_streams() as (client, server), anyio.create_task_group() as tasks:

        async def write(data: bytes) -> None:
            await client[1].send(SessionMessage(types.jsonrpc_message_adapter.validate_json(data)))

        async def read() -> None:
            async for message in client[0]:
                assert isinstance(message, SessionMessage)
                road.deliver(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

        road = _Lines(write)
        link = OurLink(road)
        tasks.start_soon(serve, build(), *server)
        tasks.start_soon(read)
        yield link
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def stdio_road() -> AsyncIterator[OurLink]:
    """To a process that runs a server of the SDK."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(ROOT / "tests/servers/wire_sdk_server.py"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    async def write(data: bytes) -> None:
        stdin.write(data + b"\n")
        await stdin.drain()

    async def read() -> None:
        decoder = LineDecoder(LIMIT)
        while data := await stdout.read(65536):
            for line in decoder.feed(data):
                assert isinstance(line, bytes)
                road.deliver(line)

    road = _Lines(write)
    link = OurLink(road)
    reader = asyncio.ensure_future(read())
    try:
        yield link
    finally:
        stdin.close()
        async with asyncio.timeout(PATIENCE):
            await process.wait()
            await reader


class _Posts:
    """HTTP: a POST for every message, its answer on the response, and a GET for what belongs to no request."""

    deliver: Deliver

    def __init__(self, client: httpx2.AsyncClient, url: str) -> None:
        self._client = client
        self._url = url
        self._session: dict[str, str] = {}
        self._posts: dict[int, asyncio.Task[None]] = {}
        self._listener: asyncio.Task[None] | None = None
        self._stateless = False

    async def send(self, data: bytes, headers: dict[str, str], identity: int | None) -> None:
        self._stateless = "Mcp-Method" in headers
        headers = {**headers, **self._session, "Accept": ACCEPT, "Content-Type": "application/json"}
        if identity is not None:
            self._posts[identity] = asyncio.ensure_future(self._exchange("POST", data, headers))
            return
        response = await self._client.post(self._url, content=data, headers=headers)
        assert response.status_code == 202
        if b"notifications/initialized" in data and self._session:
            opened = asyncio.Event()
            self._listener = asyncio.ensure_future(self._exchange("GET", b"", headers, opened))
            await opened.wait()

    async def _exchange(
        self, method: str, data: bytes, headers: dict[str, str], opened: asyncio.Event | None = None
    ) -> None:
        async with self._client.stream(method, self._url, content=data, headers=headers) as response:
            if "mcp-session-id" in response.headers:
                self._session = {"Mcp-Session-Id": response.headers["mcp-session-id"]}
            if opened is not None:
                opened.set()
            if not response.headers["content-type"].startswith("text/event-stream"):
                self.deliver(await response.aread())
                return
            decoder = SseDecoder(LIMIT)
            async for chunk in response.aiter_raw():
                for event in decoder.feed(chunk):
                    if event.data:
                        self.deliver(event.data)

    def hang_up(self, identity: int) -> bool:
        if self._stateless:
            self._posts[identity].cancel()
        return self._stateless

    async def close(self) -> None:
        tasks = [*self._posts.values(), *([self._listener] if self._listener else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def http_road() -> AsyncIterator[OurLink]:
    """To a server of the SDK on HTTP."""
    app = build().streamable_http_app()
    async with served(app, lifespan="on") as url, httpx2.AsyncClient(timeout=PATIENCE) as client:
        road = _Posts(client, url)
        try:
            yield OurLink(road)
        finally:
            await road.close()


@asynccontextmanager
async def ours_to_sdk(transport: Transport, known_version: str) -> AsyncIterator[OurLink]:
    """Our client, connected to a server of the SDK."""
    roads = {"memory": memory_road, "stdio": stdio_road, "http": http_road}
    async with roads[transport]() as link:
        await link.agree(known_version)
        yield link
