"""The HTTP client that every remote server is reached with: plain bodies, its own origin, no proxy to this machine.

Above: the links `http` and `sse`, and `sign_in`. Below: httpx2, whose surprises end here.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import re
import ssl
from collections.abc import AsyncIterator

import httpx2

from pegboard.errors import ConnectionLost, ProtocolViolation, StartFailed
from pegboard.upstream.link import Unreachable
from pegboard.wire.http import TOKEN

CONNECT_SECONDS = 10.0
MAX_REDIRECTS = 3
KEEP_ALIVE_SECONDS = 3.0
"""Shorter than what servers allow (5 s are common), so that we never write into a connection being closed."""
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")

_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_REDIRECTS = (301, 302, 303, 307, 308)


class HttpClient:
    """One server's client. A redirect within the origin is followed and remembered; one that leaves it is refused."""

    def __init__(self, server: str, url: str, headers: dict[str, str], auth: httpx2.Auth | None = None) -> None:
        self._server = server
        self.url = checked_url(server, url)
        self._client = new_client(server, self.url, headers, auth)

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, headers: dict[str, str], content: bytes | None = None, url: httpx2.URL | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """A request to the server's address, or to another of its addresses; the answer's body is not read yet."""
        target = url or self.url
        for _ in range(MAX_REDIRECTS + 1):
            async with self._client.stream(method, target, content=content, headers=headers) as response:
                if response.status_code not in _REDIRECTS:
                    if url is None:
                        self.url = target
                    yield response
                    return
                target = self._redirected(target, response)
        raise ProtocolViolation(self._server, f"it redirects more than {MAX_REDIRECTS} times")

    def _redirected(self, url: httpx2.URL, response: httpx2.Response) -> httpx2.URL:
        try:
            target = url.join(response.headers.get("location", ""))
        except httpx2.InvalidURL:
            raise ProtocolViolation(self._server, "it redirects to something that is not an address") from None
        keeps_method = response.status_code in (307, 308) or response.request.method == "GET"
        if not keeps_method or not same_origin(url, target):
            raise ProtocolViolation(
                self._server,
                f"it redirects to {shown(target)}, which is not followed",
                hint="If you trust that address, put it into the configuration as its `url`.",
            )
        return target

    async def close(self) -> None:
        """Closes every connection."""
        await self._client.aclose()


def checked_url(server: str, url: str) -> httpx2.URL:
    """The address, which must be one that HTTP can reach."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise StartFailed(server, f"its `url` is not an address: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host or not 0 < (parsed.port or 80) < 65536:
        raise StartFailed(server, "its `url` is not an address like https://example.com/mcp")
    return parsed


def same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    """Whether both name the same server, and the second brings no credentials of its own."""
    if other.userinfo and other.userinfo != one.userinfo:
        return False
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by what it is called."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        name = host.lower().rstrip(".")
        return name == "localhost" or name.endswith(".localhost")
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or (mapped is not None and mapped.is_loopback)


def shown(url: httpx2.URL) -> str:
    """An address for people: without user name, password and query, which may be secrets."""
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))[:200]


def network_error(server: str, url: str, error: httpx2.HTTPError) -> ConnectionLost:
    """A network failure in words."""
    host = httpx2.URL(url).netloc.decode("ascii", "replace")
    if isinstance(error, httpx2.ConnectTimeout):
        return Unreachable(server, f"{host} did not accept a connection within {CONNECT_SECONDS:g} s")
    if isinstance(error, httpx2.ConnectError):
        return Unreachable(server, f"{host} cannot be reached: {error}")
    if isinstance(error, httpx2.ProxyError):
        return Unreachable(server, f"the proxy on the way to {host} refused: {str(error)[:200]}")
    if isinstance(error, httpx2.LocalProtocolError):
        # The library's words would repeat header values, secrets among them.
        return ConnectionLost(server, "the request cannot be put into HTTP")
    doing = "sending the request" if isinstance(error, httpx2.WriteError) else "waiting for the answer"
    return ConnectionLost(server, f"the connection to {host} broke while {doing}{_because(error)}")


def _because(error: httpx2.HTTPError) -> str:
    words = str(error).strip()[:200]
    return f": {words}" if words else ""


def new_client(
    server: str, url: httpx2.URL, headers: dict[str, str], auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    """A client with the house rules, for a server and whatever belongs to it."""
    try:
        return httpx2.AsyncClient(
            headers=_checked_headers(server, headers),
            auth=auth,
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            # No cap: a call that hangs must not keep the next one waiting. Every call has its own time-out.
            limits=httpx2.Limits(max_keepalive_connections=20, keepalive_expiry=KEEP_ALIVE_SECONDS),
            mounts=_direct(url.host),
            verify=_tls(url),
            follow_redirects=False,
        )
    except (ImportError, ValueError) as error:
        # Proxy variables of the environment are read here: a scheme nobody knows, a missing SOCKS package.
        raise StartFailed(server, f"the proxy settings of the environment cannot be used: {error}") from None


def _direct(host: str) -> dict[str, httpx2.AsyncBaseTransport | None]:
    # Requests to this machine stay away from any proxy: it would see them, and could not serve them.
    hosts = {*LOOPBACK_HOSTS, *([f"[{host}]" if ":" in host else host] if is_loopback(host) else [])}
    return {f"all://{each}": None for each in hosts}


def _checked_headers(server: str, headers: dict[str, str]) -> httpx2.Headers:
    for name, value in headers.items():
        if not TOKEN.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise StartFailed(server, f"the header {name!r} of its `headers` has a character that HTTP does not allow")
    checked = httpx2.Headers([(name.encode(), value.strip().encode()) for name, value in headers.items()])
    # What is not compressed cannot be a decompression bomb.
    checked["Accept-Encoding"] = "identity"
    return checked


def _tls(url: httpx2.URL) -> ssl.SSLContext:
    if url.scheme == "http" and is_loopback(url.host):
        # Loading certificates takes a while, and here nothing needs them. Without any, nothing passes verification.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return load_certificates()


@functools.cache
def load_certificates() -> ssl.SSLContext:
    """What every encrypted connection trusts. Takes a while the first time."""
    return httpx2.create_ssl_context()
