"""Tools for a loop that you write yourself with the `anthropic` SDK: build `tools`, send, run what was called, go on.

Where the model can, tools are deferred natively: the search answers with references, and the API puts the definitions
where these stand, so the cached prefix never changes. Elsewhere the list is the conversation's own. Above: your loop.
Below: `dialects.messages`, a conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from pegboard.board.state import names_of
from pegboard.integrations import needs
from pegboard.integrations.dialects import messages as wire
from pegboard.integrations.dialects.mend_messages import mended
from pegboard.integrations.dialects.plain import Call, plain
from pegboard.integrations.dialects.turn import (
    Rebuilt,
    answered,
    beside,
    checked,
    forked,
    rebuilt,
    steady,
    without_trace,
)
from pegboard.integrations.dialects.uses import CALLS, OWN
from pegboard.platform_tools.definitions import SEARCH
from pegboard.surface.compose import Reason, Surface
from pegboard.surface.models import messages_defers
from pegboard.types import Json

with needs("anthropic"):
    from anthropic.types import MessageParam, ToolResultBlockParam, ToolUnionParam

if TYPE_CHECKING:
    from pegboard.board import Chat, Result

ADDITIONS = wire.ADDITIONS
"""The beta header's value that `AnthropicTools.additions` needs."""


class Arguments(TypedDict, total=False):
    """What a request takes: `messages.create(..., **arguments)`."""

    tools: list[ToolUnionParam]


