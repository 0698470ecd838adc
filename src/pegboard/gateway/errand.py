"""A call that may ask its caller something on the way, in an era in which only results can ask.

The call goes on in the background while the caller thinks. What the caller gets is an `input_required` result with a
`requestState`; whoever comes back with it and the answers finds the same call again. Above: `session`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable

from pegboard.errors import PegboardError
from pegboard.gateway.questions import without_meta
from pegboard.gateway.refusals import Refused
from pegboard.types import CallContext, Caller, Json, OnAsk, OnProgress, Progress
from pegboard.upstream.questions import META_QUESTION
from pegboard.wire.asked import meta_of
from pegboard.wire.messages import INVALID_PARAMS

MAX_WAITING = 1000
WAIT_SECONDS = 600.0
LONGEST_KEY = 128
_OF_ONE_ROUND = ("inputResponses", "requestState", "_meta")

Work = Callable[[CallContext], Awaitable[Json]]


class Errand:
    """One call, over as many requests as it takes."""

    def __init__(self, caller: Caller, params: Json) -> None:
        self._caller = caller
        self._terms = _terms(params)
        self._open: dict[str, tuple[Json, asyncio.Future[Json]]] = {}
        self._asked = 0
        self._news = asyncio.Event()
        self._task: asyncio.Task[Json] | None = None
        self.hear: OnProgress | None = None
        """Who hears of progress now: the request that waits for the call, if one does."""

    def begin(self, work: Work, context: CallContext) -> None:
        """Starts the call."""
        self._task = asyncio.ensure_future(_run(work, context))
        # A call may fail while nobody waits for it, and nobody may ever come back.
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    def told(self, progress: Progress) -> None:
        """Passes progress on to whoever waits."""
        if self.hear is not None:
            self.hear(progress)

    def asking(self, able: Callable[[str, Json], None]) -> OnAsk:
        """Answers questions by way of the next result; `able` raises for those the caller cannot be asked."""

        async def ask(method: str, params: Json) -> Json:
            able(method, params)
            key, params = self._key(params)
            future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
            self._open[key] = ({"method": method, "params": params}, future)
            self._news.set()
            try:
                return await future
            finally:
                self._open.pop(key, None)

        return ask

    def _key(self, params: Json) -> tuple[str, Json]:
        """A name for a question: its server's own, where it has one that is free."""
        self._asked += 1
        given = meta_of(params).get(META_QUESTION)
        free = isinstance(given, str) and 0 < len(given) <= LONGEST_KEY and given not in self._open
        return (str(given) if free else f"question-{self._asked}"), without_meta(params, META_QUESTION)

    def belongs_to(self, caller: Caller, params: Json) -> bool:
        """Whether this caller asks for this very call."""
        return caller.identity == self._caller.identity and _terms(params) == self._terms

    def answer(self, responses: Json) -> None:
        """Takes the answers that came back; a question without one is put again."""
        for key in list(self._open):
            if isinstance(response := responses.get(key), dict):
                _, future = self._open.pop(key)
                if not future.done():
                    future.set_result(response)
        if not self._open:
            self._news.clear()

    async def step(self) -> Json | None:
        """The result, once it is there; None when the call has a question first."""
        assert self._task is not None
        news = asyncio.ensure_future(self._news.wait())
        try:
            await asyncio.wait({self._task, news}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            news.cancel()
        return self._task.result() if self._task.done() else None

    def questions(self) -> Json:
        """What is open, by the keys under which answers are expected."""
        return {key: question for key, (question, _) in self._open.items()}

    def cancel(self) -> None:
        """Nobody waits any more."""
        if self._task is not None:
            self._task.cancel()


async def _run(work: Work, context: CallContext) -> Json:
    return await work(context)


class WaitingRoom:
    """The errands whose callers were asked something and have not come back yet. Bounded, and nobody waits for ever."""

    def __init__(self, *, seconds: float = WAIT_SECONDS, most: int = MAX_WAITING) -> None:
        self._seconds = seconds
        self._most = most
        self._waiting: dict[str, tuple[Errand, asyncio.TimerHandle]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def leave(self, errand: Errand) -> Json:
        """The result that asks, with the state under which the errand is found again."""
        if len(self._waiting) >= self._most:
            errand.cancel()
            raise PegboardError(f"{self._most} calls wait for answers already; no more can be asked now.")
        state = secrets.token_urlsafe(24)
        timer = asyncio.get_running_loop().call_later(self._seconds, self._expire, state)
        self._waiting[state] = (errand, timer)
        return {"resultType": "input_required", "inputRequests": errand.questions(), "requestState": state}

    def fetch(self, state: object, caller: Caller, params: Json) -> Errand:
        """The errand left under this state, by this caller, for this call."""
        errand, timer = self._waiting.get(state, (None, None)) if isinstance(state, str) else (None, None)
        if errand is None or timer is None or not errand.belongs_to(caller, params):
            raise Refused(
                INVALID_PARAMS, "No call waits under this `requestState`: it is over, or was another's. Call anew."
            )
        timer.cancel()
        del self._waiting[str(state)]
        return errand

    def _expire(self, state: str) -> None:
        errand, _ = self._waiting.pop(state)
        errand.cancel()

    def close(self) -> None:
        """Nobody will come back."""
        for errand, timer in self._waiting.values():
            timer.cancel()
            errand.cancel()
        self._waiting.clear()


def _terms(params: Json) -> Json:
    return {key: value for key, value in params.items() if key not in _OF_ONE_ROUND}
