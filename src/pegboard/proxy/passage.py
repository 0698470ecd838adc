"""One request on its way to an upstream, and the reply on its way back: byte for byte, or through an `Exchange`.

What a client has received is always a prefix of what it should receive, and an end that looks like one is one.
Above: `app` chose the upstream and whether anything is changed. Below: `client` and `api`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterable, Iterator
from typing import NoReturn

import msgspec

from pegboard.proxy.api import CUT, Api, ApiFailed, Reply
from pegboard.proxy.bodies import Decoder, EncodingBroken, EncodingUnknown
from pegboard.proxy.client import Client
from pegboard.proxy.headers import (
    Header,
    body_length,
    edited_reply_headers,
    edited_request_headers,
    end_to_end,
    is_chunked,
    request_headers,
    value_of,
)
from pegboard.proxy.refusal import error_body, json_headers, style_of
from pegboard.proxy.routes import Route
from pegboard.proxy.seam import Exchange, ReplyCut
from pegboard.proxy.tally import Tally
from pegboard.proxy.usage import Meter

MOST_ERROR_BYTES = 64 * 1024
"""Of a refusal that a running stream has to end with."""


class CutShort(Exception):
    """The answer was begun and cannot be finished."""


class Passage(msgspec.Struct):
    """One request under way."""

    client: Client
    route: Route
    api: Api
    tally: Tally
    max_reply: int
    """Bytes of a whole reply that is changed."""

    # ── Unchanged ────────────────────────────────────────────────────────────────────────────────────────────────

    async def through(self, begun: bytes) -> None:
        """Request and reply as they are; `begun` is what was read of the body, the rest follows as it comes."""
        client = self.client
        content: bytes | AsyncIterable[bytes]
        if client.is_whole:
            has_body = is_chunked(client.headers) or body_length(client.headers) is not None
            content, length, chunked = begun, len(begun) if has_body else None, False
        else:
            content, length = client.rest(begun), body_length(client.headers)
            chunked = length is None
        headers = request_headers(client.headers, self.api.address.authority, length, chunked=chunked)
        async with contextlib.aclosing(await self._ask(headers, content)) as reply:
            await self._relay(reply)

    async def _relay(self, reply: Reply) -> None:
        answer, meter = self.client.answer, self._meter(reply)
        try:
            with self._streaming(reply):
                await answer.begin(reply.status, end_to_end(reply.headers))
                async for data in reply:
                    if meter is not None:
                        meter.feed(data)
                    await answer.write(data)
                await answer.end()
        finally:  # what broke off has cost something, too
            if meter is not None:
                meter.reader.add_to(self.tally.direct_tokens)

    def _meter(self, reply: Reply) -> Meter | None:
        if self.route.wire is None or reply.status != 200:
            return None
        return Meter.of(self.route.wire, value_of(reply.headers, b"content-encoding").decode("latin-1"))

    # ── Changed ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def edited(self, exchange: Exchange) -> None:
        """The exchange's request, and as many rounds as it takes."""
        assert self.route.wire is not None
        meter = Meter.of(self.route.wire)
        try:
            await self._rounds(exchange, meter)
        finally:
            meter.reader.add_to(self.tally.deferred_tokens)

    async def _rounds(self, exchange: Exchange, meter: Meter) -> None:
        held: list[bytes] | None = None if exchange.streamed else []
        is_first = True
        while True:
            reply = await self._round(exchange, is_first=is_first)
            if reply is None:
                return
            async with contextlib.aclosing(reply):
                await self._drive(exchange, reply, held, meter)
            if not await self._again(exchange):
                break
            self.tally.rounds += 1
            is_first = False
        await self._finish(reply.headers, held)

    async def _again(self, exchange: Exchange) -> bool:
        try:
            return await exchange.again()
        except ReplyCut as cut:
            words = f"The turn was broken off: {cut}."
            if self.client.answer.is_begun:
                await self._break_off(exchange, 502, self.error(502, words))
            raise ApiFailed(CUT, words) from None

    async def _round(self, exchange: Exchange, *, is_first: bool) -> Reply | None:
        """One round's reply with status 200; None when it was another, which the client then has."""
        host = self.api.address.authority
        headers = edited_request_headers(self.client.headers, host, len(exchange.body), is_first=is_first)
        is_begun = self.client.answer.is_begun
        try:
            reply = await self._ask(headers, exchange.body)
        except ApiFailed as failure:
            if not is_begun:
                raise
            await self._break_off(exchange, failure.status, self.error(failure.status, failure.words))
        if reply.status == 200:
            return reply
        async with contextlib.aclosing(reply):
            if is_begun:
                await self._break_off(exchange, reply.status, await _beginning(reply))
            await self._relay(reply)
        return None

    async def _break_off(self, exchange: Exchange, status: int, refused: bytes) -> NoReturn:
        """Ends a stream that cannot go on: it says why, and its connection closes so that nobody takes it for whole."""
        await self.client.answer.write(exchange.failed(status, refused))
        raise CutShort

    async def _drive(self, exchange: Exchange, reply: Reply, held: list[bytes] | None, meter: Meter) -> None:
        """All bytes of one reply through the exchange."""
        size = 0
        try:
            decoder = Decoder(value_of(reply.headers, b"content-encoding").decode("latin-1"))
            with self._streaming(reply):
                async for data in reply:
                    for piece in decoder.feed(data):
                        size += len(piece)
                        if held is not None and size > self.max_reply:
                            raise ApiFailed(CUT, f"The reply is larger than {self.max_reply} bytes.")
                        await self._give(exchange.feed(piece), reply, held, meter)
                decoder.finish()
            await self._give(exchange.finish(), reply, held, meter)
        except (ReplyCut, EncodingBroken):
            raise ApiFailed(CUT, f"The reply of {self.route.upstream} was cut. Try again.") from None
        except EncodingUnknown:
            raise ApiFailed(CUT, f"The reply of {self.route.upstream} came in an encoding nobody asked for.") from None

    async def _give(self, data: bytes, reply: Reply, held: list[bytes] | None, meter: Meter) -> None:
        if not data:
            return
        meter.feed(data)
        if held is not None:
            held.append(data)
            return
        answer = self.client.answer
        if not answer.is_begun:
            # Not before there is something to say: until then a refusal can still be handed on as it is.
            await answer.begin(200, edited_reply_headers(reply.headers, None))
        await answer.write(data)

    async def _finish(self, headers: list[Header], held: list[bytes] | None) -> None:
        answer = self.client.answer
        if held is not None:
            body = b"".join(held)
            await answer.whole(200, edited_reply_headers(headers, len(body)), body)
            return
        if not answer.is_begun:
            await answer.begin(200, edited_reply_headers(headers, None))
        await answer.end()

    # ── Both ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _ask(self, headers: list[Header], content: bytes | AsyncIterable[bytes]) -> Reply:
        return await self.api.ask(self.client.method, self.route.target, headers, content)

    @contextlib.contextmanager
    def _streaming(self, reply: Reply) -> Iterator[None]:
        is_stream = value_of(reply.headers, b"content-type").lower().startswith(b"text/event-stream")
        self.tally.streaming += is_stream
        try:
            yield
        finally:
            self.tally.streaming -= is_stream

    def error(self, status: int, words: str) -> bytes:
        """An error of our own, in the client's words."""
        return error_body(style_of(self.route.wire, self.client.headers), status, words)

    async def refuse(self, status: int, words: str) -> None:
        """An error of our own as the whole answer."""
        body = self.error(status, words)
        await self.client.answer.whole(status, json_headers(body), body)


async def _beginning(reply: Reply) -> bytes:
    """A refusal's body, up to a bound: it becomes a part of something else."""
    body = b""
    with contextlib.suppress(ApiFailed):
        async for data in reply:
            body += data
            if len(body) > MOST_ERROR_BYTES:
                break
    return body[:MOST_ERROR_BYTES]
