"""Tools for a loop that you write yourself with the `openai` SDK: build `tools`, send, run what was called, go on.

On Responses, models that can are given the wire's own search, which we answer with definitions: the prefix never
changes. Older models and Chat Completions get the conversation's own list, best one made with `reveal="called"`.
Above: your loop. Below: `dialects.responses`, `dialects.completions`, a conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from pegboard.integrations import needs
from pegboard.integrations.dialects import completions, responses
from pegboard.integrations.dialects.plain import Call, plain
from pegboard.integrations.dialects.turn import Rebuilt, answered, checked, forked, rebuilt, steady, without_trace
from pegboard.integrations.dialects.uses import CALLS, OWN
from pegboard.platform_tools.definitions import SEARCH
from pegboard.surface.compose import Reason, Surface
from pegboard.surface.models import responses_searches
from pegboard.types import Json

with needs("openai"):
    from openai.types.chat import (
        ChatCompletionMessageParam,
        ChatCompletionToolMessageParam,
        ChatCompletionToolUnionParam,
    )
    from openai.types.responses import ResponseInputItemParam, ToolParam

if TYPE_CHECKING:
    from pegboard.board import Chat, Result


class ResponsesArguments(TypedDict, total=False):
    """What a request takes: `responses.create(..., **arguments)`."""

    tools: list[ToolParam]


class CompletionsArguments(TypedDict, total=False):
    """What a request takes: `chat.completions.create(..., **arguments)`."""

    tools: list[ChatCompletionToolUnionParam]


class ResponsesTools:
    """The tools of one conversation, for `responses.create` and `responses.stream`.

    `own` are tools that you run yourself, or that OpenAI does: they come first and stay as they are. `native` None
    decides by the model's name. `longest` cuts descriptions, for endpoints that limit them.
    """

    def __init__(
        self,
        chat: Chat,
        own: Iterable[ToolParam] = (),
        *,
        native: bool | None = None,
        longest: int | None = None,
    ) -> None:
        self.chat = chat
        self._own = checked([plain(each) for each in own], lambda each: str(each.get("name", "")))
        self._own_names = frozenset(responses.names(self._own))
        self._forced, self._native, self._longest = native, native is not False, longest
        self._surface: Surface | None = None
        self._kept: dict[str, Json] = {}
        """Pegboard's own tools, as they were first sent."""
        self._traced: frozenset[str] | None = None
        """Tools that the history speaks of, as far as it was shown to us."""
        self._carried: tuple[str, ...] | None = None
        """Loaded before this history began, so nothing in it speaks of them: they are on the list."""
        self._defined: set[str] = set()
        """What the history defines."""

    def tools(self, model: str, items: Sequence[Any] | None = None) -> ResponsesArguments:
        """Arguments for the request: `tools`, or nothing while there are none.

        Give the history where this object has not seen all of it: after a restart, or when it was begun elsewhere.
        """
        self._native = self._native and (responses_searches(model) if self._forced is None else self._forced)
        surface = self._surface = self.chat.surface()
        if items is not None:
            self._traced = self._traced or frozenset(responses.uses(items))
            self._defined |= set(responses.loaded(items))
        if self._carried is None:
            self._carried = without_trace(surface, {*(self._traced or ()), *self._own_names})
        tools: list[Any] = [*self._own, *self._listed(surface)]
        return {"tools": tools} if tools else {}

    async def results(self, response: Any) -> list[ResponseInputItemParam] | None:
        """The input items that answer the calls in a response, in their order; None when none is ours."""
        calls = [call for call in responses.calls(response) if not self._is_theirs(call)]
        loads: dict[str, Sequence[str]] = {}
        items: list[Any] = await answered(calls, lambda call: self._answer(call, loads))
        self._defined |= set(responses.loaded(items))
        new = dict.fromkeys(name for call in calls for name in loads.get(call.id, ()) if not self._has(name))
        if new and self._native:
            items.append(responses.addition([self._tool(each) for each in map(self.chat.definition, new) if each]))
            self._defined |= set(new)
        return items or None

    def others(self, response: Any) -> list[Call]:
        """The calls of your own tools: they are yours to answer. One in a namespace has that before its name."""
        theirs = [call for call in responses.calls(response) if self._is_theirs(call)]
        return [*theirs, *responses.custom_calls(response)]

    def mended(self, items: Sequence[Any]) -> list[ResponseInputItemParam]:
        """A whole history that was trimmed, or begun on another model, as the API takes it."""
        return responses.mended(items, searches=self._native)

    def rebuild(self, items: Sequence[Any]) -> Rebuilt:
        """Loads what this history found and called, in its order, in the place of what was loaded."""
        done = rebuilt(self.chat, responses.uses(items), self._own_names)
        self.compacted(items)
        return done

    def compacted(self, items: Sequence[Any]) -> None:
        """From here on the history is this one: what is loaded and not to be seen in it goes on the list."""
        self._traced, self._carried, self._kept = frozenset(responses.uses(items)), None, {}
        self._defined = set(responses.loaded(items))

    def fork(
        self,
        name: str,
        *,
        inherit: bool = True,
        allow: Sequence[str] | None = None,
        own: Iterable[ToolParam] | None = None,
    ) -> ResponsesTools:
        """The tools of a sub-agent: with what is loaded here or nothing, and never more than `allow`."""
        chat = forked(self.chat, name, inherit=inherit, allow=allow)
        theirs: Any = self._own if own is None else own
        return ResponsesTools(chat, theirs, native=self._forced, longest=self._longest)

    def _is_theirs(self, call: Call) -> bool:
        return not call.is_search and call.name in self._own_names

    async def _answer(self, call: Call, loads: dict[str, Sequence[str]]) -> Json:
        if call.is_search:
            names = [name for name in await self._search(call) if not self._is_listed(name)]
            found = [each for each in map(self.chat.definition, names) if each]
            return responses.found(call, [self._tool(each, deferred=True) for each in found])
        if call.problem:
            return responses.failure(call, call.problem)
        result = await self.chat.call(call.name, call.arguments)
        if not result.is_error:
            loads[call.id] = self._loaded_by(call, result)
        return responses.result(call, result)

    def _loaded_by(self, call: Call, result: Result) -> Sequence[str]:
        """What a good call loads that was no search: the tools of a skill, or itself."""
        if call.name in OWN:
            return result.found
        tool = self.chat.knows(call.name)
        return [tool.public_name] if tool else []

    def _has(self, name: str) -> bool:
        return name in self._defined or self._is_listed(name)

    async def _search(self, call: Call) -> Sequence[str]:
        """What was found. The wire has no words for what is wrong with a search: then its query alone is looked for."""
        result = await self.chat.call(SEARCH, call.arguments)
        query = call.arguments.get("query") if isinstance(call.arguments, dict) else call.arguments
        if result.is_error and isinstance(query, str):
            result = await self.chat.search(query)
        return result.found

    def _is_listed(self, name: str) -> bool:
        """Whether the model has it without a search."""
        reason = self._surface.reasons.get(name, Reason.ACTIVE) if self._surface else Reason.ACTIVE
        return name in self._own_names or name in (self._carried or ()) or reason is not Reason.ACTIVE

    def _listed(self, surface: Surface) -> list[Json]:
        """Pegboard's part of the list; where the wire has a search, that stands in the place of ours."""
        shown = [each for each in steady(surface, self._kept) if each["name"] not in self._own_names]
        if not self._native or not surface.verdict.deferring:
            return [self._tool(each) for each in shown]
        resident = [each for each in shown if surface.reasons[str(each["name"])] is not Reason.ACTIVE]
        listed = [
            responses.search(each) if each["name"] == SEARCH else self._tool(each)
            for each in resident
            if each["name"] not in CALLS
        ]
        return [*listed, *(self._tool(each) for each in map(self.chat.definition, self._carried or ()) if each)]

    def _tool(self, definition: Json, *, deferred: bool = False) -> Json:
        return responses.tool(definition, deferred=deferred, longest=self._longest)


