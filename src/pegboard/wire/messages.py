"""JSON-RPC messages over plain JSON: the envelope is read, what is inside stays raw until someone needs it."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from pegboard.types import Json

T = TypeVar("T")
RequestId = int | str
EMPTY = msgspec.Raw(b"{}")

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022


class Request(msgspec.Struct, frozen=True):
    """A message that wants an answer."""

    id: RequestId
    method: str
    params: msgspec.Raw = EMPTY


class Notification(msgspec.Struct, frozen=True):
    """A message that wants none."""

    method: str
    params: msgspec.Raw = EMPTY


class RpcError(msgspec.Struct, frozen=True):
    """Why a request was not served."""

    code: int
    message: str
    data: Any = None


class Response(msgspec.Struct, frozen=True):
    """The answer to a request: a raw result, or an error. The id is None when the request could not be read."""

    id: RequestId | None
    result: msgspec.Raw | None = None
    error: RpcError | None = None


Message = Request | Notification | Response


class NotJsonRpc(ValueError):
    """Bytes that are not a JSON-RPC message; the text says why."""


class _Envelope(msgspec.Struct):
    id: int | float | str | msgspec.UnsetType | None = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_BATCH = msgspec.json.Decoder(list[msgspec.Raw])
_FIELDS: msgspec.json.Decoder[Json] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()


def parse(data: bytes) -> list[Message]:
    """The messages in one frame: one, or those of a batch. A bad one does not spoil the rest of its batch."""
    if data.lstrip()[:1] != b"[":
        return [_classify(_decode(_ENVELOPE, data))]
    messages: list[Message] = []
    first_error: NotJsonRpc | None = None
    for part in _decode(_BATCH, data):
        try:
            messages.append(_classify(_decode(_ENVELOPE, part)))
        except NotJsonRpc as error:
            first_error = first_error or error
    if first_error is not None and not messages:
        raise first_error
    return messages


def _decode(decoder: msgspec.json.Decoder[T], data: bytes | msgspec.Raw) -> T:
    try:
        try:
            return decoder.decode(data)
        except (UnicodeDecodeError, msgspec.MsgspecError):
            # One bad character is no reason to lose an answer.
            mended = _mend(bytes(data))
            if mended == bytes(data):
                raise
            return decoder.decode(mended)
    except msgspec.MsgspecError as error:
        raise NotJsonRpc(str(error)) from None
    except RecursionError:
        raise NotJsonRpc("nested too deeply") from None


_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF_PAIR = re.compile(rb"(?<!\\)((?:\\\\)*)(?:" + _HIGH + rb"(?!" + _LOW + rb")|(?<!" + _HIGH + rb")" + _LOW + rb")")


def _mend(data: bytes) -> bytes:
    """What servers get wrong now and then: a byte order mark, Latin-1 bytes, half a surrogate pair."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").encode()
    return _HALF_PAIR.sub(rb"\1\\ufffd", text)


def _classify(envelope: _Envelope) -> Message:
    identity = request_id(envelope.id)
    if isinstance(envelope.method, str):
        params = envelope.params if isinstance(envelope.params, msgspec.Raw) else EMPTY
        if envelope.id is msgspec.UNSET:
            return Notification(envelope.method, params)
        if identity is None:
            raise NotJsonRpc("a request whose id is neither a string nor an integer")
        return Request(identity, envelope.method, params)
    # JSON-RPC 1.0 habits: a result with `"error": null` beside it is a result.
    if isinstance(envelope.error, msgspec.Raw) and bytes(envelope.error) != b"null":
        return Response(identity, error=_read_error(envelope.error))
    if isinstance(envelope.result, msgspec.Raw):
        return Response(identity, result=envelope.result)
    raise NotJsonRpc("neither a method, a result nor an error")


def request_id(value: object) -> RequestId | None:
    """A value as a request id (or a progress token), or None when it is none."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def _read_error(raw: msgspec.Raw) -> RpcError:
    body = read(raw)
    if not isinstance(body, dict):
        return RpcError(INTERNAL_ERROR, str(body)[:500])
    code, message = body.get("code"), body.get("message")
    return RpcError(
        code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR,
        message if isinstance(message, str) else "(the server gave no message)",
        body.get("data"),
    )


def read(raw: msgspec.Raw | bytes) -> Any:
    """Raw JSON as plain Python; invalid UTF-8 is replaced, not refused."""
    return _decode(_ANY, raw)


def read_object(raw: msgspec.Raw | bytes) -> Json:
    """Raw JSON that must be an object."""
    value = read(raw)
    if not isinstance(value, dict):
        raise NotJsonRpc(f"expected an object, got {type(value).__name__}")
    return value


def object_or_nothing(raw: msgspec.Raw | bytes) -> Json:
    """Raw JSON as an object; an empty one when it is something else: for what may be ignored."""
    try:
        return read_object(raw)
    except NotJsonRpc:
        return {}


def read_fields(raw: msgspec.Raw | bytes) -> Json:
    """The fields of a raw object, each still raw, so that one can be added without touching the others."""
    fields: Json = _decode(_FIELDS, raw)
    return fields


def encode_request(identity: RequestId, method: str, params: Json | msgspec.Raw | None = None) -> bytes:
    """A request as one line of JSON, without the newline."""
    message: Json = {"jsonrpc": "2.0", "id": identity, "method": method}
    if params is not None:
        message["params"] = params
    return _line(message)


def encode_notification(method: str, params: Json | msgspec.Raw | None = None) -> bytes:
    """A notification as one line of JSON."""
    message: Json = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return _line(message)


def encode_result(identity: RequestId, result: Json | msgspec.Raw) -> bytes:
    """An answer as one line of JSON."""
    return _line({"jsonrpc": "2.0", "id": identity, "result": result})


def encode_error(identity: RequestId | None, error: RpcError) -> bytes:
    """A refusal as one line of JSON."""
    body: Json = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return _line({"jsonrpc": "2.0", "id": identity, "error": body})


def _line(message: Json) -> bytes:
    # Raw parts are passed on as they came. Newlines in them would end the frame too early, bad UTF-8 kills readers.
    data = _ENCODER.encode(message)
    if b"\n" in data or b"\r" in data:
        data = data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data if data.isascii() else data.decode("utf-8", "replace").encode()
