"""Reads the token counts out of replies that pass by, in streams or whole; alters nothing, holds little. Pure.

Bytes are searched for the key `"usage"` before anything is parsed. In a text it would stand with its quotes escaped, so
that only a key is ever found; a tool's own arguments might hold one too, and are told by the fields that are missing.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeGuard

import msgspec

from pegboard.proxy.bodies import Decoder, EncodingBroken, EncodingUnknown
from pegboard.proxy.seam import Wire
from pegboard.proxy.tally import Tokens

MOST_BYTES = 16 * 1024
"""No object of counts is larger."""
_KEY = b'"usage"'
_OBJECT = re.compile(rb'"usage"[ \t\r\n]*:[ \t\r\n]*(?=\{)')
_MAYBE = re.compile(rb'"usage"[ \t\r\n]*:?[ \t\r\n]*$')
_FIELDS = (
    "input_tokens",
    "output_tokens",
    "prompt_tokens",
    "completion_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)
_JSON = json.JSONDecoder()


class UsageReader:
    """The counts of one reply."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._held = b""
        self._counts: dict[str, int] = {}

    def feed(self, data: bytes) -> None:
        """Looks at bytes of the reply."""
        data = self._held + data if self._held else data
        while (start := data.find(_KEY)) >= 0:
            rest = self._read(data[start:])
            if rest is None:
                self._held = data[start:]
                return
            data = rest
        self._held = data[-(len(_KEY) - 1) :]

    def add_to(self, tokens: Tokens) -> None:
        """Adds what was found to the counts; nothing when nothing was."""
        counts = self._counts
        if not counts or self._wire == "count_tokens":
            return
        read, written = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
        sent = counts.get("input_tokens", counts.get("prompt_tokens", 0))
        # Anthropic counts what came from the cache apart, OpenAI within.
        whole = sent + read + written if self._wire == "messages" else sent
        output = counts.get("output_tokens", counts.get("completion_tokens", 0))
        tokens.add(input=whole, output=output, cache_read=read, cache_write=written)

    def _read(self, data: bytes) -> bytes | None:
        """What follows the key that `data` begins with; None when more bytes must come first."""
        begins = _OBJECT.match(data)
        if begins is None:
            return None if _MAYBE.match(data) and len(data) < MOST_BYTES else data[len(_KEY) :]
        text = data[begins.end() : begins.end() + MOST_BYTES].decode("utf-8", "replace")
        try:
            found, _ = _JSON.raw_decode(text)
        except (ValueError, RecursionError):
            return None if len(text) < MOST_BYTES and len(data) < MOST_BYTES else data[len(_KEY) :]
        self._take(found)
        return data[begins.end() :]

    def _take(self, found: dict[str, Any]) -> None:
        for field in _FIELDS:
            if _is_count(value := found.get(field)):
                self._counts[field] = value
        for details in ("prompt_tokens_details", "input_tokens_details"):
            inner = found.get(details)
            if isinstance(inner, dict) and _is_count(cached := inner.get("cached_tokens")):
                self._counts["cache_read_input_tokens"] = cached


class Meter(msgspec.Struct):
    """A reader behind whatever encoding a reply comes in; gives up quietly, for it only watches."""

    reader: UsageReader
    decoder: Decoder | None

    @classmethod
    def of(cls, wire: Wire, encoding: str = "") -> Meter:
        """A meter for a reply; it sees nothing when the encoding is not known."""
        try:
            return cls(UsageReader(wire), Decoder(encoding))
        except EncodingUnknown:
            return cls(UsageReader(wire), None)

    def feed(self, data: bytes) -> None:
        """Looks at bytes as they pass."""
        if self.decoder is None:
            return
        try:
            for piece in self.decoder.feed(data):
                self.reader.feed(piece)
        except EncodingBroken:
            self.decoder = None


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40
