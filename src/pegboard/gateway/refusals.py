"""Errors of ours as JSON-RPC errors: what happened, and what to do about it. Pure functions."""

from __future__ import annotations

import re

from pegboard.errors import (
    ArgumentsError,
    CallRefused,
    HandleUnknown,
    PegboardError,
    RemoteError,
    ServerNotFound,
    ToolNotFound,
)
from pegboard.wire.framing import Oversized
from pegboard.wire.messages import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, RequestId, RpcError

LONGEST = 4000
_CALLERS_FAULT = (ArgumentsError, CallRefused, HandleUnknown, ServerNotFound, ToolNotFound)
_ID = rb'"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{1,128})")'
_BEFORE = rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?(?:"method"\s*:\s*"[^"\\]{0,200}"\s*,\s*)?'
_FIRST_ID = re.compile(rb"\s*\{\s*" + _BEFORE + _ID + rb'\s*,(?!\s*"(?:result|error)")')
_LAST_ID = re.compile(rb",\s*" + _ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


class Refused(PegboardError):
    """A request that the gateway itself turns down, with the JSON-RPC code that says why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def refusal(error: PegboardError) -> RpcError:
    """The JSON-RPC error that stands for one of ours; a server's own error passes as it came."""
    if isinstance(error, RemoteError):
        return RpcError(error.code, error.remote_message[:LONGEST], error.data)
    text = f"{error.message} {error.hint}".strip()[:LONGEST]
    if isinstance(error, Refused):
        return RpcError(error.code, text)
    return RpcError(INVALID_PARAMS if isinstance(error, _CALLERS_FAULT) else INTERNAL_ERROR, text)


def fault(error: Exception) -> RpcError:
    """Our own mistake. The words stay in the log: they may quote what is nobody else's business."""
    return RpcError(INTERNAL_ERROR, f"Pegboard failed to serve this: {type(error).__name__}; its log says more")


def too_large(size: int, limit: int) -> RpcError:
    """A message that was not even read."""
    return RpcError(INVALID_REQUEST, f"The message has {size:,} bytes, over the limit of {limit:,}")


def asked_id(line: Oversized) -> RequestId | None:
    """The id of a request that was too long to read, when one of its edges tells."""
    found = _FIRST_ID.match(line.head) or _LAST_ID.search(line.tail)
    if found is None:
        return None
    return int(found[1]) if found[1] else found[2].decode("utf-8", "replace")
