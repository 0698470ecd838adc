"""One live connection: requests out, answers, progress and questions back, over whatever link carries them.

Below: a `Link` (stdio, HTTP, legacy SSE) and the pure `ClientSide`. Above: `server` decides when to connect.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

import pegboard
from pegboard.errors import (
    CallTimeout,
    ConnectionLost,
    LimitExceeded,
    ProtocolViolation,
    RemoteError,
    ServerError,
    StartFailed,
)
from pegboard.types import CallContext, Json, Progress
from pegboard.upstream.link import Link, Outgoing, TurnedDown
from pegboard.upstream.pending import Pending
from pegboard.upstream.questions import Questions, round_of_answers
from pegboard.wire.client import Agreement, CannotAgree, ClientSide, NoAnswer, Reply, Step
from pegboard.wire.framing import EDGE, Oversized, answered_id
from pegboard.wire.http import Mirrored
from pegboard.wire.messages import (
    METHOD_NOT_FOUND,
    Notification,
    NotJsonRpc,
    Request,
    Response,
    RpcError,
    encode_result,
    object_or_nothing,
    read_object,
)
from pegboard.wire.subscriptions import FIELDS
from pegboard.wire.versions import Era, era_of

PROBE_SECONDS = 5.0
MAX_POSTS = 64
"""Messages nobody waits for that may wait for the server to read."""
MAX_ROUNDS = 16
MAX_NOISE = 200
ASKS: Json = {"elicitation": {"form": {}, "url": {}}}
"""What a caller can be asked who says nothing else."""
DECLARED: Json = {**ASKS, "sampling": {}}
"""What is said in a handshake, for all callers to come. Not `roots`: one connection has callers in many folders."""
OFFERS_CHANGED = ("notifications/prompts/list_changed", "notifications/resources/list_changed")
LISTEN_RETRIES = 5
LISTEN_LASTS = 10.0
CLOSE_SECONDS = 1.0
_NOT_AN_ANSWER = re.compile(rb'\s*\{\s*(?:"(?:jsonrpc|id)"\s*:\s*(?:"[^"]*"|\d+)\s*,\s*)*"method"\s*:')


class Connection:
    """Requests and their answers on one link. It is the link's inbox."""

    def __init__(
        self,
        server: str,
        link: Link,
        *,
        on_tools_changed: Callable[[], None],
        on_offers_changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._server = server
        self._link = link
        self._side = ClientSide("pegboard", pegboard.__version__)
        self._pending: dict[int, Pending] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._on_tools_changed = on_tools_changed
        self._on_offers_changed = on_offers_changed
        self._questions = Questions(self._pending, self._reply)
        self._listening: int | None = None
        self._lost_requests = False
        self._probe_seconds = PROBE_SECONDS
        self.over: asyncio.Future[ServerError] = asyncio.get_running_loop().create_future()
        """Resolves, with the reason, when nothing can be asked any more."""
        self.lost_at_probe = False
        """It ended when it was asked what it speaks: it may be one that insists on `initialize` first."""
        self.noise = b""
        """How the first line begins that was no message at all: a banner, a log line, a usage text."""

    # ── opening and closing ──────────────────────────────────────────────────────────────────────────────────────

    async def open(self, known_version: str, probe_seconds: float = PROBE_SECONDS) -> Agreement:
        """Opens the link and agrees on a version."""
        await self._link.open(self)
        self._probe_seconds = probe_seconds
        steps = self._side.negotiate(DECLARED, known_version)
        try:
            step = next(steps)
            while True:
                step = steps.send(await self._take(step))
        except StopIteration as done:
            agreement: Agreement = done.value
        except CannotAgree as error:
            raise StartFailed(self._server, f"no protocol version in common: {error}") from None
        self._side.agreement = agreement
        self._link.agreed(agreement.version)
        self._listen_if_offered(agreement)
        return agreement

    async def _take(self, step: Step) -> Reply:
        if step.is_notification:
            data = self._side.notification(step.method, step.params)
            await self._link.send(Outgoing(data=data, version=step.version, method=step.method))
            return {}
        try:
            timeout = self._probe_seconds if step.is_probe else None
            return await self._ask(step.method, step.params, timeout=timeout, version=step.version)
        except RemoteError as error:
            return RpcError(error.code, error.remote_message, error.data)
        except CallTimeout:
            return NoAnswer()
        except ConnectionLost:
            self.lost_at_probe = step.is_probe
            raise
        except (TurnedDown, ProtocolViolation) as error:
            if not step.is_probe:
                raise
            return RpcError(METHOD_NOT_FOUND, error.cause)

    async def close(self) -> None:
        """Ends the link; whatever is still under way fails."""
        self.closed(ConnectionLost(self._server, "it was stopped"))
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await self._link.close()
        if tasks:  # a caller's code that answers a question may not heed that it is cancelled
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)

    @property
    def agreement(self) -> Agreement:
        """What was agreed; only after `open`."""
        assert self._side.agreement is not None
        return self._side.agreement

    @property
    def is_busy(self) -> bool:
        """Whether a caller waits for an answer."""
        return any(self.awaits(identity) for identity in self._pending if identity != self._listening)

    async def finish(self) -> None:
        """Waits for the answers that callers still wait for, then closes."""
        try:
            waiting = {each.future for identity, each in self._pending.items() if identity != self._listening}
            if waiting:
                await asyncio.wait(waiting)
        finally:
            await self.close()

    @property
    def ended_cleanly(self) -> bool:
        """Whether the server ended by itself, with nothing left to answer and nothing to complain about."""
        return self._link.ended_cleanly and not self._lost_requests

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def request(self, method: str, params: Json, *, timeout: float) -> Json:
        """Asks and waits for the answer."""
        return await self._ask(method, params, timeout=timeout)

    async def request_raw(self, method: str, params: Json, *, timeout: float) -> msgspec.Raw:
        """Asks and waits for the answer, unread: for those that want to know its size first."""
        return await self._ask_raw(method, params, timeout=timeout)

    async def use(
        self, method: str, params: Json, context: CallContext, timeout: float, mirrored: Mirrored = ()
    ) -> Json:
        """Any request that may ask its caller something before it is answered: `tools/call` above all."""
        sent = params
        for _ in range(MAX_ROUNDS):
            result = await self._ask(method, sent, timeout=timeout, context=context, mirrored=mirrored)
            if result.get("resultType") != "input_required":
                return result
            sent = {**params, **await round_of_answers(self._server, result, context)}
        raise ProtocolViolation(self._server, f"it asked for input {MAX_ROUNDS} times without coming to an end")

    async def _ask(
        self,
        method: str,
        params: Json,
        *,
        timeout: float | None,
        version: str | None = None,
        context: CallContext | None = None,
        mirrored: Mirrored = (),
    ) -> Json:
        raw = await self._ask_raw(method, params, timeout, version, context, mirrored)
        try:
            return read_object(raw)
        except NotJsonRpc as error:
            raise ProtocolViolation(self._server, f"its answer to {method} cannot be read: {error}") from None

    async def _ask_raw(
        self,
        method: str,
        params: Json,
        timeout: float | None,
        version: str | None = None,
        context: CallContext | None = None,
        mirrored: Mirrored = (),
    ) -> msgspec.Raw:
        if self.over.done():
            raise self.over.result()
        context = context or CallContext()
        if context.on_progress is not None or context.meta:
            params = {**params, "_meta": self._meta(params, context)}
        identity, params, data = self._side.request(method, params, version=version, capabilities=_asks(context))
        spoken = version or self.agreement.version
        message = Outgoing(data=data, version=spoken, method=method, params=params, id=identity, mirrored=mirrored)
        return await self._exchange(message, context, timeout)

    def _meta(self, params: Json, context: CallContext) -> Json:
        meta = {**(params.get("_meta") or {}), **(context.meta or {})}
        if context.on_progress is not None:
            meta["progressToken"] = self._side.next_id
        return meta

    async def _exchange(self, message: Outgoing, context: CallContext, timeout: float | None) -> msgspec.Raw:
        assert message.id is not None
        loop = asyncio.get_running_loop()
        pending = Pending(loop.create_future(), context, timeout, loop.time())
        self._pending[message.id] = pending
        sent = False
        try:
            async with asyncio.timeout(timeout) as pending.clock:
                await self._link.send(message)
                sent = True
                return await pending.future
        except (TimeoutError, asyncio.CancelledError) as error:
            is_late = isinstance(error, TimeoutError)
            if sent:
                self._give_up(message, "no answer in time" if is_late else "the caller cancelled")
            if not is_late:
                raise
            raise self._late(message, pending, sent=sent) from None
        finally:
            self._side.forget(message.id)
            del self._pending[message.id]

    def _late(self, message: Outgoing, pending: Pending, *, sent: bool) -> CallTimeout:
        limit = pending.limit(asyncio.get_running_loop().time())
        if not sent:
            return CallTimeout(self._server, f"it did not take {message.method} within {limit:g} s: it reads no input")
        return CallTimeout(
            self._server,
            f"no answer to {message.method} within {limit:g} s",
            hint=f"If it needs longer, raise `call_timeout` of servers.{self._server}.",
        )

    def _give_up(self, message: Outgoing, reason: str) -> None:
        assert message.id is not None
        if self._link.abandon(message.id) or message.method == "initialize" or self.over.done():
            return
        data = self._side.notification("notifications/cancelled", {"requestId": message.id, "reason": reason})
        # Telling the server is a courtesy: it must not hold up the caller, who is on the way out.
        self._post(Outgoing(data=data, version=message.version, method="notifications/cancelled"))

    # ── what arrives: the link's inbox ───────────────────────────────────────────────────────────────────────────

    def message(self, data: bytes, origin: int | None = None) -> None:
        """A frame. What is not JSON-RPC is ignored, unless one can tell which request it answers."""
        try:
            messages = self._side.receive(data)
        except NotJsonRpc as error:
            answered = answered_id(Oversized(len(data), data[:EDGE], data[-EDGE:])) if origin is None else origin
            if answered is not None:
                self.failed(answered, ProtocolViolation(self._server, f"its answer is not JSON-RPC: {error}"))
            self.noise = self.noise or data[:MAX_NOISE]
            return
        for message in messages:
            if isinstance(message, Response):
                self._answered(message)
            elif isinstance(message, Notification):
                self._notified(message)
            else:
                self._asked(message, origin)

    def _answered(self, response: Response) -> None:
        pending = self._pending.get(response.id) if isinstance(response.id, int) else None
        if pending is None or pending.future.done():
            return
        if response.error is not None:
            error = response.error
            pending.future.set_exception(RemoteError(self._server, error.code, error.message, error.data))
        elif response.result is not None:
            pending.future.set_result(response.result)

    def oversized(self, line: Oversized) -> None:
        """A dropped frame fails the call it answered; when that cannot be told, every call that waits."""
        identity = answered_id(line)
        if identity is None and _NOT_AN_ANSWER.match(line.head):
            return
        for each in list(self._pending) if identity is None else [identity]:
            if each != self._listening:
                self.failed(each, self._too_large(line.size))

    def _too_large(self, size: int) -> LimitExceeded:
        return LimitExceeded(
            self._server,
            f"it sent a message of at least {size:,} bytes, over its limit",
            hint=f"If that is wanted, raise `max_result_bytes` of servers.{self._server}.",
        )

    def failed(self, request_id: int, error: ServerError) -> None:
        """This request will get no answer."""
        pending = self._pending.get(request_id)
        self._side.forget(request_id)
        if pending is not None and not pending.future.done():
            pending.future.set_exception(error)

    def awaits(self, request_id: int) -> bool:
        """Whether somebody still waits for the answer to this request."""
        pending = self._pending.get(request_id)
        return pending is not None and not pending.future.done()

    def retired(self, error: ServerError) -> None:
        """Nothing new is asked here any more; what is under way goes on."""
        if not self.over.done():
            self.over.set_result(error)

    def closed(self, error: ServerError) -> None:
        """The link is gone: everything that waits fails with the reason."""
        if not self.over.done():
            self.over.set_result(error)
        for identity in list(self._pending):
            self._lost_requests |= identity != self._listening
            self.failed(identity, error)

    # ── notifications and questions from the server ──────────────────────────────────────────────────────────────

    def _notified(self, notification: Notification) -> None:
        if notification.method == "notifications/progress":
            self._progressed(notification)
        elif notification.method == "notifications/tools/list_changed":
            self._on_tools_changed()
        elif notification.method in OFFERS_CHANGED:
            self._on_offers_changed()

    def _progressed(self, notification: Notification) -> None:
        params = object_or_nothing(notification.params)
        token, progress = params.get("progressToken"), params.get("progress")
        pending = self._pending.get(token) if isinstance(token, int) else None
        if pending is None or pending.context.on_progress is None or not isinstance(progress, int | float):
            return
        total, text = params.get("total"), params.get("message")
        pending.extend(asyncio.get_running_loop().time())
        told = Progress(
            progress, total if isinstance(total, int | float) else None, text if isinstance(text, str) else ""
        )
        try:
            pending.context.on_progress(told)
        except Exception as error:  # noqa: BLE001  the caller's code failed: its call fails with that, and nobody else's
            if not pending.future.done():
                pending.future.set_exception(error)

    def _asked(self, request: Request, origin: int | None) -> None:
        if era_of(self._spoken()) is Era.STATELESS:
            return  # there servers may not ask, and answers may not be sent
        if request.method == "ping":
            self._reply(encode_result(request.id, {}))
        elif (work := self._questions.put(request, origin)) is not None:
            self._spawn(work)

    def _reply(self, data: bytes) -> None:
        self._post(Outgoing(data=data, version=self._spoken()))

    def _post(self, message: Outgoing) -> None:
        if len(self._tasks) < MAX_POSTS:  # a server that asks without reading gets no more answers
            self._spawn(self._send_quietly(message))

    async def _send_quietly(self, message: Outgoing) -> None:
        # Nobody waits for these: what goes wrong with the link reaches the callers by their own requests.
        with contextlib.suppress(ServerError):
            await self._link.send(message)

    def _spoken(self) -> str:
        return self._side.agreement.version if self._side.agreement else ""

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ── list changes in the stateless era ────────────────────────────────────────────────────────────────────────

    def _listen_if_offered(self, agreement: Agreement) -> None:
        told = {kind: agreement.capabilities.get(kind) for kind in FIELDS}
        wanted = {
            FIELDS[kind]: True for kind, says in told.items() if isinstance(says, dict) and says.get("listChanged")
        }
        if wanted and era_of(agreement.version) is Era.STATELESS:
            self._spawn(self._listen(wanted))

    async def _listen(self, wanted: Json) -> None:
        """Keeps a subscription open while the connection lasts; a server that refuses it is left alone."""
        clock = asyncio.get_running_loop().time
        attempt = 0
        while attempt < LISTEN_RETRIES:
            began = clock()
            self._listening = self._side.next_id
            try:
                await self._ask("subscriptions/listen", {"notifications": wanted}, timeout=None)
            except RemoteError:
                return
            except ServerError:
                if self.over.done():
                    return
            finally:
                self._listening = None
            # Streams that are cut now and then are how networks are; only one that never lasts is given up.
            attempt = 0 if clock() - began >= LISTEN_LASTS else attempt + 1
            await asyncio.sleep(2**attempt)


def _asks(context: CallContext) -> Json:
    if context.on_ask is None:
        return {}
    return ASKS if context.asks is None else context.asks
