"""Reads a stream of server-sent events from an HTTP answer, and remembers where it stands for when it is cut."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import httpx2
import msgspec

from pegboard.upstream.responses import drain, must_be_plain, too_large
from pegboard.wire.http import PLAIN
from pegboard.wire.sse import EventTooLarge, SseDecoder, SseEvent

DEFAULT_RETRY = 1.0
SHORTEST_RETRY = 0.05
LONGEST_RETRY = 30.0


class Cursor(msgspec.Struct):
    """Where a stream stands: the last event seen, and how long to wait before asking for the rest."""

    last_id: str | None = None
    retry_ms: int | None = None

    def note(self, last_id: str | None, events: list[SseEvent]) -> None:
        """Events went by. An id that a header cannot carry back is no use."""
        if last_id is not None:
            self.last_id = last_id if PLAIN.fullmatch(last_id) else None
        for event in events:
            if event.retry_ms is not None:
                self.retry_ms = event.retry_ms

    def pause(self, failures: int = 0) -> float:
        """Seconds to wait before the next try: what the server asked for, longer the more tries failed."""
        asked = DEFAULT_RETRY if self.retry_ms is None else self.retry_ms / 1000
        return min(max(asked, SHORTEST_RETRY) * (1 << failures), LONGEST_RETRY)


async def read_events(
    server: str, response: httpx2.Response, limit: int, cursor: Cursor, take: Callable[[SseEvent], bool]
) -> None:
    """Hands over the events until the stream ends or `take` says that it has what it wanted."""
    must_be_plain(server, response)
    decoder = SseDecoder(limit)
    async with contextlib.aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            try:
                events, too_long = decoder.feed(chunk), False
            except EventTooLarge as error:
                events, too_long = error.events, True
            cursor.note(decoder.last_id, events)
            for event in events:
                if take(event):
                    await drain(chunks)
                    return
            if too_long:
                raise too_large(server, "an event", limit)
