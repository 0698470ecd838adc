"""What a server asks in the middle of a call (`elicitation/create`, …), put to the caller it belongs to.

In the handshake eras a server sends a request of its own; in the stateless one its result asks, and the call is made
again with the answers. Above: `connection` hands questions over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from pegboard.errors import ProtocolViolation
from pegboard.types import CallContext, Json, OnAsk
from pegboard.upstream.pending import Pending
from pegboard.wire.messages import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Request,
    RpcError,
    encode_error,
    encode_result,
    object_or_nothing,
)

MAX_QUESTIONS = 16
META_QUESTION = "pegboard/question"
"""In the `_meta` of a question: the key that its server gave it, for whoever passes it on under the same one."""


class Questions:
    """The questions of one connection, a few at a time."""

    def __init__(self, pending: Mapping[int, Pending], reply: Callable[[bytes], None]) -> None:
        self._pending = pending
        self._reply = reply
        self._open = 0

    def put(self, request: Request, origin: int | None) -> Coroutine[Any, Any, None] | None:
        """The work of asking, to be run beside everything else; a question nobody can answer is refused at once."""
        able = self._who_answers(origin)
        if len(able) == 1 and self._open < MAX_QUESTIONS:
            self._open += 1
            return self._ask(request, able[0])
        # On stdio nothing says which call a question belongs to. Two possible callers: asking the wrong
        # person would be worse than asking nobody.
        reason = "Nobody is there to answer" if not able else "It is not clear which call this belongs to"
        if len(able) == 1:
            reason = "Too many questions at once"
        self._reply(encode_error(request.id, RpcError(METHOD_NOT_FOUND, f"{reason}: {request.method}")))
        return None

    def _who_answers(self, origin: int | None) -> list[Pending]:
        if origin is not None and origin in self._pending:
            candidates = [self._pending[origin]]
        else:
            candidates = list(self._pending.values())
        return [each for each in candidates if each.context.on_ask is not None]

    async def _ask(self, request: Request, asker: Pending) -> None:
        assert asker.context.on_ask is not None
        loop = asyncio.get_running_loop()
        asker.hold(loop.time())
        asking = asyncio.ensure_future(asker.context.on_ask(request.method, object_or_nothing(request.params)))
        try:
            ends: set[asyncio.Future[Any]] = {asking, asker.future}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise LookupError("the call this belonged to is over")
            self._reply(encode_result(request.id, asking.result()))
        except Exception as error:  # noqa: BLE001  the caller's code failed; the server must still get an answer
            self._reply(encode_error(request.id, RpcError(INTERNAL_ERROR, f"{type(error).__name__}: {error}")))
        finally:
            asking.cancel()
            self._open -= 1
            asker.release(loop.time())


async def round_of_answers(server: str, result: Json, context: CallContext) -> Json:
    """What a retry of the request must carry, in the stateless era: the answers to what the result asks for."""
    asked = result.get("inputRequests") or {}
    if not isinstance(asked, dict) or len(asked) > MAX_QUESTIONS or not all(map(_is_question, asked.values())):
        raise ProtocolViolation(server, "it asks for input in a way that cannot be understood")
    if asked and context.on_ask is None:
        raise ProtocolViolation(server, "it asks for input, and nobody is there to give it")
    answers = await _answers(asked, context.on_ask) if asked and context.on_ask is not None else {}
    retry: Json = {"inputResponses": answers} if answers else {}
    return {**retry, "requestState": result["requestState"]} if "requestState" in result else retry


async def _answers(asked: Json, on_ask: OnAsk) -> Json:
    """All of one round at the same time: who passes them on can pass them on as one round."""
    asking = [asyncio.ensure_future(on_ask(each["method"], _keyed(key, each))) for key, each in asked.items()]
    try:
        return dict(zip(asked, await asyncio.gather(*asking), strict=True))
    finally:
        for each in asking:
            each.cancel()


def _keyed(key: str, question: Json) -> Json:
    params = question.get("params") or {}
    meta = params.get("_meta")
    return {**params, "_meta": {**(meta if isinstance(meta, dict) else {}), META_QUESTION: key}}


def _is_question(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("method"), str):
        return False
    return isinstance(value.get("params") or {}, dict)
