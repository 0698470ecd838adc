"""A reply of HTTP/1.1, taken apart as it comes: its head, its body, and whether its end is one. No I/O.

llhttp reads the bytes (`httptools`, of `pegboard[http]`). Above: `lanes`. Below: `headers`.
"""

from __future__ import annotations

import re

import httptools

from pegboard.proxy.headers import Header, body_length, is_chunked

MOST_HEAD = 128 * 1024
"""Bytes of a head, with all that says that the reply is still to come."""
_SWITCHING = 101
_VALUE = re.compile(rb"[^\x00\r\n\x0b\x0c]*")
"""What a client can be sent, which is less than llhttp takes."""


class ReplyParser:
    """One reply. What came before a fault is given before the fault is told."""

    def __init__(self, method: str) -> None:
        self.status = 0
        self.headers: list[Header] = []
        self.has_head = False
        self.is_whole = False
        self.is_reusable = False
        """Whether its connection can take another request."""
        self.fault = ""
        """Why it will never be whole."""
        self._parser = httptools.HttpResponseParser(self)
        self._has_body = method != "HEAD"
        self._is_framed = False
        self._is_interim = False
        self._head_size = 0
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Some bytes of the connection."""
        if self.fault:
            return
        if self.is_whole:  # what follows a whole reply unasked would be taken for the answer to the next request
            self.is_reusable = False
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # the connection speaks something else from here on
            self.is_whole, self.is_reusable = True, False
        except httptools.HttpParserError as error:
            self._broken(f"it is not HTTP: {error}")
        if not self.has_head:
            self._head_size += len(data)
            if self._head_size > MOST_HEAD:
                self._broken(f"its head has more than {MOST_HEAD} bytes")

    def ended(self) -> None:
        """The connection has come to its end."""
        if self.has_head and not self._is_framed:
            self.is_whole = True
        self._broken("the connection was closed")

    def take(self) -> bytes:
        """What has come of the body and was not taken yet."""
        if not self._parts:
            return b""
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts = []
        return body

    def _broken(self, fault: str) -> None:
        self.is_reusable = False
        if not self.is_whole:
            self.fault = self.fault or fault

    # ── What llhttp says ─────────────────────────────────────────────────────────────────────────────────────────────

    def on_message_begin(self) -> None:
        """A reply, or what comes before it to say that it will; after a whole one nothing should."""
        self.is_reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """One of the head; those after the last chunk go no further."""
        if self.has_head:
            return
        if not _VALUE.fullmatch(value):
            self._broken("it is not HTTP: a header has a character that none may have")
        self.headers.append((name, value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        if self.is_whole or self.fault:
            return
        status = self._parser.get_status_code()
        self._is_interim = status < 200 and status != _SWITCHING
        if self._is_interim:
            self.headers = []
            return
        self.status, self.has_head = status, True
        self._is_framed = is_chunked(self.headers) or body_length(self.headers) is not None
        if not self._has_body:  # llhttp does not know what was asked, and waits for a body
            self.is_whole, self.is_reusable = True, self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        if self.is_whole:
            self.is_reusable = False
        elif not self.fault:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        if self._is_interim or self.is_whole or self.fault:
            return
        self.is_whole = True
        self.is_reusable = self._parser.should_keep_alive()
