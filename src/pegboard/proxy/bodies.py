"""Content-Encoding: a whole request decoded within a limit, and replies decoded as they come. Pure.

Nothing here holds more than a window of decoded bytes: what was packed small may be anything when unpacked.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

PIECE = 64 * 1024
_PLAIN = ("", "identity")
_GZIP = ("gzip", "x-gzip")


class EncodingUnknown(Exception):
    """This encoding is not read here."""


class EncodingBroken(Exception):
    """The bytes are not of the encoding that was announced, or end before it does."""


class TooLarge(Exception):
    """More comes out than the limit allows."""


class Decoder:
    """Takes a reply apart as it comes; `feed` gives pieces of bounded size."""

    def __init__(self, encoding: str) -> None:
        self._name = encoding.strip().lower()
        self._fed = False
        self._inflate = self._new()

    @property
    def is_plain(self) -> bool:
        """Whether nothing is encoded at all."""
        return self._name in _PLAIN

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What these bytes stand for."""
        if self.is_plain:
            yield data
            return
        while data:
            if self._inflate.eof:
                self._next_member()
            if not self._fed and self._name == "deflate" and data[0] & 0x0F != 8:
                # It should be in zlib's wrapping, whose first byte says so; some send it bare.
                self._inflate = zlib.decompressobj(wbits=-15)
            try:
                piece = self._inflate.decompress(data, PIECE)
            except zlib.error:
                raise EncodingBroken from None
            self._fed = True
            # What is still inside without new input comes out by an empty call, until a piece is not full.
            yield piece
            while len(piece) == PIECE and not self._inflate.eof and not self._inflate.unconsumed_tail:
                piece = self._inflate.decompress(b"", PIECE)
                yield piece
            data = self._inflate.unconsumed_tail or self._inflate.unused_data

    def finish(self) -> None:
        """Raises `EncodingBroken` when the end has not been reached."""
        if not self.is_plain and self._fed and not self._inflate.eof:
            raise EncodingBroken

    def _new(self) -> zlib._Decompress:
        if self._name in _GZIP:
            return zlib.decompressobj(wbits=31)
        if self._name in (*_PLAIN, "deflate"):
            return zlib.decompressobj()
        raise EncodingUnknown

    def _next_member(self) -> None:
        if self._name not in _GZIP:
            raise EncodingBroken
        self._inflate = self._new()


def decode(body: bytes, encoding: str, limit: int) -> bytes:
    """A whole body, decoded. Raises when it cannot be, or would be larger than the limit."""
    decoder = Decoder(encoding)
    if decoder.is_plain:
        return body
    parts, size = [], 0
    for piece in decoder.feed(body):
        size += len(piece)
        if size > limit:
            raise TooLarge
        parts.append(piece)
    decoder.finish()
    return b"".join(parts)
