"""Server-sent events, decoded incrementally: any split of the bytes gives the same events."""

from __future__ import annotations

import msgspec


class SseEvent(msgspec.Struct, frozen=True):
    """One event; `data` is what its data lines say, joined."""

    data: bytes
    event: str = "message"
    id: str | None = None
    retry_ms: int | None = None


class EventTooLarge(Exception):
    """An event, or one of its lines, is over the limit."""


class SseDecoder:
    """Bytes in, events out. A comment or an event without data is nothing, as the standard says."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pending: list[bytes] = []
        self._size = 0  # of the line under way
        self._skip_lf = False  # the last chunk ended in CR: a LF that follows belongs to it
        self._at_start = True
        self._data: list[bytes] = []
        self._data_size = 0
        self._event = ""
        self._retry: int | None = None
        self.last_id: str | None = None

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes."""
        if self._skip_lf and data:
            data = data.removeprefix(b"\n")
            self._skip_lf = False
        if data.endswith(b"\r"):
            self._skip_lf = True
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events = []
        for part in lines[:-1]:
            event = self._line(self._complete(part))
            if event is not None:
                events.append(event)
        self._grow(lines[-1])
        return events

    def _grow(self, part: bytes) -> None:
        if part:
            self._pending.append(part)
            self._size += len(part)
        if self._size > self._limit:
            raise EventTooLarge

    def _complete(self, part: bytes) -> bytes:
        self._grow(part)
        line = b"".join(self._pending)
        self._pending, self._size = [], 0
        if self._at_start:
            line = line.removeprefix(b"\xef\xbb\xbf")
            self._at_start = False
        return line

    def _line(self, line: bytes) -> SseEvent | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_size += len(value) + 1
            if self._data_size > self._limit:
                raise EventTooLarge
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self.last_id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit():
            self._retry = int(value[:9])
        return None

    def _dispatch(self) -> SseEvent | None:
        data, event, retry = self._data, self._event, self._retry
        self._data, self._data_size, self._event, self._retry = [], 0, "", None
        if not data and retry is None:
            return None
        return SseEvent(b"\n".join(data), event or "message", self.last_id, retry)
