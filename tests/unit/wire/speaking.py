"""Clients of both eras, in short words, for the tests of the server's half."""

from __future__ import annotations

from typing import Any, TypeVar

from pegboard.types import Json
from pegboard.wire.asked import Asked
from pegboard.wire.messages import (
    encode_request,
    read,
)
from pegboard.wire.meta import META_CAPABILITIES, META_CLIENT, META_VERSION
from pegboard.wire.server import Answer, Event, ServerSide

T = TypeVar("T")
CAPABILITIES: Json = {"tools": {"listChanged": True}}
CLIENT = {"name": "client", "version": "3"}


def side(**options: Any) -> ServerSide:
    return ServerSide("board", "1.0", capabilities=CAPABILITIES, **options)


def greeted(version: str = "2025-11-25", **options: Any) -> ServerSide:
    server = side(**options)
    only(server.receive(initialize(version)), Answer)
    return server


def initialize(version: Any = "2025-11-25") -> bytes:
    params = {"protocolVersion": version, "capabilities": {"elicitation": {}}, "clientInfo": CLIENT}
    return encode_request(0, "initialize", params)


def modern(method: str, identity: int | str = 1, version: Any = "2026-07-28", **params: Any) -> bytes:
    meta = {
        META_VERSION: version,
        META_CAPABILITIES: {"elicitation": {}},
        META_CLIENT: CLIENT,
        **params.pop("meta", {}),
    }
    return encode_request(identity, method, {**params, "_meta": meta})


def only(events: list[Event], kind: type[T]) -> T:
    [event] = events
    assert isinstance(event, kind)
    return event


def answered(server: ServerSide, data: bytes) -> Json:
    body: Json = read(only(server.receive(data), Answer).data)
    return body


def refused(server: ServerSide, data: bytes) -> tuple[object, int]:
    answer = only(server.receive(data), Answer)
    body = read(answer.data)
    assert answer.error is not None
    assert answer.error.code == body["error"]["code"]
    return body["id"], answer.error.code


def asked(server: ServerSide, data: bytes) -> Asked:
    return only(server.receive(data), Asked)


def body_of(data: bytes | None) -> Json:
    assert data is not None
    value: Json = read(data)
    return value
