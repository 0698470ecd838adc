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
    """An event, or one of its lines, is over the limit; `events` are those that were complete before it."""

    def __init__(self, events: list[SseEvent]) -> None:
        super().__init__("an event is over the limit")
        self.events = events


class SseDecoder:
    """Bytes in, events out. A comment or an event without data is nothing, as the standard says."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # Buffers, not lists of chunks: a server that sends two bytes at a time must not cost forty for each.
        self._pending = bytearray()  # the line under way
        self._skip_lf = False  # the last chunk ended in CR: a LF that follows belongs to it
        self._at_start = True
        self._data = bytearray()  # the event under way: its data lines, each with a newline
        self._event = ""
        self._retry: int | None = None
        self._id: str | None = None
        self.last_id: str | None = None
        """The id of the last event that came whole: where a cut stream is to be resumed."""

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes."""
        if self._skip_lf and data:
            data = data.removeprefix(b"\n")
            self._skip_lf = False
        if data.endswith(b"\r"):
            self._skip_lf = True
        *whole, rest = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events: list[SseEvent] = []
        for part in whole:
            line = self._complete(part)
            event = self._line(line)
            if max(len(line), len(self._data)) > self._limit:
                raise EventTooLarge(events)
            if event is not None:
                events.append(event)
        self._pending += rest
        if len(self._pending) > self._limit:
            raise EventTooLarge(events)
        return events

    def _complete(self, part: bytes) -> bytes:
        if not self._pending:
            return part
        line = bytes(self._pending + part)
        self._pending = bytearray()
        return line

    def _line(self, line: bytes) -> SseEvent | None:
        if self._at_start:
            line = line.removeprefix(b"\xef\xbb\xbf")
            self._at_start = False
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data += value + b"\n"
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit():
            self._retry = int(value[:9])
        return None

    def _dispatch(self) -> SseEvent | None:
        data, event, retry = self._data, self._event, self._retry
        self._data, self._event, self._retry = bytearray(), "", None
        self.last_id = self._id
        if not data and retry is None:
            return None
        return SseEvent(bytes(data[:-1]), event or "message", self.last_id, retry)
