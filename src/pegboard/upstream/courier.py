"""Carries the requests of an OAuth flow: only where they may go, only so long, only so many bytes back."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from typing import Any

import httpx2
import msgspec

from pegboard.errors import AuthRequired, ConnectionLost, ServerUnavailable
from pegboard.upstream.http_client import checked_url, is_loopback, network_error, new_client, same_origin, shown
from pegboard.upstream.responses import body_of

FETCH_SECONDS = 20.0
MOST_BYTES = 512 * 1024
_ERROR_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Courier:
    """The way to the authorisation server of one MCP server."""

    def __init__(self, server: str, url: str) -> None:
        self.server = server
        self._url = checked_url(server, url)
        self._last: httpx2.Response | None = None
        # Without the server's own headers: they are not for others.
        self._client = new_client(server, self._url, {})

    async def __aenter__(self) -> Courier:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def carry(self, request: httpx2.Request) -> httpx2.Response:
        """Sends one request and reads its answer."""
        self.must_be_allowed(request.url)
        request.headers["Accept-Encoding"] = "identity"
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                answer = await self._client.send(request, stream=True)
                try:
                    body = await body_of(self.server, answer, MOST_BYTES)
                finally:
                    await answer.aclose()
        except TimeoutError:
            where = request.url.netloc.decode("ascii", "replace")
            raise ConnectionLost(self.server, f"{where} did not answer within {FETCH_SECONDS:g} s") from None
        except httpx2.HTTPError as error:
            raise network_error(self.server, str(request.url), error) from None
        self._last = httpx2.Response(answer.status_code, headers=answer.headers, content=body, request=request)
        self._last.next_request = answer.next_request
        return self._last

    def must_be_allowed(self, url: httpx2.URL) -> None:
        """A server's metadata must not make us talk in the clear, or look around on this machine and its network."""
        if url.scheme in ("http", "https") and same_origin(self._url, url):
            return
        is_inside = is_loopback(url.host) or _is_private(url.host)
        is_neighbour = is_loopback(self._url.host) and is_loopback(url.host)
        if is_neighbour or (url.scheme == "https" and not is_inside):
            return
        raise AuthRequired(self.server, f"its sign-in leads to {shown(url)}, which is not a safe place to go")

    def reason(self) -> str:
        """What the last answer said, in a few safe words."""
        if self._last is None:
            return ""
        try:
            code = msgspec.json.decode(self._last.content, type=dict[str, Any]).get("error")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            code = None
        named = f"{code}, " if isinstance(code, str) and is_error_code(code) else ""
        return f" ({named}HTTP {self._last.status_code})"

    def complain_if_down(self) -> None:
        """A server that is out of order is no reason to ask a person to sign in again."""
        if self._last is not None and (self._last.status_code >= 500 or self._last.status_code == 429):
            cause = f"its authorisation server is out of order{self.reason()}"
            raise ServerUnavailable(self.server, cause, hint="Try again later.")


def is_error_code(text: str) -> bool:
    """Whether a text is the kind of word that OAuth errors are, and no more than that."""
    return _ERROR_CODE.fullmatch(text) is not None


def _is_private(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host.strip("[]")).is_global
    except ValueError:
        return False
