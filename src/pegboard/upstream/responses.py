"""Reads HTTP answers with suspicion: bounded bodies, plain encodings, and statuses put into words."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import msgspec

from pegboard.errors import AuthRequired, LimitExceeded, ProtocolViolation, ServerError, ServerUnavailable
from pegboard.upstream.http_client import shown
from pegboard.upstream.link import Forbidden, TurnedDown
from pegboard.wire.messages import RpcError

SMALL_BODY = 64 * 1024
"""Enough for an error, an acknowledgement, the end of a stream."""
DRAIN_SECONDS = 0.5


class _Refusal(msgspec.Struct):
    code: int
    message: str = "(the server gave no message)"
    data: Any = None


class _RefusalEnvelope(msgspec.Struct):
    error: _Refusal


_REFUSAL = msgspec.json.Decoder(_RefusalEnvelope)


def content_type(response: httpx2.Response) -> str:
    """The media type, without its parameters."""
    value: str = response.headers.get("content-type", "")
    return value.partition(";")[0].strip().lower()


def must_be_plain(server: str, response: httpx2.Response) -> None:
    """Refuses a compressed body: it was not asked for, and may be a bomb."""
    if response.headers.get("content-encoding", "").strip().lower() not in ("", "identity"):
        raise ProtocolViolation(server, "it compressed its answer although it was asked not to")


async def body_of(server: str, response: httpx2.Response, budget: int) -> bytes:
    """The whole body, if it stays within the budget."""
    must_be_plain(server, response)
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > budget:
            raise too_large(server, "a body", budget)
    return bytes(body)


def too_large(server: str, what: str, budget: int) -> LimitExceeded:
    """The error for more bytes than a server may send."""
    return LimitExceeded(
        server,
        f"it sent {what} of more than {budget:,} bytes",
        hint=f"If that is wanted, raise `max_result_bytes` of servers.{server}.",
    )


async def drain(chunks: AsyncIterator[bytes]) -> None:
    """Reads what little is left, so that the connection can be used again; what is not little is dropped."""
    room = SMALL_BODY
    with contextlib.suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for chunk in chunks:
                room -= len(chunk)
                if room < 0:
                    return


async def rpc_error_of(response: httpx2.Response) -> RpcError | None:
    """The JSON-RPC error in the body of an error status, when there is one."""
    if content_type(response) != "application/json":
        return None
    try:
        return refusal_in(await body_of("", response, SMALL_BODY))
    except (ServerError, httpx2.HTTPError):
        return None


def refusal_in(body: bytes) -> RpcError | None:
    """The JSON-RPC error that a body is, whatever id it bears. `{"error": "not found"}` is none."""
    try:
        error = _REFUSAL.decode(body).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return RpcError(error.code, error.message, error.data)


def status_error(server: str, response: httpx2.Response) -> ServerError:
    """What an HTTP error status means for the person."""
    status = response.status_code
    if status == 401:
        return AuthRequired(
            server,
            "it asks for credentials (HTTP 401)",
            hint=f"`pegboard login {server}` signs in with OAuth; or give it a token in `headers`.",
        )
    if status == 403:
        return Forbidden(
            server, "it does not allow that (HTTP 403)", hint="Check the token in its `headers`, and what it may do."
        )
    if status in (429, 503):
        after = response.headers.get("retry-after", "").strip()
        return ServerUnavailable(server, f"it asks to be left alone for now (HTTP {status})", hint=_later(after))
    hint = f"Is {shown(response.request.url)} the address of its MCP endpoint?" if status in (404, 405) else ""
    return TurnedDown(server, status, response.reason_phrase[:100], hint=hint)


def _later(after: str) -> str:
    return f"Try again in {after} s." if after.isdecimal() and len(after) < 8 else "Try again later."
