"""The end of a sign-in: a listener on this machine that the browser is sent back to, for one answer and no more."""

from __future__ import annotations

import asyncio
from types import TracebackType
from urllib.parse import parse_qs, urlsplit

import msgspec

from pegboard.errors import PegboardError

PATH = "/callback"
REQUEST_SECONDS = 10.0
PAGE = """<!doctype html><meta charset="utf-8"><title>Pegboard</title>
<body style="font:1.1rem/1.5 system-ui;margin:4rem auto;max-width:30rem"><h1>{title}</h1><p>{text}</p>
"""
DONE = ("200 OK", PAGE.format(title="Back to Pegboard", text="You can close this window and return to the terminal."))
NOT_OURS = ("400 Bad Request", PAGE.format(title="Not this one", text="This is not the sign-in Pegboard waits for."))
NOT_FOUND = ("404 Not Found", PAGE.format(title="Nothing here", text="Pegboard waits for a sign-in at another page."))


class Answer(msgspec.Struct, frozen=True):
    """What the authorisation server sent back with the browser."""

    code: str
    state: str
    issuer: str | None = None
    error: str = ""


class Callback:
    """Listens on 127.0.0.1 while it is entered. Only an answer with the state that was sent out counts."""

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self._server: asyncio.Server | None = None
        self._visits: set[asyncio.Task[None]] = set()
        self._state = ""
        self._answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Callback:
        try:
            self._server = await asyncio.start_server(self._visited, "127.0.0.1", self._port)
        except OSError as error:
            cause = f"Pegboard cannot listen on port {self._port} of this machine: {error.strerror}."
            raise PegboardError(cause, hint="--port takes another one.") from None
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for visit in self._visits:  # browsers open connections in advance, and keep them
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """Where the browser is to be sent back to."""
        return f"http://127.0.0.1:{self._port}{PATH}"

    def expect(self, authorization_url: str) -> None:
        """The browser is being sent out: what comes back must bear the same state."""
        self._state = _first(parse_qs(urlsplit(authorization_url).query), "state")

    async def answer(self) -> Answer:
        """Waits for the browser to come back."""
        return await asyncio.shield(self._answer)

    def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = asyncio.create_task(self._serve(reader, writer))
        self._visits.add(visit)
        visit.add_done_callback(self._visits.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                status, page = self._reply(head.split(b"\r\n", 1)[0].decode("latin-1"))
                body = page.encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
                    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # something that is no browser, or one that changed its mind
        finally:
            writer.close()

    def _reply(self, request_line: str) -> tuple[str, str]:
        method, _, rest = request_line.partition(" ")
        target = urlsplit(rest.rpartition(" ")[0])
        if method != "GET" or target.path != PATH:
            return NOT_FOUND
        query = parse_qs(target.query)
        state, code, error = _first(query, "state"), _first(query, "code"), _first(query, "error")
        if not self._state or state != self._state or not (code or error):
            return NOT_OURS
        if not self._answer.done():
            self._answer.set_result(Answer(code if not error else "", state, _first(query, "iss") or None, error))
        return DONE


def _first(query: dict[str, list[str]], name: str) -> str:
    return query.get(name, [""])[0]
