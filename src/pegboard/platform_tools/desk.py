"""The desk at which tools are listed and called, whichever way a caller came.

It knows Pegboard's own tools by name and hands every other name to the call path. Listing starts nothing and waits for
nothing. Above: the gateway and the other edges. Below: `search`, `batch`, `conversations`, the call path.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from pegboard.catalog.catalog import Catalog
from pegboard.catalog.permit import permit_of
from pegboard.catalog.slices import ServerEntry
from pegboard.config.model import CallsConfig, SurfaceConfig
from pegboard.errors import ArgumentsError, PegboardError
from pegboard.platform_tools.conversations import Conversation, Conversations
from pegboard.platform_tools.definitions import (
    BATCH,
    CALL,
    CALL_READ,
    CALL_WRITE,
    LOAD,
    READ,
    SEARCH,
    definitions,
    load_skill,
    names,
)
from pegboard.platform_tools.digest import Shelf, shelves
from pegboard.surface.activation import Activation, Change
from pegboard.surface.compose import Reason, Surface, compose
from pegboard.surface.guidance import guidance, news
from pegboard.surface.stock import Stock, stock_of
from pegboard.surface.tokens import WORD_PIECES, Counter
from pegboard.types import Answer, CallContext, Caller, Exposure, Json, Lookup, Record, SkillLoad, Tool, Unlisted, Via

if TYPE_CHECKING:
    import asyncio

    from pegboard.index.finder import Terms
    from pegboard.invoke.path import Invoker
    from pegboard.invoke.policy import Effect
    from pegboard.platform_tools.asked import Asked, OwnArguments, Reading, Several
    from pegboard.platform_tools.library import Library

_EFFECTS: dict[str, Effect | None] = {CALL: None, CALL_READ: "read", CALL_WRITE: "write"}
_EXPOSURES = 1024
_LONGEST_QUERY = 8000


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What a desk is made of; each is asked for only when it is needed."""

    catalog: Callable[[], Catalog]
    search: Callable[[str, Terms], Awaitable[Answer]]
    invoker: Callable[[], Invoker]
    conversations: Conversations
    record: Callable[[Record], None]
    unlisted: Callable[[str], Unlisted] = Unlisted
    """What there is to say of a server that was never listed."""
    surface: SurfaceConfig
    calls: CallsConfig
    library: Library | None = None
    """The skills, where there are to be any."""
    counter: Counter = WORD_PIECES
    now: Callable[[], float] = time.time


class _View(msgspec.Struct, frozen=True):
    """A catalog as the desk shows it: made once, shared by all callers."""

    catalog: Catalog
    stock: Stock
    own: dict[Caller, tuple[Json, ...]]
    """Pegboard's own definitions, by what whoever looks may use: see `_anybody`."""
    skills: str = ""
    """The version of the skills."""


