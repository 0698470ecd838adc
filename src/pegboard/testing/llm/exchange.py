"""One exchange with the stand-in: the request as it was sent, the seam to the wire that it is for, the answer.

Above: `FakeLLM`, its transport and its application. Below: `asked`, `cache`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import msgspec

from pegboard.testing.llm.asked import Asked, Rule, Segment
from pegboard.testing.llm.cache import Reading
from pegboard.testing.script import Move, Shown
from pegboard.types import Json

DEEPEST = 200
TOO_DEEP = "The request body goes too deep."
JSON, STREAM = "application/json", "text/event-stream"


class Wire(Protocol):
    """One API."""

    path: str
    rules: tuple[Rule, ...]
    caches_explicitly: bool

    def shown(self, asked: Asked) -> Shown:
        """What the model sees."""

    def prompt(self, asked: Asked) -> list[Segment]:
        """The prompt, in the order in which it is cached."""

    def unplayable(self, move: Move, asked: Asked) -> str:
        """Why the script's move cannot be made in answer to this request; nothing when it can."""

    def reply(self, move: Move, asked: Asked, number: int, reading: Reading) -> Json:
        """The reply that a move comes to."""

    def events(self, reply: Json, asked: Asked) -> Iterator[tuple[str, Json]]:
        """The reply as a stream."""

    def issued(self, reply: Json, asked: Asked) -> dict[str, Json]:
        """What later requests may be held against."""

    def error(self, message: str, status: int) -> Json:
        """The body of a refusal."""


class Seen(msgspec.Struct, frozen=True):
    """One request that was answered or refused."""

    path: str
    body: Json
    refused: str = ""
    reading: Reading = Reading(0, 0, 0, 0)
    headers: Mapping[str, str] = {}
    """By their names in small letters."""
    query: str = ""
    """What came after a question mark in the address."""
    reply: Json = {}
    """What was answered, whole, though it may have been streamed."""

    @property
    def cached(self) -> float:
        """The share of the prompt that came from the cache."""
        return self.reading.cached / self.reading.total if self.reading.total else 0.0

    @property
    def shared(self) -> float:
        """The share of the prompt that an earlier one began with too."""
        return self.reading.shared / self.reading.total if self.reading.total else 0.0


class Answer(msgspec.Struct, frozen=True):
    """What goes back over HTTP."""

    status: int
    kind: str
    pieces: list[bytes]
    """The body, in the pieces in which it is sent: an event each."""
    headers: Mapping[str, str] = {}
    is_cut: bool = False
    """Whether the connection ends after the pieces, with more to come."""


def said(body: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer with one object."""
    return Answer(status, JSON, [msgspec.json.encode(body)], headers or {})


def event(name: str, data: Json) -> bytes:
    """One event of a stream."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {msgspec.json.encode(data).decode()}\n\n".encode()


def read_body(headers: Mapping[str, str], raw: bytes) -> Json:
    """The object that a request holds, packed or not; a ValueError when it holds none."""
    encoding = headers.get("content-encoding", "identity").lower()
    if encoding in ("gzip", "deflate"):
        try:
            raw = zlib.decompress(raw, zlib.MAX_WBITS | 32)  # knows either by its first bytes
        except zlib.error as error:
            raise ValueError(f"request_body_encoding_invalid: the body is no {encoding}") from error
    elif encoding != "identity":
        raise ValueError(f"request_body_encoding_unsupported: {encoding}")
    try:
        body = msgspec.json.decode(raw, type=dict[str, Any])  # its errors are ValueErrors
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if _is_deep(body):
        raise ValueError(TOO_DEEP)
    return body


def _is_deep(value: Any) -> bool:
    """Whether there is more within each other than anybody means to send."""
    level = [value]
    for _ in range(DEEPEST):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for holder in inner for each in holder if isinstance(each, dict | list)]
        if not level:
            return False
    return True