class AnthropicTools:
    """The tools of one conversation, for `messages.create` and `messages.stream`.

    `own` are tools that you run yourself: they come first and stay as they are. `native` None decides by the model's
    name. `cache` puts a cache marker that lasts so long on the last tool that is not deferred; markers on your own
    tools move there too.
    """

    def __init__(
        self,
        chat: Chat,
        own: Iterable[ToolUnionParam] = (),
        *,
        native: bool | None = None,
        cache: Literal["5m", "1h"] | None = None,
    ) -> None:
        self.chat = chat
        self._own = checked([plain(each) for each in own], lambda each: str(each.get("name", "")))
        self._own_names = frozenset(str(each["name"]) for each in self._own if "name" in each)
        self._forced, self._native, self._cache = native, native is not False, cache
        self._surface: Surface | None = None
        self._kept: dict[str, Json] = {}
        """Pegboard's own tools, as they were first sent."""
        self._traced: frozenset[str] | None = None
        """Tools that the history speaks of, as far as it was shown to us."""
        self._carried: tuple[str, ...] | None = None
        """Loaded before this history began, so nothing in it speaks of them: they are on the list."""
        self._referenced: dict[str, Json] = {}
        """What the history refers to, each as it was last sent: it must be sent with every request."""

    def tools(self, model: str, messages: Sequence[Any] | None = None) -> Arguments:
        """Arguments for the request: `tools`, or nothing while there are none.

        Give the history where this object has not seen all of it: after a restart, or when it was begun elsewhere.
        """
        # From native to not there is a way, `mended`; there is none back, and a prefix is not changed for nothing.
        self._native = self._native and (messages_defers(model) if self._forced is None else self._forced)
        surface = self._surface = self.chat.surface()
        if messages is not None:
            self._refer_all(messages)
            self._traced = self._traced or frozenset(wire.uses(messages))
        if self._carried is None:
            spoken_of = {*(self._traced or ()), *self._referenced, *self._own_names}
            self._carried = without_trace(surface, spoken_of)
        marker = {"type": "ephemeral", "ttl": self._cache} if self._cache else None
        tools: list[Any] = wire.with_marker([*self._own, *self._listed(surface)], marker)
        return {"tools": tools} if tools else {}

    async def results(self, message: Any) -> list[ToolResultBlockParam] | None:
        """What the next user message says to the calls in this one, in their order; None when none is ours.

        A turn that was paused has none: send it back as it is. One that was cut off has its calls refused.
        """
        calls = [call for call in wire.calls(message) if call.name not in self._own_names]
        if not calls:
            return None
        blocks: list[Any] = await answered(calls, self._answer)
        self._refer(wire.references([{"role": "user", "content": blocks}]))
        return blocks

    def others(self, message: Any) -> list[Call]:
        """The calls of your own tools: their results belong into the same user message."""
        return [call for call in wire.calls(message) if call.name in self._own_names]

    def additions(self) -> MessageParam | None:
        """A message that shows the model what your code loaded meanwhile, with no search of its own; None: nothing.

        It stands right after a user's turn, needs the beta `ADDITIONS`, and a model that knows it.
        """
        surface = self._surface or self.chat.surface()
        loaded = [name for name in reversed(names_of(self.chat.state())) if name in surface.permitted]
        new = [name for name in loaded if name not in self._referenced and not self._is_listed(name)]
        if not new or not self._native:
            return None
        self._refer(new)
        return cast("MessageParam", wire.addition(new))

    def mended(self, messages: Sequence[Any]) -> list[MessageParam]:
        """A history that was trimmed, or begun on another model, as the API takes it."""
        return mended(messages, references=self._native)

    def rebuild(self, messages: Sequence[Any]) -> Rebuilt:
        """Loads what this history found and called, in its order, in the place of what was loaded."""
        done = rebuilt(self.chat, wire.uses(messages), self._own_names)
        self.compacted(messages)
        return done

    def compacted(self, messages: Sequence[Any]) -> None:
        """From here on the history is this one: what is loaded and not to be seen in it goes on the list."""
        self._referenced, self._kept, self._carried = {}, {}, None
        self._refer_all(messages)
        self._traced = frozenset(wire.uses(messages))

    def fork(
        self,
        name: str,
        *,
        inherit: bool = True,
        allow: Sequence[str] | None = None,
        own: Iterable[ToolUnionParam] | None = None,
    ) -> AnthropicTools:
        """The tools of a sub-agent: with what is loaded here or nothing, and never more than `allow`."""
        chat = forked(self.chat, name, inherit=inherit, allow=allow)
        theirs: Any = self._own if own is None else own
        return AnthropicTools(chat, theirs, native=self._forced, cache=self._cache)

    async def _answer(self, call: Call) -> Json:
        if call.problem:
            return wire.failure(call, call.problem)
        result = await self.chat.call(call.name, call.arguments)
        if not self._native or result.is_error:
            return wire.result(call, result)
        if call.name == SEARCH and result.found:
            here = [name for name in result.found if self._is_listed(name)]
            new = [name for name in result.found if name not in here]
            notes = [f"Already among your tools: {', '.join(here)}."] if here else []
            return wire.found(call, new, "\n\n".join([*notes, *filter(None, [beside(result.text)])]))
        return wire.result(call, result, [name for name in self._loaded_by(call, result) if not self._is_listed(name)])

    def _loaded_by(self, call: Call, result: Result) -> Sequence[str]:
        """What a good call loads that was no search: the tools of a skill; itself, where nothing refers to it yet."""
        if call.name in OWN:
            return result.found
        tool = self.chat.knows(call.name)
        return [tool.public_name] if tool and tool.public_name not in self._referenced else []

    def _is_listed(self, name: str) -> bool:
        """Whether the model has it without a reference."""
        if name in self._referenced or self._surface is None:
            return name in self._own_names
        reason = self._surface.reasons.get(name, Reason.ACTIVE)
        return name in self._own_names or name in (self._carried or ()) or reason is not Reason.ACTIVE

    def _refer_all(self, messages: Sequence[Any]) -> None:
        self._refer(wire.references(messages))
        # What the API itself searched among is the business of whoever declared it, unless it is ours.
        self._refer(name for name in wire.searched(messages) if self.chat.knows(name))

    def _refer(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._own_names and name not in self._referenced:
                self._referenced[name] = wire.gone(name)

    def _listed(self, surface: Surface) -> list[Json]:
        """Pegboard's part of the list: what is resident, then what the history refers to."""
        shown = [each for each in steady(surface, self._kept) if each["name"] not in self._own_names]
        if not self._native:
            return [wire.tool(each) for each in shown]
        resident = [wire.tool(each) for each in shown if self._stays(str(each["name"]), surface)]
        names = [name for name in self._carried or () if name not in self._referenced]
        resident += [wire.tool(each) for each in map(self.chat.definition, names) if each]
        for name in self._referenced:
            definition = self.chat.definition(name)
            if definition and definition["name"] == name:
                self._referenced[name] = wire.tool(definition, deferred=True)
        deferred = list(self._referenced.values())
        if deferred and not resident and all(each.get("defer_loading") for each in self._own):
            del deferred[-1]["defer_loading"]  # not all tools may be deferred
        return [*resident, *deferred]

    def _stays(self, name: str, surface: Surface) -> bool:
        """Whether a tool that is shown is in the prefix of every request."""
        if surface.verdict.deferring and (name in CALLS or surface.reasons[name] is Reason.ACTIVE):
            return False
        return name not in self._referenced and name not in (self._carried or ())
