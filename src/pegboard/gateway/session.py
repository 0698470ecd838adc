"""One connection: requests in, each worked on beside the others; answers, progress, questions and news out.

Below: `ServerSide` knows the protocol, the desk and the relay know the answers. Above: `stdio` and `http` carry bytes.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Coroutine
from typing import Any

import msgspec

from pegboard.errors import PegboardError
from pegboard.gateway.desk import Desk, Relay
from pegboard.gateway.errand import Errand, WaitingRoom, Work
from pegboard.gateway.identity import Origin, caller_of, passed_on, viewer_of
from pegboard.gateway.outbox import Out, Outbox
from pegboard.gateway.questions import Questions, abilities, must_be_able
from pegboard.gateway.refusals import Refused, fault, refusal
from pegboard.types import CallContext, Caller, Json, OnProgress, Progress
from pegboard.wire.asked import Asked, Handshake, unknown_method
from pegboard.wire.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    RequestId,
    Response,
    RpcError,
    encode_error,
)
from pegboard.wire.meta import META_SERVER
from pegboard.wire.server import Answer, Cancelled, ServerSide, Subscribed
from pegboard.wire.subscriptions import Kind, Notice
from pegboard.wire.versions import Era

log = logging.getLogger(__name__)

MAX_OPEN = 1000
"""Requests that one connection may have under way."""
MAX_VIEWS = 64
LIST_TTL_MS = 60_000
CLOSE_SECONDS = 2.0
_OF_THE_WIRE = frozenset({"resultType", "ttlMs", "cacheScope"})


class House(msgspec.Struct, frozen=True, kw_only=True):
    """What a session needs from whoever opens it."""

    desk: Desk
    relay: Relay | None
    waiting: WaitingRoom
    capabilities: Json
    name: str
    version: str
    allow: tuple[str, ...] | None = None


class Session:
    """One connection's requests, questions and views of the list."""

    def __init__(self, house: House, outbox: Outbox | None) -> None:
        self._house = house
        self._outbox = outbox
        self._side = ServerSide(
            house.name,
            house.version,
            capabilities=house.capabilities,
            instructions=house.desk.instructions(Caller(allow=house.allow)),
        )
        self._work: dict[RequestId, tuple[asyncio.Task[None], Outbox]] = {}
        self._listeners: dict[RequestId, Outbox] = {}
        self._questions = Questions(self._side)
        self._seen: dict[Caller, str] = {}
        self._owed: dict[Kind, None] = {}

    @property
    def handshake(self) -> Handshake | None:
        """What `initialize` settled, once it came."""
        return self._side.handshake

    @property
    def is_busy(self) -> bool:
        """Whether a request or a stream is open."""
        return bool(self._work or self._listeners or self._outbox)

    # ── what arrives ─────────────────────────────────────────────────────────────────────────────────────────────

    def receive(self, data: bytes, outbox: Outbox, origin: Origin) -> int:
        """Takes one frame; what comes of it goes to `outbox`. How many requests it held."""
        requests = 0
        for event in self._side.receive(data):
            if isinstance(event, Asked):
                requests += 1
                self._asked(event, outbox, origin)
            elif isinstance(event, Answer):
                requests += 1
                outbox.put(Out(event.data, True, event.error, event.era))
            elif isinstance(event, Subscribed):
                requests += 1
                self._subscribed(event, outbox, origin)
            elif isinstance(event, Cancelled):
                self._cancelled(event.id)
            elif isinstance(event, Response):
                self._questions.answered(event)
        return requests

    def too_large(self, identity: RequestId | None, error: RpcError, outbox: Outbox) -> None:
        """A frame was over the limit and was not read."""
        outbox.put(Out(encode_error(identity, error), True, error))

    def _asked(self, asked: Asked, outbox: Outbox, origin: Origin) -> None:
        relay = self._house.relay
        if asked.method == "tools/list":
            self._list(asked, outbox, origin)
        elif asked.method == "tools/call":
            self._start(asked, outbox, self._call(asked, outbox, origin))
        elif relay is not None and relay.serves(asked.method):
            work = functools.partial(relay.answer, asked.method, asked.params)
            self._start(asked, outbox, self._run(asked, outbox, caller_of(origin, asked), work))
        else:
            self._refuse(asked, unknown_method(asked.method), outbox)

    def _list(self, asked: Asked, outbox: Outbox, origin: Origin) -> None:
        viewer = viewer_of(origin, asked)
        try:
            if not self._house.desk.remembers(viewer):
                self._start(asked, outbox, self._recalled(asked, viewer))
                return
            result = self._listed(asked, viewer)
        except Exception as error:  # noqa: BLE001  whatever happens to one request, it gets an answer
            self._failed(asked, error, outbox)
            return
        self._answer(asked, result, outbox)

    async def _recalled(self, asked: Asked, viewer: Caller) -> Json:
        await self._house.desk.recall(viewer)
        return self._listed(asked, viewer)

    def _listed(self, asked: Asked, viewer: Caller) -> Json:
        self._note_view(viewer)
        result: Json = {"tools": list(self._house.desk.tools(viewer))}
        if asked.era is Era.STATELESS:
            shared = not viewer.identity and viewer.allow is None
            result |= {"ttlMs": LIST_TTL_MS, "cacheScope": "public" if shared else "private"}
        return result

    def _subscribed(self, event: Subscribed, outbox: Outbox, origin: Origin) -> None:
        self._listeners[event.id] = outbox
        self._note_view(Caller(identity=origin.identity, allow=origin.allow))
        outbox.put(Out(event.data))

    # ── work ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, asked: Asked, outbox: Outbox, work: Coroutine[Any, Any, Json]) -> None:
        if len(self._work) >= MAX_OPEN:
            work.close()
            self._refuse(asked, RpcError(INTERNAL_ERROR, f"{MAX_OPEN} requests are under way already"), outbox)
            return
        self._work[asked.id] = (asyncio.create_task(self._serve(asked, outbox, work)), outbox)

    def _done(self, identity: RequestId) -> None:
        held = self._work.get(identity)
        if held is not None and held[0] is asyncio.current_task():  # the id may serve another request by now
            del self._work[identity]

    async def _serve(self, asked: Asked, outbox: Outbox, work: Coroutine[Any, Any, Json]) -> None:
        try:
            result = await work
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # the client cancelled, or we are closing: nobody waits for an answer
            self._refuse(asked, RpcError(INTERNAL_ERROR, "The call was cancelled from our side"), outbox)
        except Exception as error:  # noqa: BLE001  as above
            self._failed(asked, error, outbox)
        else:
            self._answer(asked, result, outbox)
            if asked.method == "tools/call":
                self.look_again()  # a call may have loaded tools into the list
        finally:
            self._done(asked.id)  # not as a callback of the task: that would be one more turn of the loop

    async def _call(self, asked: Asked, outbox: Outbox, origin: Origin) -> Json:
        name, arguments = asked.params.get("name"), asked.params.get("arguments")
        if not isinstance(name, str) or not name:
            raise Refused(INVALID_PARAMS, "`params.name` must be the name of a tool")
        caller = caller_of(origin, asked)
        work = functools.partial(self._house.desk.call_tool, name, {} if arguments is None else arguments, caller)
        return await self._run(asked, outbox, caller, work)

    async def _run(self, asked: Asked, outbox: Outbox, caller: Caller, work: Work) -> Json:
        asks = abilities(asked.capabilities)
        if asks and asked.era is Era.STATELESS:
            return await self._run_errand(asked, outbox, caller, work)
        can_ask = bool(asks) and outbox.streams
        return await work(
            CallContext(
                on_progress=self._progress(asked, outbox),
                on_ask=functools.partial(self._questions.put, asked, outbox) if can_ask else None,
                asks=asks if can_ask else None,
                meta=passed_on(asked.params),
            )
        )

    async def _run_errand(self, asked: Asked, outbox: Outbox, caller: Caller, work: Work) -> Json:
        hear = self._progress(asked, outbox)
        if "requestState" in asked.params:
            errand = self._house.waiting.fetch(asked.params["requestState"], caller, asked.params)
            responses = asked.params.get("inputResponses")
            errand.answer(responses if isinstance(responses, dict) else {})
        else:
            errand = Errand(caller, asked.params)
            context = CallContext(
                on_progress=errand.told if hear else None,
                on_ask=errand.asking(functools.partial(must_be_able, asked.capabilities)),
                asks=abilities(asked.capabilities),
                meta=passed_on(asked.params),
            )
            errand.begin(work, context)
        errand.hear = hear
        try:
            result = await errand.step()
        finally:
            errand.hear = None
        return self._house.waiting.leave(errand) if result is None else result

    def _progress(self, asked: Asked, outbox: Outbox) -> OnProgress | None:
        if asked.progress_token is None or not outbox.streams:
            return None

        def tell(progress: Progress) -> None:
            data = self._side.progress(asked, progress.progress, total=progress.total, message=progress.message)
            if data is not None:
                outbox.put(Out(data))

        return tell

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _answer(self, asked: Asked, result: Json, outbox: Outbox) -> None:
        try:
            data = self._side.result(asked, _as_ours(result, asked.era))
        except (TypeError, ValueError, RecursionError) as error:  # what a server sent cannot be written as JSON
            self._failed(asked, error, outbox)
            return
        if data is not None:
            outbox.put(Out(data, True, era=asked.era))

    def _refuse(self, asked: Asked, error: RpcError, outbox: Outbox) -> None:
        data = self._side.refuse(asked, error)
        if data is not None:
            outbox.put(Out(data, True, error, asked.era))

    def _failed(self, asked: Asked, error: Exception, outbox: Outbox) -> None:
        if isinstance(error, PegboardError):
            self._refuse(asked, refusal(error), outbox)
            return
        log.error("%s failed", asked.method, exc_info=error)
        self._refuse(asked, fault(error), outbox)

    # ── who goes away ────────────────────────────────────────────────────────────────────────────────────────────

    def _cancelled(self, identity: RequestId) -> None:
        work = self._work.pop(identity, None)
        if work is not None:
            work[0].cancel()
        outbox = work[1] if work is not None else self._listeners.pop(identity, None)
        if outbox is not None:
            outbox.put(Out(b"", True))

    def hung_up(self, outbox: Outbox) -> None:
        """The client closed the response that this goes to: whatever it was for is cancelled."""
        if self._outbox is outbox:
            self._outbox = None
        held = [identity for identity, (_, theirs) in self._work.items() if theirs is outbox]
        held += [identity for identity, theirs in self._listeners.items() if theirs is outbox]
        for identity in held:
            self._side.drop(identity)
            self._cancelled(identity)

    def attach(self, outbox: Outbox) -> None:
        """From now on what belongs to no request goes here; what could not be said so far is said at once."""
        if self._outbox is not None:
            self._outbox.put(Out(b"", True))
        self._outbox = outbox
        owed, self._owed = self._owed, {}
        for kind in owed:
            self.announce(kind)

    def close_streams(self) -> None:
        """Ends the subscriptions gracefully."""
        for notice in self._side.close_subscriptions():
            outbox = self._listeners.pop(notice.subscription, None) if notice.subscription is not None else None
            if outbox is not None:
                outbox.put(Out(notice.data, True, era=Era.STATELESS))
        if self._outbox is not None:
            self._outbox.put(Out(b"", True))

    async def close(self) -> None:
        """Cancels whatever is under way, and waits a little for it to end."""
        self._questions.close()
        tasks = [task for task, _ in self._work.values()]
        for identity in [*self._work, *self._listeners]:
            self._side.drop(identity)
            self._cancelled(identity)
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)

    # ── news ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _note_view(self, viewer: Caller) -> None:
        self._seen.pop(viewer, None)
        self._seen[viewer] = self._house.desk.version(viewer)
        if len(self._seen) > MAX_VIEWS:
            del self._seen[next(iter(self._seen))]

    def look_again(self) -> None:
        """Tells the client if a list that it was shown is another now."""
        fresh = {viewer: self._house.desk.version(viewer) for viewer in self._seen}
        if fresh != self._seen:
            self._seen = fresh
            self.announce("tools")

    def announce(self, kind: Kind) -> None:
        """Tells whoever should know that a list is another now."""
        for notice in self._side.changed(kind):
            self._tell(kind, notice)

    def _tell(self, kind: Kind, notice: Notice) -> None:
        outbox = self._outbox if notice.subscription is None else self._listeners.get(notice.subscription)
        if outbox is not None:
            outbox.put(Out(notice.data))
        elif notice.subscription is None:
            self._owed[kind] = None


def _as_ours(result: Json, era: Era) -> Json:
    """A result as coming from us: what the wire between us and a server put into it stays there."""
    meta = result.get("_meta")
    if isinstance(meta, dict) and META_SERVER in meta:
        kept = {key: value for key, value in meta.items() if key != META_SERVER}
        result = {**result, "_meta": kept} if kept else {key: each for key, each in result.items() if key != "_meta"}
    if era is Era.HANDSHAKE and not _OF_THE_WIRE.isdisjoint(result):
        result = {key: value for key, value in result.items() if key not in _OF_THE_WIRE}
    return result