class FrontDesk:
    """Lists and calls tools for any caller."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._own_names = names(parts.surface.call_tools) | ({LOAD} if parts.library is not None else frozenset())
        self._view: _View | None = None
        self._surfaces: dict[Caller, Surface] = {}
        """Those that depend on no conversation."""
        self._arguments: OwnArguments | None = None
        self._counting: set[asyncio.Task[None]] = set()

    # ── what is shown ────────────────────────────────────────────────────────────────────────────────────────────

    def instructions(self, caller: Caller) -> str:
        """Short guidance for whoever connects; nothing while nothing is deferred."""
        call = CALL if CALL in self._own_names else f"{CALL_READ} or {CALL_WRITE}"
        return guidance(self.surface(caller), search=SEARCH, call="" if caller.reveal == "listed" else call)

    def remembers(self, caller: Caller, *, unlisted: bool = False) -> bool:
        """Whether the list has nothing on it that only the store knows of; if it may have, `recall` comes first.

        `unlisted`: whether that is so of what is loaded, on the list or not.
        """
        if not caller.conversation or not (unlisted or self._lists_active(caller)):
            return True
        return self._parts.conversations.get(caller.conversation).is_loaded

    async def recall(self, caller: Caller) -> None:
        """Fetches what the store has of the conversation."""
        await self._parts.conversations.load(caller.conversation)

    def definition(self, name: str, caller: Caller) -> Json | None:
        """One of `tools`, for whoever needs to know it; nothing counts as shown by that."""
        surface = self.surface(caller)
        if name not in surface.reasons:
            return None
        return next((each for each in surface.definitions if each["name"] == name), None)

    def tools(self, caller: Caller) -> Sequence[Json]:
        """The definitions, in their order."""
        if self._parts.library is not None:
            self._parts.library.glance()
        surface = self.surface(caller)
        self._expose(surface, caller)
        return surface.definitions

    def version(self, caller: Caller) -> str:
        """Another one whenever `tools` would give something else."""
        surface = self.surface(caller)
        if not surface.verdict.passing:
            return surface.mark
        skills = "".join(each["description"] for each in surface.basis.always)
        return f"all {self._parts.catalog().version}{skills}"

    def surface(self, caller: Caller) -> Surface:
        """What this caller is shown now, and why."""
        view = self._current()
        if not caller.conversation:
            may = _anybody(caller)
            known = self._surfaces.get(may)
            if known is None:
                known = self._composed(view, caller, None)
                if len(self._surfaces) < _EXPOSURES:
                    self._surfaces[may] = known
            return known
        return self._shown(view, caller, self._parts.conversations.get(caller.conversation))

    def _shown(self, view: _View, caller: Caller, conversation: Conversation) -> Surface:
        surface = self._carried(view, caller, conversation) or self._composed(view, caller, conversation)
        self._parts.conversations.change(conversation, surface.activation)
        conversation.shown = (view, caller, surface)
        return surface

    def _carried(self, view: _View, caller: Caller, conversation: Conversation) -> Surface | None:
        """What this conversation was shown last, if that is what it would be shown now: a call asks more than once."""
        last = conversation.shown
        if last is None or last[0] is not view or last[1] != caller:
            return None
        return last[2].carried(conversation.activation)

    async def context(self, caller: Caller) -> Surface:
        """The same with what the store has of the conversation, for whoever only looks: nothing is changed by it."""
        conversation = await self._parts.conversations.load(caller.conversation)
        return self._composed(self._current(), caller, conversation)

    def _composed(self, view: _View, caller: Caller, conversation: Conversation | None) -> Surface:
        return compose(
            view.stock,
            self._parts.surface,
            self._own(view, caller),
            conversation.activation if conversation is not None else None,
            always=self._always(),
            lists=caller.lists,
            scopes=caller.scopes,
            list_active=conversation is not None and self._lists_active(caller),
        )

    def _lists_active(self, caller: Caller) -> bool:
        """Whether what this caller loads is put on its list."""
        return self._parts.surface.list_active if caller.reveal is None else caller.reveal == "listed"

    def _current(self) -> _View:
        catalog, skills = self._parts.catalog(), self._skills_version()
        view = self._view
        if view is not None and view.catalog is catalog and view.skills == skills:
            return view
        # A server that was asked and has no tools leaves the version as it was.
        if (
            view is None
            or view.catalog.version != catalog.version
            or _never_asked(view.catalog) != _never_asked(catalog)
        ):
            previous = view.stock if view is not None else None
            stock = stock_of(
                catalog.tools,
                self._parts.surface.pinned,
                complete=not _never_asked(catalog),
                counter=self._parts.counter,
                previous=previous,
            )
            view = _View(catalog, stock, {}, skills)
            self._surfaces.clear()
        else:
            if view.skills != skills:
                self._surfaces.clear()
            view = _View(catalog, view.stock, view.own, skills)
        self._view = view
        return view

    def _skills_version(self) -> str:
        return self._parts.library.version if self._parts.library is not None else ""

    def _always(self) -> tuple[Json, ...]:
        """Of our own tools, what is shown even where nothing is deferred."""
        definition = self._parts.library.definition() if self._parts.library is not None else None
        return (definition,) if definition is not None else ()

    def _own(self, view: _View, caller: Caller) -> tuple[Json, ...]:
        if caller.reveal == "all":
            return ()
        may = _anybody(caller)
        known = view.own.get(may)
        if known is None:
            permitted = view.stock.range(permit_of(caller.lists, caller.scopes)).tools
            unasked = [Shelf(entry.name, None) for entry in _never_asked(view.catalog) if not caller.lists]
            known = definitions(
                [*shelves(permitted.values()), *unasked],
                self._parts.counter.count,
                call_tools="none" if caller.reveal == "listed" else self._parts.surface.call_tools,
                batch_size=self._parts.calls.batch_size,
            )
            if len(view.own) < _EXPOSURES:
                view.own[may] = known
        return known

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def call_tool(
        self, name: str, arguments: Any, caller: Caller, context: CallContext, *, via: Via = "direct"
    ) -> Json:
        """A `tools/call` result. Any tool can be called by its name, whether it is listed or not."""
        await self._parts.conversations.load(caller.conversation)
        if name in self._own_names:
            return await self._call_own(name, arguments, caller, context)
        off = not self.surface(caller).verdict.deferring
        return await self._parts.invoker().call(name, arguments, caller, context, via=via, verbatim=off)

    async def _call_own(self, name: str, arguments: Any, caller: Caller, context: CallContext) -> Json:
        try:
            given = self._given(name, arguments)
            if name == SEARCH:
                return await self._search(given, caller)
            if name == BATCH:
                return await self._batch(given, caller, context)
            if name == LOAD:
                return await self._load(given, caller)
        except PegboardError as error:
            from pegboard.invoke.words import ending_of, failure, told

            return failure(error.message if isinstance(error, ArgumentsError) else told(error), ending_of(error))
        if name == READ:
            return self._parts.invoker().read_result(given.handle, given.page, caller)
        if given.name in self._own_names and given.name not in _EFFECTS:
            return await self._call_own(given.name, given.arguments, caller, context)
        invoker, effect = self._parts.invoker(), _EFFECTS[name]
        return await invoker.call(given.name, given.arguments, caller, context, via="call_tool", effect=effect)

    def called(self, name: str, arguments: Any) -> list[str]:
        """The tools that such a call would call, by the names it gives them; nothing is called."""
        return self._reader().called(name, arguments)

    def _given(self, name: str, arguments: Any) -> Any:
        """What one of our own tools was called with."""
        return self._reader().read(name, arguments)

    def _reader(self) -> OwnArguments:
        if self._arguments is None:
            from pegboard.platform_tools.asked import OwnArguments

            surface, size = self._parts.surface, self._parts.calls.batch_size
            own = definitions((), len, call_tools=surface.call_tools, batch_size=size)
            self._arguments = OwnArguments((*own, load_skill("")))
        return self._arguments

    def adopt(self, caller: Caller, activation: Activation) -> None:
        """Goes on from this state, which the caller kept, whatever was loaded before."""
        conversations = self._parts.conversations
        conversations.replace(conversations.get(caller.conversation), activation)

    def activate(self, caller: Caller, tool: Tool) -> None:
        """A call of this tool went well: it counts as loaded from now on."""
        if not caller.conversation:
            return
        conversation = self._parts.conversations.get(caller.conversation)
        surface = self._shown(self._current(), caller, conversation)
        if not surface.verdict.passing:
            change = surface.used(tool.public_name, self._parts.now())
            self._parts.conversations.change(conversation, change.activation)

    async def _batch(self, given: Several, caller: Caller, context: CallContext) -> Json:
        from pegboard.platform_tools.batch import combined, run

        invoker = self._parts.invoker()
        effect: Effect | None = "read" if CALL_READ in self._own_names else None
        # Progress of several at once would run backwards; questions can be told apart.
        quiet = msgspec.structs.replace(context, on_progress=None)

        async def one(name: str, arguments: Any) -> Json:
            if name in self._own_names and name in (SEARCH, READ, LOAD):
                return await self._call_own(name, arguments, caller, quiet)
            return await invoker.call(name, arguments, caller, quiet, via="batch", effect=effect)

        parallel = self._parts.calls.batch_parallel
        results = await run(given.calls, one, parallel=parallel, stop_on_error=given.stop_on_error)
        # Each is cut to what may be handed on at once; together they must be no more than that either.
        return invoker.fitted(combined(given.calls, results), caller)

    async def _search(self, asked: Asked, caller: Caller) -> Json:
        from pegboard.platform_tools.search import answer_text, result_of, terms_of

        began, at = time.perf_counter(), self._parts.now()
        query = asked.query[:_LONGEST_QUERY]
        answer = await self._parts.search(query, terms_of(asked, caller))
        surface = self.surface(caller)
        deferring = surface.verdict.deferring
        hits = tuple(hit for hit in answer.hits if hit.name in surface.permitted)
        answer = msgspec.structs.replace(answer, hits=hits)
        found = [hit.name for hit in hits]
        conversation = self._parts.conversations.get(caller.conversation)
        change = self._activated(surface, conversation, found, at)
        text = answer_text(
            asked,
            answer,
            surface.permitted,
            call=None if caller.reveal == "listed" or not deferring else self._way_to_call,
            change=change if surface.basis.list_active and deferring else None,
            skills=await self._fitting_skills(asked, query),
            news=self._news(conversation, surface, caller),
            unlisted=[] if caller.lists else self._unlisted(),
        )
        count = self._parts.counter.count
        self._parts.record(
            Lookup(
                at=at,
                query=query,
                conversation=caller.conversation,
                caller=caller.identity,
                found=tuple(found),
                answer_tokens=count(text),
                request_tokens=count(msgspec.json.encode(asked).decode()),
                duration_ms=(time.perf_counter() - began) * 1000,
            )
        )
        return result_of(text, found)

    def _activated(self, surface: Surface, conversation: Conversation, found: Sequence[str], at: float) -> Change:
        """Loads what was found, as far as there is room."""
        change = surface.activated(found, at)
        if not surface.verdict.passing:
            self._parts.conversations.change(conversation, change.activation)
        return change

    async def _fitting_skills(self, asked: Asked, query: str) -> str:
        """What an answer says of skills; who narrows a search is looking for tools."""
        from pegboard.platform_tools.search import is_narrowed

        if self._parts.library is None or is_narrowed(asked):
            return ""
        from pegboard.platform_tools.skill_text import found_text

        return found_text(await self._parts.library.search(query), LOAD)

    async def _load(self, given: Reading, caller: Caller) -> Json:
        """A skill with its tools and files, or one of the files."""
        from pegboard.invoke.visible import visible
        from pegboard.platform_tools.load import read_file, read_skill
        from pegboard.platform_tools.search import result_of

        library, at = self._parts.library, self._parts.now()
        assert library is not None
        skill = (await library.look()).find(given.name)
        found: tuple[str, ...] = ()
        if given.file:
            text = await read_file(skill, given.file)
        else:
            conversation = self._parts.conversations.get(caller.conversation)
            text, found = await read_skill(
                skill,
                self.surface(caller),
                self._parts.catalog(),
                caller,
                call=None if caller.reveal == "listed" else self._way_to_call,
                activate=lambda names: self._activated(self.surface(caller), conversation, names, at),
            )
        library.used(skill.name, at)
        about = {"skill": skill.name, "file": given.file, "conversation": caller.conversation}
        tokens = self._parts.counter.count(text)
        self._parts.record(SkillLoad(at=at, caller=caller.identity, tokens=tokens, **about))
        if READ not in self.surface(caller).reasons:  # whoever is not shown what reads pages gets no pages
            return result_of(visible(text), found)
        return self._parts.invoker().fitted(result_of(text, found), caller)

    def _unlisted(self) -> list[Unlisted]:
        return [self._parts.unlisted(entry.name) for entry in _never_asked(self._parts.catalog())]

    def _way_to_call(self, tool: Tool) -> str:
        """Which of our own tools calls this one."""
        from pegboard.invoke.facts import effect_of
        from pegboard.invoke.policy import CALL_TOOLS

        return CALL if CALL in self._own_names else CALL_TOOLS[effect_of(tool)]

    def _news(self, conversation: Conversation, surface: Surface, caller: Caller) -> str:
        """What came and went since this conversation was last told; told once.

        Another caller may have been told last: of what went, this one hears only what it might have used.
        """
        before, conversation.seen = conversation.seen, surface.permitted
        if before is None or before is surface.permitted or not conversation.key:
            return ""
        return news(before, surface.permitted, permit_of(caller.lists, caller.scopes).admits).notice()

    # ── what is noted ────────────────────────────────────────────────────────────────────────────────────────────

    def _expose(self, surface: Surface, caller: Caller) -> None:
        """Notes what was shown, once it is shown: counting the tokens of many tools takes longer than listing them."""
        import asyncio

        at = self._parts.now()

        def count() -> Exposure:
            return Exposure(
                at=at,
                conversation=caller.conversation,
                caller=caller.identity,
                shown=len(surface.names),
                deferred=surface.deferred,
                shown_tokens=surface.tokens(),
                own_tokens=surface.tokens(Reason.OWN),
                deferred_tokens=surface.deferred_tokens,
                counted=surface.counted,
            )

        async def later() -> None:
            self._parts.record(await asyncio.to_thread(count))

        try:
            task = asyncio.get_running_loop().create_task(later(), name="pegboard exposure")
        except RuntimeError:
            self._parts.record(count())
            return
        self._counting.add(task)
        task.add_done_callback(self._counting.discard)

    async def close(self) -> None:
        """Waits for what is still to be noted, and keeps what conversations have loaded."""
        import asyncio

        await asyncio.gather(*self._counting, return_exceptions=True)
        if self._parts.library is not None:
            await self._parts.library.close()
        await self._parts.conversations.keep()


def _anybody(caller: Caller) -> Caller:
    """What a caller may use and how, whoever it is and whatever it talks of."""
    return msgspec.structs.replace(caller, identity="", conversation="")


def _never_asked(catalog: Catalog) -> list[ServerEntry]:
    """The servers whose tools nobody knows yet."""
    return [entry for entry in catalog.servers.values() if entry.usable and entry.listed is None]
