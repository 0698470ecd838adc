"""Decides what becomes of each request, and keeps to what was decided for its conversation.

Above: `app`. Below: `decide`, `opening`, `keeper`, the editors of each wire. What is not understood passes as it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import msgspec

from pegboard.config.model import Config, ProxyConfig
from pegboard.errors import StoreError
from pegboard.protocols import Store
from pegboard.proxy.asker import is_signed, who
from pegboard.proxy.decide import (
    MOST_DEFERRED,
    NATIVE_SEARCH,
    Circumstances,
    api_searches,
    executor_for,
    listing,
    too_little,
)
from pegboard.proxy.declared import Declared, Family
from pegboard.proxy.exchange import Counted, Edited
from pegboard.proxy.keeper import Keeper, chosen
from pegboard.proxy.memory import Executor, Remembered
from pegboard.proxy.opening import Opening, defers_itself, opening
from pegboard.proxy.profiles import profile_of
from pegboard.proxy.routes import BUILT_IN
from pegboard.proxy.savings import Savings
from pegboard.proxy.seam import Asked, Exchange, Passed
from pegboard.proxy.searching import Searching, definitions, names_for
from pegboard.proxy.tally import Tally
from pegboard.proxy.toolset import Offer, ToolSet, ToolSets
from pegboard.proxy.turn import Ask, ReplyEditor, RequestEditor, Turn
from pegboard.proxy.weave import NotUnderstood
from pegboard.types import Json

Fields = Mapping[str, msgspec.Raw]
UPKEEP_SECONDS = 3600.0
_STRANGE = ("thread", "functions", "conversation", "background", "prompt")
"""Fields whose requests keep their history elsewhere, or name tools in another way."""


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """A request, as far as it has been looked at."""

    asked: Asked
    family: Family
    fields: Fields
    tools: ToolSet
    about: Circumstances
    opening: Opening
    forced: list[str]
    """The tool that the client wants called, if it names one."""


class DeferringPlanner:
    """Implements `seam.Planner`."""

    def __init__(
        self,
        config: ProxyConfig,
        addresses: Mapping[str, str],
        keeper: Keeper,
        searching: Callable[[], Searching],
        tally: Tally,
    ) -> None:
        self._config = config
        self._addresses = addresses
        self._keeper = keeper
        self._make_searching = searching
        self._searching: Searching | None = None
        self._tally = tally
        self._toolsets = ToolSets()
        self._savings = Savings(tally)
        self._is_shared = not config.listen.startswith(("127.", "localhost", "[::1]"))

    async def plan(self, asked: Asked) -> Exchange | Passed:
        """The changed exchange, or why the request goes through as it is."""
        try:
            return await self._plan(asked)
        except (msgspec.MsgspecError, UnicodeError, RecursionError, NotUnderstood):  # half characters, endless depths
            return Passed("not understood")

    async def _plan(self, asked: Asked) -> Exchange | Passed:
        looked = self._look(asked)
        if isinstance(looked, Passed):
            return looked
        found = await self._conversation(looked)
        if isinstance(found, Passed):
            return found
        key, memory = found
        # What the client forces is in sight, once: a prefix that changed for good would be paid for at every turn.
        offer = looked.tools.offer(memory.profile, tuple(memory.keep), [*memory.kept, *looked.forced])
        await self._answer_rest(looked.family, memory, offer)
        own = definitions(memory.search, memory.call, memory.listing) if memory.executor == "bridge" else ()
        request: RequestEditor = _request_editor(looked.family)(looked.fields, offer, memory, own)
        if asked.wire == "count_tokens":
            self._tally.counted += 1
            return Counted(request)
        shown = self._savings.count(memory, offer, own, request.put_back)
        return self._edited(looked, key, memory, request, offer, shown)

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _look(self, asked: Asked) -> Looked | Passed:
        family: Family = "messages" if asked.wire == "count_tokens" else asked.wire
        fields = msgspec.json.decode(asked.body, type=dict[str, msgspec.Raw])
        model: Any = msgspec.json.decode(fields["model"]) if "model" in fields else None
        if not isinstance(model, str) or not _truthy(fields, "tools"):
            return Passed("no tools")
        tools = self._toolsets.read(family, bytes(fields["tools"]))
        strange = any(_truthy(fields, name) for name in _STRANGE) or _number(fields, "n") > 1
        if tools is None or strange or not tools.is_sound:
            return Passed("not understood")
        if tools.defers or defers_itself(fields):
            return Passed("the client defers by itself")
        if is_signed(asked.headers):
            return Passed("the body is signed")
        choice: Any = msgspec.json.decode(fields["tool_choice"]) if "tool_choice" in fields else None
        if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
            return Passed("the client limits its tools itself")
        begun = opening(family, fields, asked.upstream, who(asked.headers) if self._is_shared else "")
        if begun is None:
            return Passed("not understood")
        about = Circumstances(
            family=family,
            model=model,
            address=self._addresses.get(asked.upstream, ""),
            profile=profile_of(asked.headers.get("user-agent", "")),
        )
        return Looked(
            asked=asked,
            family=family,
            fields=fields,
            tools=tools,
            about=about,
            opening=begun,
            forced=_forced(choice),
        )

    async def _conversation(self, looked: Looked) -> tuple[str, Remembered] | Passed:
        """The conversation of a request: begun now, or remembered."""
        executor = executor_for(self._config, looked.about)
        if executor is None:
            return Passed("not for this model")
        if looked.opening.is_first:
            return await self._first(looked, executor)
        key = looked.opening.key or await self._keeper.pointed(looked.opening.previous)
        known = await self._keeper.of(key) if key else []
        memory = _goes_on(looked.opening, known, looked.tools.mark)
        if memory is None:
            return Passed("not seen from its beginning")
        reason = _unfit(memory, looked.tools, can_search=api_searches(self._config, looked.about))
        return Passed(reason) if reason else (key, memory)

    async def _first(self, looked: Looked, executor: Executor) -> tuple[str, Remembered] | Passed:
        """The conversation that this request begins, if there is anything to defer."""
        deferred = looked.tools.offer(looked.about.profile, self._config.keep, looked.forced).deferred
        if reason := too_little(self._config, deferred, self._savings.tokens_of):
            return Passed(reason)
        key = looked.opening.key
        await self._keeper.of(key)
        can = len(deferred) <= MOST_DEFERRED and not looked.tools.names & {NATIVE_SEARCH}
        fresh = _begun(looked, executor if can else "bridge", deferred, self._config.keep)
        return key, fresh if looked.asked.wire == "count_tokens" else self._keeper.begin(key, fresh)

    # ── answering ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _answer_rest(self, family: Family, memory: Remembered, offer: Offer) -> None:
        """Searches that a model made beside calls of the client's are answered with the client's results."""
        result = _request_editor(family).result
        waiting = [each for insert in memory.inserts for each in insert.asked]
        waiting += [each for asked in memory.pending.values() for each in asked if "text" not in each]
        texts: dict[tuple[str, bytes], str] = {}
        for each in waiting:
            ask = _ask_of(each)
            known = (ask.id, msgspec.json.encode(ask.input))  # some servers use an id again
            if known not in texts:
                texts[known] = ask.problem or await self._search(ask, memory, offer)
            each["text"] = texts[known]
        for insert in memory.inserts:
            # Another request of the same conversation may have waited here too, and may wait still.
            if insert.asked and all("text" in each for each in insert.asked):
                insert.later = [*insert.later, *(result(_ask_of(each), str(each["text"])) for each in insert.asked)]
                insert.asked = []

    async def _search(self, ask: Ask, memory: Remembered, offer: Offer) -> str:
        if self._searching is None:
            self._searching = self._make_searching()
        found = await self._searching.search(offer.deferred, ask.input, memory.call, offer.resident)
        self._tally.searches += 1
        self._tally.searches_empty += not found.names
        return found.text

    def _edited(
        self,
        looked: Looked,
        key: str,
        memory: Remembered,
        request: RequestEditor,
        offer: Offer,
        shown: int,
    ) -> Edited:
        """The exchange; `shown` is the size of the definitions that each of its rounds shows."""
        turn = Turn(memory, looked.opening.prior, looked.tools.known, looked.opening.row)
        reply = _reply_editor(looked, turn)

        async def answer(ask: Ask) -> str:
            return await self._search(ask, memory, offer)

        async def keep() -> None:
            self._tally.searches += len(turn.found)
            self._tally.searches_empty += turn.found.count(0)
            await self._keeper.keep(key, memory)
            reply_id = getattr(reply, "id", "")
            if reply_id and looked.family == "responses":
                await self._keeper.point(reply_id, key)

        return Edited(
            request,
            reply,
            streamed=_truthy(looked.fields, "stream"),
            answer=answer,
            keep=keep,
            on_round=partial(self._savings.count_round, shown),
            most_rounds=self._config.max_rounds,
        )


def _request_editor(family: Family) -> Any:
    """Whoever speaks one wire does not load the others."""
    if family == "messages":
        from pegboard.proxy.messages_request import MessagesRequest

        return MessagesRequest
    if family == "completions":
        from pegboard.proxy.completions_request import CompletionsRequest

        return CompletionsRequest
    from pegboard.proxy.responses_request import ResponsesRequest

    return ResponsesRequest


def _reply_editor(looked: Looked, turn: Turn) -> ReplyEditor:
    if looked.family == "messages":
        from pegboard.proxy.messages_reply import MessagesReply

        return MessagesReply(turn)
    if looked.family == "completions":
        from pegboard.proxy.completions_reply import CompletionsReply

        return CompletionsReply(turn)
    from pegboard.proxy.responses_reply import ResponsesReply

    stored = bytes(looked.fields.get("store", b"")).strip() != b"false"
    return ResponsesReply(turn, looked.fields["tools"], stored=stored, previous=looked.opening.previous)


@asynccontextmanager
async def open_planner(config: Config, tally: Tally) -> AsyncIterator[DeferringPlanner]:
    """The planner of this configuration, with its store; what is old is forgotten now and then."""
    from pegboard.store.sqlite import open_store

    store = open_store(config)
    keeper = Keeper(store, config.proxy.conversation_ttl)
    upkeep = asyncio.create_task(_forget(store, config.record.keep_days * 86_400.0), name="pegboard proxy upkeep")
    try:
        yield DeferringPlanner(
            config.proxy, {**BUILT_IN, **config.proxy.upstreams}, keeper, lambda: _searching(config), tally
        )
    finally:
        upkeep.cancel()
        with suppress(asyncio.CancelledError):
            await upkeep
        await store.close()


def _searching(config: Config) -> Searching:
    from pegboard.index.embedders.choose import chosen_to_search

    return Searching(chosen_to_search(config.search), config.proxy.search_results)


async def _forget(store: Store, keep_seconds: float) -> None:
    while True:
        await asyncio.sleep(UPKEEP_SECONDS)
        with suppress(StoreError):
            await store.forget_before(time.time() - keep_seconds)


def _ask_of(waiting: Json) -> Ask:
    return Ask(str(waiting["id"]), waiting["input"], {}, str(waiting["problem"]))


def _begun(looked: Looked, executor: Executor, deferred: Sequence[Declared], keep: Sequence[str]) -> Remembered:
    """A conversation that begins with this request; `keep` are the globs of tools that never go."""
    search, call = names_for(looked.tools.tools) if executor == "bridge" else ("", "")
    return Remembered(
        executor=executor,
        begun=looked.tools.mark,
        search=search,
        call=call,
        listing=listing(deferred) if executor == "bridge" else "",
        profile=looked.about.profile,
        keep=list(keep),
        kept=looked.forced,
    )


def _unfit(memory: Remembered, tools: ToolSet, *, can_search: bool) -> str:
    """Why a conversation cannot go on as it was begun, with this request; empty when it can."""
    if memory.executor == "native" and not can_search:
        return "the model was changed to one that cannot search"
    if memory.executor == "native" and len(tools.tools) > MOST_DEFERRED:
        return "more tools than the API defers"
    ours = {NATIVE_SEARCH} if memory.executor == "native" else {memory.search, memory.call}
    return "a tool has taken the name of a search" if tools.names & ours else ""


def _goes_on(opening: Opening, known: Sequence[Remembered], begun: str) -> Remembered | None:
    """The conversation that a request goes on with; a reply that it names tells that by itself."""
    latest = known[-1] if opening.previous and known else None
    return chosen(known, begun, opening.said) or latest


def _forced(choice: Any) -> list[str]:
    """The tool that the client wants called, if it names one."""
    if not isinstance(choice, dict):
        return []
    inner = choice.get("function")
    name = choice.get("name") or (inner.get("name") if isinstance(inner, dict) else None)
    return [name] if isinstance(name, str) else []


def _truthy(fields: Fields, name: str) -> bool:
    return name in fields and bytes(fields[name]).strip() not in (b"null", b"false", b"0", b'""', b"[]", b"{}")


def _number(fields: Fields, name: str) -> float:
    value: Any = msgspec.json.decode(fields[name]) if name in fields else 0
    return value if isinstance(value, int | float) else 0
