"""The path itself: resolve → policy → arguments → approval → execute → shape → record → activate.

A failing tool is a result, never an exception; only a caller's own cancel goes through as what it is. Above: the
platform tools, and through them every edge. Below: the steps, each in a module of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from pegboard.config.model import CallsConfig
from pegboard.errors import ArgumentsError, PegboardError, ProtocolViolation, RemoteError, ToolNotFound
from pegboard.invoke.blocks import text_block
from pegboard.invoke.facts import Facts, KnownFacts
from pegboard.invoke.pages import Pages
from pegboard.invoke.policy import Approve, Effect, Policy, check_effect, may_know
from pegboard.invoke.repair import mend
from pegboard.invoke.resolve import Find, resolve
from pegboard.invoke.result_cache import Key, ResultCache
from pegboard.invoke.shape import Caps, encoded, said, shape
from pegboard.invoke.words import capped, ending_of, failure, takes, told, with_repairs, wrong_arguments
from pegboard.types import CallContext, Caller, Ending, Json, OnAsk, Outcome, Tool, Via
from pegboard.wire.messages import INVALID_PARAMS

Execute = Callable[[Tool, Json, CallContext], Awaitable[Json]]
LARGE = 1024 * 1024
"""Bytes of a result that takes long enough to work on for others to notice."""
_DETAIL = 200


class _Call(msgspec.Struct, kw_only=True):
    """One call under way, and what there is to record of it."""

    name: str
    caller: Caller
    via: Via
    at: float
    began: float
    effect: Effect | None = None
    verbatim: bool = False
    tool: Tool | None = None
    ending: Ending = Ending.OK
    repairs: tuple[str, ...] = ()
    request_bytes: int = 0
    result_bytes: int = 0
    cost_usd: float | None = None
    cached: bool = False
    detail: str = ""


class Invoker:
    """Calls tools by name, for whoever may. One for all ways in."""

    def __init__(
        self,
        find: Find,
        execute: Execute,
        *,
        calls: CallsConfig,
        deny: tuple[str, ...] = (),
        approve: Approve | None = None,
        prepare: Callable[[Tool], Awaitable[None]] | None = None,
        look: Callable[[str], Tool] | None = None,
        record: Callable[[Outcome], None],
        activate: Callable[[Caller, Tool], None],
        count_tokens: Callable[[str], int],
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`find` raises ToolNotFound; `execute` calls the tool at its server, with arguments that fit its schema.

        `prepare` starts the server: how long that takes says nothing of how long the tool does. `look` finds as `find`
        does, but asks no server: that is all that is done for a name which the caller may not use anyway.
        """
        self._find, self._prepare, self._execute = find, prepare, execute
        self._look = look
        self._calls = calls
        self._policy = Policy(deny=deny, approve=calls.approve)
        self._approve = approve
        self._record, self._activate = record, activate
        self._count_tokens = count_tokens
        self._now, self._clock = now, clock
        self._facts = KnownFacts()
        self._caps = Caps(calls.result_bytes, calls.result_blocks)
        self._cache = ResultCache(calls.cache_seconds, clock)
        self.pages = Pages(calls.page_bytes, calls.pages_ttl, clock)
        """What of long results was not handed on at once."""

    async def call(
        self,
        name: str,
        arguments: Any,
        caller: Caller,
        context: CallContext,
        *,
        via: Via,
        effect: Effect | None = None,
        verbatim: bool = False,
        raises: bool = False,
    ) -> Json:
        """The `tools/call` result. Whatever fails becomes a result with `isError`; only CancelledError is raised.

        `effect` says through which platform tool it came, where there is one for each. `verbatim` changes nothing on
        the way: neither arguments nor result are touched, and a server's error stays one, for where disclosure is off.
        `raises` hands our own errors on as they are as well, for a person rather than a model.
        """
        call = _Call(
            name=name, caller=caller, via=via, at=self._now(), began=self._clock(), effect=effect, verbatim=verbatim
        )
        try:
            result = await self._through(call, arguments, context)
        except asyncio.CancelledError:
            if _is_callers_own():
                call.ending = Ending.CANCELLED
                self._note(call, 0)
                raise
            result = self._broke(call, "the connection behind it was cancelled")
        except PegboardError as error:
            result = self._failed(call, error)
            if raises or (verbatim and isinstance(error, RemoteError)):
                self._note(call, 0)
                raise
        except Exception as error:  # noqa: BLE001 - a bug of ours must not end the caller's turn
            _log(f"a call of {capped(name, _DETAIL)!r} failed inside Pegboard", error)
            result = self._broke(call, f"an unexpected {type(error).__name__}")
        self._note(call, self._tokens(result))
        if call.ending is Ending.OK and call.tool is not None:
            self._loaded(call.caller, call.tool)
        return result

    def fitted(self, result: Json, caller: Caller) -> Json:
        """A result that was put together from several, cut to what is handed on at once; the rest is kept in pages."""
        return shape(result, encoded(result), self._caps, lambda *rest: self.pages.keep(caller, *rest))

    def read_result(self, handle: Any, page: Any, caller: Caller) -> Json:
        """One page of what a result left out; an unknown handle or page is a result with `isError`."""
        try:
            return self.pages.read(handle, page, caller)
        except PegboardError as error:
            return failure(told(error), ending_of(error))

    # ── the steps ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _through(self, call: _Call, arguments: Any, context: CallContext) -> Json:
        tool = call.tool = await resolve(call.name, self._finding(call.caller))
        self._policy.check(tool, call.caller, call.name)
        facts = self._facts.of(tool)
        check_effect(tool, facts.effect, call.effect)
        sent = self._fitted(call, tool, facts, {} if arguments is None else arguments)
        call.request_bytes = len(msgspec.json.encode(sent))
        if await self._policy.approval(tool, sent, call.caller, self._approve):
            call.began = self._clock()  # how long a person thought is not how long the tool takes
        result, raw = await self._result(call, tool, facts, sent, context)
        if result.get("isError"):
            call.ending = Ending.TOOL_ERROR
            call.detail = capped(said(result), _DETAIL)
        call.result_bytes = len(raw) if raw is not None else 0
        if call.verbatim:
            return result
        if call.result_bytes > LARGE:
            await asyncio.sleep(0)  # reading and writing it kept everybody waiting; so will cutting it
        promised = facts.has_output_schema and call.via == "direct"
        shaped = shape(result, raw, self._caps, lambda *rest: self.pages.keep(call.caller, *rest), promised=promised)
        if call.ending is Ending.TOOL_ERROR and not call.detail:
            why = text_block(f"{tool.public_name} failed without saying why.")
            shaped = {**shaped, "content": [*(shaped.get("content") or ()), why]}
        return with_repairs(shaped, call.repairs)

    def _finding(self, caller: Caller) -> Find:
        """How names are found for this caller: no server is started for one that it may not use."""
        look, find = self._look, self._find
        if not caller.lists or look is None:
            return find

        async def found(name: str) -> Tool:
            return await find(name) if may_know(caller, (name,)) else look(name)

        return found

    def _fitted(self, call: _Call, tool: Tool, facts: Facts, arguments: Any) -> Json:
        """The arguments as they are sent; raises ArgumentsError, with all that the model needs to mend its call."""
        if call.verbatim and isinstance(arguments, dict):
            return arguments
        mended = mend(arguments, facts.rule, repair=self._calls.repair and not call.verbatim)
        call.repairs = mended.repairs
        if mended.wrong:
            schema = tool.input_schema
            raise ArgumentsError(wrong_arguments(tool.public_name, mended.wrong, schema), schema)
        fitted: Json = mended.arguments
        return fitted

    async def _result(
        self, call: _Call, tool: Tool, facts: Facts, arguments: Json, context: CallContext
    ) -> tuple[Json, bytes | None]:
        """What the tool said, now or a while ago; and the same as JSON."""
        key: Key | None = None
        asked: list[str] = []
        if self._cache.is_on and facts.repeatable and not call.verbatim:
            key = self._cache.key(tool, arguments, call.caller)
            known = self._cache.get(key)
            if known is not None:
                call.cached = True
                return known, encoded(known)
            context = _noting_questions(context, asked)
        if self._prepare is not None:
            await self._prepare(tool)
            call.began = self._clock()
        moment = self._cache.moment(tool.server)
        try:
            result = await self._execute(tool, arguments, context)
        finally:
            if self._cache.is_on and facts.effect == "write":
                self._cache.forget(tool.server)  # also when it failed: it may have done its work all the same
                moment += 1
        if not isinstance(result, dict):
            raise ProtocolViolation(tool.server, "it answered something that is no result")
        call.cost_usd = tool.cost_usd
        raw = encoded(result)
        if key is not None and raw is not None and not asked and not result.get("isError"):
            self._cache.put(key, raw, moment)
        return result, raw

    # ── how it ended ─────────────────────────────────────────────────────────────────────────────────────────────

    def _failed(self, call: _Call, error: PegboardError) -> Json:
        call.ending = ending_of(error)
        if isinstance(error, ToolNotFound):
            # Why there is no such tool may be another tool, or a server, that is none of the caller's business.
            reason = error.reason if may_know(call.caller, (error.name,)) else ""
            error = ToolNotFound(error.name, may_know(call.caller, error.nearest), reason)
        call.detail = capped(error.message, _DETAIL)
        text = error.message if isinstance(error, ArgumentsError) else told(error)
        if isinstance(error, RemoteError) and error.code == INVALID_PARAMS and call.tool is not None:
            call.ending = Ending.BAD_ARGUMENTS
            text = f"{text}\n{takes(call.tool.input_schema)}"
        return with_repairs(failure(text, call.ending), call.repairs)

    def _broke(self, call: _Call, what: str) -> Json:
        call.ending, call.detail = Ending.SERVER_ERROR, what
        subject = call.tool.public_name if call.tool is not None else capped(call.name, _DETAIL)
        text = (
            f"{subject} failed inside Pegboard ({what}); it is not your call's fault. It may have done its work "
            "all the same: look before you call it again. All other tools still work."
        )
        return failure(text, call.ending)

    def _tokens(self, result: Json) -> int:
        try:
            return self._count_tokens(said(result))
        except Exception as error:  # noqa: BLE001 - a counter that fails costs a figure, not a result
            _log("tokens of a result could not be counted", error)
            return 0

    def _note(self, call: _Call, tokens: int) -> None:
        tool = call.tool
        outcome = Outcome(
            at=call.at,
            tool=tool.public_name if tool is not None else capped(call.name, _DETAIL),
            server=tool.server if tool is not None else "",
            conversation=call.caller.conversation,
            caller=call.caller.identity,
            via=call.via,
            ending=call.ending,
            duration_ms=max(0.0, (self._clock() - call.began) * 1000),
            request_bytes=call.request_bytes,
            result_bytes=call.result_bytes,
            result_tokens=tokens,
            cost_usd=call.cost_usd,
            repairs=len(call.repairs),
            cached=call.cached,
            detail=call.detail,
        )
        try:
            self._record(outcome)
        except Exception as error:  # noqa: BLE001 - losing a record loses history, never a call
            _log("an outcome could not be recorded", error)

    def _loaded(self, caller: Caller, tool: Tool) -> None:
        try:
            self._activate(caller, tool)
        except Exception as error:  # noqa: BLE001 - the tool did its work; that it is not loaded is no failure of it
            _log(f"{tool.public_name} could not be activated", error)


def _is_callers_own() -> bool:
    """Whether our own task is being cancelled, and not something that it waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _noting_questions(context: CallContext, asked: list[str]) -> CallContext:
    """The context, which notes whether the server asked anything: such a result is an answer to that, and not kept."""
    on_ask = context.on_ask
    if on_ask is None:
        return context

    async def noted(method: str, params: Json, answer: OnAsk = on_ask) -> Json:
        asked.append(method)
        return await answer(method, params)

    return msgspec.structs.replace(context, on_ask=noted)


def _log(what: str, error: Exception) -> None:
    import logging

    logging.getLogger("pegboard.invoke").error("%s", what, exc_info=error)
