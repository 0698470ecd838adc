"""The upstream side: one model's API, and replies of it as raw bytes. httpcore2 does the HTTP and keeps connections.

httpx2 stands above httpcore2 and would add headers, decode bodies and follow redirects; a proxy must do none of these.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any
from urllib.parse import unquote, urlsplit

import httpcore2
import msgspec

from pegboard.errors import PegboardError
from pegboard.proxy.headers import Header
from pegboard.proxy.routes import Address
from pegboard.proxy.sockets import Sockets
from pegboard.upstream.http_client import is_loopback, load_certificates

CONNECT_SECONDS = 15.0
KEPT_CONNECTIONS = 64
KEEP_SECONDS = 60.0
KEEP_PLAIN_SECONDS = 4.0
"""Servers without TLS are small ones, which hang up after 5 s: we must not write into a connection being closed."""
PIECE = 256 * 1024
MAX_STATUS = 599

_NETWORK = (
    httpcore2.NetworkError,
    httpcore2.TimeoutException,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
)

UNREACHABLE = "upstream unreachable"
CUT = "reply cut"
IDLE = "idle"
MUTE = "no answer in time"


class ApiFailed(Exception):
    """An upstream gave no reply, or not all of it."""

    def __init__(self, kind: str, words: str, status: int = 502) -> None:
        super().__init__(words)
        self.kind = kind
        self.words = words
        self.status = status


class Patience(msgspec.Struct, frozen=True):
    """How long an upstream may be silent."""

    head: float
    """Before it begins to answer: a model may think for long."""
    idle: float
    """While it answers, or takes a request."""


class Reply:
    """One reply: iterate for its body, and `aclose` it in any case."""

    def __init__(self, response: httpcore2.Response, where: str) -> None:
        self.status = response.status
        self.headers: list[Header] = response.headers
        self._response = response
        self._where = where
        stream: Any = response.stream
        self._chunks: Any = stream.__aiter__()

    def __aiter__(self) -> Reply:
        return self

    async def __anext__(self) -> bytes:
        """The next bytes, as soon as there are some."""
        try:
            data: bytes = await self._chunks.__anext__()
        except _NETWORK as error:
            raise _of_reply(error, self._where) from None
        except StopAsyncIteration:
            await self._mistrust()
            raise
        return data

    async def aclose(self) -> None:
        """Gives the connection back when the reply has been read to its end, else closes it."""
        await self._chunks.aclose()
        await self._response.aclose()

    async def _mistrust(self) -> None:
        # What follows a whole reply unasked would be taken for the answer to somebody's next request.
        stream: Any = self._response.stream
        try:
            surplus, _ = stream._stream._connection._h11_state.trailing_data
        except AttributeError:
            surplus = b"?"
        if surplus:
            await self._response.extensions["network_stream"].aclose()


class _Content:
    """The body of one try. Whether it was begun says whether anything may have reached the upstream."""

    def __init__(self, parts: bytes | AsyncIterable[bytes]) -> None:
        self._parts = parts
        self.is_begun = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.is_begun = True
        if isinstance(self._parts, bytes):
            for start in range(0, len(self._parts), PIECE):
                yield self._parts[start : start + PIECE] if len(self._parts) > PIECE else self._parts
            return
        async for part in self._parts:
            yield part


class Api:
    """One upstream."""

    def __init__(self, address: Address, patience: Patience) -> None:
        self.address = address
        self._patience = patience
        self._where = address.authority.decode("ascii")
        self._pool: httpcore2.AsyncConnectionPool | None = None

    async def ask(
        self, method: str, target: bytes, headers: list[Header], content: bytes | AsyncIterable[bytes]
    ) -> Reply:
        """Sends a request; gives the reply when its head is there. A second try is made if nothing was sent."""
        pool = self._pool = self._pool or _new_pool(self.address)
        url = httpcore2.URL(scheme=self.address.scheme, host=self.address.host, port=self.address.port, target=target)
        for is_last in (False, True):
            body = _Content(content)
            timeouts = {"connect": CONNECT_SECONDS, "write": self._patience.idle, "read": self._patience.head}
            request = httpcore2.Request(method, url, headers=headers, content=body, extensions={"timeout": timeouts})
            try:
                response = await pool.handle_async_request(request)
            except _NETWORK as error:
                if is_last or body.is_begun or isinstance(error, httpcore2.TimeoutException):
                    raise _of_request(error, self._where) from None
                continue
            timeouts["read"] = self._patience.idle
            return await self._checked(response)
        raise AssertionError

    async def _checked(self, response: httpcore2.Response) -> Reply:
        if 200 <= response.status <= MAX_STATUS:
            return Reply(response, self._where)
        await response.aclose()
        raise ApiFailed(CUT, f"{self._where} answered with HTTP status {response.status}, which is not an answer.")

    async def close(self) -> None:
        """Closes every connection."""
        if self._pool is not None:
            await self._pool.aclose()


def _new_pool(address: Address) -> httpcore2.AsyncConnectionPool:
    is_plain = address.scheme == "http"
    return httpcore2.AsyncConnectionPool(
        ssl_context=None if is_plain else load_certificates(),
        proxy=_proxy_for(address),
        max_connections=None,
        max_keepalive_connections=KEPT_CONNECTIONS,
        keepalive_expiry=KEEP_PLAIN_SECONDS if is_plain else KEEP_SECONDS,
        network_backend=Sockets(),
    )


def _proxy_for(address: Address) -> httpcore2.Proxy | None:
    """The proxy that the environment names for an upstream; this machine is reached without one."""
    from urllib.request import getproxies, proxy_bypass

    settings = getproxies()
    url = settings.get(address.scheme) or settings.get("all")
    if not url or is_loopback(address.host) or proxy_bypass(f"{address.host}:{address.port}"):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    bare = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    with contextlib.suppress(ValueError, TypeError):
        if parts.scheme in ("http", "https", "socks5", "socks5h") and parts.hostname:
            context = load_certificates() if parts.scheme == "https" else None
            return httpcore2.Proxy(bare, auth=auth, ssl_context=context)
    raise PegboardError(f"The proxy {bare} of the environment cannot be used.", hint="Set HTTPS_PROXY, or NO_PROXY.")


def _of_request(error: Exception, where: str) -> ApiFailed:
    """Why there is no reply at all."""
    if isinstance(error, httpcore2.ConnectTimeout):
        words = f"{where} did not accept a connection within {CONNECT_SECONDS:g} s. Check the network, then try again."
        return ApiFailed(UNREACHABLE, words, 504)
    if isinstance(error, httpcore2.TimeoutException):
        return ApiFailed(MUTE, f"{where} took the request, but did not answer in time. Try again.", 504)
    if isinstance(error, httpcore2.ConnectError | httpcore2.ProxyError):
        words = f"{where} cannot be reached: {_reason(error)}. Check the network and `proxy.upstreams`, then try again."
        return ApiFailed(UNREACHABLE, words)
    if isinstance(error, httpcore2.LocalProtocolError):
        # The library's words would repeat header values, credentials among them.
        return ApiFailed(CUT, f"This request cannot be put into HTTP for {where}.", 400)
    return ApiFailed(CUT, f"{where} hung up before it answered: {_reason(error)}. Try again.")


def _of_reply(error: Exception, where: str) -> ApiFailed:
    """Why a reply is not whole."""
    if isinstance(error, httpcore2.TimeoutException):
        return ApiFailed(IDLE, f"{where} fell silent in the middle of its reply. Try again.", 504)
    return ApiFailed(CUT, f"The reply of {where} was cut: {_reason(error)}. Try again.")


def _reason(error: Exception) -> str:
    return str(error).strip().rstrip(".")[:200] or "the connection broke"
