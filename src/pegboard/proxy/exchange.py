"""One request whose tools are deferred: what is sent, round after round, and what the client gets of it.

Above: `app`, which moves the bytes. Below: the editors of one wire. No I/O of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from pegboard.proxy.events import Event, Splitter
from pegboard.proxy.seam import ReplyCut
from pegboard.proxy.turn import Ask, ReplyEditor, RequestEditor
from pegboard.types import Json

MOST_BYTES = 64 * 1024 * 1024
"""Of a reply that is not a stream."""


class Edited:
    """Implements `seam.Exchange`."""

    def __init__(
        self,
        request: RequestEditor,
        reply: ReplyEditor,
        *,
        streamed: bool,
        answer: Callable[[Ask], Awaitable[str]],
        keep: Callable[[], Awaitable[None]],
        most_rounds: int,
        on_round: Callable[[list[Json]], None] = lambda _: None,
    ) -> None:
        """`on_round` is told of each round that follows, with all answers that it has got from us."""
        self.streamed = streamed
        self.body = request.body([])
        self._request = request
        self._reply = reply
        self._answer = answer
        self._keep = keep
        self._most_rounds = most_rounds
        self._on_round = on_round
        self._rounds: list[tuple[list[Json], list[Json]]] = []
        self._made = 0
        self._splitter = Splitter()
        self._has_events = False
        self._whole = bytearray()
        self._answered = False

    def feed(self, data: bytes) -> bytes:
        """What the client gets for these bytes."""
        self._answered = True
        if self.streamed:
            return b"".join([self._event(event) for event in self._splitter.feed(data)])
        self._whole += data
        if len(self._whole) > MOST_BYTES:
            raise ReplyCut(f"a reply has more than {MOST_BYTES} bytes")
        return b""

    def _event(self, event: Event) -> bytes:
        self._has_events = True
        return self._reply.event(event)

    def finish(self) -> bytes:
        """The rest, now that the reply has come to its end."""
        if not self.streamed:
            whole = bytes(self._whole)
            self._whole.clear()
            return self._finished(whole)
        rest = self._splitter.rest()
        if not self._has_events and rest.lstrip()[:1] == b"{":  # some servers do not stream, whatever they are asked
            return self._finished(rest)
        last = Event(rest)  # some leave out the empty line after the last event
        if last.is_torn:
            raise ReplyCut("its last event was cut")
        shown = self._reply.event(last)
        if not self._reply.is_over:
            raise ReplyCut("the stream ended in the middle")
        return b"" if self._another else shown

    def _finished(self, whole: bytes) -> bytes:
        """A reply in one piece; the very bytes where nothing in it is changed."""
        try:
            reply: Any = msgspec.json.decode(whole)
        except (ValueError, RecursionError):
            raise ReplyCut("the reply is not JSON") from None
        if not isinstance(reply, dict):
            return whole
        shown = self._reply.whole(reply)
        if self._another:
            return b""
        return whole if shown is reply else msgspec.json.encode(shown)

    async def again(self) -> bool:
        """Whether another round follows: the model searched, or the API paused."""
        if not self._another:
            return False
        self._made += 1
        if self._made > self._most_rounds:
            raise ReplyCut(f"the model searched {self._most_rounds} times in one turn without doing anything else")
        turn = self._reply.turn
        if turn.room.is_full:
            raise ReplyCut("the reply is too long to be gone on from after a search")
        if self._reply.goes_on:
            said: list[Json] = turn.all_produced()
            turn.begin_round()
            self._rounds = [(said, [])]
        else:
            results = [self._request.result(ask, ask.problem or await self._answer(ask)) for ask in turn.asks]
            self._rounds.append(turn.answered(results))
        self._reply.begin_round()
        self._splitter, self._has_events = Splitter(), False
        self.body = self._request.body(self._rounds)
        self._on_round([each for _, got in self._rounds for each in got])
        return True

    def failed(self, status: int, body: bytes) -> bytes:
        """The end of a stream whose later round was refused."""
        return self._reply.error(status, body)

    async def close(self) -> None:
        """Keeps what later requests need, if there was a reply at all."""
        if not self._answered:
            return
        if not self._reply.turn.is_kept:
            self._reply.turn.tear()
        await self._keep()

    @property
    def _another(self) -> bool:
        return self._reply.goes_on or (self._reply.is_over and self._reply.waits)


class Counted:
    """`count_tokens`: the request is changed as the real one would be, the answer is as it is."""

    def __init__(self, request: RequestEditor) -> None:
        self.streamed = False
        self.body = request.body([])

    def feed(self, data: bytes) -> bytes:
        """As it is."""
        return data

    def finish(self) -> bytes:
        """Nothing more."""
        return b""

    async def again(self) -> bool:
        """Never."""
        return False

    def failed(self, status: int, body: bytes) -> bytes:
        """Cannot be: there is no later round."""
        return b""

    async def close(self) -> None:
        """Nothing is kept."""