class ChatCompletionsTools:
    """The tools of one conversation, for `chat.completions.create` and `chat.completions.stream`.

    This wire has no deferral: make the conversation with `reveal="called"`, and the list never changes; with "listed",
    what is found is added at its end. `own` are tools that you run yourself: they come first and stay as they are.
    """

    def __init__(
        self, chat: Chat, own: Iterable[ChatCompletionToolUnionParam] = (), *, longest: int | None = None
    ) -> None:
        self.chat = chat
        self._own = checked([plain(each) for each in own], completions.name_of)
        self._own_names = frozenset(map(completions.name_of, self._own))
        self._longest = longest
        self._kept: dict[str, Json] = {}
        """Pegboard's own tools, as they were first sent."""

    def tools(self) -> CompletionsArguments:
        """Arguments for the request: `tools`, or nothing while there are none."""
        shown = [each for each in steady(self.chat.surface(), self._kept) if each["name"] not in self._own_names]
        tools: list[Any] = [*self._own, *(completions.tool(each, longest=self._longest) for each in shown)]
        return {"tools": tools} if tools else {}

    async def results(self, completion: Any) -> list[ChatCompletionToolMessageParam] | None:
        """The messages that answer the calls in a completion, in their order; None when none is ours."""
        calls = [call for call in completions.calls(completion) if call.name not in self._own_names]
        messages: list[Any] = await answered(calls, self._answer)
        return messages or None

    def others(self, completion: Any) -> list[Call]:
        """The calls of your own tools: they are yours to answer."""
        theirs = [call for call in completions.calls(completion) if call.name in self._own_names]
        return [*theirs, *completions.custom_calls(completion)]

    def mended(self, messages: Sequence[Any]) -> list[ChatCompletionMessageParam]:
        """A history that was trimmed, as the API takes it."""
        return completions.mended(messages)

    def rebuild(self, messages: Sequence[Any]) -> Rebuilt:
        """Loads what this history called, in its order, in the place of what was loaded."""
        return rebuilt(self.chat, completions.uses(messages), self._own_names)

    def fork(
        self,
        name: str,
        *,
        inherit: bool = True,
        allow: Sequence[str] | None = None,
        own: Iterable[ChatCompletionToolUnionParam] | None = None,
    ) -> ChatCompletionsTools:
        """The tools of a sub-agent: with what is loaded here or nothing, and never more than `allow`."""
        chat = forked(self.chat, name, inherit=inherit, allow=allow)
        theirs: Any = self._own if own is None else own
        return ChatCompletionsTools(chat, theirs, longest=self._longest)

    async def _answer(self, call: Call) -> Json:
        if call.problem:
            return completions.failure(call, call.problem)
        return completions.result(call, await self.chat.call(call.name, call.arguments))
