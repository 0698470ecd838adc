"""The upstream side: one model's API, replies of it as raw bytes, and in words why there is none.

Above: `passage`. Below: `lanes`, `tunnels`. Neither adds headers, decodes bodies or follows redirects.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import Protocol

import httpcore2

from pegboard.proxy.headers import Header
from pegboard.proxy.lanes import CONNECT_SECONDS, Lanes, Patience
from pegboard.proxy.routes import Address
from pegboard.proxy.tunnels import Tunnels, proxy_for
from pegboard.upstream.http_client import load_certificates

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


class Answered(Protocol):
    """A reply as either way out gives it."""

    @property
    def status(self) -> int:
        """Its status."""
        ...

    @property
    def headers(self) -> list[Header]:
        """Its headers, in their order."""
        ...

    async def __anext__(self) -> bytes:
        """The next bytes of its body."""
        ...

    async def aclose(self) -> None:
        """Gives the connection back, or closes it."""
        ...


class WayOut(Protocol):
    """How requests reach an upstream: straight (`Lanes`), or through the environment's proxy (`Tunnels`)."""

    async def ask(
        self, method: str, target: bytes, headers: list[Header], content: AsyncIterable[bytes], patience: Patience
    ) -> Answered:
        """Sends a request; gives the reply when its head is there."""
        ...

    async def close(self) -> None:
        """Closes every connection."""
        ...


class Reply:
    """One reply: iterate for its body, and `aclose` it in any case."""

    def __init__(self, answered: Answered, where: str) -> None:
        self.status = answered.status
        self.headers = answered.headers
        self._answered = answered
        self._where = where

    def __aiter__(self) -> Reply:
        return self

    async def __anext__(self) -> bytes:
        """The next bytes, as soon as there are some."""
        try:
            return await self._answered.__anext__()
        except _NETWORK as error:
            raise _of_reply(error, self._where) from None

    async def aclose(self) -> None:
        """Gives the connection back when the reply has been read to its end, else closes it."""
        await self._answered.aclose()


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
        self._way: WayOut | None = None

    async def ask(
        self, method: str, target: bytes, headers: list[Header], content: bytes | AsyncIterable[bytes]
    ) -> Reply:
        """Sends a request; gives the reply when its head is there. A second try is made if nothing was sent."""
        way = self._way = self._way or _way_to(self.address)
        for is_last in (False, True):
            body = _Content(content)
            try:
                answered = await way.ask(method, target, headers, body, self._patience)
            except _NETWORK as error:
                if is_last or body.is_begun or isinstance(error, httpcore2.TimeoutException):
                    raise _of_request(error, self._where) from None
                continue
            return await self._checked(answered)
        raise AssertionError

    async def _checked(self, answered: Answered) -> Reply:
        if 200 <= answered.status <= MAX_STATUS:
            return Reply(answered, self._where)
        await answered.aclose()
        raise ApiFailed(CUT, f"{self._where} answered with HTTP status {answered.status}, which is not an answer.")

    async def close(self) -> None:
        """Closes every connection."""
        if self._way is not None:
            await self._way.close()


def _way_to(address: Address) -> WayOut:
    context = None if address.scheme == "http" else load_certificates()
    between = proxy_for(address)
    return Lanes(address, context) if between is None else Tunnels(address, context, between)


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
