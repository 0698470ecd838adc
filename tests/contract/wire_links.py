"""Two ends and a road between them: `wire/` on one side and the official SDK on the other, whichever way round.

A `Link` is the client's end: `SdkLink` is the SDK's client before our `ServerSide`; `wire_client` is the other way.
The roads (memory, stdio, HTTP) are thin on purpose: they carry bytes and decide nothing.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

import anyio
import mcp_types as types
import uvicorn
from mcp import Client, MCPError, StdioServerParameters
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from pegboard.types import Json, Progress
from tests.servers.wire_http_server import HttpBoard
from tests.servers.wire_server import Board, Desk, Out

ROOT = Path(__file__).parents[2]
PATIENCE = 20.0
Era = Literal["handshake", "stateless"]
Transport = Literal["memory", "stdio", "http"]
Hear = Callable[[Progress], None]
Reply = Callable[[Json], Json]


class Refused(Exception):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Link(Protocol):
    """A client that is connected, whoever wrote it."""

    @property
    def version(self) -> str: ...

    @property
    def about(self) -> tuple[str, str, str]:
        """Name, version and instructions of the server."""
        ...

    async def pages(self) -> list[list[str]]:
        """The names of the tools, page by page."""
        ...

    async def call(self, name: str, arguments: Json, *, hear: Hear | None = None, reply: Reply | None = None) -> Json:
        """A tool's result: `text` and `isError`."""
        ...

    def listening(self) -> AbstractAsyncContextManager[Callable[[], Awaitable[None]]]:
        """Listens for changes of the list of tools; what is yielded waits for one."""
        ...


class SdkLink:
    """The official client."""

    def __init__(self, client: Client, changes: asyncio.Queue[None], replies: list[Reply]) -> None:
        self.client = client
        self._changes = changes
        self._replies = replies

    @property
    def version(self) -> str:
        return self.client.protocol_version

    @property
    def about(self) -> tuple[str, str, str]:
        info = self.client.server_info
        assert info is not None
        return info.name, info.version, self.client.instructions or ""

    async def pages(self) -> list[list[str]]:
        pages, cursor = [], None
        while True:
            page = await self.client.list_tools(cursor=cursor, cache_mode="refresh")
            pages.append([tool.name for tool in page.tools])
            cursor = page.next_cursor
            if cursor is None:
                return pages

    async def call(self, name: str, arguments: Json, *, hear: Hear | None = None, reply: Reply | None = None) -> Json:
        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            if hear is not None:
                hear(Progress(progress, total, message or ""))

        self._replies[:] = [reply] if reply else []
        try:
            result = await self.client.call_tool(name, arguments, progress_callback=progressed if hear else None)
        except MCPError as error:
            raise Refused(error.code, error.message, error.data) from None
        return {"text": getattr(result.content[0], "text", None), "isError": result.is_error}

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        if self.version != "2026-07-28":
            yield self._changes.get
            return
        async with self.client.listen(tools_list_changed=True) as events:

            async def changed() -> None:
                await anext(events)

            yield changed


@asynccontextmanager
async def sdk_link(server: Any, mode: str) -> AsyncIterator[SdkLink]:
    """The official client, connected to what it accepts as a server."""
    changes: asyncio.Queue[None] = asyncio.Queue()
    replies: list[Reply] = []

    async def heard(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changes.put_nowait(None)

    async def asked(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult.model_validate(replies[0](params.model_dump(by_alias=True, mode="json")))

    client = Client(
        server,
        mode=mode,
        message_handler=heard,
        elicitation_callback=asked,
        client_info=types.Implementation(name="theirs", version="1"),
        read_timeout_seconds=PATIENCE,
    )
    async with client:
        yield SdkLink(client, changes, replies)


# ── roads to our server ──────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def _memory_road(board: Board) -> AsyncIterator[Any]:
    async with create_client_server_memory_streams() as (client, server), anyio.create_task_group() as tasks:
        outgoing: asyncio.Queue[Out] = asyncio.Queue()
        desk = Desk(board, outgoing.put_nowait)

        async def read() -> None:
            async for message in server[0]:
                assert isinstance(message, SessionMessage)
                desk.handle(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

        async def write() -> None:
            while True:
                data = (await outgoing.get()).data
                await server[1].send(SessionMessage(types.jsonrpc_message_adapter.validate_json(data)))

        tasks.start_soon(read)
        tasks.start_soon(write)
        yield client
        tasks.cancel_scope.cancel()


class _Quiet(uvicorn.Server):
    """Leaves signals to the test run."""

    @contextmanager
    def capture_signals(self) -> Any:
        yield


@asynccontextmanager
async def served(app: Any, *, lifespan: Literal["on", "off"] = "off") -> AsyncIterator[str]:
    """An ASGI application on a port of this machine; yields its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # from here on a client may connect: it waits until the server takes it
        port = listener.getsockname()[1]
        config = uvicorn.Config(app, lifespan=lifespan, log_level="critical", ws="none", timeout_graceful_shutdown=1)
        server = _Quiet(config)
        task = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.should_exit = True
            await task


@asynccontextmanager
async def sdk_to_ours(transport: Transport, mode: str, era: str = "both") -> AsyncIterator[SdkLink]:
    """The official client, connected to our server."""
    if transport == "memory":
        async with sdk_link(_memory_road(Board(era)), mode) as link:
            yield link
    elif transport == "stdio":
        script = str(ROOT / "tests/servers/wire_server.py")
        async with sdk_link(StdioServerParameters(command=sys.executable, args=[script, "--era", era]), mode) as link:
            yield link
    else:
        async with served(HttpBoard(Board(era))) as url, sdk_link(url, mode) as link:
            yield link
