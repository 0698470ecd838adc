"""Connections to an upstream through the proxy that the environment names, HTTP or SOCKS. httpcore2 makes them.

httpx2 stands above httpcore2 and would add headers, decode bodies and follow redirects. Above: `api`. Below: `sockets`.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterable
from typing import Any
from urllib.parse import unquote, urlsplit

import httpcore2

from pegboard.errors import PegboardError
from pegboard.proxy.headers import Header
from pegboard.proxy.lanes import CONNECT_SECONDS, KEEP_PLAIN_SECONDS, KEEP_SECONDS, KEPT_CONNECTIONS, Patience
from pegboard.proxy.routes import Address
from pegboard.proxy.sockets import Sockets
from pegboard.upstream.http_client import is_loopback, load_certificates


class Tunnels:
    """All connections to one upstream."""

    def __init__(self, address: Address, context: ssl.SSLContext | None, between: httpcore2.Proxy) -> None:
        """`context` is None where the upstream speaks without TLS."""
        self._address = address
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            proxy=between,
            max_connections=None,
            max_keepalive_connections=KEPT_CONNECTIONS,
            keepalive_expiry=KEEP_PLAIN_SECONDS if context is None else KEEP_SECONDS,
            network_backend=Sockets(),
        )

    async def ask(
        self, method: str, target: bytes, headers: list[Header], content: AsyncIterable[bytes], patience: Patience
    ) -> TunnelReply:
        """Sends a request; gives the reply when its head is there."""
        address = self._address
        url = httpcore2.URL(scheme=address.scheme, host=address.host, port=address.port, target=target)
        timeouts = {"connect": CONNECT_SECONDS, "write": patience.idle, "read": patience.head}
        request = httpcore2.Request(method, url, headers=headers, content=content, extensions={"timeout": timeouts})
        response = await self._pool.handle_async_request(request)
        timeouts["read"] = patience.idle
        return TunnelReply(response)

    async def close(self) -> None:
        """Closes every connection."""
        await self._pool.aclose()


class TunnelReply:
    """One reply: iterate for its body, and `aclose` it in any case."""

    def __init__(self, response: httpcore2.Response) -> None:
        self.status: int = response.status
        self.headers: list[Header] = response.headers
        self._response = response
        stream: Any = response.stream
        self._parts: Any = stream.__aiter__()

    async def __anext__(self) -> bytes:
        """The next bytes, as soon as there are some."""
        try:
            data: bytes = await self._parts.__anext__()
        except StopAsyncIteration:
            await self._mistrust()
            raise
        return data

    async def aclose(self) -> None:
        """Gives the connection back when the reply has been read to its end, else closes it."""
        await self._parts.aclose()
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


def proxy_for(address: Address) -> httpcore2.Proxy | None:
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
