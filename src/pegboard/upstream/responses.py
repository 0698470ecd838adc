"""Reads HTTP answers with suspicion: bounded bodies, plain encodings, own origin, and statuses put into words."""

from __future__ import annotations

import httpx2

from pegboard.errors import AuthRequired, LimitExceeded, ProtocolViolation, ServerError, ServerUnavailable
from pegboard.upstream.link import TurnedDown
from pegboard.wire.messages import NotJsonRpc, Response, RpcError, parse

ERROR_BODY_BYTES = 64 * 1024


def content_type(response: httpx2.Response) -> str:
    """The media type, without its parameters."""
    value: str = response.headers.get("content-type", "")
    return value.partition(";")[0].strip().lower()


async def body_of(server: str, response: httpx2.Response, budget: int) -> bytes:
    """The whole body, if it stays within the budget."""
    if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise ProtocolViolation(server, "it compressed its answer although it was asked not to")
    parts: list[bytes] = []
    size = 0
    async for chunk in response.aiter_raw():
        parts.append(chunk)
        size += len(chunk)
        if size > budget:
            raise LimitExceeded(
                server,
                f"it sent a body of more than {budget:,} bytes",
                hint=f"If that is wanted, raise `max_result_bytes` of servers.{server}.",
            )
    return b"".join(parts)


async def rpc_error_of(response: httpx2.Response) -> RpcError | None:
    """The JSON-RPC error in the body of an error status, when there is one."""
    if content_type(response) != "application/json":
        return None
    try:
        messages = parse(await body_of("", response, ERROR_BODY_BYTES))
    except (ServerError, NotJsonRpc, httpx2.HTTPError):
        return None
    return next((each.error for each in messages if isinstance(each, Response)), None)


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
        return AuthRequired(server, "it refuses our credentials (HTTP 403)", hint="Check its token and scopes.")
    if status in (429, 503):
        after = response.headers.get("retry-after", "")
        return ServerUnavailable(server, f"it asks to be left alone for now (HTTP {status})", hint=_later(after))
    return TurnedDown(server, status, response.reason_phrase)


def _later(after: str) -> str:
    return f"Try again in {after} s." if after.isdigit() else "Try again later."


def same_origin_target(server: str, url: httpx2.URL, response: httpx2.Response) -> httpx2.URL:
    """Where a redirect leads, if that is the same origin and the method stays."""
    target = url.join(response.headers.get("location", ""))
    origin = (url.scheme, url.host, url.port)
    if response.status_code not in (307, 308) or (target.scheme, target.host, target.port) != origin:
        raise ProtocolViolation(
            server,
            f"it redirects to {target}, which is not followed",
            hint="If you trust that address, put it into the configuration as its `url`.",
        )
    return target


def describe_network_error(error: httpx2.HTTPError, url: str) -> str:
    """A network failure in words."""
    host = httpx2.URL(url).netloc.decode("ascii", "replace")
    if isinstance(error, httpx2.ConnectTimeout):
        return f"{host} did not accept a connection in time"
    if isinstance(error, httpx2.ConnectError):
        return f"{host} cannot be reached: {error}"
    return f"the connection to {host} broke: {error or type(error).__name__}"
