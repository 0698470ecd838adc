"""What a server asks in the middle of a call, put to the client whose call it is, in the handshake era.

Ids are our own, so that two servers' questions never meet. Above: `session`. In the stateless era `errand` asks.
"""

from __future__ import annotations

import asyncio
import contextlib

from pegboard.errors import PegboardError, RemoteError
from pegboard.gateway.outbox import Out, Outbox
from pegboard.types import Json
from pegboard.upstream.questions import META_QUESTION
from pegboard.wire.asked import Asked, meta_of
from pegboard.wire.messages import NotJsonRpc, RequestId, Response, encode_notification, read_object
from pegboard.wire.server import ServerSide

ANSWER_SECONDS = 600.0
CAPABILITY_OF = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
"""What a client can be asked, and what it must have declared for it."""


def abilities(capabilities: Json) -> Json:
    """The part of a client's capabilities that says what it can be asked."""
    return {name: capabilities[name] for name in CAPABILITY_OF.values() if isinstance(capabilities.get(name), dict)}


def must_be_able(capabilities: Json, method: str, params: Json) -> None:
    """Raises for a question that this client never said it could answer."""
    needed = CAPABILITY_OF.get(method)
    declared = capabilities.get(needed) if needed else None
    if not isinstance(declared, dict):
        raise PegboardError(f"The client cannot be asked for {method}.")
    if method == "elicitation/create" and params.get("mode") == "url" and not isinstance(declared.get("url"), dict):
        raise PegboardError("The client cannot be asked to open a link.")


class Questions:
    """The questions one client has been asked and has not answered yet."""

    def __init__(self, side: ServerSide, seconds: float = ANSWER_SECONDS) -> None:
        self._side = side
        self._seconds = seconds
        self._open: dict[RequestId | None, asyncio.Future[Response]] = {}

    async def put(self, asked: Asked, outbox: Outbox, method: str, params: Json) -> Json:
        """Asks on the stream of the call it belongs to, and waits for the answer."""
        must_be_able(asked.capabilities, method, params)
        identity, data = self._side.ask(method, without_meta(params, "progressToken", META_QUESTION))
        future = self._open[identity] = asyncio.get_running_loop().create_future()
        outbox.put(Out(data))
        try:
            async with asyncio.timeout(self._seconds):
                response = await future
        except TimeoutError:
            raise PegboardError(f"The client did not answer {method} within {self._seconds:g} s.") from None
        finally:
            del self._open[identity]
            self._side.forget(identity)
            if not future.done() or future.cancelled():
                gone = {"requestId": identity, "reason": "the call is over"}
                outbox.put(Out(encode_notification("notifications/cancelled", gone)))
        return _answer(response)

    def answered(self, response: Response) -> None:
        """The client's answer arrived."""
        future = self._open.get(response.id)
        if future is not None and not future.done():
            future.set_result(response)

    def close(self) -> None:
        """The client is gone."""
        for future in self._open.values():
            with contextlib.suppress(asyncio.InvalidStateError):
                future.set_exception(PegboardError("The client went away before it answered."))


def _answer(response: Response) -> Json:
    if response.error is not None:
        raise RemoteError("client", response.error.code, response.error.message, response.error.data)
    try:
        return read_object(response.result or b"{}")
    except NotJsonRpc as error:
        raise PegboardError(f"The client's answer cannot be read: {error}.") from None


def without_meta(params: Json, *keys: str) -> Json:
    """A question without what the wire to its server put into its `_meta`."""
    kept = {key: value for key, value in meta_of(params).items() if key not in keys}
    if kept == meta_of(params):
        return params
    return {**params, "_meta": kept} if kept else {key: value for key, value in params.items() if key != "_meta"}
